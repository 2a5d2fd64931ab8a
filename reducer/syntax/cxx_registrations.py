"""Op registrations and Python bindings of a tree: TORCH_LIBRARY*, RegisterOperators, pybind11, method tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from reducer.syntax.cxx import is_cxx
from reducer.syntax.cxx_chunks import Chunk, chunks
from reducer.syntax.cxx_conditionals import matching
from reducer.syntax.cxx_tokens import Token, code_tokens
from reducer.tree import SourceTree

_CALLS = re.compile(r"def\w*|impl|op")
_LITERAL = re.compile(r'(?:u8|[uUL])?(?:R"([^()\\\s]{0,16})\((.*)\)\1"|"((?:\\.|[^"\\])*)"?)\Z', re.S)
_ESCAPES = {"n": "\n", "t": "\t", "0": "\0"}
_SCHEMA = re.compile(r"\s*(?:([A-Za-z_]\w*)::)?([A-Za-z_]\w*(?:\.\w+)?)\s*(\(.*)?\Z", re.S)


@dataclass(frozen=True, slots=True)
class OpRegistration:
    """One ``m.def`` or ``m.impl``: bytes ``start:end`` of ``path`` are the line, or the link of a chain.

    ``name`` includes an overload name (``size.one``). ``schema`` is the whole schema string of a ``def`` that has
    one; ``function`` the implementing C++ function as written (``ns::f``), None for a lambda or a bare schema;
    ``key`` the dispatch key of the block, "" for the catch-all.
    """

    namespace: str
    name: str
    schema: str | None
    function: str | None
    key: str
    path: str
    start: int
    end: int
    chunk: int  # index into chunks(tree[path])

    @property
    def implements(self) -> bool:
        """True for an ``impl``: it needs a ``def`` of the same name somewhere."""
        return self.schema is None and self.key != ""


@dataclass(frozen=True, slots=True)
class Binding:
    """One name given to Python by pybind11 or a method table. ``function``: as written, None for a lambda."""

    name: str
    function: str | None
    path: str
    start: int
    end: int
    chunk: int


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
    found: list[OpRegistration | Binding] = []
    split = {piece.parent for piece in pieces if piece.kind == "link"}
    for index, piece in enumerate(pieces):
        if piece.kind == "row":
            found += _row(path, content, piece, index)
        elif piece.kind in ("statement", "link", "variable") and index not in split:
            found += _calls(path, content, pieces, index)
    return found


def _row(path: str, content: bytes, piece: Chunk, index: int) -> list[OpRegistration | Binding]:
    tokens = code_tokens(content[piece.start : piece.end])
    arguments = _arguments(tokens, 0)
    name = literal(arguments[0]) if arguments else None
    if name is None:
        return []
    function = _function(arguments[1]) if len(arguments) > 1 else None
    return [Binding(name, function, path, piece.start, piece.end, index)]


def _calls(path: str, content: bytes, pieces: tuple[Chunk, ...], index: int) -> list[OpRegistration | Binding]:
    """The registrations in one statement, in a link of a chain, or in the initialiser of a variable."""
    piece = pieces[index]
    text = content[piece.start : piece.end]
    if piece.kind == "variable" and b"RegisterOperators" not in text:
        return []
    namespace, key, is_op = _context(content, pieces, piece)
    if piece.kind != "variable" and _of_class(content, pieces, piece):
        is_op = False
    found: list[OpRegistration | Binding] = []
    tokens = code_tokens(text)
    for position, token in enumerate(tokens):
        opening = _opening(tokens, position + 1)
        if token.kind != "word" or opening is None:
            continue
        called = _CALLS.fullmatch(token.text) and position and tokens[position - 1].text in (".", "->")
        constructed = token.text == "RegisterOperators" or tokens[max(0, position - 1)].text == "RegisterOperators"
        if not called and not constructed:
            continue
        arguments = _arguments(tokens, opening)
        name = next((s for s in map(literal, arguments) if s is not None), None)
        if name is None:
            continue
        function = next((f for f in map(_function, arguments[1:] or arguments) if f is not None), None)
        if constructed or token.text == "op" or is_op:
            match = _SCHEMA.match(name)
            if match is not None:
                schema = name if match[3] else None
                where = match[1] or namespace
                default = "" if token.text != "impl" else key or "CompositeImplicitAutograd"
                found.append(
                    OpRegistration(where, match[2], schema, function, default, path, piece.start, piece.end, index)
                )
        else:
            found.append(Binding(name, function, path, piece.start, piece.end, index))
    return found


def _context(content: bytes, pieces: tuple[Chunk, ...], piece: Chunk) -> tuple[str, str, bool]:
    """(op namespace, dispatch key, whether these are op registrations) from the block around a piece."""
    parent = piece.parent
    while parent is not None:
        block = pieces[parent]
        if block.kind == "registration":
            tokens = code_tokens(content[block.start : block.end])
            opening = next(i for i, t in enumerate(tokens) if t.text == "(")
            words = ["".join(t.text for t in a) for a in _arguments(tokens, opening)]
            is_impl = tokens[opening - 1].text.endswith("_IMPL")
            return (words[0] if words else ""), (words[1] if is_impl and len(words) > 1 else ""), True
        if block.kind == "module":
            return "", "", False
        if block.kind == "function" and block.body:
            return "", "", re.search(rb"\bLibrary\b", content[block.start : block.body[0]]) is not None
        parent = block.parent
    return "", "", False


def _of_class(content: bytes, pieces: tuple[Chunk, ...], piece: Chunk) -> bool:
    """True for a method given to a bound class: a link of ``m.class_<T>("T").def(...)``."""
    whole = pieces[piece.parent] if piece.kind == "link" and piece.parent is not None else piece
    return re.match(rb"[^\"]*\bclass_\s*<", content[whole.start : whole.end]) is not None


def _opening(tokens: Sequence[Token], position: int) -> int | None:
    """The index of the ``(`` or ``{`` of a call whose name ends before ``position``, past template arguments."""
    if position < len(tokens) and tokens[position].kind == "word":  # RegisterOperators name(...)
        if tokens[position - 1].text != "RegisterOperators":
            return None
        position += 1
    depth = 0
    while position < len(tokens):
        text = tokens[position].text
        depth += (text == "<") - (text == ">")
        if depth == 0 and text != ">":
            return position if text in ("(", "{") else None
        if text in (";", "{"):
            return None
        position += 1
    return None


def _arguments(tokens: Sequence[Token], opening: int) -> list[list[Token]]:
    """The arguments of the call, or the entries of the list, whose bracket opens at ``opening``."""
    close = matching(tokens, opening)
    found: list[list[Token]] = [[]]
    position, depth = opening + 1, 0
    while position < close:
        token = tokens[position]
        if token.text in ("(", "[", "{"):
            stop = matching(tokens, position, close)
            found[-1] += tokens[position : stop + 1]
            position = stop
        elif token.text == "," and depth == 0:
            found.append([])
        else:
            previous = tokens[position - 1]
            if token.text == "<" and (previous.kind == "word" or previous.text == ">"):
                depth += 1
            elif token.text == ">" and depth:
                depth -= 1
            found[-1].append(token)
        position += 1
    return [argument for argument in found if argument]


def literal(tokens: Sequence[Token]) -> str | None:
    """The value of the string literals in an argument, joined as C++ joins neighbours; None without any."""
    parts = [t.text for t in tokens if t.kind == "string"]
    if not parts or tokens[0].text == "[":
        return None
    if len(parts) > 1 and any(t.kind != "string" for t in tokens) and tokens[0].kind == "string":
        parts = parts[:1]
    value = ""
    for part in parts:
        match = _LITERAL.match(part)
        if match is None:
            continue
        if match[2] is not None:
            value += match[2]
        else:
            value += re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), match[3] or "", flags=re.S)
    return value


def _function(tokens: Sequence[Token]) -> str | None:
    """The function that an argument names: ``&f``, ``f``, ``TORCH_FN(f)``, ``static_cast<...>(&ns::f)``."""
    if not tokens or tokens[0].text == "[":
        return None
    for position, token in enumerate(tokens[:-1]):
        unary = position == 0 or tokens[position - 1].text in ("(", ",", "<", "=")
        if token.text == "&" and unary and (name := _qualified(tokens, position + 1)):
            return name
        if token.text in ("TORCH_FN", "TORCH_FN_TYPE") and (name := _qualified(tokens, position + 2)):
            return name
    if tokens[0].kind == "word" and tokens[0].text.endswith("_cast"):
        inner = next((i for i, t in enumerate(tokens) if t.text == "("), len(tokens))
        return _qualified(tokens, inner + 1) or None
    if tokens[0].text == "(":  # a C cast, or the name in parentheses
        close = matching(tokens, 0)
        return _function(tokens[close + 1 :] or tokens[1:close])
    name = _qualified(tokens, 0)
    plain = all(t.kind == "word" or t.text in ("::", "<", ">", ",") for t in tokens)
    return name if name and plain else None


def _qualified(tokens: Sequence[Token], position: int) -> str:
    """The ``a::b::c`` that starts at ``position``; "" when none does."""
    parts: list[str] = []
    if position < len(tokens) and tokens[position].text == "::":
        position += 1
    while position < len(tokens) and tokens[position].kind == "word":
        parts.append(tokens[position].text)
        if position + 1 >= len(tokens) or tokens[position + 1].text != "::":
            break
        position += 2
    return "::".join(parts)
