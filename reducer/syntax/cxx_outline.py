"""A tolerant outline of a C++ file: scopes, functions with their parameters, and the statements of their bodies.

Built on tokens alone, so it also describes files that do not compile and code inside macro arguments. What it cannot
read it leaves out. All positions are token indices of the TokenFile, both ends included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from reducer.syntax.cxx_tokens import token_file

StatementKind = Literal["simple", "return", "if", "for", "while", "do", "switch", "try", "block", "label"]


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


CXX_SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".cu", ".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl", ".inc")
_CLASS = ("class", "struct", "union")
_NOT_TYPES = {
    "return", "throw", "delete", "new", "goto", "else", "case", "using", "typedef", "break", "continue", "co_return",
    "co_yield", "co_await", "sizeof", "not", "and", "or",
}  # fmt: skip


class Outline:
    """What one file declares. ``functions``, ``scopes`` and ``declarations`` are in file order, nested ones too."""

    def __init__(self, content: bytes) -> None:
        self.file = token_file(content)
        self.functions: list[Function] = []
        self.scopes: list[Scope] = []
        self.declarations: list[Declaration] = []
        self._scan(0, len(self.file) - 1, ())

    def blocks(self) -> Iterator[Block]:
        """Every block of statements: bodies, nested blocks, lambdas."""
        for function in self.functions:
            if function.body is not None:
                yield from blocks_in(function.body)

    # -- namespace and class level ------------------------------------------------------------------------------

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
                end = self._to_semicolon(position, last)
                return self._plain(
                    first,
                    end,
                    template,
                    paren if file.text(position + 1) in ("default", "delete", "0") else None,
                    scopes,
                )
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
                    self._function(
                        first,
                        close,
                        paren,
                        Block(position, close, self.statements(position + 1, close - 1)),
                        template,
                        scopes,
                    )
                    return close
                if type_head:
                    kind_at = next(i for i in range(first, position) if file.text(i) in (*_CLASS, "enum"))
                    end = self._to_semicolon(close + 1, last)
                    if file.text(kind_at) == "enum":
                        self.declarations.append(Declaration(first, end, scopes))
                        return end
                    names = [file.text(i) for i in range(kind_at + 1, position) if file.kind(i) == "word"]
                    scope = Scope("class", names[0] if names else "", first, position, close, end)
                    self.scopes.append(scope)
                    self._scan(position + 1, close - 1, (*scopes, scope))
                    return end
                end = self._to_semicolon(close + 1, last)
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

    def _to_semicolon(self, position: int, last: int) -> int:
        while position <= last:
            text = self.file.text(position)
            if text == ";":
                return position
            if text in ("(", "[", "{") and position in self.file.match:
                position = self.file.match[position]
            position += 1
        return last

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

    # -- statements ---------------------------------------------------------------------------------------------

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
        end = self._to_semicolon(first, last)
        kind: StatementKind = "return" if text in ("return", "co_return") else "simple"
        statement = Statement(kind, first, end, lambdas=self._lambdas(first, end))
        statement.declares = self._declares(first, end)
        return statement

    def _block(self, brace: int) -> Statement:
        close = self.file.match[brace]
        block = Block(brace, close, self.statements(brace + 1, close - 1))
        return Statement("block", brace, close, block=block)

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
                    close = file.match[after]
                    body = Block(after, close, self.statements(after + 1, close - 1))
                    found.append(Lambda(position, parameters, body))
                    position = close
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
            file.text(first) in (*_CLASS, "enum")
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


@lru_cache(maxsize=256)
def outline(content: bytes) -> Outline:
    """The outline of a file's bytes; cached, so treat it as read-only."""
    return Outline(content)


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
