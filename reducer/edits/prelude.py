"""The two-line prelude of a written script, and how the library's own ways of saying it are replaced."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from reducer.syntax.python import is_docstring

CONDITION = 'os.getenv("USE_TORCH") is None'
PRELUDE = f"import os\nif {CONDITION}: import paddle; paddle.enable_compat()\n"
_SWITCHES = {"enable_compat", "disable_compat", "enable_torch_proxy", "disable_torch_proxy"}
_ALIASES = {"compat"}


def prelude(scope: Collection[str] | None = None) -> str:
    """The prelude's two lines, with ``scope={...}`` inside ``enable_compat`` when a scope is given."""
    if scope is None:
        return PRELUDE
    names = ", ".join(f'"{name}"' for name in sorted(scope))
    call = f"enable_compat(scope={{{names}}})" if names else "enable_compat(scope=set())"
    return PRELUDE.replace("enable_compat()", call)


def replace_prelude(source: str, scope: Collection[str] | None = None) -> str:
    """``source`` with the one prelude at its top (after docstring and ``__future__`` imports), its own forms gone.

    A text that is not Python, or that needs no change, comes back as it is.
    """
    if source.startswith(prelude(scope)) and source.count("enable_compat") == 1:
        return source
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError):
        return source
    return with_prelude(strip_prelude(module.body), scope)


def with_prelude(body: Sequence[ast.stmt], scope: Collection[str] | None = None) -> str:
    """The source of ``body`` (already without a prelude) below the prelude; ``__future__`` imports come first."""
    head = [s for s in body if isinstance(s, ast.ImportFrom) and s.module == "__future__" and s.level == 0]
    rest = [s for s in body if s not in head and not is_docstring(s) and not _is_import_os(s)]
    parts = [unparse(head), prelude(scope).rstrip("\n"), unparse(rest)]
    return "\n".join(part for part in parts if part) + "\n"


def unparse(body: Sequence[ast.stmt]) -> str:
    """The statements' source text."""
    return ast.unparse(ast.fix_missing_locations(ast.Module(list(body), []))) if body else ""


def strip_prelude(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """``body`` without what switches the compat layer on: imports of paddle, the calls, and the statements around.

    ``import paddle`` stays where the code uses Paddle's own API. ``import os`` goes when only the switch needed it.
    """
    modules = _paddle_names(body)
    own_api = _uses_own_api(body, modules)
    kept = [s for s in (_stripped(statement, modules, own_api) for statement in body) if s is not None]
    changed = len(kept) != len(body)
    if changed and not _mentions(kept, "os"):
        kept = [s for s in kept if not _is_import_os(s)]
    return kept


def _is_import_os(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import) and [(a.name, a.asname) for a in statement.names] == [("os", None)]


def switches_compat(body: Sequence[ast.stmt]) -> bool:
    """True when any statement calls a switch of the compat layer."""
    return any(_is_switch(n) for s in body for n in ast.walk(s))


def scopes(body: Sequence[ast.stmt]) -> set[str] | None:
    """The names in the ``scope=`` of the switches found, or None when one of them has no scope (or not a literal)."""
    found: set[str] = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and _is_switch(node):
                value = next((k.value for k in node.keywords if k.arg == "scope"), None)
                try:
                    found |= {str(name) for name in ast.literal_eval(value)} if value is not None else set()
                except (ValueError, TypeError):
                    return None
                if value is None:
                    return None
    return found or None


def _is_switch(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in _SWITCHES


def _paddle_names(body: Sequence[ast.stmt]) -> set[str]:
    names = {"paddle"}
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Import):
                names |= {a.asname for a in node.names if a.name.split(".")[0] == "paddle" and a.asname}
    return names


def _uses_own_api(body: Sequence[ast.stmt], modules: set[str]) -> bool:
    """True when paddle is used for more than its switches."""
    for statement in body:
        switch_names = {
            id(inner)
            for node in ast.walk(statement)
            if _is_switch(node)
            for inner in ast.walk(node.func)  # type: ignore[attr-defined]
        }
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id in modules and id(node) not in switch_names:
                return True
    return False


def _mentions(body: Sequence[ast.stmt], name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for s in body for n in ast.walk(s))


def _stripped(statement: ast.stmt, modules: set[str], own_api: bool) -> ast.stmt | None:
    """The statement without its switches, or None when nothing is left of it."""
    if isinstance(statement, ast.Import):
        left = [a for a in statement.names if own_api or a.name.split(".")[0] != "paddle"]
        if not left:
            return None
        return statement if len(left) == len(statement.names) else ast.Import(left)
    if isinstance(statement, ast.ImportFrom):
        if statement.level or not statement.module or statement.module.split(".")[0] != "paddle":
            return statement
        names = [a for a in statement.names if a.name not in _SWITCHES | _ALIASES]
        if not names:
            return None
        return statement if len(names) == len(statement.names) else ast.ImportFrom(statement.module, names, 0)
    if isinstance(statement, ast.Expr) and _is_switch(statement.value):
        return None
    if isinstance(statement, ast.If | ast.Try | ast.With) and _touches(statement):
        return _stripped_block(statement, modules, own_api)
    if isinstance(statement, ast.FunctionDef) and statement.name.startswith("pytest_") and _touches(statement):
        statement.body = [s for s in (_stripped(b, modules, own_api) for b in statement.body) if s is not None]
        return statement if any(not isinstance(s, ast.Pass) for s in statement.body) else None
    return statement


def _touches(statement: ast.stmt) -> bool:
    """True when the statement switches the layer or imports paddle."""
    for node in ast.walk(statement):
        if _is_switch(node):
            return True
        if isinstance(node, ast.Import) and any(a.name.split(".")[0] == "paddle" for a in node.names):
            return True
    return False


def _stripped_block(
    statement: ast.If | ast.Try | ast.With, modules: set[str], own_api: bool
) -> ast.If | ast.Try | ast.With | None:
    def strip(block: list[ast.stmt]) -> list[ast.stmt]:
        return [s for s in (_stripped(b, modules, own_api) for b in block) if s is not None]

    def idle(block: list[ast.stmt]) -> bool:
        return all(isinstance(s, ast.Pass) for s in block)

    statement.body = strip(statement.body) or [ast.Pass()]
    if isinstance(statement, ast.With):
        return None if idle(statement.body) else statement
    statement.orelse = strip(statement.orelse)
    if isinstance(statement, ast.If):
        return None if idle(statement.body) and idle(statement.orelse) else statement
    statement.finalbody = strip(statement.finalbody)
    # Nothing is left that could raise, so the handlers (a flag, a log line) can go with it.
    if idle(statement.body) and idle(statement.orelse) and idle(statement.finalbody):
        return None
    return statement
