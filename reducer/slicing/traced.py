"""A failing run as a straight-line program: the operations on tensors that lead to its failure, and no other code.

``reducer.world.tracer`` logs the operations; what of them the failure depends on is a backward slice over their
operands and effects (Weiser's, on a trace without control flow). As with ``recorded``, nothing is trusted: each script
is a candidate that the oracle judges on both sides.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reducer.edits.prelude import PRELUDE
from reducer.slicing.recorded import ALWAYS_LOADED, dotted
from reducer.slicing.recorded_values import Style, Unsynthesisable, source

Operation = Mapping[str, Any]
MAX_STATEMENTS = 400
MAX_COLUMNS = 80  # of statements that are joined
_SETTINGS = ("manual_seed", "set_default_dtype", "set_grad_enabled", "set_default_device")
_STYLES = (Style("arange"), Style("exact"), Style("ones"))
_OPERATORS: dict[str, type[ast.operator] | type[ast.cmpop] | type[ast.unaryop]] = {
    cls.__name__: cls
    for base in (ast.operator, ast.cmpop, ast.unaryop)
    for cls in base.__subclasses__()
}  # fmt: skip


def straight_lines(record: Mapping[str, Any]) -> list[str]:
    """Candidate scripts (with the prelude) for a failure that was recorded with its operations, shortest first."""
    operations: Sequence[Operation] = record.get("operations", ())
    found: dict[str, None] = {}
    for failure in record.get("failures", ())[:1]:
        for error in reversed(failure["chain"]):
            for statement, uses in _endings(error, operations):
                for settings in (False, True):
                    for style in _STYLES:
                        try:
                            found[_Program(operations, style, error["site"]).script(statement, uses, settings)] = None
                        except Unsynthesisable:
                            continue
    return sorted(found, key=lambda text: text.count("\n"))


def _endings(error: Mapping[str, Any], operations: Sequence[Operation]) -> Iterator[tuple[ast.stmt, int]]:
    """The statement that fails, in which ways it can be written, and how many of the operations precede it."""
    site = error.get("site")
    if site is None:
        return
    if "expression" in site:
        expressions = [site["expression"], *site.get("context", ())]
        for text in reversed(expressions):
            yield ast.parse(text).body[0], len(operations)
    elif site.get("kind") == "Assert":
        yield ast.parse(site["statement"]).body[0], len(operations)
    elif "statement" in site and site.get("kind") in ("Expr", "Assign", "Return", "AugAssign"):
        value = next(n.value for n in ast.walk(ast.parse(site["statement"])) if hasattr(n, "value"))
        if isinstance(value, ast.expr):
            yield ast.Expr(value), len(operations)
    if error["type"] == "AssertionError" and operations:
        last = len(operations) - 1
        test = ast.Name(f"_{last}", ast.Load())
        yield ast.Assert(test, None), last + 1
        yield ast.Assert(ast.UnaryOp(ast.Not(), test), None), last + 1


def _references(value: object) -> Iterator[int]:
    """The operations that a described value refers to."""
    if isinstance(value, Mapping):
        if value.get("kind") == "reference":
            yield int(value["of"][0])
            return
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _references(inner)


class _Program:
    """One script: the operations that the failing statement needs, in their order, and that statement."""

    def __init__(self, operations: Sequence[Operation], style: Style, site: Mapping[str, Any]) -> None:
        self.operations = operations
        self.style = style
        self.values: Mapping[str, Any] = site["values"]
        self.imports: Mapping[str, str] = site["imports"]
        self.needed: dict[str, None] = {}

    def script(self, statement: ast.stmt, end: int, settings: bool) -> str:
        """The whole text. Raises Unsynthesisable when a part of it has no source, or when nothing refers to a trace."""
        ending = ast.parse(ast.unparse(ast.fix_missing_locations(statement))).body[0]
        if not _is_synthetic(ending):
            ending = _Ending(self).visit(ending)
        wanted = {int(n.id[1:]) for n in ast.walk(ending) if isinstance(n, ast.Name) and _is_result(n.id)}
        if not wanted:
            raise Unsynthesisable("a failure that no operation leads to")
        kept, needed = self._slice(wanted, end, settings)
        if len(kept) > MAX_STATEMENTS:
            raise Unsynthesisable("too long a trace")
        statements = []
        for at in kept:
            try:
                statements.append(self._statement(at))
            except Unsynthesisable:
                if at in needed:
                    raise
        return self._text([*statements, ending])

    # -- what is kept --------------------------------------------------------------------------------------------

    def _slice(self, wanted: set[int], end: int, settings: bool) -> tuple[list[int], set[int]]:
        """The operations to keep, in order; those whose results are used."""
        needed = set(wanted)
        made_of = self._ancestors()
        kept: list[int] = []
        for at in range(end - 1, -1, -1):
            operation = self.operations[at]
            operands = set(_references({k: v for k, v in operation.items() if k != "same"}))
            sources = set(operands).union(*(made_of[o] for o in operands)) if operands else set()
            changes = _has_effect(operation) and bool(sources & needed)
            setting = settings and str(operation.get("function", "")).rpartition(".")[2] in _SETTINGS
            if at in needed or changes or setting:
                kept.append(at)
                needed |= operands
        return kept[::-1], needed

    def _ancestors(self) -> list[set[int]]:
        found: list[set[int]] = []
        for operation in self.operations:
            above: set[int] = set()
            for operand in _references({k: v for k, v in operation.items() if k != "same"}):
                above |= {operand} | (found[operand] if operand < len(found) else set())
            found.append(above)
        return found

    # -- source text ---------------------------------------------------------------------------------------------

    def _statement(self, at: int) -> ast.stmt:
        operation = self.operations[at]
        kind = operation["kind"]
        if kind == "store":
            receiver, key, value = (self.expression(v) for v in operation["arguments"])
            return ast.Assign([ast.Subscript(receiver, key, ast.Store())], value)
        if kind == "inplace" and "same" in operation:
            target, value = (self.expression(v) for v in operation["arguments"])
            if isinstance(target, ast.Name):
                return ast.AugAssign(ast.Name(target.id, ast.Store()), _OPERATORS[operation["name"]](), value)  # type: ignore[arg-type]
        made = self._operation(operation)
        return ast.Expr(made) if operation["silent"] or "same" in operation else _assign(f"_{at}", made)

    def _operation(self, operation: Operation) -> ast.expr:
        kind = operation["kind"]
        if kind == "input":
            return _parse(source(operation["value"], self.style))
        given = [self.expression(v) for v in operation["arguments"]]
        if kind in ("binary", "inplace"):
            operator = _OPERATORS[operation["name"]]()
            if isinstance(operator, ast.cmpop):
                return ast.Compare(given[0], [operator], [given[1]])
            return ast.BinOp(given[0], operator, given[1])  # type: ignore[arg-type]
        if kind == "unary":
            return ast.UnaryOp(_OPERATORS[operation["name"]](), given[0])  # type: ignore[arg-type]
        if kind == "item":
            return ast.Subscript(given[0], given[1], ast.Load())
        if kind == "attribute":
            return ast.Attribute(self.expression(operation["receiver"]), operation["name"], ast.Load())
        keywords = [ast.keyword(name, self.expression(v)) for name, v in operation["keywords"].items()]
        if kind == "method":
            receiver = self.expression(operation["receiver"])
            return ast.Call(ast.Attribute(receiver, operation["name"], ast.Load()), given, keywords)
        return ast.Call(self._function(operation), given, keywords)

    def _function(self, operation: Operation) -> ast.expr:
        if operation["named"]["kind"] == "reference":
            return self.expression(operation["named"])
        if operation["import"]:
            return self.library(operation["import"], operation["function"])
        return self.expression(operation["named"])

    def library(self, line: str, text: str) -> ast.expr:
        """A name that an import binds, by its full name where that is always there."""
        full = dotted(line)
        if full.split(".")[0] == "paddle":
            raise Unsynthesisable(f"Paddle's own {text}")
        if full.split(".")[0] == "torch" and (full.rpartition(".")[0] or "torch") in ALWAYS_LOADED:
            self.needed["import torch"] = None
            return _parse(full + text[len(text.split(".")[0]) :])
        self.needed[line] = None
        return _parse(text)

    def expression(self, value: Mapping[str, Any]) -> ast.expr:
        """An operand's source."""
        kind = value["kind"]
        if kind == "reference":
            result: ast.expr = ast.Name(f"_{value['of'][0]}", ast.Load())
            for index in value["of"][1:]:
                result = ast.Subscript(result, ast.Constant(index), ast.Load())
            return result
        if kind in ("list", "tuple"):
            items = [self.expression(item) for item in value["items"]]
            return ast.List(items, ast.Load()) if kind == "list" else ast.Tuple(items, ast.Load())
        if kind == "slice":
            return ast.Call(ast.Name("slice", ast.Load()), [self.expression(v) for v in value["items"]], [])
        return _parse(source(value, self.style))

    def _text(self, statements: list[ast.stmt]) -> str:
        statements = _named(_joined([_Slices().visit(s) for s in statements]))
        body = "\n".join(ast.unparse(ast.fix_missing_locations(s)) for s in statements)
        used = {n.id for n in ast.walk(ast.parse(body)) if isinstance(n, ast.Name)}
        for name in ("torch", "numpy"):
            if name in used:
                self.needed.setdefault(f"import {name}")
        heads = sorted(self.needed, key=lambda line: (not line.startswith("import torch"), line))
        return PRELUDE + "\n".join([*heads, body]) + "\n"


class _Ending(ast.NodeTransformer):
    """The failing statement with results of the trace, values and framework names in place of the case's own names."""

    def __init__(self, program: _Program) -> None:
        self.program = program

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, ast.expr) or isinstance(node, ast.Constant):
            return super().visit(node)
        text = ast.unparse(node)
        described = self.program.values.get(text)
        if described is not None and described["kind"] == "reference":
            return self.program.expression(described)
        if isinstance(node, ast.Name):
            line = self.program.imports.get(node.id)
            if line is not None and dotted(line).split(".")[0] != "paddle":
                return self.program.library(line, text)
            if described is None:
                if hasattr(builtins, text) or isinstance(node.ctx, ast.Store):
                    return node
                raise Unsynthesisable(f"{text} was not recorded")
            return self.program.expression(described)
        if described is not None and described["kind"] == "literal" and not self._leads_to_trace(node):
            return self.program.expression(described)
        return super().visit(node)

    def _leads_to_trace(self, node: ast.AST) -> bool:
        found = (self.program.values.get(ast.unparse(n)) for n in ast.walk(node) if isinstance(n, ast.expr))
        return any(d is not None and d["kind"] == "reference" for d in found)


class _Slices(ast.NodeTransformer):
    """``x[slice(1, None, None)]`` -> ``x[1:]``."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.slice, ast.Tuple):
            node.slice.elts = [_slice(e) for e in node.slice.elts]
        node.slice = _slice(node.slice)
        return node


def _slice(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "slice":
        parts = [None if isinstance(a, ast.Constant) and a.value is None else a for a in node.args]
        return ast.Slice(*parts)
    return node


def _joined(statements: list[ast.stmt]) -> list[ast.stmt]:
    """Results that only the next statement uses, and uses first, written where they are used."""
    uses: dict[str, int] = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                uses[node.id] = uses.get(node.id, 0) + 1
    found: list[ast.stmt] = []
    for statement in statements:
        first = _first_name(statement)
        before = found[-1] if found else None
        if (
            first is not None
            and isinstance(before, ast.Assign)
            and isinstance(before.targets[0], ast.Name)
            and before.targets[0].id == first.id
            and uses[first.id] == 1
        ):
            joined = _Put(first, before.value).visit(copy.deepcopy(statement, {id(first): first}))
            if len(ast.unparse(ast.fix_missing_locations(joined))) <= MAX_COLUMNS:
                found.pop()
                statement = joined
        found.append(statement)
    return found


def _first_name(statement: ast.stmt) -> ast.Name | None:
    """The result that is evaluated first."""
    node: ast.AST | None = getattr(statement, "value", None) or getattr(statement, "test", None)
    while node is not None:
        if isinstance(node, ast.Name):
            return node if _is_result(node.id) else None
        if isinstance(node, ast.Call):
            plain = isinstance(node.func, ast.Attribute) and _root_is_result(node.func)
            node = node.func if plain else (node.args[0] if node.args else None)
        elif isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        elif isinstance(node, ast.BinOp | ast.Compare):
            node = node.left
        elif isinstance(node, ast.UnaryOp):
            node = node.operand
        else:
            return None
    return None


def _root_is_result(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Name) and _is_result(n.id) for n in ast.walk(node))


class _Put(ast.NodeTransformer):
    def __init__(self, place: ast.Name, value: ast.expr) -> None:
        self.place = place
        self.value = value

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.value if node is self.place else node


def _named(statements: list[ast.stmt]) -> list[ast.stmt]:
    """Results under short names in place of numbers."""
    taken = {n.id for s in statements for n in ast.walk(s) if isinstance(n, ast.Name) and not _is_result(n.id)}
    letters = iter([c for c in "xyzwuvabcdefghijklmnopqrst" if c not in taken])
    names: dict[str, str] = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and _is_result(node.id):
                if node.id not in names:
                    names[node.id] = next(letters, f"x{node.id[1:]}")
                node.id = names[node.id]
    return statements


def _has_effect(operation: Operation) -> bool:
    name = str(operation.get("name") or operation.get("function") or "")
    return bool(
        operation["kind"] in ("store", "inplace")
        or operation["silent"]
        or "same" in operation
        or (name.endswith("_") and not name.endswith("__"))
    )


def _is_result(name: str) -> bool:
    return name[:1] == "_" and name[1:].isdigit()


def _is_synthetic(statement: ast.stmt) -> bool:
    return any(isinstance(n, ast.Name) and _is_result(n.id) for n in ast.walk(statement))


def _parse(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)
