"""Edits of registered ops: their registration lines, schemas, and the Python calls of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from reducer.edits.cxx_functions import cxx_files, is_registration
from reducer.edits.edit import Splice
from reducer.syntax.cxx_outline import Function, Outline
from reducer.syntax.cxx_registrations import Binding, OpRegistration, registrations_of
from reducer.syntax.cxx_schemas import Schema, parse_schema
from reducer.syntax.cxx_statements import Statement
from reducer.tree import SourceTree


@dataclass(frozen=True, slots=True)
class Registration:
    """One ``m.def(…)`` or ``m.impl(…)`` line with a plain string literal.

    ``block``: the enclosing ``TORCH_LIBRARY…``/``PYBIND11_MODULE`` head; ``statement``: the line in it.
    """

    item: OpRegistration | Binding
    view: Outline
    block: Function
    statement: Statement

    @property
    def path(self) -> str:
        return self.item.path

    @property
    def kind(self) -> str:
        """``def`` or ``impl``."""
        return self.item.call

    @property
    def namespace(self) -> str:
        """The block's op namespace, "" in a pybind11 module. A bound class and its methods have one too."""
        first = self.block.parameters[0] if self.block.parameters else None
        named = first is not None and self.view.file.text(self.block.name).startswith("TORCH_LIBRARY")
        return self.view.file.source(first.first, first.last) if named and first is not None else ""

    @property
    def op(self) -> str:
        """The name without overload."""
        return self.item.name.split(".")[0]

    @property
    def function(self) -> str:
        """The unqualified name of the C++ function given, "" without one."""
        return (self.item.function or "").split("::")[-1]

    @property
    def arguments(self) -> tuple[tuple[int, int], ...]:
        """The token ranges of the call's arguments."""
        return self.item.arguments

    @property
    def text(self) -> str:
        """The literal with its quotes."""
        return self.view.file.text(self.item.literal)

    @property
    def schema(self) -> Schema | None:
        """The schema, by positions in ``text``; None where the literal holds none that can be read."""
        return parse_schema(self.text)

    @property
    def has_schema(self) -> bool:
        return "(" in self.text

    def with_text(self, text: str, begin: int = 0, end: int | None = None) -> Splice:
        """Replace characters ``begin:end`` of the literal, by default all of it."""
        start = self.view.file.tokens[self.item.literal].start
        before, old = self.text[:begin], self.text[begin:end]
        at = start + len(_raw(before))
        return Splice(self.path, at, at + len(_raw(old)), _raw(text))

    def renamed(self, name: str) -> Splice:
        """Give the op another name."""
        at = self.text.find(self.op)
        return self.with_text(name, at, at + len(self.op))


def registrations(tree: SourceTree) -> list[Registration]:
    """The registration lines of the tree that can be edited, in file order: one for each statement."""
    return [line for path, view in cxx_files(tree) for line in _in_file(path, view)]


def _in_file(path: str, view: Outline) -> Iterator[Registration]:
    file = view.file
    readable = [
        item
        for item in registrations_of(path, file.content)
        if item.call in ("def", "impl")
        and item.arguments[0][0] <= item.literal <= item.arguments[0][1]
        and file.text(item.literal).startswith('"')  # a raw string is no place to count characters in
    ]
    for block in view.functions:
        if block.body is None or is_registration(view, block) != "ops":
            continue
        for statement in block.body.statements:
            inside = (item for item in readable if statement.first <= item.literal <= statement.last)
            first = min(inside, key=lambda item: item.literal, default=None)
            if first is not None:
                yield Registration(first, view, block, statement)


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def schema_without(schema: Schema, dropped: set[int]) -> str | None:
    """The schema's text without the arguments at these positions (``*`` does not count); None without any."""
    if not schema.items:
        return None
    text = schema.text
    kept: list[str] = []
    position = 0
    for begin, end in schema.items:
        item = text[begin:end].strip()
        if item == "*":
            kept.append(item)
            continue
        if position not in dropped:
            kept.append(item)
        position += 1
    if kept and kept[-1] == "*":
        kept.pop()
    return text[: schema.items[0][0]] + ", ".join(kept) + text[schema.items[-1][1] :]


def python_calls(tree: SourceTree, op: str) -> Iterator[tuple[str, ast.Call, list[int]]]:
    """Path, call and line starts (byte offsets) of each ``….op(…)`` call in the tree's Python files."""
    for path in tree:
        if not path.endswith(".py") or op.encode() not in tree[path]:
            continue
        try:
            module = ast.parse(tree[path])
        except (SyntaxError, ValueError):
            continue
        starts = [0]
        for line in tree[path].splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        for node in ast.walk(module):
            if isinstance(node, ast.Call):
                function = node.func
                if isinstance(function, ast.Attribute) and function.attr == "default":
                    function = function.value
                if isinstance(function, ast.Attribute) and function.attr == op:
                    yield path, node, starts


def without_arguments(
    path: str, call: ast.Call, starts: list[int], dropped: set[int], names: list[str]
) -> list[Splice] | None:
    """Splices that take arguments out of a call, by position or by schema name; None for calls with ``*``."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    items: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    gone = [i in dropped for i in range(len(call.args))]
    gone += [k.arg in {names[d] for d in dropped if d < len(names)} for k in call.keywords]
    spans = [
        (_offset(starts, a.lineno, a.col_offset), _offset(starts, a.end_lineno or 0, a.end_col_offset or 0))
        for a in items
    ]
    return [Splice(path, begin, end) for begin, end in list_cuts(spans, gone)]


def list_cuts(spans: list[tuple[int, int]], gone: list[bool]) -> list[tuple[int, int]]:
    """What to cut of a comma-separated list (the items' ranges in order) so that the items marked go."""
    cuts: list[tuple[int, int]] = []
    kept_before = False
    for position, (begin, end) in enumerate(spans):
        if not gone[position]:
            kept_before = True
        elif kept_before:
            cuts.append((spans[position - 1][1], end))
        else:
            cuts.append((begin, spans[position + 1][0] if position + 1 < len(spans) else end))
    return cuts


def _offset(starts: list[int], line: int, column: int) -> int:
    return starts[line - 1] + column
