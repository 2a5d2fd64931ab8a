"""Where C++ functions are made known to Python: TORCH_LIBRARY blocks, their schemas, pybind11 modules, and calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from reducer.edits.cxx_functions import cxx_files
from reducer.edits.edit import Splice
from reducer.syntax.cxx_outline import Function, Outline, Statement
from reducer.tree import SourceTree


@dataclass(slots=True)
class Registration:
    """One ``m.def(…)`` or ``m.impl(…)`` line.

    ``block``: the enclosing ``TORCH_LIBRARY…``/``PYBIND11_MODULE`` head; ``namespace``: the op namespace, "" in a
    pybind11 module. ``literal``: token of the string with the schema or the name; ``op``: the name in it without
    overload; ``function``: name of the C++ function given, "" without one; ``arguments``: token ranges of the call's
    arguments.
    """

    path: str
    view: Outline
    block: Function
    statement: Statement
    kind: Literal["def", "impl"]
    namespace: str
    literal: int
    op: str
    function: str
    arguments: list[tuple[int, int]]

    @property
    def text(self) -> str:
        """The literal's text without quotes."""
        return self.view.file.text(self.literal)[1:-1]

    @property
    def has_schema(self) -> bool:
        return "(" in self.text


def registrations(tree: SourceTree) -> list[Registration]:
    """All registration lines of the tree that can be read, in file order."""
    return [r for path, view in cxx_files(tree) for r in _in_file(path, view)]


def _in_file(path: str, view: Outline) -> Iterator[Registration]:
    file = view.file
    for block in view.functions:
        head = file.text(block.name)
        if block.body is None or not head.startswith(("TORCH_LIBRARY", "PYBIND11_MODULE")):
            continue
        first = block.parameters[0] if block.parameters else None
        namespace = file.source(first.first, first.last) if first and head.startswith("TORCH_LIBRARY") else ""
        for statement in block.body.statements:
            for i in range(statement.first, statement.last):
                if file.text(i) in ("def", "impl") and file.text(i - 1) == "." and file.text(i + 1) == "(":
                    close = file.match.get(i + 1)
                    arguments = [] if close is None else file.split(i + 2, close - 1)
                    if not arguments:
                        continue
                    literal = next(
                        (k for k in range(arguments[0][0], arguments[0][1] + 1) if file.kind(k) == "string"), None
                    )
                    if literal is None or not file.text(literal).startswith('"'):
                        continue  # a raw string is no place to count characters in
                    kind: Literal["def", "impl"] = "def" if file.text(i) == "def" else "impl"
                    op = file.text(literal)[1:-1].split("(")[0].split(".")[0].split("::")[-1].strip()
                    target = _target(view, arguments[1:])
                    yield Registration(path, view, block, statement, kind, namespace, literal, op, target, arguments)
                    break


def _target(view: Outline, arguments: list[tuple[int, int]]) -> str:
    file = view.file
    for first, last in arguments:
        if file.text(first) == "[" or file.kind(first) in ("string", "number"):
            continue
        if file.text(last) == ")" and file.text(first) in ("TORCH_FN", "torch"):
            last -= 1
        while file.text(last) == ">" and last > first:
            last -= 1
            while last > first and file.text(last + 1) != "<":
                last -= 1
        if file.kind(last) == "word":
            return file.text(last)
    return ""


@dataclass(slots=True)
class Schema:
    """``op(Tensor x, int k=1) -> Tensor``: the byte ranges of its items within the literal's token text."""

    items: list[tuple[int, int]]
    result: tuple[int, int]


def parse_schema(text: str) -> Schema | None:
    """Positions in ``text`` (the literal with quotes, or any text that holds one schema); None when unreadable."""
    start = text.find("(")
    arrow = text.rfind("->")
    if start < 0 or arrow < start:
        return None
    depth = 0
    items: list[tuple[int, int]] = []
    begin = start + 1
    for position in range(start, len(text)):
        char = text[position]
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        if (char == "," and depth == 1) or depth == 0:
            if text[begin:position].strip():
                items.append((begin, position))
            begin = position + 1
            if depth == 0:
                break
    end = len(text) - 1 if text.endswith('"') else len(text)
    return Schema(items, (arrow + 2, end))


def schema_without(text: str, dropped: set[int]) -> str | None:
    """The schema's text without the items at these positions (``*`` does not count); None when unreadable."""
    schema = parse_schema(text)
    if schema is None or not schema.items:
        return None
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


def schema_names(text: str) -> list[str]:
    """The argument names of the schema, in order."""
    schema = parse_schema(text)
    found: list[str] = []
    for begin, end in schema.items if schema else ():
        item = text[begin:end].split("=")[0].strip()
        if item and item != "*":
            found.append(item.split()[-1])
    return found


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
