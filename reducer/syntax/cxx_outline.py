"""A tolerant outline of a C++ file: scopes, functions with their parameters and bodies.

Built on tokens alone, so it also describes files that do not compile and code inside macro arguments. What it cannot
read it leaves out. All positions are token indices of the TokenFile, both ends included.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from reducer.syntax.cxx_statements import Block, read_block
from reducer.syntax.cxx_tokens import token_file


@dataclass(slots=True)
class Parameter:
    """``name`` is the name's token or None; the type runs from ``first`` to ``type_last``."""

    first: int
    last: int
    name: int | None
    type_last: int


@dataclass(slots=True)
class Function:
    """A function definition or declaration; ``body`` is None for a declaration.

    ``first`` includes the template header; ``name`` is the name's token, ``returns`` the range of the return type
    with its specifiers (None for constructors and macro-like heads such as ``TORCH_LIBRARY(ns, m) { }``).
    """

    first: int
    last: int
    name: int
    open: int
    close: int
    parameters: list[Parameter]
    returns: tuple[int, int] | None
    body: Block | None
    template: tuple[int, int] | None = None
    scopes: tuple[Scope, ...] = ()


@dataclass(slots=True)
class Scope:
    """A namespace, ``extern "C"`` block or class with the token range of its head, braces and end."""

    kind: Literal["namespace", "extern", "class"]
    name: str
    first: int
    open: int
    close: int
    last: int


@dataclass(slots=True)
class Declaration:
    """Anything else at namespace or class level, with its terminating ``;``."""

    first: int
    last: int
    scopes: tuple[Scope, ...] = ()


_CLASS = ("class", "struct", "union")


class Outline:
    """What one file declares. ``functions``, ``scopes`` and ``declarations`` are in file order, nested ones too."""

    def __init__(self, content: bytes) -> None:
        self.file = token_file(content)
        self.functions: list[Function] = []
        self.scopes: list[Scope] = []
        self.declarations: list[Declaration] = []
        self._scan(0, len(self.file) - 1, ())

    def _scan(self, position: int, last: int, scopes: tuple[Scope, ...]) -> None:
        while position <= last:
            position = self._declaration(position, last, scopes) + 1

    def _declaration(self, first: int, last: int, scopes: tuple[Scope, ...]) -> int:
        """Record the declaration that starts at ``first``; the index of its last token."""
        file = self.file
        token = file.tokens[first]
        if token.kind == "directive" or token.text == ";":
            return first
        if token.text in ("public", "private", "protected") and file.text(first + 1) == ":":
            return first + 1
        position = first
        template: tuple[int, int] | None = None
        if token.text == "template" and (end := file.angle_end(first + 1)) is not None:
            template = (first, end)
            position = end + 1
        heads = {file.text(i) for i in range(position, min(position + 3, last + 1))}
        if file.text(position) == "extern" and file.kind(position + 1) == "string" and file.text(position + 2) == "{":
            return self._enter("extern", "", first, position + 2, scopes)
        paren: tuple[int, int] | None = None
        type_head = heads & {*_CLASS, "enum"} and file.text(position) not in ("friend",)
        while position <= last:
            text = file.text(position)
            if text == ";":
                return self._plain(first, position, template, paren, scopes)
            if text == "=" and file.text(position - 1) != "operator":
                special = file.text(position + 1) in ("default", "delete", "0")
                return self._plain(first, file.semicolon(position, last), template, paren if special else None, scopes)
            if text == "<" and file.kind(position - 1) == "word" and (end := file.angle_end(position)) is not None:
                position = end
            elif text in ("(", "[") and position in file.match:
                callee = file.kind(position - 1) == "word" or "operator" in (
                    file.text(position - 2),
                    file.text(position - 1),
                    file.text(position - 3),
                )
                if (
                    text == "("
                    and paren is None
                    and callee
                    and file.text(position - 1) not in ("decltype", "alignas", "__attribute__", "explicit")
                ):
                    paren = (position, file.match[position])
                position = file.match[position]
            elif text == ":" and paren is not None:
                position = self._initialisers(position + 1, last) - 1
            elif text == "{":
                close = file.match.get(position)
                if close is None or close > last:
                    return last
                if file.text(first) == "namespace" or (
                    file.text(first) == "inline" and file.text(first + 1) == "namespace"
                ):
                    names = [
                        file.text(i) for i in range(first, position) if file.text(i) not in ("inline", "namespace")
                    ]
                    return self._enter("namespace", "".join(names), first, position, scopes)
                if paren is not None:
                    self._function(first, close, paren, read_block(file, position), template, scopes)
                    return close
                if type_head:
                    kind_at = next(i for i in range(first, position) if file.text(i) in (*_CLASS, "enum"))
                    end = file.semicolon(close + 1, last)
                    if file.text(kind_at) == "enum":
                        self.declarations.append(Declaration(first, end, scopes))
                        return end
                    names = [file.text(i) for i in range(kind_at + 1, position) if file.kind(i) == "word"]
                    scope = Scope("class", names[0] if names else "", first, position, close, end)
                    self.scopes.append(scope)
                    self._scan(position + 1, close - 1, (*scopes, scope))
                    return end
                end = file.semicolon(close + 1, last)
                self.declarations.append(Declaration(first, end, scopes))
                return end
            position += 1
        return last

    def _enter(
        self, kind: Literal["namespace", "extern"], name: str, first: int, brace: int, scopes: tuple[Scope, ...]
    ) -> int:
        close = self.file.match.get(brace)
        if close is None:
            return len(self.file) - 1
        scope = Scope(kind, name, first, brace, close, close)
        self.scopes.append(scope)
        self._scan(brace + 1, close - 1, (*scopes, scope))
        return close

    def _initialisers(self, position: int, last: int) -> int:
        """The index after a constructor's member initialisers: the body's ``{``."""
        file = self.file
        while position <= last:
            if file.text(position) in ("(", "{") and position in file.match:
                position = file.match[position] + 1
                if file.text(position) == "...":
                    position += 1
                if file.text(position) != ",":
                    return position
            position += 1
        return position

    def _plain(
        self,
        first: int,
        last: int,
        template: tuple[int, int] | None,
        paren: tuple[int, int] | None,
        scopes: tuple[Scope, ...],
    ) -> int:
        skip = self.file.text(first) in ("using", "typedef", "friend", "static_assert")
        if paren is not None and not skip and paren[0] - 1 > (template[1] + 1 if template else first):
            self._function(first, last, paren, None, template, scopes)
        else:
            self.declarations.append(Declaration(first, last, scopes))
        return last

    def _function(
        self,
        first: int,
        last: int,
        paren: tuple[int, int],
        body: Block | None,
        template: tuple[int, int] | None,
        scopes: tuple[Scope, ...],
    ) -> None:
        file = self.file
        name = paren[0] - 1
        begin = template[1] + 1 if template else first
        type_last = name - 1
        while file.text(type_last) == "::" and file.kind(type_last - 1) == "word":
            type_last -= 2
        arrow = next((i for i in range(paren[1] + 1, body.open if body else last) if file.text(i) == "->"), None)
        returns = (begin, type_last) if type_last >= begin else None
        if arrow is not None and body is not None:
            returns = (arrow + 1, body.open - 1)
        parameters = [self._parameter(a, b) for a, b in file.split(paren[0] + 1, paren[1] - 1) if a <= b]
        if [file.source(p.first, p.last) for p in parameters] == ["void"]:
            parameters = []
        self.functions.append(Function(first, last, name, *paren, parameters, returns, body, template, scopes))

    def _parameter(self, first: int, last: int) -> Parameter:
        file = self.file
        end = next((i - 1 for i in range(first, last + 1) if file.text(i) == "="), last)
        position = end
        while file.text(position) == "]" and position in file.match:
            position = file.match[position] - 1
        named = (
            file.kind(position) == "word"
            and position > first
            and (file.kind(position - 1) == "word" or file.text(position - 1) in (">", "*", "&", "&&", "..."))
            and file.text(position - 1) not in ("const", "unsigned", "signed", "long", "struct", "typename")
            and file.text(position) not in ("int", "long", "char", "double", "float", "bool", "const", "short")
        )
        return Parameter(first, last, position if named else None, position - 1 if named else end)


@lru_cache(maxsize=256)
def outline(content: bytes) -> Outline:
    """The outline of a file's bytes; cached, so treat it as read-only."""
    return Outline(content)
