"""The elements of the C++ dependency graph: chunks of all files, with the pieces of one thing put together."""

from __future__ import annotations

import posixpath
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from reducer.syntax.cxx import Span, includes_of, is_cxx, is_cxx_source, resolve_include
from reducer.syntax.cxx_chunks import Chunk, ChunkKind, chunks
from reducer.syntax.cxx_conditionals import balanced_conditionals, conditionals
from reducer.syntax.cxx_text import declaration_span
from reducer.syntax.cxx_tokens import Word, words
from reducer.tree import SourceTree


@dataclass(slots=True, eq=False)
class Node:
    """One chunk of one file. ``span`` is what a cut of it takes: comments above and whole lines included."""

    path: str
    chunk: Chunk
    index: int  # in chunks(tree[path])
    parent: int | None  # a node's number
    span: Span
    own: list[Word] = field(default_factory=list)  # the words outside inner nodes


class FileMap:
    """Finds the innermost node at a byte offset of one file."""

    def __init__(self, nodes: Sequence[Node], numbers: Sequence[int]) -> None:
        self._numbers = numbers
        self._nodes = nodes
        self._starts = [nodes[n].chunk.start for n in numbers]

    def at(self, offset: int, wide: bool = False) -> int | None:
        """The innermost node whose chunk holds ``offset``; with ``wide``, comments above count too."""
        found = bisect_right(self._starts, offset) - 1
        number: int | None = self._numbers[found] if found >= 0 else None
        while number is not None and not self._nodes[number].chunk.start <= offset < self._nodes[number].chunk.end:
            number = self._nodes[number].parent
        if wide and found + 1 < len(self._numbers):
            following = self._numbers[found + 1]
            span = self._nodes[following].span
            if span.start <= offset < span.end:
                return following
        return number

    def starting(self, start: int, end: int) -> Sequence[int]:
        """The nodes whose chunks begin in ``start:end``."""
        return self._numbers[bisect_left(self._starts, start) : bisect_left(self._starts, end)]


class Units:
    """Which source reads which file, from the include lines."""

    def __init__(self, tree: SourceTree, directories: Sequence[str] = ()) -> None:
        self.files = [p for p in tree if is_cxx(p)]
        self.includes: dict[str, list[str]] = {}
        for path in self.files:
            found = (resolve_include(tree, path, name, directories) for name, *_ in includes_of(tree[path]))
            self.includes[path] = [p for p in found if p is not None and p != path and is_cxx(p)]
        included = {p for targets in self.includes.values() for p in targets}
        self.sources = [p for p in self.files if is_cxx_source(p)]
        roots = [p for p in self.files if is_cxx_source(p) or p not in included]
        self.readers: dict[str, set[str]] = {p: set() for p in self.files}
        for root in roots:
            for path in self.closure(root):
                self.readers[path].add(root)

    def closure(self, path: str) -> list[str]:
        """The file and all that it includes, in the order in which a compiler reads them."""
        seen: dict[str, None] = {}
        stack = [path]
        while stack:
            current = stack.pop()
            if current not in seen:
                seen[current] = None
                stack.extend(reversed(self.includes.get(current, [])))
        return list(seen)

    def visible(self, here: str, there: str) -> bool:
        """True when some translation unit reads both files."""
        return here == there or not self.readers[here].isdisjoint(self.readers[there])


def nodes_of(tree: SourceTree, files: Iterable[str]) -> list[Node]:
    """The nodes of all files, with their own words and the ranges that a cut of them takes."""
    nodes: list[Node] = []
    for path in files:
        content = tree[path]
        base = len(nodes)
        for index, chunk in enumerate(chunks(content)):
            parent = None if chunk.parent is None else base + chunk.parent
            nodes.append(Node(path, chunk, index, parent, _cut_span(path, content, chunk)))
        _assign_words(content, nodes, base)
    return nodes


def _cut_span(path: str, content: bytes, chunk: Chunk) -> Span:
    if chunk.kind == "link":
        return Span(path, chunk.start, chunk.end)
    start, end = declaration_span(content, chunk.start, chunk.end)
    if not balanced_conditionals(content[start:end]):
        start, end = _over_conditionals(content, start, end)
    return Span(path, start, end)


def _over_conditionals(content: bytes, start: int, end: int) -> tuple[int, int]:
    """The smallest range around ``start:end`` that begins and ends outside every #if that it touches."""
    for item in sorted(conditionals(content), key=lambda c: c.lines[-1].end):  # inner ones before the ones around them
        first, last = item.lines[0].start, item.lines[-1].end
        cuts_through = first < end and last > start and not (first >= start and last <= end)
        if cuts_through and not _inside_one_branch(content, first, last, start, end):
            start, end = min(start, first), max(end, last)
    return start, end


def _inside_one_branch(content: bytes, begin: int, finish: int, start: int, end: int) -> bool:
    """True when ``start:end`` lies in one branch of the conditional ``begin:finish`` and holds none of its lines."""
    return begin < start and end < finish and balanced_conditionals(content[start:end])


def _assign_words(content: bytes, nodes: list[Node], base: int) -> None:
    """Give each word of a file to the innermost node around it."""
    where = FileMap(nodes, range(base, len(nodes)))
    for word in words(content):
        number = where.at(word.start)
        if number is not None:
            nodes[number].own.append(word)


def scope_key(node: Node) -> tuple[str, ...]:
    """What two pieces of one thing share when no compiler helps; unnamed namespaces and ``static`` stay per file."""
    scope = node.chunk.scope
    local = (posixpath.normpath(node.path),) if "" in scope else ()
    return (*local, *scope, node.chunk.names[0] if node.chunk.names else "")


class Groups:
    """Union-find over node numbers."""

    def __init__(self, size: int) -> None:
        self._leader = list(range(size))

    def find(self, number: int) -> int:
        while self._leader[number] != number:
            self._leader[number] = self._leader[self._leader[number]]
            number = self._leader[number]
        return number

    def unite(self, one: int, other: int) -> None:
        first, second = sorted((self.find(one), self.find(other)))
        self._leader[second] = first


MERGED_KINDS: frozenset[ChunkKind] = frozenset({"function", "class", "enum", "variable", "module"})
"""Kinds of things that may be written in several pieces."""
