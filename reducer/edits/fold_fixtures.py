"""Fixtures as plain statements: each one that the test needs, set up once, in pytest's order."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence

from reducer.edits.fold_params import Axis
from reducer.edits.fold_sources import CannotFold, Fixture, Sources
from reducer.edits.fold_statements import Names, called, unfold
from reducer.edits.inline_scopes import arguments

# pytest's own fixtures that a statement or two can stand for.
_BUILTIN = {
    "tmp_path": "import pathlib, tempfile\n{name} = pathlib.Path(tempfile.mkdtemp())",
    "monkeypatch": "import pytest\n{name} = pytest.MonkeyPatch()",
    "benchmark": "def {name}(function, *args, **kwargs):\n    return function(*args, **kwargs)",
}


class FixtureSetup:
    """Sets fixtures up for one test: ``statements`` grows with each that is asked for."""

    def __init__(
        self,
        sources: Sources,
        names: Names,
        indices: Mapping[str, int] | None,
        given: Mapping[str, ast.expr],
        classes: Mapping[str, ast.FunctionDef],
    ) -> None:
        self.sources = sources
        self.names = names
        self.indices = indices
        self.given = given  # values of request.param by fixture
        self.classes = classes  # a class's own fixtures, already without self
        self.statements: list[ast.stmt] = []
        self.variables: dict[tuple[str, int], str] = {}

    def parameters(self, wanted: Sequence[str]) -> list[Axis]:
        """The ``params`` of the wanted fixtures and of those that these use."""
        found: list[Axis] = []
        seen: set[tuple[str, int]] = set()

        def visit(name: str, below: int | None) -> None:
            fixture = self.sources.fixture(name, below)
            if fixture is None or (name, fixture.layer) in seen:
                return
            seen.add((name, fixture.layer))
            if "params" in fixture.options and name not in self.given:
                found.append(Axis([name], fixture.options["params"], fixture.options.get("ids")))
            for argument in arguments(self._function(fixture).args):
                visit(argument.arg, fixture.layer if argument.arg == name else None)

        for name in wanted:
            visit(name, None)
        return found

    def autouse(self) -> list[Fixture]:
        """The fixtures that every test gets, wide scopes first. Only those of the test's own class count."""
        found = [f for f in self.sources.fixtures if f.autouse and (not f.owner or f.name in self.classes)]
        return sorted(found, key=lambda f: (f.rank, f.layer))

    def variable(self, name: str, below: int | None = None) -> str:
        """The variable that holds the fixture's value, set up by now. Raises CannotFold for one that needs pytest."""
        fixture = self.sources.fixture(name, below)
        if fixture is None:
            return self._builtin(name)
        key = (name, fixture.layer)
        if key not in self.variables:
            function = copy.deepcopy(self._function(fixture))
            function.decorator_list = []
            self._request(function, name)
            bindings = {}
            for argument in arguments(function.args):
                bindings[argument.arg] = self.variable(argument.arg, fixture.layer if argument.arg == name else None)
            result = self.names.fresh(name)
            found = unfold(function, bindings, self.names, result)
            self.statements += found if found is not None else called(function, bindings, self.names, result)
            self.variables[key] = result
        return self.variables[key]

    def _function(self, fixture: Fixture) -> ast.FunctionDef:
        if fixture.owner:
            if fixture.name not in self.classes:
                raise CannotFold("a fixture of a class that stays one")
            return self.classes[fixture.name]
        return fixture.function

    def _builtin(self, name: str) -> str:
        if name not in _BUILTIN:
            raise CannotFold(f"the fixture {name}")
        key = (name, -1)
        if key not in self.variables:
            self.variables[key] = variable = self.names.fresh(name)
            self.statements += ast.parse(_BUILTIN[name].format(name=variable)).body
        return self.variables[key]

    def _request(self, function: ast.FunctionDef, name: str) -> None:
        """Replace ``request.param`` by its value and ``request.getfixturevalue("x")`` by the fixture's variable."""
        if "request" not in {a.arg for a in arguments(function.args)}:
            return
        for group in (function.args.posonlyargs, function.args.args, function.args.kwonlyargs):
            group[:] = [a for a in group if a.arg != "request"]
        value = self.given.get(name)
        replacer = _Request(self, value)
        function.body = [replacer.visit(s) for s in function.body]
        if any(isinstance(n, ast.Name) and n.id == "request" for s in function.body for n in ast.walk(s)):
            raise CannotFold("a fixture that asks pytest about the test")


class _Request(ast.NodeTransformer):
    def __init__(self, setup: FixtureSetup, parameter: ast.expr | None) -> None:
        self.setup = setup
        self.parameter = parameter

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if ast.unparse(node) == "request.param" and self.parameter is not None:
            return ast.copy_location(copy.deepcopy(self.parameter), node)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if ast.unparse(node.func) == "request.getfixturevalue" and len(node.args) == 1:
            argument = node.args[0]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                return ast.Name(self.setup.variable(argument.value), ast.Load())
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if ast.unparse(node).startswith("request.addfinalizer("):
            return ast.Pass()
        return self.generic_visit(node)
