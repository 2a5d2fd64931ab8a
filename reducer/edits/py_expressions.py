"""Smaller expressions: a part in the place of the whole, small literals, small tensors."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from reducer.edits.edit import Edit, Splice
from reducer.edits.passes import Proposal, nothing, proposal
from reducer.syntax.python import PyModule, pinned_nodes, python_modules
from reducer.syntax.python_names import bound_names, dotted
from reducer.tree import SourceTree

_RANDOM = {"randn", "rand", "randint", "empty", "full", "linspace", "logspace", "normal", "eye", "randperm", "arange"}
_SMALL_TENSORS = ("ones(1)", "ones(2)", "zeros(2)", "ones(2, 3)", "zeros(2, 3)", "arange(6.).reshape(2, 3)")
_LIKE = re.compile("(rand|randn|empty|full)_like$")


class PyExpressions:
    """Alternatives for every expression, outer ones first; a kept part stays in place, so that cuts nest."""

    name = "py_expressions"

    def propose(self, tree: SourceTree) -> Proposal:
        edits: list[Edit] = []
        for module in python_modules(tree):
            edits += _Alternatives(module).edits()
        return proposal(edits, "sweep") if edits else nothing()


class _Alternatives:
    def __init__(self, module: PyModule) -> None:
        self.module = module
        self.modules = {
            name
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in bound_names(node)
        }

    def edits(self) -> Iterator[Edit]:
        fixed = pinned_nodes(self.module)
        for statement in ast.walk(self.module.tree):
            if isinstance(statement, ast.Assert) and statement not in fixed:
                yield from self._assertion(statement)
        for node in self.module.expressions:
            if node in fixed or isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
                continue
            if self._inside_fixed_shape(node):
                continue
            yield from self._parts(node)
            yield from self._literals(node)

    def _assertion(self, node: ast.Assert) -> Iterator[Edit]:
        """What is asserted, only evaluated; no message; the condition of an ``x if c else y`` alone."""
        path = self.module.path
        (start, end), low = self.module.span(node), self.module.start(node.test)
        high = self._inner_end(node.test)
        keyword = Splice(path, start, start + len(b"assert "))
        message = (Splice(path, high, end),) if high < end else ()
        if self.module.source[start : keyword.end] == b"assert " and keyword.end <= low:
            yield Edit((keyword, *message), "assert", 7 + end - high)
        if message:
            yield Edit(message, "message of assert", end - high)
        for inner in ast.walk(node.test):
            if isinstance(inner, ast.IfExp):
                test = ast.unparse(inner.test)
                for text in (f"assert {test}", f"assert not ({test})"):
                    yield Edit((Splice(path, start, end, self.module.encode(text)),), text[:40], end - start)

    def _inner_end(self, node: ast.expr) -> int:
        start = self.module.start(node)
        return self.module.outer_span(node, self.module.line_start(start), len(self.module.source))[1]

    def _inside_fixed_shape(self, node: ast.expr) -> bool:
        """Where no other expression may stand: keys of f-strings, decorators, annotations, docstrings, patterns."""
        parent = self.module.parents.get(node)
        if isinstance(parent, ast.Expr) and isinstance(node, ast.Constant):
            return True
        if isinstance(parent, ast.AnnAssign) and node is parent.annotation:
            return True
        if isinstance(parent, ast.arg | ast.pattern):
            return True
        return isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef) and node is parent.returns

    # -- a part for the whole -----------------------------------------------------------------------------------

    def _parts(self, node: ast.expr) -> Iterator[Edit]:
        for part in self._candidates(node):
            edit = self._keep(node, part)
            if edit is not None:
                yield edit
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
            yield from self._comprehension(node)

    def _candidates(self, node: ast.expr) -> Iterator[ast.expr]:
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and not self._is_module(node.func.value):
                yield node.func.value
            for argument in node.args:
                if not isinstance(argument, ast.Starred):
                    yield argument
            for keyword in node.keywords:
                if keyword.arg is not None:
                    yield keyword.value
        elif isinstance(node, ast.BinOp):
            yield from (node.left, node.right)
        elif isinstance(node, ast.BoolOp):
            yield from node.values
        elif isinstance(node, ast.Compare) and not isinstance(self.module.parents.get(node), ast.Assert):
            yield from (node.left, *node.comparators)
        elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
            yield node.operand
        elif isinstance(node, ast.IfExp):
            yield from (node.body, node.orelse)
        elif isinstance(node, ast.Subscript | ast.Await | ast.Attribute) and not self._is_context(node.value):
            yield node.value

    def _is_module(self, node: ast.expr) -> bool:
        chain = dotted(node)
        return chain is not None and chain[0] in self.modules

    def _is_context(self, node: ast.expr) -> bool:
        """A module, or an object that makes no sense without an attribute of it."""
        return self._is_module(node) or (isinstance(node, ast.Name) and node.id in ("self", "cls", "ctx"))

    def _keep(self, node: ast.expr, part: ast.expr) -> Edit | None:
        module = self.module
        start, end = module.span(node)
        low, high = module.span(part)
        opening, closing = (b"", b"")
        if loose(part) and not isinstance(module.parents.get(node), ast.Expr | ast.Assign | ast.Return):
            opening, closing = b"(", b")"
        splices = [Splice(module.path, start, low, opening), Splice(module.path, high, end, closing)]
        if (low, high) == (start, end):
            return None
        label = f"{module.code(part)[:30]} for {module.code(node)[:30]}"
        return Edit(tuple(s for s in splices if s.start != s.end or s.text), label, (end - start) - (high - low))

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Iterator[Edit]:
        """``[f(i) for i in (3, 4)]`` becomes ``[f(3)]``."""
        generator = node.generators[0]
        if len(node.generators) > 1 or not isinstance(generator.target, ast.Name):
            return
        value = _first_item(generator.iter)
        if value is None:
            return
        element = _substitute(node.elt, generator.target.id, value)
        yield self._replace(node, f"[{ast.unparse(element)}]")

    # -- literals -----------------------------------------------------------------------------------------------

    def _literals(self, node: ast.expr) -> Iterator[Edit]:
        for text in self._smaller(node):
            yield self._replace(node, text)

    def _smaller(self, node: ast.expr) -> Iterator[str]:
        if isinstance(node, ast.Constant):
            yield from _smaller_constant(node)
        elif isinstance(node, ast.JoinedStr):
            yield from ('"x"', '""')
        elif isinstance(node, ast.List | ast.Tuple | ast.Set) and len(node.elts) > 1:
            if not isinstance(self.module.parents.get(node), ast.Subscript | ast.Assign):
                first = ast.unparse(node.elts[0])
                yield {ast.List: f"[{first}]", ast.Tuple: f"({first},)", ast.Set: f"{{{first}}}"}[type(node)]
        elif isinstance(node, ast.Dict) and node.keys:
            yield "{}"
        elif isinstance(node, ast.Call):
            yield from self._smaller_tensor(node)

    def _smaller_tensor(self, node: ast.Call) -> Iterator[str]:
        chain = dotted(node.func)
        if chain is None or chain[0] not in self.modules:
            return
        base, name = ".".join(chain[:-1]), chain[-1]
        if not base:
            return
        arguments = ", ".join(ast.unparse(a) for a in node.args)
        if name in _RANDOM or name in ("tensor", "ones", "zeros", "as_tensor"):
            size = len(ast.unparse(node)) + (name not in ("ones", "zeros"))
            if name in ("randn", "rand", "empty"):
                yield f"{base}.ones({arguments})"
            yield from (t for t in (f"{base}.{small}" for small in _SMALL_TENSORS) if len(t) < size)
        elif _LIKE.search(name) and node.args:
            yield f"{base}.ones_like({ast.unparse(node.args[0])})"

    def _replace(self, node: ast.expr, text: str) -> Edit:
        start, end = self.module.span(node)
        label = f"{text[:30]} for {self.module.code(node)[:30]}"
        return Edit((Splice(self.module.path, start, end, self.module.encode(text)),), label, max(1, end - start))


def _smaller_constant(node: ast.Constant) -> Iterator[str]:
    value = node.value
    if isinstance(value, bool) or value is None or value is ...:
        return
    if isinstance(value, int):
        if value not in (0, 1):  # 0 is no simpler than 1: a tensor without elements is a case of its own
            yield from (str(n) for n in (1, 2, 0, 3) if n < value)
    elif isinstance(value, float):
        plain = [t for t in ("1.0", "0.0", "2.0", "0.5") if len(t) < len(repr(value))]
        yield from plain or ([] if value in (0.0, 1.0) else ["1.0"])
    elif isinstance(value, str) and len(value) > 1:
        yield from ('"x"', '""')
    elif isinstance(value, bytes) and value:
        yield 'b""'


def loose(node: ast.expr) -> bool:
    """True for an expression that may need parentheses in another place."""
    return not isinstance(
        node,
        ast.Name
        | ast.Constant
        | ast.Call
        | ast.Attribute
        | ast.Subscript
        | ast.List
        | ast.Dict
        | ast.Set
        | ast.ListComp
        | ast.SetComp
        | ast.DictComp
        | ast.JoinedStr,
    )


def _first_item(node: ast.expr) -> ast.expr | None:
    if isinstance(node, ast.List | ast.Tuple) and node.elts and not isinstance(node.elts[0], ast.Starred):
        return node.elts[0]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range" and node.args:
        return node.args[0] if len(node.args) > 1 else ast.Constant(0)
    return None


class _Substitution(ast.NodeTransformer):
    def __init__(self, name: str, value: ast.expr) -> None:
        self._name = name
        self._value = value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._value if node.id == self._name and isinstance(node.ctx, ast.Load) else node


def _substitute(node: ast.expr, name: str, value: ast.expr) -> ast.expr:
    copied = ast.parse(ast.unparse(node), mode="eval").body
    replaced = _Substitution(name, value).visit(copied)
    assert isinstance(replaced, ast.expr)
    return replaced
