"""A function's body as statements of the module that calls it once."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence

from reducer.edits.inline_scopes import SCOPES, Renamer, arguments, scope_of


class Names:
    """The global names in use in the script that is being written."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = set(taken)

    def fresh(self, wanted: str) -> str:
        """``wanted`` or a variant of it that nothing else is called; it is taken from now on."""
        name, number = wanted, 2
        while name in self.taken:
            name, number = f"{wanted}_{number}", number + 1
        self.taken.add(name)
        return name


def unfold(
    function: ast.FunctionDef, bindings: Mapping[str, str], names: Names, result: str | None = None
) -> list[ast.stmt] | None:
    """The statements that do what one call of the function does, or None when its shape does not allow that.

    ``bindings``: for each parameter, the global variable that holds its value. ``result``: the variable for what is
    returned (or yielded; what comes after a yield is dropped). Locals keep their names where these are free.
    """
    body = copy.deepcopy(function.body)
    if not _is_straight(function) or set(bindings) != {a.arg for a in arguments(function.args)}:
        return None
    if result is None and any(isinstance(s, ast.Expr) and isinstance(s.value, ast.Yield) for s in body):
        return None
    mapping = dict(bindings)
    outcome: ast.expr | None = None
    statements: list[ast.stmt] = []
    for statement in body:
        value = _outcome(statement)
        if value is not None:
            outcome = value if not isinstance(value, ast.Yield) else value.value or ast.Constant(None)
            break
        statements.append(statement)
    locals_ = scope_of(function).bound - set(bindings)
    if result is not None and isinstance(outcome, ast.Name) and outcome.id in locals_ and outcome.id != result:
        mapping[outcome.id] = result  # the local that is returned is the result's variable from the start
    for local in sorted(locals_):
        if local not in mapping:
            free = local == result and result not in mapping.values()
            mapping[local] = local if free else names.fresh(local)
    renamer = Renamer(mapping)
    found = [renamer.visit(s) for s in statements]
    if result is not None:
        value = renamer.visit(outcome) if outcome is not None else ast.Constant(None)
        if not (isinstance(value, ast.Name) and value.id == result):
            found.append(ast.Assign([ast.Name(result, ast.Store())], value, lineno=0))
    elif outcome is not None and not isinstance(outcome, ast.Constant):
        found.append(ast.Expr(renamer.visit(outcome)))
    return found


def _outcome(statement: ast.stmt) -> ast.expr | None:
    """What a top-level statement of the function hands out, if it is the one that does."""
    if isinstance(statement, ast.Return):
        return statement.value or ast.Constant(None)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield):
        return statement.value
    return None


def _is_straight(function: ast.FunctionDef) -> bool:
    """True when the body can stand outside its function: one way out, at its end, and no closures over variables."""
    for position, statement in enumerate(function.body):
        if isinstance(statement, ast.Return):
            return position == len(function.body) - 1 and not _inner_exits(function.body[:position])
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield):
            return not _inner_exits(function.body[:position]) and not _yields(function.body[position + 1 :])
    return not _inner_exits(function.body)


def _inner_exits(body: Sequence[ast.stmt]) -> bool:
    for statement in body:
        if any(isinstance(n, ast.Nonlocal) for n in ast.walk(statement)):
            return True
        if any(isinstance(n, ast.Return | ast.Await) for n in own_nodes(statement)) or _yields([statement]):
            return True
    return False


def _yields(body: Sequence[ast.stmt]) -> bool:
    return any(isinstance(n, ast.Yield | ast.YieldFrom) for s in body for n in own_nodes(s))


def own_nodes(statement: ast.AST) -> list[ast.AST]:
    """The nodes of a statement that are not inside a function or class of its own."""
    found: list[ast.AST] = []
    queue = [statement]
    while queue:
        node = queue.pop()
        if isinstance(node, SCOPES):
            continue
        found.append(node)
        queue += ast.iter_child_nodes(node)
    return found


def called(
    function: ast.FunctionDef, bindings: Mapping[str, str], names: Names, result: str | None = None
) -> list[ast.stmt]:
    """The function itself and one call of it, for one that ``unfold`` does not take. A generator stays alive, so
    that what it holds open does too."""
    definition = copy.deepcopy(function)
    definition.name = names.fresh(function.name if function.name != result else f"make_{result}")
    given = [ast.keyword(parameter, ast.Name(value, ast.Load())) for parameter, value in bindings.items()]
    call: ast.expr = ast.Call(ast.Name(definition.name, ast.Load()), [], given)
    if not _yields(function.body):
        if result is None:
            return [definition, ast.Expr(call)]
        return [definition, ast.Assign([ast.Name(result, ast.Store())], call, lineno=0)]
    steps = names.fresh(f"{result or definition.name}_steps")
    first = ast.Call(ast.Name("next", ast.Load()), [ast.Name(steps, ast.Load())], [])
    target = ast.Name(result or names.fresh("first"), ast.Store())
    return [
        definition,
        ast.Assign([ast.Name(steps, ast.Store())], call, lineno=0),
        ast.Assign([target], first, lineno=0),
    ]
