"""The statements of C++ function bodies: their kinds, nesting, lambdas, and the names that they declare.

Built on tokens alone, and tolerant as ``reducer.syntax.cxx_outline``. All positions are token indices of the TokenFile,
both ends included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from reducer.syntax.cxx_tokens import TokenFile

StatementKind = Literal["simple", "return", "if", "for", "while", "do", "switch", "try", "block", "label"]

_NOT_TYPES = {
    "return", "throw", "delete", "new", "goto", "else", "case", "using", "typedef", "break", "continue", "co_return",
    "co_yield", "co_await", "sizeof", "not", "and", "or",
}  # fmt: skip


@dataclass(slots=True)
class Block:
    """``{`` and ``}`` with the statements between them."""

    open: int
    close: int
    statements: list[Statement]


@dataclass(slots=True)
class Statement:
    """One statement. ``bodies`` are the sub-statements (branches, loop body, try and catch blocks) in order;
    ``head`` is the range inside the parentheses of ``if``/``for``/``while``/``switch``/``do … while``;
    ``lambdas`` are the lambda expressions directly inside its own expressions; ``block`` is set for kind ``block``.
    """

    kind: StatementKind
    first: int
    last: int
    head: tuple[int, int] | None = None
    bodies: list[Statement] = field(default_factory=list)
    lambdas: list[Lambda] = field(default_factory=list)
    block: Block | None = None
    declares: tuple[str, ...] = ()


@dataclass(slots=True)
class Lambda:
    """A lambda expression; ``parameters`` is the range inside its parentheses, None without them."""

    first: int
    parameters: tuple[int, int] | None
    body: Block


def read_block(file: TokenFile, brace: int) -> Block:
    """The block that opens at token ``brace``, which must have a partner."""
    return _Reader(file).block(brace)


def blocks_in(block: Block) -> Iterator[Block]:
    """``block`` and every block below it, outer before inner."""
    yield block
    for statement in block.statements:
        yield from _blocks_of(statement)


def _blocks_of(statement: Statement) -> Iterator[Block]:
    if statement.block is not None:
        yield from blocks_in(statement.block)
    for body in statement.bodies:
        yield from _blocks_of(body)
    for function in statement.lambdas:
        yield from blocks_in(function.body)


def statements_in(block: Block) -> Iterator[Statement]:
    """Every statement below ``block``, outer before inner; single-statement bodies included."""
    for statement in block.statements:
        yield from _descend(statement)


def _descend(statement: Statement) -> Iterator[Statement]:
    yield statement
    if statement.block is not None:
        yield from statements_in(statement.block)
    for body in statement.bodies:
        yield from _descend(body)
    for function in statement.lambdas:
        yield from statements_in(function.body)


class _Reader:
    def __init__(self, file: TokenFile) -> None:
        self.file = file

    def statements(self, position: int, last: int) -> list[Statement]:
        """The statements from token ``position`` to ``last``."""
        found: list[Statement] = []
        while position <= last:
            if self.file.kind(position) == "directive" or self.file.text(position) == ";":
                position += 1
                continue
            statement = self._statement(position, last)
            found.append(statement)
            position = statement.last + 1
        return found

    def _statement(self, first: int, last: int) -> Statement:
        file = self.file
        text = file.text(first)
        if text == "{" and first in file.match:
            return self._block(first)
        if text in ("if", "for", "while", "switch"):
            paren = first + 1
            while paren <= last and file.text(paren) != "(":
                paren += 1
            if paren in file.match and file.match[paren] < last:
                head = (paren + 1, file.match[paren] - 1)
                body = self._statement(file.match[paren] + 1, last)
                statement = Statement(text, first, body.last, head, [body], self._lambdas(*head))  # type: ignore[arg-type]
                if text == "if" and file.text(body.last + 1) == "else" and body.last + 2 <= last:
                    other = self._statement(body.last + 2, last)
                    statement.bodies.append(other)
                    statement.last = other.last
                return statement
        if text == "do" and first < last:
            body = self._statement(first + 1, last)
            paren = body.last + 2
            end = file.match.get(paren, body.last)
            return Statement("do", first, min(end + 1, last), (paren + 1, end - 1), [body])
        if text == "try" and file.text(first + 1) == "{" and first + 1 in file.match:
            statement = Statement("try", first, first, bodies=[self._block(first + 1)])
            position = statement.bodies[0].last + 1
            while file.text(position) == "catch" and position <= last:
                brace = file.match.get(position + 1, position) + 1
                if file.text(brace) != "{" or brace not in file.match:
                    break
                statement.bodies.append(self._block(brace))
                position = statement.bodies[-1].last + 1
            statement.last = statement.bodies[-1].last
            return statement
        if text in ("case", "default") or (file.kind(first) == "word" and file.text(first + 1) == ":"):
            end = next((i for i in range(first, last + 1) if file.text(i) == ":"), last)
            return Statement("label", first, end)
        end = self.file.semicolon(first, last)
        kind: StatementKind = "return" if text in ("return", "co_return") else "simple"
        statement = Statement(kind, first, end, lambdas=self._lambdas(first, end))
        statement.declares = self._declares(first, end)
        return statement

    def block(self, brace: int) -> Block:
        close = self.file.match[brace]
        return Block(brace, close, self.statements(brace + 1, close - 1))

    def _block(self, brace: int) -> Statement:
        block = self.block(brace)
        return Statement("block", brace, block.close, block=block)

    def _lambdas(self, first: int, last: int) -> list[Lambda]:
        file = self.file
        found: list[Lambda] = []
        position = first
        while position <= last:
            if file.text(position) == "[" and position in file.match and not self._is_subscript(position):
                after = file.match[position] + 1
                parameters: tuple[int, int] | None = None
                if file.text(after) == "(" and after in file.match:
                    parameters = (after + 1, file.match[after] - 1)
                    after = file.match[after] + 1
                while after <= last and (
                    file.kind(after) == "word" or file.text(after) in ("->", "::", "<", ">", "&", "*", ",")
                ):
                    after += 1
                if file.text(after) == "{" and after in file.match and file.match[after] <= last:
                    found.append(Lambda(position, parameters, self.block(after)))
                    position = file.match[after]
            position += 1
        return found

    def _is_subscript(self, position: int) -> bool:
        before = self.file.text(position - 1)
        return (self.file.kind(position - 1) == "word" and before not in ("return", "case")) or before in (")", "]")

    def _declares(self, first: int, last: int) -> tuple[str, ...]:
        """Names that a simple statement declares, as far as its tokens show; () for an expression."""
        file = self.file
        if file.text(first) in ("using", "typedef"):
            name = first + 1 if file.text(first) == "using" and file.text(first + 2) == "=" else last - 1
            return (file.text(name),) if file.kind(name) == "word" else ()
        if (
            file.text(first) in ("class", "struct", "union", "enum")
            and file.kind(first + 1) == "word"
            and file.text(first + 2) in ("{", ":", ";")
        ):
            return (file.text(first + 1),)
        if file.kind(first) != "word" or file.text(first) in _NOT_TYPES:
            return ()
        names: list[str] = []
        for part, (begin, end) in enumerate(file.split(first, last - 1 if file.text(last) == ";" else last)):
            declared = self._declarator(begin, end, part > 0)
            if declared is None:
                return tuple(names)
            names += declared
        return tuple(names)

    def _declarator(self, first: int, last: int, follows: bool) -> list[str] | None:
        file = self.file
        position = first
        while position <= last:
            text = file.text(position)
            if text == "[" and file.text(position - 1) in ("auto", "&", "&&") and position in file.match:
                return [file.text(i) for i in range(position, file.match[position]) if file.kind(i) == "word"]
            if text == "<" and file.kind(position - 1) == "word" and (end := file.angle_end(position)) is not None:
                position = end + 1
                continue
            if text in ("=", "(", "{", "[") or position == last:
                name = position if position == last and text not in ("=", "(", "{", "[") else position - 1
                typed = name > first and (
                    (file.kind(name - 1) == "word" and file.text(name - 1) not in _NOT_TYPES)
                    or file.text(name - 1) in (">", "*", "&", "&&")
                )
                if file.kind(name) == "word" and (typed or (follows and name - first <= 1)):
                    return [file.text(name)]
                return None
            if file.kind(position) != "word" and text not in ("::", "*", "&", "&&", ">", "..."):
                return None
            position += 1
        return None
