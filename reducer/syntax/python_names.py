"""Which names a piece of Python reads from outside itself, and which it binds."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable

from reducer.syntax.python import FUNCTIONS, FunctionNode

BUILTINS = frozenset(dir(builtins))
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def bound_names(node: ast.AST) -> set[str]:
    """The names that the statements bind in their own scope, those of nested blocks included."""
    found: set[str] = set()
    _collect_bound(node, found)
    return found


def _collect_bound(node: ast.AST, found: set[str]) -> None:
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        found.add(node.name)
        for decorator in node.decorator_list:
            _collect_bound(decorator, found)
        return
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            found.add(alias.asname or alias.name.split(".")[0])
        return
    if isinstance(node, _COMPREHENSIONS):
        found.update(n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
        found.add(node.id)
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        found.add(node.name)
    elif isinstance(node, ast.MatchMapping) and node.rest:
        found.add(node.rest)
    for child in ast.iter_child_nodes(node):
        _collect_bound(child, found)


def parameters(node: FunctionNode | ast.Lambda) -> list[ast.arg]:
    """All parameters in the order in which they are written, ``*args`` and ``**kwargs`` included."""
    args = node.args
    found = [*args.posonlyargs, *args.args]
    if args.vararg:
        found.append(args.vararg)
    found += args.kwonlyargs
    if args.kwarg:
        found.append(args.kwarg)
    return found


def local_names(node: FunctionNode | ast.Lambda) -> set[str]:
    """The names that are local to a function: its parameters and what its body binds."""
    found = {p.arg for p in parameters(node)}
    if isinstance(node, ast.Lambda):
        return found | bound_names(node.body)
    outside: set[str] = set()
    for statement in node.body:
        found |= bound_names(statement)
        for inner in ast.walk(statement):
            if isinstance(inner, ast.Global | ast.Nonlocal):
                outside.update(inner.names)
    return found - outside


def free_names(node: ast.AST) -> set[str]:
    """The names that evaluating the node, or calling what it defines, reads or rebinds outside its own scopes.

    Annotations written as strings count as code. Builtin names are not left out.
    """
    found: set[str] = set()
    _collect_free(node, frozenset(), found)
    return found


def _collect_free(node: ast.AST, hidden: frozenset[str], found: set[str]) -> None:
    if isinstance(node, ast.Name):
        if node.id not in hidden and not isinstance(node.ctx, ast.Store):
            found.add(node.id)
        return
    if isinstance(node, ast.Global | ast.Nonlocal):
        found.update(node.names)
        return
    if isinstance(node, FUNCTIONS):
        outer: list[ast.AST | None] = [*node.decorator_list, *node.args.defaults, *node.args.kw_defaults]
        _collect_all(outer, hidden, found)
        annotations = [p.annotation for p in parameters(node)]
        for annotation in [*annotations, node.returns]:
            _collect_annotation(annotation, hidden, found)
        _collect_all(node.body, hidden | local_names(node), found)
    elif isinstance(node, ast.Lambda):
        _collect_all([*node.args.defaults, *node.args.kw_defaults], hidden, found)
        _collect_free(node.body, hidden | local_names(node), found)
    elif isinstance(node, _COMPREHENSIONS):
        targets = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        _collect_all(ast.iter_child_nodes(node), hidden | targets, found)
    elif isinstance(node, ast.AnnAssign):
        _collect_annotation(node.annotation, hidden, found)
        _collect_all([node.target, node.value], hidden, found)
    elif isinstance(node, ast.AugAssign):
        if isinstance(node.target, ast.Name) and node.target.id not in hidden:
            found.add(node.target.id)
        _collect_all([node.target, node.value], hidden, found)
    else:
        _collect_all(ast.iter_child_nodes(node), hidden, found)


def _collect_all(nodes: Iterable[ast.AST | None], hidden: frozenset[str], found: set[str]) -> None:
    for node in nodes:
        if node is not None:
            _collect_free(node, hidden, found)


def _collect_annotation(node: ast.expr | None, hidden: frozenset[str], found: set[str]) -> None:
    if node is None:
        return
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            try:
                parsed = ast.parse(inner.value, mode="eval")
            except (SyntaxError, ValueError, RecursionError):
                continue  # not code after all, such as the text of an Annotated[...]
            _collect_free(parsed, hidden, found)
    _collect_free(node, hidden, found)


def attribute_names(node: ast.AST) -> set[str]:
    """The attribute names that stand anywhere in the node."""
    return {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}


def dotted(node: ast.AST) -> list[str] | None:
    """``["a", "b", "c"]`` for the expression ``a.b.c``, None for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return [node.id, *reversed(parts)]
