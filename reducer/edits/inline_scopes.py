"""Which names of a Python file are global: Python's scoping rules over ``ast``, and a transformer built on them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Scope:
    """The names that one function, class or comprehension binds, and how."""

    def __init__(self, is_class: bool) -> None:
        self.is_class = is_class
        self.bound: set[str] = set()
        self.declared_global: set[str] = set()
        self.nonlocal_: set[str] = set()
        self.imports: dict[str, list[ast.Import | ast.ImportFrom]] = {}  # bound by imports (perhaps elsewhere too)
        self.otherwise: set[str] = set()  # bound by anything that is no import


def scope_of(node: Function | ast.ClassDef) -> Scope:
    """The scope that a function or class opens."""
    scope = Scope(isinstance(node, ast.ClassDef))
    if not isinstance(node, ast.ClassDef):
        for argument in arguments(node.args):
            _bind(scope, argument.arg)
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    collect(body, scope)
    scope.bound -= scope.declared_global | scope.nonlocal_
    return scope


def arguments(given: ast.arguments) -> list[ast.arg]:
    """All parameters, ``*args`` and ``**kwargs`` too."""
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return [argument for argument in every if argument is not None]


def _bind(scope: Scope, name: str) -> None:
    scope.bound.add(name)
    scope.otherwise.add(name)


def collect(nodes: Iterable[ast.AST], scope: Scope) -> None:
    """Add what the nodes bind in their own scope (nested scopes keep theirs to themselves)."""
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                if name != "*":
                    scope.bound.add(name)
                scope.imports.setdefault(name, []).append(node)
        elif isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                _bind(scope, node.id)
        elif isinstance(node, ast.Global):
            scope.declared_global |= set(node.names)
        elif isinstance(node, ast.Nonlocal):
            scope.nonlocal_ |= set(node.names)
        elif isinstance(node, ast.MatchAs | ast.MatchStar):
            if node.name:
                _bind(scope, node.name)
            collect(ast.iter_child_nodes(node), scope)
        elif isinstance(node, ast.MatchMapping):
            if node.rest:
                _bind(scope, node.rest)
            collect(ast.iter_child_nodes(node), scope)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            _bind(scope, node.name)
        elif isinstance(node, ast.Lambda):
            continue
        elif isinstance(node, COMPREHENSIONS):
            for inner in ast.walk(node):
                if isinstance(inner, ast.NamedExpr) and isinstance(inner.target, ast.Name):
                    _bind(scope, inner.target.id)
        else:
            if isinstance(node, ast.ExceptHandler) and node.name:
                _bind(scope, node.name)
            collect(ast.iter_child_nodes(node), scope)


def module_scope(body: Sequence[ast.stmt]) -> Scope:
    """What a module binds at its top level (inside ``if``, ``try`` ... too), and by ``global`` in its functions."""
    scope = Scope(False)
    collect(body, scope)
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Global):
                for name in node.names:
                    _bind(scope, name)
    return scope


def local_names(body: Iterable[ast.AST]) -> set[str]:
    """Every name that any function, class or comprehension below binds for itself."""
    found: set[str] = set()
    for top in body:
        for node in ast.walk(top):
            if isinstance(node, SCOPES):
                found |= scope_of(node).bound
            elif isinstance(node, ast.comprehension):
                found |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
    return found


class GlobalNames(ast.NodeTransformer):
    """Visits a module's nodes and knows for each name whether it is global there.

    Subclasses say what a global name becomes: ``on_name`` for one that is read, written or deleted, ``rename`` for
    one that stands as plain text (``def``, ``class``, ``global``, ``except ... as``).
    """

    def __init__(self) -> None:
        self.scopes: list[Scope] = []

    def on_name(self, node: ast.Name) -> ast.AST:
        node.id = self.rename(node.id)
        return node

    def rename(self, name: str) -> str:
        return name

    def is_global(self, name: str) -> bool:
        """True when ``name`` means the module's name (or a builtin) where the visit stands."""
        return self.scope_for(name) is None

    def scope_for(self, name: str) -> Scope | None:
        for depth, scope in enumerate(reversed(self.scopes)):
            if name in scope.declared_global:
                return None
            if name in scope.bound and (depth == 0 or not scope.is_class):
                return scope
        return None

    # -- the visit ----------------------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.on_name(node) if self.is_global(node.id) else node

    def visit_Global(self, node: ast.Global) -> ast.AST:
        node.names = [self.rename(name) for name in node.names]
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        if node.name and self.is_global(node.name):
            node.name = self.rename(node.name)
        return self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> ast.AST:
        if node.name and self.is_global(node.name):
            node.name = self.rename(node.name)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        scope = scope_of(node)
        if self.is_global(node.name):
            node.name = self.rename(node.name)
        node.decorator_list = self._all(node.decorator_list)
        self._signature(node.args)
        if node.returns is not None:
            node.returns = self.visit(node.returns)
        self.scopes.append(scope)
        node.body = self._all(node.body) or [ast.Pass()]
        self.scopes.pop()
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        scope = scope_of(node)
        self._signature(node.args)
        self.scopes.append(scope)
        node.body = self.visit(node.body)
        self.scopes.pop()
        return node

    def _signature(self, given: ast.arguments) -> None:
        """Defaults and annotations belong to the scope around the function."""
        for argument in arguments(given):
            if argument.annotation is not None:
                argument.annotation = self.visit(argument.annotation)
        given.defaults = self._all(given.defaults)
        given.kw_defaults = [None if d is None else self.visit(d) for d in given.kw_defaults]

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        scope = scope_of(node)
        if self.is_global(node.name):
            node.name = self.rename(node.name)
        node.decorator_list = self._all(node.decorator_list)
        node.bases = self._all(node.bases)
        node.keywords = self._all(node.keywords)
        self.scopes.append(scope)
        node.body = self._all(node.body) or [ast.Pass()]
        self.scopes.pop()
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        return self._comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        return self._comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        return self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return self._comprehension(node)

    def _comprehension(self, node: Comprehension) -> ast.AST:
        node.generators[0].iter = self.visit(node.generators[0].iter)
        scope = Scope(False)
        for generator in node.generators:
            scope.bound |= {n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name)}
        self.scopes.append(scope)
        for index, generator in enumerate(node.generators):
            if index:
                generator.iter = self.visit(generator.iter)
            generator.ifs = self._all(generator.ifs)
        if isinstance(node, ast.DictComp):
            node.key, node.value = self.visit(node.key), self.visit(node.value)
        else:
            node.elt = self.visit(node.elt)
        self.scopes.pop()
        return node

    def _all(self, nodes: Sequence[Any]) -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            result = self.visit(node)
            if isinstance(result, list):
                found += result
            elif result is not None:
                found.append(result)
        return found


class Renamer(GlobalNames):
    """Renames globals by a mapping."""

    def __init__(self, names: dict[str, str]) -> None:
        super().__init__()
        self.names = names

    def rename(self, name: str) -> str:
        return self.names.get(name, name)


def free_globals(body: Iterable[ast.AST]) -> set[str]:
    """The global names that the nodes mention (their own definitions too). The nodes are not changed."""
    found: set[str] = set()

    class Collector(GlobalNames):
        def rename(self, name: str) -> str:
            found.add(name)
            return name

    collector = Collector()
    for node in body:
        collector.visit(node)
    return found
