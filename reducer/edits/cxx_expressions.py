"""Passes over C++ expressions: an expression by a part of it, arguments by simpler ones, qualifiers away."""

from __future__ import annotations

from collections.abc import Iterator

from reducer.edits.cxx_functions import cxx_files, is_inherited, is_registration, plain_type, return_type
from reducer.edits.cxx_typed import ARITHMETIC, TypedFunction, largest_first, same_type
from reducer.edits.edit import Edit, Splice
from reducer.edits.passes import Proposal, proposal
from reducer.syntax.cxx import CxxParser
from reducer.syntax.cxx_expression import Expression, expressions_of
from reducer.syntax.cxx_outline import Function, Outline
from reducer.syntax.cxx_statements import Statement, blocks_in, statements_in
from reducer.tree import SourceTree

_LOOSE = ("binary", "ternary", "assign", "prefix", "cast", "lambda")


class CxxExpressions:
    """Expressions by parts of them of the same type, chained calls, last arguments and list elements away, arguments
    by parameters and literals. A sweep, the largest gain first. Types come from ``parser`` where it is given; without
    them what is unknown is offered."""

    name = "cxx-expressions"

    def __init__(self, parser: CxxParser | None = None) -> None:
        self._parser = parser

    def propose(self, tree: SourceTree) -> Proposal:
        return largest_first(self._parser, tree, lambda function: _Work(function).edits())


class _Work:
    def __init__(self, typed: TypedFunction) -> None:
        self.path = typed.path
        self.file = typed.file
        self.typed = typed
        self.registers = is_registration(typed.view, typed.function) == "ops"
        self.result = return_type(typed.view, typed.function)
        named = [(p.name, p) for p in typed.function.parameters if p.name is not None and not self.registers]
        self.parameters = {self.file.text(name): typed.parameter_type(parameter) for name, parameter in named}

    def edits(self) -> Iterator[Edit]:
        for statement in statements_in(self.typed.body):
            yield from self.statement(statement)

    def statement(self, statement: Statement) -> Iterator[Edit]:
        if self.registers and any(s is statement for s in self.typed.body.statements):
            return  # a registration line; the statements of its lambdas come on their own
        for root in expressions_of(self.typed.view, statement):
            for node, parent in _with_parents(root, None):
                yield from self._parts(node, parent)
                yield from self._lists(node)
                if parent is None and statement.kind == "simple" and not statement.declares:
                    continue  # what an expression statement yields, nobody reads
                if parent is None or _is_value(node, parent):
                    yield from self._simpler(node, parent)

    # -- an expression by a part of it ---------------------------------------------------------------------------

    def _parts(self, node: Expression, parent: Expression | None) -> Iterator[Edit]:
        for part, label in self._candidates(node):
            if label != "parentheses" and not same_type(self._type(node), self._type(part)):
                continue
            if part.kind in _LOOSE and parent is not None and not _is_value(node, parent):
                continue  # would need parentheses of its own
            yield self._keep(node, part, label)

    def _candidates(self, node: Expression) -> Iterator[tuple[Expression, str]]:
        parts = node.parts
        if node.kind == "call":
            callee, arguments = parts[0], parts[1:]
            if callee.kind == "member":
                yield callee.parts[0], f"drop .{self.file.text(callee.mark)}()"
            else:
                yield from ((a, f"{self.file.text(callee.last)}() to its argument") for a in arguments)
        elif node.kind == "member":
            yield parts[0], f"drop .{self.file.text(node.mark)}"
        elif node.kind == "binary":
            yield from ((p, f"operand of {self.file.text(node.mark)}") for p in parts)
        elif node.kind == "ternary":
            yield from ((p, "branch of ?:") for p in parts[1:])
        elif node.kind == "cast" or (node.kind == "prefix" and self.file.text(node.mark) in ("-", "+", "!", "~")):
            yield from ((p, "operand") for p in parts)
        elif node.kind == "index" or (node.kind == "list" and node.named and len(parts) == 2):
            yield parts[0 if node.kind == "index" else 1], "drop the brackets"
        elif node.kind == "paren" and len(parts) == 1:
            yield parts[0], "parentheses"

    def _keep(self, node: Expression, part: Expression, label: str) -> Edit:
        start, end = self.file.extent(node.first, node.last)
        begin, stop = self.file.extent(part.first, part.last)
        before = Splice(self.path, start, begin, self._between(start, begin))
        after = Splice(self.path, stop, end, self._between(stop, end))
        ops = tuple(s for s in (before, after) if s.end > s.start)
        return Edit(ops, label, max(1, end - start - (stop - begin)))

    def _between(self, start: int, end: int) -> bytes:
        """A space where cutting ``start:end`` would make one word of two."""
        around = self.file.content[max(0, start - 1) : start] + self.file.content[end : end + 1]
        return b" " if len(around) == 2 and around.replace(b"_", b"a").isalnum() else b""

    # -- fewer arguments and elements ------------------------------------------------------------------------------

    def _lists(self, node: Expression) -> Iterator[Edit]:
        if node.kind == "list":
            items = node.parts[1 if node.named else 0 :]
        elif node.kind == "call":
            items = node.parts[1:]
        else:
            return
        tokens = self.file.tokens
        if len(items) > 2 and node.kind == "list":
            cut = Splice(self.path, tokens[items[0].last].end, tokens[items[-1].last].end)
            yield Edit((cut,), "all elements but the first", cut.end - cut.start)
        if len(items) > 1 or (items and node.kind == "call"):
            start = tokens[items[-2].last].end if len(items) > 1 else tokens[items[0].first].start
            cut = Splice(self.path, start, tokens[items[-1].last].end)
            yield Edit((cut,), f"last of {len(items)}", cut.end - cut.start)
        if len(items) > 1 and node.kind == "list":
            cut = Splice(self.path, tokens[items[0].first].start, tokens[items[1].first].start)
            yield Edit((cut,), f"first of {len(items)}", cut.end - cut.start)

    # -- simpler values ----------------------------------------------------------------------------------------------

    def _simpler(self, node: Expression, parent: Expression | None) -> Iterator[Edit]:
        start, end = self.file.extent(node.first, node.last)
        shown = self.file.source(node.first, node.last)
        known = self._type(node) or (self.result if parent is None else None)
        gain = end - start
        for text in self._values(node, parent, plain_type(known) if known else None, shown):
            if text != shown:
                gain = min(gain - 1, end - start - len(text))  # the order of the alternatives is their preference
                yield Edit((Splice(self.path, start, end, text.encode()),), f"{shown[:40]} to {text}", max(1, gain))

    def _values(self, node: Expression, parent: Expression | None, known: str | None, shown: str) -> Iterator[str]:
        if node.kind == "lambda" or (node.kind == "name" and shown not in self.parameters and "::" in shown):
            return
        if known == "bool":
            if node.kind != "literal":
                yield "true"
        elif known in ARITHMETIC:
            if shown not in ("0", "1"):
                size = parent is not None and parent.kind == "list"
                yield from ("1", "0") if size else ("0", "1")
        elif node.kind == "literal":
            if self.file.kind(node.first) == "number" and shown not in ("0", "1"):
                yield from ("0", "1")
        elif node.kind != "name":
            same = [name for name, type_name in self.parameters.items() if known and type_name == known]
            yield from same[:1]
            if parent is not None and not same and shown != "{}" and (known or node.kind == "list"):
                yield "{}"

    def _type(self, node: Expression) -> str | None:
        known = self.typed.type_of(node.first, node.last)
        if known is None and node.kind == "name" and node.first == node.last:
            known = self.parameters.get(self.file.text(node.first))
        return known


def _with_parents(node: Expression, parent: Expression | None) -> Iterator[tuple[Expression, Expression | None]]:
    yield node, parent
    for part in node.parts:
        yield from _with_parents(part, node)


def _is_value(node: Expression, parent: Expression) -> bool:
    """True for a whole argument, list element, subscript, or what stands in parentheses or right of ``=``."""
    if parent.kind in ("call", "index"):
        return node is not parent.parts[0]
    if parent.kind == "list":
        return not (parent.named and node is parent.parts[0])
    return parent.kind == "paren" or (parent.kind == "assign" and node is parent.parts[1])


class CxxQualifiers:
    """Words that mean little: ``const``, ``static``, ``inline``, ``constexpr``, ``noexcept``, attributes, references
    of value parameters, ``std::move``. A sweep; one edit for each function or statement first, then single words."""

    name = "cxx-qualifiers"
    _WORDS = (
        "const",
        "static",
        "inline",
        "constexpr",
        "noexcept",
        "explicit",
        "volatile",
        "mutable",
        "extern",
        "final",
    )

    def propose(self, tree: SourceTree) -> Proposal:
        edits: list[Edit] = []
        for path, view in cxx_files(tree):
            for function in view.functions:
                if is_registration(view, function) or function.body is None:
                    continue
                edits += self._head(path, view, function)
                for block in blocks_in(function.body):
                    for statement in block.statements:
                        if statement.declares and statement.kind == "simple":
                            edits += self._words(path, view, statement.first, statement.last, "local")
        return proposal(edits, "sweep")

    def _head(self, path: str, view: Outline, function: Function) -> Iterator[Edit]:
        file = view.file
        if function.body is None or file.text(function.first) == "extern":
            return
        ops: list[Splice] = []
        for parameter in function.parameters:
            words = [file.text(i) for i in range(parameter.first, parameter.type_last + 1)]
            if words[0] == "const" and words[-1] == "&" and words.count("&") == 1:
                tokens = file.tokens
                ops.append(Splice(path, tokens[parameter.first].start, tokens[parameter.first + 1].start))
                ops.append(Splice(path, *file.extent(parameter.type_last, parameter.type_last)))
        if ops:
            yield Edit(tuple(ops), f"parameters of {file.text(function.name)} by value", 7 * len(ops))
        if not is_inherited(view, function):
            yield from self._words(path, view, function.first, function.body.open - 1, file.text(function.name))

    def _words(self, path: str, view: Outline, first: int, last: int, label: str) -> Iterator[Edit]:
        file = view.file
        for i in range(first, last + 1):
            if file.text(i) in self._WORDS and file.kind(i) == "word":
                if (
                    i > first
                    and file.text(i) == "const"
                    and file.text(first) != "const"
                    and file.text(i - 1) in ("(", ",")
                ):
                    continue  # a parameter's const: with its reference or not at all
                end = file.tokens[i + 1].start if i + 1 < len(file) else file.tokens[i].end
                yield Edit((Splice(path, file.tokens[i].start, end),), f"{file.text(i)} of {label}", len(file.text(i)))
