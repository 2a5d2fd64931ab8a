"""A tolerant parser for C++ expressions on tokens: enough structure to replace an expression by a part of it.

Precedence climbing over the grammar of [expr] in the C++ standard. Where the grammar needs to know whether a name is a
type (``a < b > (c)``, ``(T) x``), the tokens decide by what is usual. All positions are token indices, ends included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from reducer.syntax.cxx_outline import Outline
from reducer.syntax.cxx_statements import Statement
from reducer.syntax.cxx_tokens import TokenFile

ExpressionKind = Literal[
    "name", "literal", "paren", "list", "lambda", "member", "call", "index", "prefix", "postfix", "binary", "assign",
    "ternary", "cast",
]  # fmt: skip


@dataclass(slots=True)
class Expression:
    """``parts``: member: the object; call: the callee, then the arguments; index: the object, then the subscripts;
    list: the elements, after the type's name where one is written (``named``); cast: the operand; others: operands in
    order. ``mark`` is the token of the operator, of the member's name, or of the opening bracket."""

    kind: ExpressionKind
    first: int
    last: int
    parts: list[Expression] = field(default_factory=list)
    mark: int = -1
    named: bool = False


_BINARY = {
    "||": 3, "&&": 4, "|": 5, "^": 6, "&": 7, "==": 8, "!=": 8, "<": 9, ">": 9, "<=": 9, ">=": 9, "<=>": 9, "<<": 10,
    ">>": 10, "+": 11, "-": 11, "*": 12, "/": 12, "%": 12, ".*": 13, "->*": 13, "or": 3, "and": 4,
}  # fmt: skip
_ASSIGN = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<="}
_PREFIX = {"!", "~", "-", "+", "*", "&", "++", "--", "not", "co_await", "throw", "delete", "new"}
_CASTS = {"static_cast", "const_cast", "reinterpret_cast", "dynamic_cast"}
_LITERALS = {"true", "false", "nullptr", "this"}
_NOT_NAMES = {"return", "if", "for", "while", "do", "switch", "case", "using", "typedef", "else", "break", "continue"}


class _Unreadable(Exception):
    """The tokens are no expression that this parser knows."""


def parse_expression(file: TokenFile, first: int, last: int) -> Expression | None:
    """The expression that the tokens ``first`` to ``last`` form, or None."""
    if first > last:
        return None
    parser = _Parser(file, last)
    try:
        found = parser.expression(first, 1)
    except (_Unreadable, RecursionError):
        return None
    return found if found.last == last else None


def expressions_of(outline: Outline, statement: Statement) -> list[Expression]:
    """The outermost expressions of a statement itself (not of the statements in it)."""
    file = outline.file
    ranges: list[tuple[int, int]] = []
    if statement.head is not None:
        for part in file.split(*statement.head, separator=";"):
            ranges += _declared_or_plain(file, *part)
    elif statement.kind == "return":
        ranges.append((statement.first + 1, statement.last - 1))
    elif statement.kind == "simple":
        end = statement.last - 1 if file.text(statement.last) == ";" else statement.last
        ranges += initialisers(file, statement) if statement.declares else [(statement.first, end)]
    return [found for part in ranges if (found := parse_expression(file, *part)) is not None]


def initialisers(file: TokenFile, statement: Statement) -> list[tuple[int, int]]:
    """The ranges of the initialising expressions of a declaration, for ``T a = x, b(y), c{z};`` x, y and z."""
    if file.text(statement.first) in ("using", "typedef", "struct", "class", "union", "enum"):
        return []
    end = statement.last - 1 if file.text(statement.last) == ";" else statement.last
    ranges: list[tuple[int, int]] = []
    for begin, stop in file.split(statement.first, end):
        equals = next((i for i in _level(file, begin, stop) if file.text(i) == "="), None)
        if equals is not None:
            ranges.append((equals + 1, stop))
        elif file.text(stop) in (")", "}") and stop in file.match:
            ranges += [p for p in file.split(file.match[stop] + 1, stop - 1) if p[0] <= p[1]]
    return ranges


def _declared_or_plain(file: TokenFile, first: int, last: int) -> list[tuple[int, int]]:
    equals = next((i for i in _level(file, first, last) if file.text(i) == "="), None)
    if equals is not None and equals - first >= 2:
        return [(equals + 1, last)]
    colon = next((i for i in _level(file, first, last) if file.text(i) == ":"), None)
    return [(first if colon is None else colon + 1, last)]


def _level(file: TokenFile, first: int, last: int) -> Iterator[int]:
    """Token indices at bracket depth 0."""
    position = first
    while position <= last:
        if file.text(position) in ("(", "[", "{") and position in file.match:
            position = file.match[position]
        else:
            yield position
        position += 1


class _Parser:
    def __init__(self, file: TokenFile, last: int) -> None:
        self.file = file
        self.last = last

    def text(self, position: int) -> str:
        return self.file.text(position) if position <= self.last else ""

    def expression(self, position: int, minimum: int) -> Expression:
        """An expression whose operators bind at least as tight as ``minimum`` (1 assignment, 2 ternary, ...)."""
        left = self._prefix(position)
        while True:
            at = left.last + 1
            operator = self.text(at)
            if (
                operator == ">"
                and self.text(at + 1) == ">"
                and self.file.tokens[at].end == self.file.tokens[at + 1].start
            ):
                operator, width = ">>", 2
            else:
                width = 1
            if operator in _ASSIGN and minimum <= 1:
                right = self.expression(at + width, 1)
                left = Expression("assign", left.first, right.last, [left, right], at)
            elif operator == "?" and minimum <= 2:
                yes = self.expression(at + 1, 1)
                if self.text(yes.last + 1) != ":":
                    raise _Unreadable
                no = self.expression(yes.last + 2, 1)
                left = Expression("ternary", left.first, no.last, [left, yes, no], at)
            elif operator in _BINARY and _BINARY[operator] >= minimum:
                right = self.expression(at + width, _BINARY[operator] + 1)
                left = Expression("binary", left.first, right.last, [left, right], at)
            else:
                return left

    def _prefix(self, position: int) -> Expression:
        if self.text(position) in _PREFIX:
            operand = self._prefix(position + 1)
            return Expression("prefix", position, operand.last, [operand], position)
        return self._postfix(self._primary(position))

    def _postfix(self, left: Expression) -> Expression:
        while True:
            at = left.last + 1
            text = self.text(at)
            if text in (".", "->"):
                name = at + 2 if self.text(at + 1) in ("template", "~") else at + 1
                if self.file.kind(name) != "word" or name > self.last:
                    raise _Unreadable
                left = Expression("member", left.first, self._qualified(name), [left], name)
            elif text == "(" and at in self.file.match:
                left = Expression("call", left.first, self.file.match[at], [left, *self._arguments(at)], at)
            elif text == "{" and at in self.file.match and left.kind == "name":
                left = Expression("list", left.first, self.file.match[at], [left, *self._arguments(at)], at, True)
            elif text == "[" and at in self.file.match:
                left = Expression("index", left.first, self.file.match[at], [left, *self._arguments(at)], at)
            elif text in ("++", "--"):
                left = Expression("postfix", left.first, at, [left], at)
            else:
                return left

    def _arguments(self, bracket: int) -> list[Expression]:
        close = self.file.match.get(bracket)
        if close is None or close > self.last:
            raise _Unreadable
        found: list[Expression] = []
        for first, last in self.file.split(bracket + 1, close - 1):
            if first > last:
                continue  # a trailing comma
            part = _Parser(self.file, last).expression(first, 1)
            if part.last != last:
                raise _Unreadable
            found.append(part)
        return found

    def _primary(self, position: int) -> Expression:
        if position > self.last:
            raise _Unreadable
        text, kind = self.text(position), self.file.kind(position)
        if kind in ("number", "string", "char") or text in _LITERALS:
            last = position
            while kind == "string" and last < self.last and self.file.kind(last + 1) in ("string", "word"):
                last += 1  # neighbouring literals and macros join
            return Expression("literal", position, last)
        if text in _CASTS:
            close = self.file.angle_end(position + 1)
            if close is None or self.text(close + 1) != "(":
                raise _Unreadable
            arguments = self._arguments(close + 1)
            return Expression("cast", position, self.file.match[close + 1], arguments, close + 1)
        if text == "(" and position in self.file.match:
            inner = self._arguments(position)
            close = self.file.match[position]
            if (
                len(inner) == 1
                and inner[0].kind == "name"
                and self.file.kind(close + 1) in ("word", "number")
                and close < self.last
            ):
                operand = self._prefix(close + 1)
                return Expression("cast", position, operand.last, [operand], position)
            return Expression("paren", position, close, inner, position)
        if text == "{" and position in self.file.match:
            return Expression("list", position, self.file.match[position], self._arguments(position), position)
        if text == "[" and position in self.file.match:
            after = self.file.match[position] + 1
            while after <= self.last and self.text(after) != "{":
                after = self.file.match.get(after, after) + 1
            if after > self.last or after not in self.file.match:
                raise _Unreadable
            return Expression("lambda", position, self.file.match[after])
        if (kind == "word" and text not in _NOT_NAMES) or text == "::":
            return Expression("name", position, self._qualified(position), mark=position)
        raise _Unreadable

    def _qualified(self, position: int) -> int:
        """The last token of ``a::b<c>::d`` that starts at ``position``."""
        file = self.file
        if self.text(position) == "::":
            position += 1
        while True:
            if file.kind(position) != "word" or position > self.last:
                raise _Unreadable
            if self.text(position) == "operator":
                raise _Unreadable
            after = position + 1
            if self.text(after) == "<" and (close := file.angle_end(after)) is not None and close <= self.last:
                follower = self.text(close + 1)
                if follower in ("(", "::", "{", "", ")", ",", ";", "}", "]"):
                    position = close
            if self.text(position + 1) != "::":
                return position
            position += 2
            if self.text(position) == "template":
                position += 1
