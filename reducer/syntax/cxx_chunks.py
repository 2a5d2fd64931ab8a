"""The declarations of a C++ file, found by balanced brackets alone: namespaces, classes, members, registration lines.

This needs no compiler and no headers, so it sees code inside macros, inactive #if branches and files that do not
parse. What refers to what is libclang's business (``reducer.slicing.cxx``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from reducer.syntax.cxx_conditionals import Conditionals, matching
from reducer.syntax.cxx_tokens import Token, code_tokens, directive_name

ChunkKind = Literal[
    "namespace", "linkage", "class", "enum", "function", "variable", "alias", "using", "using-namespace", "macro",
    "registration", "module", "statement", "link", "row", "call", "other",
]  # fmt: skip

REGISTRATION_MACROS = frozenset({"TORCH_LIBRARY", "TORCH_LIBRARY_FRAGMENT", "TORCH_LIBRARY_IMPL"})
MODULE_MACROS = frozenset({"PYBIND11_MODULE", "NB_MODULE", "BOOST_PYTHON_MODULE"})
_CLASS_KEYS = frozenset({"class", "struct", "union", "enum"})
_NOT_A_NAME = {
    "__attribute__", "__declspec", "alignas", "decltype", "noexcept", "explicit", "requires", "throw",
    "__launch_bounds__", "sizeof", "typeof", "__typeof__", "alignof", "asm", "_Pragma", "__pragma", "if", "while",
    "for", "switch", "return",
}  # fmt: skip
_AFTER_PARAMETERS = {
    "const", "noexcept", "override", "final", "try", "requires", "volatile", "mutable", "throw", "->", ":", "{", ";",
    "=", ",", "(", "[", ".",
}  # fmt: skip
_BLOCK_WORDS = {
    "if", "for", "while", "do", "switch", "try",
}  # fmt: skip
_LINK = re.compile(r"def\w*|impl|op|value|export_values")
_TABLES = frozenset({"PyMethodDef", "PyGetSetDef", "PyMemberDef"})
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


@dataclass(slots=True)
class _Declaration:
    """What the scan of one declaration has seen so far."""

    key: str = ""  # class, struct, union or enum
    key_at: int = -1
    parameters: int | None = None
    operator_at: int | None = None
    assigned: bool = False
    body: tuple[int, int] | None = None
    names: list[int] = field(default_factory=list)


class _Reader:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.tokens = code_tokens(content)
        self.found: list[Chunk] = []
        self.limit = len(self.tokens)  # the end of the innermost container that is being read

    def text(self, index: int) -> str:
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def word(self, index: int) -> bool:
        return 0 <= index < len(self.tokens) and self.tokens[index].kind == "word"

    def closing(self, index: int, end: int) -> int:
        return matching(self.tokens, index, end)

    def add(self, kind: ChunkKind, first: int, last: int, parent: int | None, scope: tuple[str, ...]) -> Chunk:
        last = max(first, min(last, self.limit - 1))
        chunk = Chunk(kind, self.tokens[first].start, self.tokens[last].end, (), scope, parent)
        self.found.append(chunk)
        return chunk

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
                index = max(index + 1, self.one(index, end, parent, scope, in_class))
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

    def one(self, first: int, end: int, parent: int | None, scope: tuple[str, ...], in_class: bool) -> int:
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
        if self.word(at) and self.text(at + 1) == "(" and lead not in _NOT_A_NAME:
            close = self.closing(at + 1, end)
            if self.bare_call(close, end):
                chunk = self.add("call", first, close, parent, scope)
                return close + 1
        return self.declaration(first, at, end, parent, scope, specialised, in_class)

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

    def semicolon(self, at: int, end: int) -> int:
        """The index of the next ``;`` outside brackets, or the last token before a closing brace."""
        position = at
        while position < end:
            text = self.text(position)
            if text == ";":
                return position
            if text in ("(", "[", "{"):
                position = self.closing(position, end)
            elif text == "}":
                return max(at, position - 1)
            position += 1
        return max(at, end - 1)

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
        self, first: int, at: int, end: int, parent: int | None, scope: tuple[str, ...], special: bool, in_class: bool
    ) -> int:
        seen = _Declaration()
        last = self.scan(at, end, seen)
        body = seen.body
        own = seen.names
        inner: tuple[str, ...] = scope
        kind: ChunkKind = "variable"
        if seen.key and (body is not None or self.forward(seen, last)) and seen.parameters is None:
            kind = "enum" if seen.key == "enum" else "class"
            named = self.class_name(seen, last)
            special = special or self.text(named + 1) == "<"
            own = [*([named] if named >= 0 else []), *(seen.names if body else [])]
            scope = (*scope, *self.qualifiers(named)) if named >= 0 else scope
            inner = (*scope, self.text(named)) if named >= 0 else scope
            if kind == "enum" and body:
                own = own + self.enumerators(body)
        elif seen.parameters is not None:
            kind = "function"
            named = self.function_name(seen)
            special = special or (named >= 0 and self.text(named + 1) == "<")
            own = [named] if named >= 0 else []
            scope = (*scope, *self.qualifiers(named)) if named >= 0 else scope
        elif not own:
            kind = "other"
        chunk = self.add(kind, first, last, parent, scope)
        chunk.specialised = special
        self.name(chunk, own)
        if seen.operator_at is not None and kind == "function":
            chunk.names = ("operator",)
        elif kind == "function" and own and self.text(own[0] - 1) == "~":
            chunk.names = ("~" + chunk.names[0],)
        if body is not None:
            self.inside(chunk, *body)
            index = len(self.found) - 1
            if kind == "class":
                self.scope(body[0] + 1, body[1], index, inner, in_class=True)
            elif kind == "function":
                if chunk.names and chunk.names[0].startswith("PyInit_"):
                    chunk.kind = "module"
                elif self.takes_module(seen, end):
                    self.statements(body[0] + 1, body[1], index, scope)
        if kind == "variable":
            self.table(at, last, len(self.found) - 1, scope)
        return last + 1

    def scan(self, at: int, end: int, seen: _Declaration) -> int:
        """Walk one declaration from token ``at``; the index of its last token."""
        skip = Conditionals()
        position = at
        while position < end:
            token = self.tokens[position]
            text = token.text
            if token.kind == "directive":
                if directive_name(text) in ("include", "define", "pragma", "undef") and skip.depth == 0:
                    return max(at, position - 1)
                skip.see(token)
            elif skip.skipping:
                pass
            elif text == "operator" and not seen.assigned:
                seen.operator_at = position
                position = self.operator(position, end)
                if self.text(position) == "(":
                    seen.parameters = seen.parameters if seen.parameters is not None else position
                continue
            elif text == "(":
                before = self.text(position - 1)
                named = (self.word(position - 1) and before not in _NOT_A_NAME) or (
                    before == ">" and self.angle_back(position - 1) is not None
                )
                if seen.parameters is None and not seen.assigned and named and position > at:
                    seen.parameters = position
                position = self.closing(position, end)
            elif text == "[":
                self.declarator(position, seen)
                position = self.closing(position, end)
            elif text == "<" and self.word(position - 1) and not seen.assigned:
                position = self.angle(position, end) or position
            elif text == "{":
                stop = self.braces(position, end, seen)
                if stop is not None:
                    return stop
                position = self.closing(position, end)
            elif text == ";":
                self.declarator(position, seen)
                return position
            elif text == "}":
                return max(at, position - 1)
            elif text in ("=", ",", ":"):
                self.declarator(position, seen)
                seen.assigned = text == "=" or (seen.assigned and text != ",")
            elif text in _CLASS_KEYS and not seen.key and seen.parameters is None and not seen.assigned:
                seen.key, seen.key_at = text, position
            position += 1
        return max(at, end - 1)

    def braces(self, position: int, end: int, seen: _Declaration) -> int | None:
        """Judge the ``{`` at ``position``: the last token of the declaration, or None when it goes on behind ``}``."""
        close = self.closing(position, end)
        following = self.text(close + 1) if close + 1 < end else ""
        if seen.key and seen.body is None and seen.parameters is None and not seen.assigned:
            seen.body = (position, close)
            seen.names.clear()
            goes_on = following in (";", "*", "&", "=") or (self.word(close + 1) and following not in _CLASS_KEYS)
            return None if goes_on and close + 1 < end else close
        if seen.parameters is None:
            self.declarator(position, seen)
        is_body = seen.parameters is not None and not seen.assigned and following not in (",", "{")
        if is_body:
            seen.body = (position, close)
        if following == ";":
            return close + 1
        if following == "catch" or not is_body:
            return None if following else close
        return close

    def declarator(self, delimiter: int, seen: _Declaration) -> None:
        """Note the variable whose name stands before a delimiter."""
        if self.word(delimiter - 1) and seen.parameters is None and not seen.assigned:
            seen.names.append(delimiter - 1)

    def operator(self, position: int, end: int) -> int:
        """The index of the ``(`` of the parameters of ``operator...``."""
        position += 1
        if self.text(position) == "(" and self.text(position + 1) == ")":
            position += 2
        while position < end and self.text(position) not in ("(", ";", "{"):
            position += 1
        return position

    def angle(self, opening: int, end: int) -> int | None:
        """The index of the ``>`` that closes the ``<`` at ``opening``; None when it is a comparison."""
        depth = 0
        position = opening
        while position < end:
            text = self.text(position)
            if text == "<":
                depth += 1
            elif text == ">":
                depth -= 1
                if depth == 0:
                    return position
            elif text in ("(", "[", "{"):
                position = self.closing(position, end)
            elif text in (";", "}", ")", "&&", "||") and text != "&&":
                return None
            position += 1
        return None

    def angle_back(self, closing: int) -> int | None:
        """The index of the ``<`` that the ``>`` at ``closing`` closes."""
        depth = 0
        for position in range(closing, -1, -1):
            text = self.text(position)
            depth += (text == ">") - (text == "<")
            if depth == 0:
                return position
            if text in (";", "{", "}"):
                return None
        return None

    def function_name(self, seen: _Declaration) -> int:
        assert seen.parameters is not None
        if seen.operator_at is not None:
            return seen.operator_at
        index = seen.parameters - 1
        if self.text(index) == ">":
            opening = self.angle_back(index)
            index = index if opening is None else opening - 1
        return index if self.word(index) else -1

    def forward(self, seen: _Declaration, last: int) -> bool:
        """True for ``class A;`` and ``enum class E : int;``: no declarator stands behind the name."""
        if self.text(last) != ";" or seen.assigned:
            return False
        words = [i for i in range(seen.key_at + 1, last) if self.word(i) and self.text(i) not in _CLASS_KEYS]
        plain = all(self.text(i) not in ("*", "&", "[") for i in range(seen.key_at, last))
        shouting = sum(self.text(i).isupper() or self.text(i + 1) == "(" for i in words[:-1])
        colon = any(self.text(i) == ":" for i in range(seen.key_at, last))
        qualified = any(self.text(i) == "::" for i in range(seen.key_at, last))
        return plain and (len(words) - shouting == 1 or (colon and seen.key == "enum") or qualified)

    def class_name(self, seen: _Declaration, last: int) -> int:
        """The index of the class's name, or -1 for an unnamed one."""
        stop = seen.body[0] if seen.body else last
        named = -1
        position = seen.key_at + 1
        while position < stop:
            text = self.text(position)
            if text == ":":
                break
            if text in ("(", "["):
                position = self.closing(position, stop)
            elif text == "<":
                position = self.angle(position, stop) or position
            elif self.word(position) and text not in _CLASS_KEYS and text != "final":
                named = position if text not in _NOT_A_NAME else named
            position += 1
        return named

    def qualifiers(self, named: int) -> tuple[str, ...]:
        """``("A", "B")`` for the name in ``A::B<T>::f``."""
        found: list[str] = []
        position = named - 1
        if self.text(position) == "~":
            position -= 1
        while self.text(position) == "::":
            position -= 1
            if self.text(position) == ">":
                position = (self.angle_back(position) or position) - 1
            if not self.word(position):
                break
            found.insert(0, self.text(position))
            position -= 1
        return tuple(found)

    def enumerators(self, body: tuple[int, int]) -> list[int]:
        found: list[int] = []
        expected = True
        position = body[0] + 1
        while position < body[1]:
            text = self.text(position)
            if expected and self.word(position):
                found.append(position)
                expected = False
            elif text == ",":
                expected = True
            elif text in ("(", "{", "["):
                position = self.closing(position, body[1])
            position += 1
        return found

    def name(self, chunk: Chunk, indices: list[int]) -> None:
        chunk.names = tuple(self.text(i) for i in indices)
        chunk.name_offsets = tuple(self.tokens[i].start for i in indices)

    def takes_module(self, seen: _Declaration, end: int) -> bool:
        """True for ``void init(py::module& m)`` and ``void register_ops(torch::Library& m)``."""
        assert seen.parameters is not None
        close = self.closing(seen.parameters, end)
        inside = self.content[self.tokens[seen.parameters].start : self.tokens[close].end]
        return _HANDLES.search(inside) is not None

    def statements(self, index: int, end: int, parent: int, scope: tuple[str, ...]) -> None:
        """The statements of a registration block, chained calls split into links."""
        outer, self.limit = self.limit, end
        while index < end:
            if self.tokens[index].kind == "directive" or self.text(index) == ";":
                index += 1
                continue
            last = self.statement_end(index, end)
            chunk = self.add("statement", index, last, parent, scope)
            self.name(chunk, self.locals_of(index, last))
            self.links(index, last, len(self.found) - 1, scope)
            index = last + 1
        self.limit = outer

    def statement_end(self, index: int, end: int) -> int:
        block = self.text(index) in _BLOCK_WORDS or self.text(index) == "{"
        position = index
        while position < end:
            text = self.text(position)
            if text == ";":
                return position
            if text in ("(", "["):
                position = self.closing(position, end)
            elif text == "{":
                position = self.closing(position, end)
                following = self.text(position + 1)
                if block and following not in ("else", "catch", "while"):
                    return position
            position += 1
        return end - 1

    def locals_of(self, index: int, last: int) -> list[int]:
        """The variable that a statement declares, if any."""
        position = index
        while position <= last:
            text = self.text(position)
            if text == "<" and self.word(position - 1):
                position = self.angle(position, last) or position
            elif text in ("=", "(", "{", ";"):
                typed = self.word(position - 2) or self.text(position - 2) in ("*", "&", ">")
                known = self.text(position - 2) not in ("return", "throw", "else", "new")
                return [position - 1] if self.word(position - 1) and position - 1 > index and typed and known else []
            elif text in (".", "->"):
                return []
            position += 1
        return []

    def links(self, index: int, last: int, parent: int, scope: tuple[str, ...]) -> None:
        """Split ``x.def(..).def(..)`` into its calls, where all of them are ones that can go by themselves."""
        spans: list[tuple[int, int]] = []
        position = index
        while position <= last:
            text = self.text(position)
            if text == "." and self.word(position + 1):
                opening = position + 2
                if self.text(opening) == "<":
                    opening = (self.angle(opening, last) or opening) + 1
                if self.text(opening) != "(" or not _LINK.fullmatch(self.text(position + 1)):
                    return
                close = self.closing(opening, last + 1)
                spans.append((position, close))
                position = close
            elif text in ("(", "[", "{"):
                position = self.closing(position, last + 1)
            elif spans and text != ";":
                return
            position += 1
        if not spans or (len(spans) == 1 and spans[0][0] == index + 1):
            return
        for first, close in spans:
            self.add("link", first, close, parent, scope)

    def table(self, at: int, last: int, parent: int, scope: tuple[str, ...]) -> None:
        """The rows of a PyMethodDef array and its like, the sentinel excepted; registration chains of a variable."""
        words = {self.text(i) for i in range(at, last)}
        if "RegisterOperators" in words:
            self.links(at, last, parent, scope)
        if not words & _TABLES:
            return
        opening = next((i for i in range(at, last) if self.text(i) == "{"), None)
        if opening is None:
            return
        position, end = opening + 1, self.closing(opening, last + 1)
        while position < end:
            if self.text(position) == "{":
                close = self.closing(position, end)
                final = close + 1 if self.text(close + 1) == "," else close
                if self.tokens[position + 1].kind == "string":
                    self.add("row", position, final, parent, scope)
                position = final
            position += 1
