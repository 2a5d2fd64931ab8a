"""The declarations of a C++ file, found by balanced brackets alone: namespaces, classes, members, registration lines.

This needs no compiler and no headers, so it sees code inside macros, inactive #if branches and files that do not
parse. What refers to what is libclang's business (``reducer.slicing``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from reducer.syntax.cxx_declaration import NOT_A_NAME, read_declaration
from reducer.syntax.cxx_registration_lines import links, locals_of, rows, statement_end
from reducer.syntax.cxx_tokens import Token
from reducer.syntax.cxx_walk import Walk

ChunkKind = Literal[
    "namespace", "linkage", "class", "enum", "function", "variable", "alias", "using", "using-namespace", "macro",
    "registration", "module", "statement", "link", "row", "call", "other",
]  # fmt: skip

REGISTRATION_MACROS = frozenset({"TORCH_LIBRARY", "TORCH_LIBRARY_FRAGMENT", "TORCH_LIBRARY_IMPL"})
MODULE_MACROS = frozenset({"PYBIND11_MODULE", "NB_MODULE", "BOOST_PYTHON_MODULE"})
_AFTER_PARAMETERS = {
    "const", "noexcept", "override", "final", "try", "requires", "volatile", "mutable", "throw", "->", ":", "{", ";",
    "=", ",", "(", "[", ".",
}  # fmt: skip
_HANDLES = re.compile(rb"\b(?:module|module_|Library)\b")


@dataclass(slots=True, eq=False)
class Chunk:
    """One declaration, registration line or container.

    Bytes ``start:end`` include the template header and the trailing ``;``, not the comments above. ``names`` are
    what it declares, without qualifiers; ``scope`` the namespaces and classes around it, those of a qualified name
    included. ``parent`` is the index of the container in the file's list. ``body``: the bytes between the braces.
    """

    kind: ChunkKind
    start: int
    end: int
    names: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    parent: int | None = None
    body: tuple[int, int] | None = None
    specialised: bool = False  # a specialisation or an explicit instantiation of a template declared elsewhere
    name_offsets: tuple[int, ...] = field(default=())  # where the declared names are written

    @property
    def defines(self) -> bool:
        """True for a definition, as against a forward declaration."""
        return self.body is not None or self.kind not in ("function", "class", "enum")


@lru_cache(maxsize=256)
def chunks(content: bytes) -> tuple[Chunk, ...]:
    """The chunks of a file, containers before what they hold, else in file order."""
    reader = _Reader(content)
    reader.scope(0, len(reader.tokens), None, ())
    return tuple(reader.found)


class _Reader(Walk):
    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.found: list[Chunk] = []
        self.limit = len(self.tokens)  # the end of the innermost container that is being read

    def add(self, kind: ChunkKind, first: int, last: int, parent: int | None, scope: tuple[str, ...]) -> Chunk:
        last = max(first, min(last, self.limit - 1))
        chunk = Chunk(kind, self.tokens[first].start, self.tokens[last].end, (), scope, parent)
        self.found.append(chunk)
        return chunk

    def spans(self, kind: ChunkKind, parts: list[tuple[int, int]], parent: int, scope: tuple[str, ...]) -> None:
        for first, last in parts:
            self.add(kind, first, last, parent, scope)

    def scope(self, index: int, end: int, parent: int | None, scope: tuple[str, ...], in_class: bool = False) -> None:
        """Read declarations from token ``index`` up to ``end``."""
        outer, self.limit = self.limit, end
        while index < end:
            token = self.tokens[index]
            if token.kind == "directive":
                self.directive(token, parent, scope)
                index += 1
            elif token.text in (";", ")", "]", "}", ">", ",", ":"):
                index += 1
            elif in_class and token.kind == "word" and self.access(index):
                index += self.access(index)
            else:
                index = max(index + 1, self.one(index, end, parent, scope))
        self.limit = outer

    def access(self, index: int) -> int:
        """The length in tokens of ``public:`` and the like; 0 for anything else."""
        if self.text(index) not in ("public", "protected", "private", "signals"):
            return 0
        if self.text(index + 1) == ":":
            return 2
        return 3 if self.word(index + 1) and self.text(index + 2) == ":" else 0

    def directive(self, token: Token, parent: int | None, scope: tuple[str, ...]) -> None:
        match = re.match(r"#\s*define(?:\s|\\\n)+([A-Za-z_]\w*)", token.text, re.ASCII)
        if match:
            name = match[1]
            at = (token.start + match.start(1),)
            self.found.append(Chunk("macro", token.start, token.end, (name,), scope, parent, None, False, at))

    def one(self, first: int, end: int, parent: int | None, scope: tuple[str, ...]) -> int:
        """Read one declaration; the index behind it."""
        at = first
        specialised = False
        while self.text(at) == "template":
            if self.text(at + 1) != "<":
                specialised = True
                at += 1
                break
            close = self.angle(at + 1, end)
            if close is None:
                break
            specialised = close == at + 2
            at = close + 1
        while self.text(at) == "[" and self.text(at + 1) == "[":
            at = self.closing(at, end) + 1
        lead = self.text(at)
        if lead == "namespace" or (lead == "inline" and self.text(at + 1) == "namespace"):
            return self.namespace(first, at, end, parent, scope)
        if lead == "extern" and at + 1 < end and self.tokens[at + 1].kind == "string" and self.text(at + 2) == "{":
            close = self.closing(at + 2, end)
            chunk = self.add("linkage", first, close, parent, scope)
            self.inside(chunk, at + 2, close)
            self.scope(at + 3, close, len(self.found) - 1, scope)
            return close + 1
        if lead in ("using", "typedef"):
            return self.alias(first, at, end, parent, scope)
        if lead in REGISTRATION_MACROS | MODULE_MACROS and self.text(at + 1) == "(":
            return self.block(first, at, end, parent, scope)
        if self.word(at) and self.text(at + 1) == "(" and lead not in NOT_A_NAME:
            close = self.closing(at + 1, end)
            if self.bare_call(close, end):
                self.add("call", first, close, parent, scope)
                return close + 1
        return self.declaration(first, at, end, parent, scope, specialised)

    def inside(self, chunk: Chunk, opening: int, close: int) -> None:
        chunk.body = (self.tokens[opening].end, max(self.tokens[opening].end, self.tokens[close].start))

    def bare_call(self, close: int, end: int) -> bool:
        """True when ``MACRO(...)`` without ``;`` is all: a new line with something else, or nothing, follows."""
        if close + 1 >= end:
            return True
        following = self.tokens[close + 1]
        if b"\n" not in self.content[self.tokens[close].end : following.start]:
            return False
        return following.kind == "directive" or following.text not in _AFTER_PARAMETERS

    def namespace(self, first: int, at: int, end: int, parent: int | None, scope: tuple[str, ...]) -> int:
        position = at
        names: list[str] = []
        while position < end and self.text(position) not in ("{", "=", ";"):
            if self.text(position) in ("(", "["):
                position = self.closing(position, end)
            elif self.word(position) and self.text(position) not in ("namespace", "inline", "__attribute__"):
                names.append(self.text(position))
            position += 1
        if self.text(position) != "{" or position >= end:
            return self.alias(first, at, end, parent, scope)
        close = self.closing(position, end)
        chunk = self.add("namespace", first, close, parent, scope)
        chunk.names = tuple(names)
        self.inside(chunk, position, close)
        self.scope(position + 1, close, len(self.found) - 1, (*scope, *(names or [""])))
        return close + 1

    def alias(self, first: int, at: int, end: int, parent: int | None, scope: tuple[str, ...]) -> int:
        """using, typedef, namespace alias."""
        stop = self.semicolon(at, end)
        lead = self.text(at)
        chunk = self.add("alias", first, stop, parent, scope)
        names: list[int] = []
        if lead == "using" and self.text(at + 1) == "namespace":
            chunk.kind = "using-namespace"
        elif lead == "typedef":
            pointer = next((i for i in range(at, stop) if self.text(i) == "(" and self.text(i + 1) in ("*", "&")), None)
            words = range(pointer, stop) if pointer is not None else range(stop - 1, at, -1)
            names += [i for i in words if self.word(i) and self.text(i - 1) != "["][:1]
            if pointer is None and "{" in [self.text(i) for i in range(at, stop)]:
                names += [i for i in range(at, stop) if self.word(i) and self.text(i + 1) == "{"][:1]
                chunk.body = (self.tokens[at].start, self.tokens[stop].start)
        else:
            equals = [i for i in range(at, stop) if self.text(i) == "="]
            if equals:
                names += [i for i in range(equals[0] - 1, at, -1) if self.word(i)][:1]
            else:
                chunk.kind = "using"
                names += [i for i in range(at + 1, stop + 1) if self.word(i) and self.text(i + 1) in (";", ",")]
        self.name(chunk, names)
        return stop + 1

    def block(self, first: int, at: int, end: int, parent: int | None, scope: tuple[str, ...]) -> int:
        """TORCH_LIBRARY(...) { ... } and PYBIND11_MODULE(...) { ... }."""
        parameters = self.closing(at + 1, end)
        if self.text(parameters + 1) != "{":
            stop = self.semicolon(at, end)
            self.add("call", first, stop, parent, scope)
            return stop + 1
        close = self.closing(parameters + 1, end)
        module = self.text(at) in MODULE_MACROS
        chunk = self.add("module" if module else "registration", first, close, parent, scope)
        self.inside(chunk, parameters + 1, close)
        self.statements(parameters + 2, close, len(self.found) - 1, scope)
        return close + 1

    def declaration(
        self, first: int, at: int, end: int, parent: int | None, scope: tuple[str, ...], special: bool
    ) -> int:
        seen = read_declaration(self, at, end)
        scope = (*scope, *seen.qualifiers)
        chunk = self.add(seen.kind, first, seen.last, parent, scope)
        index = len(self.found) - 1
        chunk.specialised = special or seen.specialised
        self.name(chunk, seen.names)
        if seen.operator:
            chunk.names = ("operator",)
        elif seen.kind == "function" and seen.names and self.text(seen.names[0] - 1) == "~":
            chunk.names = ("~" + chunk.names[0],)
        if seen.body is not None:
            opening, close = seen.body
            self.inside(chunk, opening, close)
            if seen.kind == "class":
                self.scope(opening + 1, close, index, (*scope, *seen.inner), in_class=True)
            elif seen.kind == "function" and chunk.names and chunk.names[0].startswith("PyInit_"):
                chunk.kind = "module"
            elif seen.parameters is not None and self.takes_module(seen.parameters, end):
                self.statements(opening + 1, close, index, scope)
        if seen.kind == "variable":
            if "RegisterOperators" in {self.text(i) for i in range(at, seen.last)}:
                self.spans("link", links(self, at, seen.last), index, scope)
            self.spans("row", rows(self, at, seen.last), index, scope)
        return seen.last + 1

    def name(self, chunk: Chunk, indices: list[int]) -> None:
        chunk.names = tuple(self.text(i) for i in indices)
        chunk.name_offsets = tuple(self.tokens[i].start for i in indices)

    def takes_module(self, parameters: int, end: int) -> bool:
        """True for ``void init(py::module& m)`` and ``void register_ops(torch::Library& m)``."""
        close = self.closing(parameters, end)
        inside = self.content[self.tokens[parameters].start : self.tokens[close].end]
        return _HANDLES.search(inside) is not None

    def statements(self, index: int, end: int, parent: int, scope: tuple[str, ...]) -> None:
        """The statements of a registration block, chained calls split into links."""
        outer, self.limit = self.limit, end
        while index < end:
            if self.tokens[index].kind == "directive" or self.text(index) == ";":
                index += 1
                continue
            last = statement_end(self, index, end)
            chunk = self.add("statement", index, last, parent, scope)
            self.name(chunk, locals_of(self, index, last))
            self.spans("link", links(self, index, last), len(self.found) - 1, scope)
            index = last + 1
        self.limit = outer
