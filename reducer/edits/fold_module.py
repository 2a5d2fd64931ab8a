"""The module-level side of folding: several files' top-level code as one, and the files' imports kept working."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from reducer.edits.fold_sources import (
    Node,
    Sources,
    fixture_options,
    is_mark,
    is_test_class,
    is_test_function,
)
from reducer.edits.inline_graph import Module, ModuleMap, is_main_guard, is_type_checking
from reducer.edits.inline_scopes import GlobalNames, Renamer, Scope, collect, free_globals
from reducer.syntax.python import is_docstring
from reducer.tree import SourceTree

_PYTEST_NAMES = ("pytestmark", "pytest_plugins", "collect_ignore", "collect_ignore_glob")


def combined(sources: Sources, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The files' module-level code, outermost first, then the statements; other tests and pytest's own forms go.

    Tests and fixtures that the rest still mentions by name stay.
    """
    bodies: list[list[ast.stmt]] = []
    dropped: dict[str, ast.stmt] = {}
    for module in sources.modules:
        kept: list[ast.stmt] = []
        for statement in module.body:
            if is_docstring(statement) or _only_pytest(statement):
                continue
            name = getattr(statement, "name", None)
            if isinstance(name, str) and _is_test_part(statement):
                dropped[name] = statement
            else:
                kept.append(statement)
        bodies.append(_from_the_root(kept, module, sources))
    merged = _without_clashes(bodies, sources)
    own = {name for s in statements for name in _bound([s])}
    while True:
        used = free_globals(copy.deepcopy([*merged, *statements]))
        missing = [n for n in dropped if n in used and n not in own]
        if not missing:
            break
        for name in missing:
            definition = dropped.pop(name)
            if isinstance(definition, ast.FunctionDef | ast.ClassDef):
                definition.decorator_list = [d for d in definition.decorator_list if not is_mark(d)]
            merged.append(definition)
    return _importorskip([*merged, *statements])


def _only_pytest(statement: ast.stmt) -> bool:
    """Statements that only pytest reads."""
    if is_main_guard(statement) or is_type_checking(statement):
        return True
    if isinstance(statement, ast.Assign):
        return ast.unparse(statement.targets[0]) in _PYTEST_NAMES
    return isinstance(statement, ast.FunctionDef) and statement.name.startswith("pytest_")


def _is_test_part(statement: ast.stmt) -> bool:
    if is_test_function(statement) or is_test_class(statement):
        return True
    return isinstance(statement, ast.FunctionDef) and fixture_options(statement) is not None


def _from_the_root(body: list[ast.stmt], module: Module, sources: Sources) -> list[ast.stmt]:
    """The statements as they work in a script at the root: absolute imports, ``__file__`` as a path from there."""
    names = {m.name: m for m in sources.modules}
    found: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.ImportFrom):
            base = module.absolute(statement)
            if base in names:  # e.g. ``from conftest import make``: the script has it already
                found += [
                    ast.Assign([ast.Name(a.asname, ast.Store())], ast.Name(a.name, ast.Load()), lineno=0)
                    for a in statement.names
                    if a.asname and a.asname != a.name
                ]
                continue
            if statement.level and base:
                statement = ast.ImportFrom(base, statement.names, 0)
        rewriter = _FromTheRoot(module)
        found.append(rewriter.visit(statement))
    return found


class _FromTheRoot(GlobalNames):
    def __init__(self, module: Module) -> None:
        super().__init__()
        self.module = module

    def on_name(self, node: ast.Name) -> ast.AST:
        if node.id == "__file__" and isinstance(node.ctx, ast.Load):
            return ast.copy_location(ast.Constant(self.module.path), node)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        base = self.module.absolute(node)
        return ast.ImportFrom(base, node.names, 0) if node.level and base else node


def _bound(body: Sequence[ast.stmt]) -> set[str]:
    scope = Scope(False)
    collect(body, scope)
    return scope.bound


def _without_clashes(bodies: list[list[ast.stmt]], sources: Sources) -> list[ast.stmt]:
    """The bodies one after another. What is said twice in the same words is said once; an outer file's name that an
    inner one binds to something else gets the outer file's name in front."""
    merged: list[ast.stmt] = []
    said: set[str] = set()
    for index, body in enumerate(bodies):
        later = {name for other in bodies[index + 1 :] for s in other for name in _bound([s])}
        elsewhere = {ast.dump(s) for other in bodies[index + 1 :] for s in other}
        clashing = {n for s in body if ast.dump(s) not in elsewhere for n in _bound([s])} & later
        imports = {n for s in body if isinstance(s, ast.Import | ast.ImportFrom) for n in _bound([s])}
        stem = sources.modules[index].name.rpartition(".")[2]
        mapping = {name: f"{stem}_{name.lstrip('_')}" for name in clashing - imports}
        renamer = Renamer(mapping)
        for statement in body:
            said_before = ast.dump(statement)
            if said_before in said and isinstance(statement, ast.Import | ast.ImportFrom):
                continue
            said.add(said_before)
            merged.append(renamer.visit(statement))
    return merged


def _importorskip(body: list[ast.stmt]) -> list[ast.stmt]:
    """``x = pytest.importorskip("x")`` as an import."""
    found: list[ast.stmt] = []
    for statement in body:
        value = getattr(statement, "value", None) if isinstance(statement, ast.Assign | ast.Expr) else None
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "pytest.importorskip" and value.args:
            name = value.args[0]
            if isinstance(name, ast.Constant):
                target = statement.targets[0] if isinstance(statement, ast.Assign) else None
                alias = target.id if isinstance(target, ast.Name) and target.id != name.value else None
                found.append(ast.Import([ast.alias(str(name.value), alias)]))
                continue
        found.append(statement)
    return found


def import_paths(tree: SourceTree, sources: Sources, body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements that put directories of the tree on ``sys.path`` which the script's imports need."""
    here = ModuleMap(tree, [""])
    needed: list[str] = []
    for root in sources.roots:
        if not root:
            continue
        there = ModuleMap(tree, [root])
        for statement in body:
            for node in ast.walk(statement):
                names: list[str] = []
                if isinstance(node, ast.Import):
                    names = [a.name for a in node.names]
                elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                    names = [node.module]
                tops = {n.split(".")[0] for n in names}
                if any(_holds(there, t) and not _holds(here, t) for t in tops) and root not in needed:
                    needed.append(root)
    lines = [f"sys.path.insert(0, {root!r})" for root in needed]
    return ast.parse("\n".join(["import sys", *lines])).body if lines else []


def _holds(modules: ModuleMap, top: str) -> bool:
    return top in modules or any(name.startswith(top + ".") for name in modules.paths)


def pruned_class(owner: ast.ClassDef, method: str) -> tuple[ast.ClassDef, ast.FunctionDef | None]:
    """The class with one of its tests, and that test (None when it is inherited)."""
    kept = copy.deepcopy(owner)
    kept.decorator_list = [d for d in kept.decorator_list if not is_mark(d)]
    test: ast.FunctionDef | None = None
    body: list[ast.stmt] = []
    for statement in kept.body:
        if isinstance(statement, ast.FunctionDef):
            if statement.name == method:
                test = copy.deepcopy(statement)
            elif is_test_function(statement):
                continue
            statement.decorator_list = [d for d in statement.decorator_list if not is_mark(d)]
        body.append(statement)
    kept.body = body or [ast.Pass()]
    return kept, test


def fallback(sources: Sources, node: Node, text: str) -> list[ast.stmt] | None:
    """One pytest file that runs itself: the files' code with the one test, its fixtures and marks left alone."""
    wanted = node.classes[0] if node.classes else node.function
    if not any(getattr(s, "name", None) == wanted for s in sources.test.body):
        return None
    bodies: list[list[ast.stmt]] = []
    for module in sources.modules:
        kept = []
        for statement in module.body:
            name = getattr(statement, "name", None)
            other = (is_test_function(statement) or is_test_class(statement)) and name != wanted
            if other or is_docstring(statement) or is_main_guard(statement):
                continue
            if isinstance(statement, ast.ClassDef) and name == wanted and len(node.classes) == 1:
                statement.body = [s for s in statement.body if not is_test_function(s) or _named(s, node.function)]
            kept.append(statement)
        bodies.append(_from_the_root(kept, module, sources))
    merged = _without_clashes(bodies, sources)
    main = (
        "if __name__ == '__main__':\n    import sys, pytest\n"
        f"    sys.exit(pytest.main([__file__ + {'::' + text!r}, '-q', '-p', 'no:cacheprovider']))"
    )
    return [*merged, *ast.parse(main).body]


def _named(statement: ast.stmt, name: str) -> bool:
    return getattr(statement, "name", None) == name
