"""Op registrations and Python bindings of a tree: TORCH_LIBRARY*, RegisterOperators, pybind11, method tables."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reducer.syntax.cxx import is_cxx
from reducer.syntax.cxx_chunks import Chunk, chunks
from reducer.syntax.cxx_conditionals import matching
from reducer.syntax.cxx_schemas import op_name
from reducer.syntax.cxx_tokens import TokenFile, token_file
from reducer.tree import SourceTree

_CALLS = re.compile(r"def\w*|impl|op")
_LITERAL = re.compile(r'(?:u8|[uUL])?(?:R"([^()\\\s]{0,16})\((.*)\)\1"|"((?:\\.|[^"\\])*)"?)\Z', re.S)
_ESCAPES = {"n": "\n", "t": "\t", "0": "\0"}
_WRAPPERS = {"TORCH_FN", "TORCH_FN_TYPE", "wrap_pybind_function", "wrap_pybind_function_no_gil"}


@dataclass(frozen=True, slots=True)
class OpRegistration:
    """One ``m.def`` or ``m.impl``; ``chunk`` is the line, or the link of a chain.

    ``name`` includes an overload name (``size.one``). ``schema`` is the whole schema string of a ``def`` that has
    one; ``function`` the implementing C++ function as written (``ns::f``), None for a lambda or a bare schema;
    ``key`` the dispatch key of the block, "" for the catch-all. ``call`` is the function called (``def``, ``impl``,
    ``op``, …), ``arguments`` are the token ranges of its arguments, ``literal`` is the token of the (first) string.
    """

    namespace: str
    name: str
    schema: str | None
    function: str | None
    key: str
    path: str
    chunk: int  # index into chunks(tree[path])
    call: str
    literal: int
    arguments: tuple[tuple[int, int], ...]

    @property
    def implements(self) -> bool:
        """True for an ``impl``: it needs a ``def`` of the same name somewhere."""
        return self.schema is None and self.key != ""


@dataclass(frozen=True, slots=True)
class Binding:
    """One name given to Python by pybind11 or a method table. ``function``: as written, None for a lambda; ``call``:
    ``row`` in a table; positions as in an OpRegistration."""

    name: str
    function: str | None
    path: str
    chunk: int
    call: str
    literal: int
    arguments: tuple[tuple[int, int], ...]


def ops(tree: SourceTree) -> list[OpRegistration]:
    """Every op registration of the tree, in file order."""
    return [item for item in _registrations(tree) if isinstance(item, OpRegistration)]


def bindings(tree: SourceTree) -> list[Binding]:
    """Every Python binding of the tree, in file order."""
    return [item for item in _registrations(tree) if isinstance(item, Binding)]


def _registrations(tree: SourceTree) -> list[OpRegistration | Binding]:
    found: list[OpRegistration | Binding] = []
    for path in tree:
        if is_cxx(path):
            found += registrations_of(path, tree[path])
    return found


def registrations_of(path: str, content: bytes) -> list[OpRegistration | Binding]:
    """The registrations of one file."""
    pieces = chunks(content)
    file = token_file(content)
    found: list[OpRegistration | Binding] = []
    split = {piece.parent for piece in pieces if piece.kind == "link"}
    for index, piece in enumerate(pieces):
        if piece.kind == "row":
            found += _row(path, file, piece, index)
        elif piece.kind in ("statement", "link", "variable") and index not in split:
            found += _calls(path, file, pieces, index)
    return found


def _row(path: str, file: TokenFile, piece: Chunk, index: int) -> list[OpRegistration | Binding]:
    """A row of a method table: ``{"name", function, …},``."""
    opening, _ = file.within(piece.start, piece.end)
    arguments = _arguments(file, opening)
    name = _value(file, arguments[0]) if arguments else None
    if name is None:
        return []
    function = _function(file, *arguments[1]) if len(arguments) > 1 else None
    literal = _literals(file, arguments[0])[0]
    return [Binding(name, function, path, index, "row", literal, tuple(arguments))]


def _calls(path: str, file: TokenFile, pieces: tuple[Chunk, ...], index: int) -> list[OpRegistration | Binding]:
    """The registrations in one statement, in a link of a chain, or in the initialiser of a variable."""
    piece = pieces[index]
    if piece.kind == "variable" and b"RegisterOperators" not in file.content[piece.start : piece.end]:
        return []
    namespace, key, is_op = _context(file, pieces, piece)
    if piece.kind != "variable" and _of_class(file.content, pieces, piece):
        is_op = False
    found: list[OpRegistration | Binding] = []
    first, last = file.within(piece.start, piece.end)
    for position in range(first, last + 1):
        call = file.text(position)
        opening = _opening(file, position + 1, last)
        if file.kind(position) != "word" or opening is None:
            continue
        before = file.text(position - 1) if position > first else ""
        called = _CALLS.fullmatch(call) and before in (".", "->")
        constructed = "RegisterOperators" in (call, before)
        if not called and not constructed:
            continue
        arguments = _arguments(file, opening)
        named = next((a for a in arguments if _value(file, a) is not None), None)
        name = _value(file, named) if named is not None else None
        if name is None or named is None:
            continue
        function = next((f for a in arguments[1:] or arguments if (f := _function(file, *a)) is not None), None)
        place = (path, index, call, _literals(file, named)[0], tuple(arguments))
        if constructed or call == "op" or is_op:
            head = op_name(name)
            if head is not None:
                schema = name if head.declares else None
                default = "" if call != "impl" else key or "CompositeImplicitAutograd"
                found.append(OpRegistration(head.namespace or namespace, head.name, schema, function, default, *place))
        else:
            found.append(Binding(name, function, *place))
    return found


def _context(file: TokenFile, pieces: tuple[Chunk, ...], piece: Chunk) -> tuple[str, str, bool]:
    """(op namespace, dispatch key, whether these are op registrations) from the block around a piece."""
    parent = piece.parent
    while parent is not None:
        block = pieces[parent]
        if block.kind == "registration":
            first, last = file.within(block.start, block.end)
            opening = next(i for i in range(first, last + 1) if file.text(i) == "(")
            words = ["".join(t.text for t in file.tokens[a : b + 1]) for a, b in _arguments(file, opening)]
            is_impl = file.text(opening - 1).endswith("_IMPL")
            return (words[0] if words else ""), (words[1] if is_impl and len(words) > 1 else ""), True
        if block.kind == "module":
            return "", "", False
        if block.kind == "function" and block.body:
            return "", "", re.search(rb"\bLibrary\b", file.content[block.start : block.body[0]]) is not None
        parent = block.parent
    return "", "", False


def _of_class(content: bytes, pieces: tuple[Chunk, ...], piece: Chunk) -> bool:
    """True for a method given to a bound class: a link of ``m.class_<T>("T").def(...)``."""
    whole = pieces[piece.parent] if piece.kind == "link" and piece.parent is not None else piece
    return re.match(rb"[^\"]*\bclass_\s*<", content[whole.start : whole.end]) is not None


def _opening(file: TokenFile, position: int, last: int) -> int | None:
    """The index of the ``(`` or ``{`` of a call whose name ends before ``position``, past template arguments."""
    if position <= last and file.kind(position) == "word":  # RegisterOperators name(...)
        if file.text(position - 1) != "RegisterOperators":
            return None
        position += 1
    depth = 0
    while position <= last:
        text = file.text(position)
        depth += (text == "<") - (text == ">")
        if depth == 0 and text != ">":
            return position if text in ("(", "{") else None
        if text in (";", "{"):
            return None
        position += 1
    return None


def _arguments(file: TokenFile, opening: int) -> list[tuple[int, int]]:
    """The token ranges of the arguments of the call, or of the entries of the list, whose bracket is ``opening``."""
    close = matching(file.tokens, opening)
    return [part for part in file.split(opening + 1, close - 1) if part[0] <= part[1]]


def _literals(file: TokenFile, argument: tuple[int, int]) -> list[int]:
    return [i for i in range(argument[0], argument[1] + 1) if file.kind(i) == "string"]


def _value(file: TokenFile, argument: tuple[int, int]) -> str | None:
    """The value of the string literals in an argument, joined as C++ joins neighbours; None without any."""
    first, last = argument
    literals = _literals(file, argument)
    if not literals or file.text(first) == "[":
        return None
    if len(literals) <= last - first and literals[0] == first:
        literals = literals[:1]
    value = ""
    for match in (_LITERAL.match(file.text(i)) for i in literals):
        if match is not None and match[2] is not None:
            value += match[2]
        elif match is not None:
            value += re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), match[3] or "", flags=re.S)
    return value


def _function(file: TokenFile, first: int, last: int) -> str | None:
    """The function that an argument names: ``&f``, ``f``, ``TORCH_FN(f)``, ``static_cast<...>(&ns::f)``."""
    if first > last or file.text(first) == "[":
        return None
    for position in range(first, last):
        unary = position == first or file.text(position - 1) in ("(", ",", "<", "=")
        if file.text(position) == "&" and unary and (name := _qualified(file, position + 1, last)):
            return name
        if file.text(position) in _WRAPPERS and (name := _qualified(file, position + 2, last)):
            return name
    if file.kind(first) == "word" and file.text(first).endswith("_cast"):
        inner = next((i for i in range(first, last + 1) if file.text(i) == "("), last + 1)
        return _qualified(file, inner + 1, last) or None
    if file.text(first) == "(":  # a C cast, or the name in parentheses
        close = matching(file.tokens, first, last + 1)
        return _function(file, close + 1, last) if close < last else _function(file, first + 1, close - 1)
    name = _qualified(file, first, last)
    rest = (i for i in range(first, last + 1) if file.text(i) not in ("::", "<", ">", ","))
    return name if name and all(file.kind(i) == "word" for i in rest) else None


def _qualified(file: TokenFile, position: int, last: int) -> str:
    """The ``a::b::c`` that starts at ``position``; "" when none does."""
    parts: list[str] = []
    if file.text(position) == "::":
        position += 1
    while position <= last and file.kind(position) == "word":
        parts.append(file.text(position))
        if position + 1 > last or file.text(position + 1) != "::":
            break
        position += 2
    return "::".join(parts)
