"""The rewriting behind ``inline_modules``: modules' statements in import order, with their names resolved."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from reducer.edits.inline_graph import Module, ModuleMap, is_main_guard, is_type_checking, without_text
from reducer.edits.inline_names import CannotInline, Capture, InModule, Named, Names, Target
from reducer.edits.inline_scopes import DEFINITIONS, GlobalNames, Scope, arguments

_BLOCKS = (ast.If, ast.Try, ast.With, ast.For, ast.While, ast.AsyncWith, ast.AsyncFor)
_BY_NAME = ("importlib.import_module", "__import__", "pkgutil.get_data", "importlib.resources.files", "globals")


class Inliner:
    """Builds the statements of the one script. Used once: it rewrites the modules' syntax trees."""

    def __init__(self, modules: ModuleMap, main: Module, names: Names) -> None:
        self.modules = modules
        self.main = main
        self.names = names
        self.done: set[str] = set()
        self.emitted: set[str] = set()

    def run(self) -> list[ast.stmt]:
        """The script's statements. Raises CannotInline and Capture."""
        for name in [self.main.name, *self._order()]:
            module = self.main if name == self.main.name else self.modules.load(name)
            assert module is not None
            self.names.allocate(module)
        body = self._block(self.main, self.main.body, top=True)
        for statement in body:
            fill_blocks(statement)
        return body

    def _order(self) -> list[str]:
        """The chosen modules in about the order in which they are imported."""
        found: list[str] = []

        def visit(module: Module) -> None:
            for name in self.modules.imported(module):
                if name in self.names.chosen and name not in found:
                    found.append(name)
                    loaded = self.modules.load(name)
                    if loaded is not None:
                        visit(loaded)

        visit(self.main)
        return found

    def _module(self, name: str) -> list[ast.stmt]:
        """The statements of a module that has not run yet."""
        if name in self.done or name not in self.names.chosen:
            return []
        self.done.add(name)
        module = self.modules.load(name)
        assert module is not None
        _check(module)
        body = self._block(module, module.body, top=True)
        for late in self._lazy(module, module.body):
            body += self._module(late)
        return body

    def _lazy(self, module: Module, body: Sequence[ast.stmt]) -> list[str]:
        """The modules that functions in the statements import when they are called."""
        inner = [n for s in body for n in ast.walk(s) if isinstance(n, DEFINITIONS)]
        return list(dict.fromkeys(self.modules.imported(module, inner)))

    def _block(self, module: Module, body: Sequence[ast.stmt], top: bool) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        deferred = _defers_annotations(module)
        for statement in without_text(body):
            if _is_bookkeeping(statement):
                continue
            if is_main_guard(statement) and isinstance(statement, ast.If):
                if module is self.main:
                    found += self._block(module, statement.body, top)
                    continue
                if ast.unparse(statement.test) == "__name__ == '__main__'":
                    found += self._block(module, statement.orelse, top)
                    continue
            if isinstance(statement, ast.Import | ast.ImportFrom):
                found += self._import(module, statement, top)
            elif isinstance(statement, _BLOCKS):
                found.append(self._compound(module, statement))
            else:
                if module is self.main:
                    for name in self._lazy(module, [statement]):
                        found += self._module(name)
                if deferred:
                    _defer_annotations(statement)
                found.append(_Rewrite(self, module).visit(statement))
        return found

    def _compound(self, module: Module, statement: ast.stmt) -> ast.stmt:
        blocks: dict[str, list[ast.stmt]] = {}
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(statement, name, None)
            if inner:
                blocks[name] = self._block(module, inner, top=False)
                setattr(statement, name, [])
        handlers = getattr(statement, "handlers", [])
        bodies = [self._block(module, handler.body, top=False) for handler in handlers]
        for handler in handlers:
            handler.body = []
        _Rewrite(self, module).generic_visit(statement)
        for name, inner in blocks.items():
            setattr(statement, name, inner)
        for handler, inner in zip(handlers, bodies, strict=True):
            handler.body = inner
        return statement

    # -- imports ------------------------------------------------------------------------------------------------

    def _import(self, module: Module, node: ast.Import | ast.ImportFrom, top: bool) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            return [node] if module is self.main else []
        for name in self.modules.named_by(module, node):
            found += self._module(name)
        for alias in node.names:
            if alias.name == "*":
                found += self._star(module, node, top)
                continue
            bound = alias.asname or (alias.name.split(".")[0] if isinstance(node, ast.Import) else alias.name)
            target = self.names.import_target(module, node, bound)
            resolved = self.names.resolve(module, bound)
            if _is_inlined(target):
                if resolved != target and isinstance(resolved, Named):
                    found.append(self._assignment(self.names.name(resolved), target))
                continue
            assert isinstance(target, Named)
            final = self.names.name(resolved if isinstance(resolved, Named) else target)
            found += self._external(module, node, alias, target, final, top)
        return found

    def _star(self, module: Module, node: ast.Import | ast.ImportFrom, top: bool) -> list[ast.stmt]:
        assert isinstance(node, ast.ImportFrom)
        base = module.absolute(node)
        if base in self.names.chosen:
            return []
        return self._once(f"from {base} import *", top)

    def _assignment(self, name: str, target: Target) -> ast.stmt:
        if isinstance(target, InModule):
            raise CannotInline(target.name)
        return ast.Assign([ast.Name(name, ast.Store())], ast.Name(self.names.name(target), ast.Load()), lineno=0)

    def _external(
        self, module: Module, node: ast.Import | ast.ImportFrom, alias: ast.alias, target: Named, final: str, top: bool
    ) -> list[ast.stmt]:
        """An import of what stays outside, under the name that the script has for it."""
        if isinstance(node, ast.ImportFrom):
            tail = "" if alias.name == final else f" as {final}"
            return self._once(f"from {module.absolute(node)} import {alias.name}{tail}", top, target)
        if alias.asname is None and (final == alias.name.split(".")[0] or "." in alias.name):
            found = self._once(f"import {alias.name}", top)
            first = alias.name.split(".")[0]
            return found if final == first else [*found, *self._once(f"import {first} as {final}", top)]
        tail = "" if alias.name == final else f" as {final}"
        return self._once(f"import {alias.name}{tail}", top, target if alias.asname else None)

    def _once(self, text: str, top: bool, target: Named | None = None) -> list[ast.stmt]:
        """The statement, unless it or another one that binds the same thing to the same name stands at the top."""
        marks = {text} | ({repr((target.key, text.split()[-1]))} if target is not None else set())
        if marks & self.emitted:
            return []
        if top:
            self.emitted |= marks
        return list(ast.parse(text).body)


class _Rewrite(GlobalNames):
    """Resolves the names in one module's statements."""

    def __init__(self, inliner: Inliner, module: Module) -> None:
        super().__init__()
        self.names = inliner.names
        self.module = module
        self.is_main = module is inliner.main

    def rename(self, name: str) -> str:
        target = self.names.resolve(self.module, name)
        if isinstance(target, InModule):
            raise CannotInline(target.name)
        return self.names.name(target) if target is not None else name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        target = self._target(node.id)
        if target is not None:
            return ast.copy_location(self._reference(target, node.ctx), node)
        if not self.is_main and self.is_global(node.id):
            constants = {"__name__": self.module.name, "__file__": self.module.path, "__doc__": None}
            constants["__package__"] = self.module.package
            if node.id in constants and isinstance(node.ctx, ast.Load):
                return ast.copy_location(ast.Constant(constants[node.id]), node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        names: list[tuple[str, ast.expr_context]] = []
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            names.append((root.attr, root.ctx))
            root = root.value
        target = self._target(root.id) if isinstance(root, ast.Name) else None
        if not isinstance(target, InModule):
            return self.generic_visit(node)
        current: Target = target
        while isinstance(current, InModule):
            if not names:
                raise CannotInline(current.name)
            name, context = names.pop()
            if name == "__name__" and not names:
                return ast.copy_location(ast.Constant(current.name), node)
            found = self.names.attribute(current.name, name)
            if not isinstance(context, ast.Load) and self.scopes:
                raise CannotInline(current.name)  # a function that replaces a module's attribute
            current = found
        result = self._reference(current, context)
        for name, context in reversed(names):
            result = ast.Attribute(result, name, context)
        return ast.copy_location(result, node)

    def _target(self, name: str) -> Target | None:
        """What the name stands for where the visit is, when it is ours to replace."""
        scope = self.scope_for(name)
        if scope is None:
            return self.names.resolve(self.module, name)
        return self._imported(scope, name)

    def _imported(self, scope: Scope, name: str) -> Target | None:
        """The target of a function's own import of an inlined module."""
        if name in scope.otherwise or name not in scope.imports:
            return None
        target = self.names.import_target(self.module, scope.imports[name][0], name)
        return target if _is_inlined(target) else None

    def _reference(self, target: Target, context: ast.expr_context) -> ast.expr:
        if isinstance(target, InModule):
            raise CannotInline(target.name)
        name = self.names.name(target)
        hiding = self.scope_for(name)
        if hiding is not None and self._imported(hiding, name) != target:
            raise Capture(target.key)
        return ast.Name(name, context)

    def visit_Import(self, node: ast.Import) -> ast.AST | list[ast.stmt]:
        return self._local_import(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt]:
        return self._local_import(node)

    def _local_import(self, node: ast.Import | ast.ImportFrom) -> list[ast.stmt]:
        """An import inside a function: what is inlined needs none."""
        found: list[ast.stmt] = []
        outside: list[ast.alias] = []
        base = self.module.absolute(node) if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            if alias.name == "*":
                outside.append(alias)
                continue
            bound = alias.asname or (alias.name.split(".")[0] if isinstance(node, ast.Import) else alias.name)
            target = self.names.import_target(self.module, node, bound)
            if not _is_inlined(target):
                outside.append(alias)
            elif self.scopes and bound in self.scopes[-1].otherwise:
                value = self._reference(target, ast.Load())
                found.append(ast.Assign([ast.Name(bound, ast.Store())], value, lineno=node.lineno))
        if outside:
            kept = ast.ImportFrom(base, outside, 0) if isinstance(node, ast.ImportFrom) else ast.Import(outside)
            found.append(ast.copy_location(kept, node))
        return found


def _is_inlined(target: Target) -> bool:
    return isinstance(target, InModule) or target.key[0] != ""


def _check(module: Module) -> None:
    """Raise CannotInline for a module that asks Python for itself or for others by name."""
    for statement in module.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in _BY_NAME:
                words = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                if words & {"__name__", "__package__", "__path__", "globals"}:
                    raise CannotInline(module.name)
            elif isinstance(node, ast.Subscript) and ast.unparse(node) == "sys.modules[__name__]":
                raise CannotInline(module.name)
    if "__getattr__" in module.scope.bound:
        raise CannotInline(module.name)


def _is_bookkeeping(statement: ast.stmt) -> bool:
    """``__all__``, imports for type checkers: nothing that runs needs them in a script."""
    if is_type_checking(statement):
        return True
    if isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets)
    return isinstance(statement, ast.Expr) and ast.unparse(statement).startswith("__all__.")


def _defers_annotations(module: Module) -> bool:
    return any(
        isinstance(s, ast.ImportFrom) and s.module == "__future__" and any(a.name == "annotations" for a in s.names)
        for s in module.body
    )


def _defer_annotations(statement: ast.stmt) -> None:
    """Keep annotations unevaluated without the ``__future__`` import, which would change the other modules too."""
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
            for argument in arguments(node.args):
                argument.annotation = None
        elif isinstance(node, ast.AnnAssign) and not isinstance(node.annotation, ast.Constant):
            node.annotation = ast.Constant(ast.unparse(node.annotation))


def fill_blocks(statement: ast.AST) -> None:
    """Put ``pass`` where a block lost all its statements."""
    for node in ast.walk(statement):
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case) and getattr(node, "body", None) == []:
            node.body = [ast.Pass()]  # type: ignore[union-attr]
        if isinstance(node, ast.Try) and not node.handlers and not node.finalbody:
            node.finalbody = [ast.Pass()]
