"""Inline functions into their calls: expression functions everywhere, straight-line functions into their only call."""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reducer.edits.edit import Edit, Op, Splice
from reducer.edits.passes import Proposal, nothing, proposal
from reducer.edits.py_expressions import loose
from reducer.edits.py_signatures import is_plain
from reducer.syntax.python import FUNCTIONS, PyModule, is_docstring, pinned_nodes, python_modules
from reducer.syntax.python_names import BUILTINS, bound_names, dotted, free_names, parameters
from reducer.tree import SourceTree

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class PyInlineFunctions:
    """One edit for each module-level function whose body can stand at its calls; the definition goes with it.

    Parameters are replaced by what is passed where that is plain or used once, and assigned before otherwise; names
    that the caller uses already get a number.
    """

    name = "py_inline_functions"

    def propose(self, tree: SourceTree) -> Proposal:
        edits: list[Edit] = []
        for module in python_modules(tree):
            functions = [f for f in _candidates(module) if f.calls]
            names = {f.node.name for f in functions}
            for function in functions:
                inner = free_names(function.node) & names
                passed = {n.id for c in function.calls for n in ast.walk(c) if isinstance(n, ast.Name)}
                if inner or (passed & names) - {function.node.name}:
                    continue  # the copied text would still call a function that goes too: a later round
                edit = _inline(module, function)
                if edit is not None:
                    edits.append(edit)
        return proposal(edits, "sweep") if edits else nothing()


@dataclass(frozen=True, slots=True)
class _Function:
    node: ast.FunctionDef
    cut: tuple[int, int]
    body: tuple[ast.stmt, ...]  # without docstring and the last return
    result: ast.expr | None
    calls: tuple[ast.Call, ...]


def _candidates(module: PyModule) -> Iterator[_Function]:
    fixed = pinned_nodes(module)
    body = module.tree.body
    reachable = set(module.expressions)
    for position, node in enumerate(body):
        if not isinstance(node, ast.FunctionDef) or node in fixed or node.decorator_list:
            continue
        statements = node.body[1:] if is_docstring(node.body[0]) else list(node.body)
        result: ast.expr | None = None
        if statements and isinstance(statements[-1], ast.Return):
            last = statements.pop()
            assert isinstance(last, ast.Return)
            result = last.value
        statements = [s for s in statements if not isinstance(s, ast.Pass)]
        if any(_is_control(n) for s in statements for n in ast.walk(s)):
            continue
        if any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Await) for n in ast.walk(node)):
            continue
        uses = [n for n in ast.walk(module.tree) if isinstance(n, ast.Name) and n.id == node.name]
        calls = [p for u in uses if isinstance(p := module.parents.get(u), ast.Call) and p.func is u]
        recursive = any(n in ast.walk(node) for n in uses)
        if len(calls) != len(uses) or recursive or any(c not in reachable for c in calls):
            continue
        if statements and len(calls) != 1:
            continue
        before = body[position - 1] if position else None
        after = body[position + 1] if position + 1 < len(body) else None
        yield _Function(node, module.statement_span(node, before, after), tuple(statements), result, tuple(calls))


def _is_control(node: ast.AST) -> bool:
    return isinstance(node, ast.Return | ast.Nonlocal)


def _inline(module: PyModule, function: _Function) -> Edit | None:
    ops: list[Op] = [Splice(module.path, *function.cut)]
    for call in function.calls:
        one = _at_call(module, function, call)
        if one is None:
            return None
        ops += one
    size = function.cut[1] - function.cut[0]
    return Edit(tuple(ops), f"inline function {function.node.name}", size)


def _at_call(module: PyModule, function: _Function, call: ast.Call) -> list[Op] | None:
    statement = module.statement_of(call)
    if statement is None or isinstance(statement, ast.While):
        return None
    bound = bind_arguments(function.node, call)
    if bound is None:
        return None
    scope = next((n for n in module.enclosing(call) if isinstance(n, (*FUNCTIONS, ast.ClassDef))), module.tree)
    at_top = isinstance(scope, ast.Module)
    globals_ = {n for s in function.body for g in ast.walk(s) if isinstance(g, ast.Global) for n in g.names}
    if globals_ and not at_top:
        return None
    body = [s for s in function.body if not isinstance(s, ast.Global)]
    locals_ = {name for s in body for name in bound_names(s)} - globals_
    taken = {n.id for n in ast.walk(scope) if isinstance(n, ast.Name)} | BUILTINS
    if at_top:  # what only the function itself calls so is free
        inside = {id(n) for n in ast.walk(function.node)}
        taken = {n.id for n in ast.walk(scope) if isinstance(n, ast.Name) and id(n) not in inside} | BUILTINS
    elif (free_names(function.node) - BUILTINS) & _bound_in(scope):
        return None
    values: dict[str, ast.expr] = {}
    assigned: list[tuple[str, ast.expr]] = []
    whole: list[ast.AST] = [*body, *([function.result] if function.result is not None else [])]
    for name, value in bound.items():
        loads = [n for part in whole for n in ast.walk(part) if isinstance(n, ast.Name) and n.id == name]
        simple = is_plain(value) or dotted(value) is not None
        if name not in locals_ and (simple or (len(loads) == 1 and not _repeated(whole, loads[0]))):
            values[name] = value
        elif loads or not simple:
            assigned.append((name, value))
    renames = {
        name: _fresh(name, taken | locals_ | {n for n, _ in assigned})
        for name in sorted(locals_ | {n for n, _ in assigned})
        if name in taken
    }
    changer = _Change(values, renames)
    before = [ast.Assign([ast.Name(renames.get(n, n), ast.Store())], v, lineno=1) for n, v in assigned]
    body = [changer.visit(copy.deepcopy(s)) for s in body]
    result = changer.visit(copy.deepcopy(function.result)) if function.result is not None else ast.Constant(None)
    lines = "\n".join(ast.unparse(ast.fix_missing_locations(s)) for s in [*before, *body])
    if lines and any(isinstance(n, (*_COMPREHENSIONS, ast.Lambda)) for n in _between(module, call, statement)):
        return None
    ops: list[Op] = []
    if lines:
        start = module.line_start(module.start(statement))
        indent = module.indent(statement)
        if start + len(indent) != module.start(statement) or _has_long_string([*before, *body]):
            return None
        text = b"".join(indent + module.encode(line + "\n") for line in lines.splitlines())
        if isinstance(statement, ast.Expr) and statement.value is call and function.result is None:
            return [Splice(module.path, start, module.next_line(module.end(statement)), text)]
        ops.append(Splice(module.path, start, start, text))
    replacement = ast.unparse(result)
    safe = ast.Starred | ast.keyword | ast.Call | ast.Assign | ast.Return | ast.Expr
    if loose(result) and not replacement.startswith("(") and not isinstance(module.parents.get(call), safe):
        replacement = f"({replacement})"
    ops.append(Splice(module.path, *module.span(call), module.encode(replacement)))
    return ops


def bind_arguments(node: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr] | None:
    """What each parameter gets in a call, defaults included; None for a call that does not fit or has stars."""
    args = node.args
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    plain = [*args.posonlyargs, *args.args]
    bound: dict[str, ast.expr] = {p.arg: a for p, a in zip(plain, call.args, strict=False)}
    extra = call.args[len(plain) :]
    if extra and args.vararg is None:
        return None
    if args.vararg is not None:
        bound[args.vararg.arg] = ast.Tuple(list(extra), ast.Load())
    names = {p.arg for p in (*args.args, *args.kwonlyargs)}
    rest = []
    for keyword in call.keywords:
        assert keyword.arg is not None
        if keyword.arg in names and keyword.arg not in bound:
            bound[keyword.arg] = keyword.value
        elif args.kwarg is not None and keyword.arg not in names:
            rest.append(keyword)
        else:
            return None
    if args.kwarg is not None:
        bound[args.kwarg.arg] = ast.Dict([ast.Constant(k.arg) for k in rest], [k.value for k in rest])
    defaults: list[tuple[ast.arg, ast.expr | None]] = list(zip(reversed(plain), reversed(args.defaults), strict=False))
    defaults += list(zip(args.kwonlyargs, args.kw_defaults, strict=True))
    for parameter, default in defaults:
        if default is not None:
            bound.setdefault(parameter.arg, default)
    return bound if all(p.arg in bound for p in parameters(node)) else None


class _Change(ast.NodeTransformer):
    """Put values in the place of parameters and give locals their new names."""

    def __init__(self, values: dict[str, ast.expr], renames: dict[str, str]) -> None:
        self._values = values
        self._renames = renames

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._values and isinstance(node.ctx, ast.Load):
            return copy.deepcopy(self._values[node.id])
        return ast.Name(self._renames.get(node.id, node.id), node.ctx)


def _bound_in(scope: ast.AST) -> set[str]:
    found = {p.arg for p in parameters(scope)} if isinstance(scope, FUNCTIONS) else set()
    for statement in getattr(scope, "body", ()):
        found |= bound_names(statement)
    return found


def _repeated(parts: Sequence[ast.AST], use: ast.AST) -> bool:
    """The use stands where it may be evaluated several times or later."""
    later = (*FUNCTIONS, ast.Lambda, *_COMPREHENSIONS, ast.For, ast.While)
    return any(
        isinstance(node, later) and any(inner is use for inner in ast.walk(node))
        for part in parts
        for node in ast.walk(part)
    )


def _fresh(name: str, taken: set[str]) -> str:
    return next(f"{name}{n}" for n in itertools.count(2) if f"{name}{n}" not in taken)


def _between(module: PyModule, node: ast.AST, statement: ast.stmt) -> Iterator[ast.AST]:
    for above in module.enclosing(node):
        if above is statement:
            return
        yield above


def _has_long_string(body: Sequence[ast.AST]) -> bool:
    """A nested docstring, which is written over several lines that must not be indented."""
    return any(isinstance(n, (*FUNCTIONS, ast.ClassDef)) and is_docstring(n.body[0]) for s in body for n in ast.walk(s))
