"""The dependency graph of a tree's C++ declarations: elements, what each needs, and where they stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from reducer.slicing.cxx_elements import FileMap
from reducer.syntax.cxx import Span
from reducer.syntax.cxx_chunks import ChunkKind
from reducer.syntax.cxx_registrations import Binding, OpRegistration
from reducer.tree import SourceTree


@dataclass(frozen=True, slots=True)
class Element:
    """One declaration with all its pieces, or one registration line.

    ``spans`` are the bytes that go with it (comments above included). ``parents`` are the containers of its pieces.
    """

    kind: ChunkKind
    label: str
    names: tuple[str, ...]
    spans: tuple[Span, ...]
    parents: frozenset[int]
    registers: tuple[OpRegistration | Binding, ...] = ()


@dataclass(frozen=True, slots=True)
class CxxGraph:
    """``requires[i]``: the elements that must stay when i stays. ``brings[i]``: what a *slice* keeps along with i
    although no name refers to it: members that a class may use silently, specialisations, operators.
    """

    elements: tuple[Element, ...]
    requires: tuple[frozenset[int], ...]
    brings: tuple[frozenset[int], ...]
    tree: SourceTree = field(repr=False)
    _maps: dict[str, FileMap] = field(repr=False)
    _element_of: tuple[int, ...] = field(repr=False)

    def on_line(self, path: str, line: int) -> frozenset[int]:
        """The elements on a line (counted from 1): the innermost around its first word, and all that start on it."""
        content = self.tree.get(path)
        if content is None or path not in self._maps:
            return frozenset()
        lines = content.splitlines(keepends=True)
        if not 1 <= line <= len(lines):
            return frozenset()
        start = sum(map(len, lines[: line - 1]))
        text = lines[line - 1]
        around = self._maps[path].at(start + len(text) - len(text.lstrip()), wide=True)
        numbers = self._maps[path].starting(start, start + len(text))
        return frozenset(self._element_of[n] for n in (*numbers, *([] if around is None else [around])))

    def closure(self, start: Iterable[int], bring: bool = False) -> frozenset[int]:
        """``start`` and all that it requires (and, with ``bring``, what that brings along)."""
        seen: set[int] = set()
        stack = list(start)
        while stack:
            current = stack.pop()
            if current not in seen:
                seen.add(current)
                stack.extend(self.requires[current])
                if bring:
                    stack.extend(self.brings[current])
        return frozenset(seen)

    def registering(self, name: str) -> Iterator[int]:
        """The elements that register or bind ``name`` (``ns::op``, ``op``, ``op.overload`` or a binding's name)."""
        wanted = name.replace(".", "::").split("::")
        for index, element in enumerate(self.elements):
            for item in element.registers:
                full = [item.namespace] if isinstance(item, OpRegistration) and item.namespace else []
                parts = [*full, *item.name.split(".")]
                bare = [*full, item.name.split(".")[0]]
                if any(p[-len(wanted) :] == wanted or wanted[-len(p) :] == p for p in (parts, bare)):
                    yield index
                    break
