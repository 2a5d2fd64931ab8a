"""Passes over local variables of C++ functions: inlined, replaced by a parameter, merged into the ``return``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reducer.edits.cxx_functions import plain_type, return_type, span
from reducer.edits.cxx_typed import TypedFunction, largest_first, same_type
from reducer.edits.edit import Edit, Splice
from reducer.edits.passes import Proposal
from reducer.syntax.cxx import CxxParser
from reducer.syntax.cxx_expression import initialisers, parse_expression
from reducer.syntax.cxx_statements import Block, Statement, blocks_in
from reducer.tree import SourceTree

_SIMPLE = ("name", "literal")
_TIGHT = ("name", "literal", "paren", "member", "call", "index", "list", "postfix")


@dataclass(slots=True)
class _Local:
    """A local variable: its statement, the token of its name, its initialiser's tokens, its uses' tokens."""

    statement: Statement
    name: int
    value: tuple[int, int] | None
    uses: list[int]


class CxxVariables:
    """Local variables away: replaced by a parameter of their type, inlined where they are used, or merged into the
    ``return``. A sweep, the largest gain first. Types come from ``parser`` where it is given."""

    name = "cxx-variables"

    def __init__(self, parser: CxxParser | None = None) -> None:
        self._parser = parser

    def propose(self, tree: SourceTree) -> Proposal:
        return largest_first(self._parser, tree, lambda function: _Work(function).edits())


class _Work:
    def __init__(self, typed: TypedFunction) -> None:
        self.path = typed.path
        self.file = typed.file
        self.typed = typed

    def edits(self) -> Iterator[Edit]:
        for block in blocks_in(self.typed.body):
            yield from self.block(block, block is self.typed.body)

    def block(self, block: Block, outermost: bool) -> Iterator[Edit]:
        for position, statement in enumerate(block.statements):
            local = self._local(block, statement)
            if local is not None:
                yield from self._by_parameter(local)
                yield from self._inlined(local)
                yield from self._unnamed(local)
            elif statement.kind == "simple":
                yield from self._unassigned(statement)
            if position + 1 < len(block.statements) and block.statements[position + 1].kind == "return":
                yield from self._returned(statement, block.statements[position + 1], outermost)

    def _local(self, block: Block, statement: Statement) -> _Local | None:
        file = self.file
        if statement.kind != "simple" or len(statement.declares) != 1 or file.text(statement.last) != ";":
            return None
        if file.text(statement.first) in ("using", "typedef", "struct", "class", "enum", "union"):
            return None
        name = next(
            (
                i
                for i in range(statement.first + 1, statement.last)
                if file.text(i) == statement.declares[0] and file.text(i + 1) in ("=", "(", "{", ";", "[")
            ),
            None,
        )
        if name is None or file.text(name + 1) == "[":
            return None
        values = initialisers(file, statement)
        uses = [
            i
            for i in range(statement.last + 1, block.close)
            if file.text(i) == file.text(name) and file.text(i - 1) not in (".", "->", "::")
        ]
        return _Local(statement, name, values[0] if len(values) == 1 else None, uses)

    def _declared_type(self, local: _Local) -> str | None:
        known = self.typed.type_of(local.name, local.name)
        if known is not None:
            return known
        written = plain_type(self.file.source(local.statement.first, local.name - 1))
        return None if written == "auto" else written

    def _by_parameter(self, local: _Local) -> Iterator[Edit]:
        wanted = self._declared_type(local)
        offered = 0
        for parameter in self.typed.function.parameters:
            if parameter.name is None or offered == 2:
                continue
            actual = self.typed.parameter_type(parameter)
            fits = actual == (plain_type(wanted) if wanted else "at::Tensor")
            if fits:
                offered += 1
                text = self.file.text(parameter.name)
                yield self._replaced(local, text, f"{self.file.text(local.name)} by parameter {text}", bool(local.uses))

    def _inlined(self, local: _Local) -> Iterator[Edit]:
        file = self.file
        if local.value is None or not local.uses:
            return
        value = parse_expression(file, *local.value)
        if value is None or (len(local.uses) > 1 and value.kind not in _SIMPLE):
            return
        text = file.source(*local.value)
        bracket = file.text(local.name + 1)
        if bracket in ("(", "{") or value.kind == "list":
            written = file.source(local.statement.first, local.name - 1).removeprefix("const ")
            if written != "auto":
                text = f"{written}({text})" if bracket == "(" else f"{written}{text}" if value.kind == "list" else text
        if value.kind not in _TIGHT and not all(self._alone(use) for use in local.uses):
            text = f"({text})"
        yield self._replaced(local, text, f"inline {file.text(local.name)}", True)

    def _alone(self, use: int) -> bool:
        """True when the use is a whole argument, element, operand of ``return`` or initialiser."""
        before, after = self.file.text(use - 1), self.file.text(use + 1)
        return before in ("(", ",", "=", "return", "{", "[") and after in (")", ",", ";", "}", "]")

    def _replaced(self, local: _Local, text: str, label: str, used: bool) -> Edit:
        start, end = span(self.file, local.statement.first, local.statement.last)
        ops = [Splice(self.path, start, end)]
        gain = end - start
        for use in local.uses if used else ():
            token = self.file.tokens[use]
            ops.append(Splice(self.path, token.start, token.end, text.encode("utf-8", "surrogateescape")))
            gain -= len(text) - (token.end - token.start)
        return Edit(tuple(ops), label, max(1, gain))

    def _unnamed(self, local: _Local) -> Iterator[Edit]:
        """``T v = f();`` to ``f();`` when v is not used."""
        if local.uses or local.value is None or self.file.text(local.name + 1) != "=":
            return
        tokens = self.file.tokens
        splice = Splice(self.path, tokens[local.statement.first].start, tokens[local.value[0]].start)
        yield Edit((splice,), f"drop the name {self.file.text(local.name)}", splice.end - splice.start)

    def _unassigned(self, statement: Statement) -> Iterator[Edit]:
        """``v = f();`` to ``f();``"""
        found = parse_expression(self.file, statement.first, statement.last - 1)
        if found is not None and found.kind == "assign":
            tokens = self.file.tokens
            splice = Splice(self.path, tokens[found.first].start, tokens[found.parts[1].first].start)
            yield Edit((splice,), "drop the assignment", splice.end - splice.start)

    def _returned(self, statement: Statement, following: Statement, outermost: bool) -> Iterator[Edit]:
        """``f(); return x;`` to ``return f();``, also with the variable or target that takes the value."""
        file = self.file
        if statement.kind != "simple" or file.text(statement.last) != ";" or following.last <= following.first + 1:
            return
        if statement.declares:
            values = initialisers(file, statement)
            if len(values) != 1 or file.text(values[0][0] - 1) != "=":
                return
            first = values[0][0]
        else:
            found = parse_expression(file, statement.first, statement.last - 1)
            if found is None:
                return
            first = found.parts[1].first if found.kind == "assign" else found.first
        wanted = return_type(self.typed.view, self.typed.function) if outermost else None
        known = self.typed.type_of(first, statement.last - 1)
        if known == "void" or (wanted and "<" not in wanted and not same_type(known, wanted)):
            return
        tokens = file.tokens
        start = tokens[statement.first].start
        if first > statement.first:
            word = Splice(self.path, start, tokens[first].start, b"return ")
        else:  # a whole token, as an insertion would be absorbed by other changes of it
            word = Splice(self.path, start, tokens[first].end, b"return " + file.content[start : tokens[first].end])
        ops = (word, Splice(self.path, tokens[statement.last].end, tokens[following.last].end))
        gain = tokens[following.last].end - tokens[statement.first].start
        yield Edit(ops, "merge into the return", max(1, gain - (tokens[statement.last].end - tokens[first].start)))
