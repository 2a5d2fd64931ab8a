"""Test classes without the class: attributes of ``self`` become variables, methods become functions."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable

from reducer.edits.fold_sources import CannotFold
from reducer.edits.fold_statements import Names
from reducer.edits.inline_scopes import arguments

_COMPARISONS: dict[str, type[ast.cmpop]] = {
    "assertEqual": ast.Eq,
    "assertEquals": ast.Eq,
    "assertListEqual": ast.Eq,
    "assertTupleEqual": ast.Eq,
    "assertDictEqual": ast.Eq,
    "assertSequenceEqual": ast.Eq,
    "assertNotEqual": ast.NotEq,
    "assertIs": ast.Is,
    "assertIsNot": ast.IsNot,
    "assertIn": ast.In,
    "assertNotIn": ast.NotIn,
    "assertLess": ast.Lt,
    "assertLessEqual": ast.LtE,
    "assertGreater": ast.Gt,
    "assertGreaterEqual": ast.GtE,
}
_PLAIN_BASES = {"object", "unittest.TestCase", "TestCase"}
SETUP_CLASS = ("setup_class", "setUpClass")
SETUP_METHOD = ("setup_method", "setup", "setUp")


class FlatClass:
    """One test class, taken apart for one of its test methods.

    ``functions`` are its methods without ``self``, ``assignments`` its class attributes; both under the global names
    that ``names`` had free. Raises CannotFold for a class that needs to be one.
    """

    def __init__(self, node: ast.ClassDef, method: str, names: Names) -> None:
        if node.keywords or any(ast.unparse(base) not in _PLAIN_BASES for base in node.bases):
            raise CannotFold("a test class with bases of its own")
        self.node = node
        self.members = {s.name: s for s in node.body if isinstance(s, ast.FunctionDef)}
        self.nested = [s for s in node.body if isinstance(s, ast.AsyncFunctionDef | ast.ClassDef)]
        if method not in self.members or self.nested:
            raise CannotFold("a test class with classes or coroutines inside")
        self.setup_class = [n for n in SETUP_CLASS if n in self.members]
        self.setup_method = [n for n in SETUP_METHOD if n in self.members]
        fixtures = [n for n, f in self.members.items() if any("fixture" in ast.unparse(d) for d in f.decorator_list)]
        reached = self._reach([method, *self.setup_class, *self.setup_method, *fixtures])
        self.names: dict[str, str] = {}
        attributes = {a for name in reached for a in self._attributes(name)}
        values = [s for s in node.body if isinstance(s, ast.Assign | ast.AnnAssign)]
        attributes |= {n.id for s in values for n in ast.walk(s) if isinstance(n, ast.Name) and _stores(n)}
        for attribute in sorted(attributes - set(fixtures)):
            self.names[attribute] = names.fresh(attribute)
        self.fixtures = {name: self._function(name) for name in fixtures}
        self.functions = {name: self._function(name) for name in reached if name not in fixtures}
        self.assignments = [self._strip(copy.deepcopy(s), None) for s in values]

    def called_from(self, names: Iterable[str]) -> list[str]:
        """The methods that the named ones call, themselves left out."""
        return [n for n in self._reach(list(names)) if n not in set(names)]

    def _self(self, name: str) -> str | None:
        function = self.members[name]
        if any(ast.unparse(d) == "staticmethod" for d in function.decorator_list):
            return None
        given = arguments(function.args)
        if not given:
            raise CannotFold("a method without self")
        return given[0].arg

    def _attributes(self, name: str) -> set[str]:
        owners = {self._self(name), self.node.name}
        return {
            n.attr
            for n in ast.walk(self.members[name])
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id in owners
        } - _UNITTEST

    def _reach(self, start: list[str]) -> list[str]:
        found: list[str] = []
        queue = list(start)
        while queue:
            name = queue.pop(0)
            if name in self.members and name not in found:
                found.append(name)
                queue += sorted(self._attributes(name))
        return found

    def _function(self, name: str) -> ast.FunctionDef:
        """The method as a function of its other parameters."""
        function = copy.deepcopy(self.members[name])
        owner = self._self(name)
        kept = [d for d in function.decorator_list if ast.unparse(d) not in ("staticmethod", "classmethod")]
        if any(ast.unparse(d) in ("property", "cached_property", "functools.cached_property") for d in kept):
            raise CannotFold("a property of a test class")
        function.decorator_list = kept
        if owner is not None:
            given = function.args.posonlyargs or function.args.args
            given.pop(0)
        function.body = [self._strip(s, owner) for s in function.body]
        function.name = self.names.get(name, name)
        stored = {n.id for s in function.body for n in ast.walk(s) if isinstance(n, ast.Name) and _stores(n)}
        changed = sorted(stored & set(self._written(name, owner)))
        if changed:
            function.body.insert(0, ast.Global(changed))
        return function

    def _written(self, name: str, owner: str | None) -> list[str]:
        """The variables that were attributes and are assigned to in the method."""
        return [
            self.names[n.attr]
            for n in ast.walk(self.members[name])
            if isinstance(n, ast.Attribute)
            and _stores(n)
            and isinstance(n.value, ast.Name)
            and n.value.id in (owner, self.node.name)
        ]

    def _strip(self, statement: ast.stmt, owner: str | None) -> ast.stmt:
        result = _Stripper(self.names, {owner, self.node.name} - {None}).visit(statement)
        assert isinstance(result, ast.stmt)
        return result


def _stores(node: ast.Name | ast.Attribute) -> bool:
    return not isinstance(node.ctx, ast.Load)


_UNITTEST = {
    *_COMPARISONS,
    "assertTrue",
    "assertFalse",
    "assertIsNone",
    "assertIsNotNone",
    "assertIsInstance",
    "assertAlmostEqual",
    "fail",
    "addCleanup",
    "subTest",
}


class _Stripper(ast.NodeTransformer):
    """``self.name`` -> the variable; unittest's simple assertions -> ``assert``."""

    def __init__(self, names: dict[str, str], owners: set[str | None]) -> None:
        self.names = names
        self.owners = owners

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id in self.owners:
            if node.attr not in self.names or node.attr.startswith("assert"):
                raise CannotFold(f"self.{node.attr}")
            return ast.copy_location(ast.Name(self.names[node.attr], node.ctx), node)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.owners or node.id in ("super", "__class__"):
            raise CannotFold("self as a value")
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value
        if isinstance(call, ast.Call) and self._is_own(call.func):
            assert isinstance(call.func, ast.Attribute)
            plain = _plain_assertion(call.func.attr, call)
            if plain is not None:
                return ast.copy_location(self.generic_visit(plain), node)
        return self.generic_visit(node)

    def visit_With(self, node: ast.With) -> ast.AST:
        first = node.items[0].context_expr
        if len(node.items) == 1 and isinstance(first, ast.Call) and self._is_own(first.func):
            assert isinstance(first.func, ast.Attribute)
            if first.func.attr == "subTest":
                block = ast.If(ast.Constant(True), node.body, [])
                return ast.copy_location(self.generic_visit(block), node)
        return self.generic_visit(node)

    def _is_own(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self.owners


def _plain_assertion(name: str, call: ast.Call) -> ast.stmt | None:
    """The plain statement that a simple unittest assertion stands for."""
    given = list(call.args)
    message = next((k.value for k in call.keywords if k.arg == "msg"), None)
    if any(k.arg != "msg" for k in call.keywords):
        return None
    if name in _COMPARISONS and len(given) in (2, 3):
        test: ast.expr = ast.Compare(given[0], [_COMPARISONS[name]()], [given[1]])
        return ast.Assert(test, given[2] if len(given) == 3 else message)
    if name in ("assertTrue", "assertFalse") and len(given) in (1, 2):
        test = given[0] if name == "assertTrue" else ast.UnaryOp(ast.Not(), given[0])
        return ast.Assert(test, given[1] if len(given) == 2 else message)
    if name in ("assertIsNone", "assertIsNotNone") and len(given) in (1, 2):
        operator: ast.cmpop = ast.Is() if name == "assertIsNone" else ast.IsNot()
        test = ast.Compare(given[0], [operator], [ast.Constant(None)])
        return ast.Assert(test, given[1] if len(given) == 2 else message)
    if name == "assertIsInstance" and len(given) == 2:
        return ast.Assert(ast.Call(ast.Name("isinstance", ast.Load()), given, []), message)
    if name == "assertAlmostEqual" and len(given) == 2:
        difference = ast.Call(ast.Name("round", ast.Load()), [ast.BinOp(*_minus(given)), ast.Constant(7)], [])
        return ast.Assert(ast.Compare(difference, [ast.Eq()], [ast.Constant(0)]), message)
    if name == "fail":
        text = given[0] if given else ast.Constant("failed")
        return ast.Raise(ast.Call(ast.Name("AssertionError", ast.Load()), [text], []), None)
    if name == "addCleanup":
        return ast.Pass()
    return None


def _minus(given: list[ast.expr]) -> tuple[ast.expr, ast.operator, ast.expr]:
    return given[0], ast.Sub(), given[1]
