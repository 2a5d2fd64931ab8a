"""The failing call by itself: straight-line scripts from what a recorded run saw when it failed.

The idea is that of a crash's replay: the failing expression is kept, its operands become literals. Nothing here is
trusted: each script is a candidate that the oracle judges on both sides.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from reducer.edits.prelude import PRELUDE
from reducer.slicing.recorded_values import Described, Style, Unsynthesisable, source, styles

_NAMES = ("x", "y", "z", "w", "u", "v", "a", "b", "c", "d")
ALWAYS_LOADED = ("torch", "torch.nn", "torch.nn.functional", "torch.autograd", "torch.cuda", "torch.linalg")


def synthesise(record: Mapping[str, Any], node: str | None = None, own: Collection[str] = ()) -> list[str]:
    """Candidate scripts (with the prelude) for the recorded failure, the most wanted and smallest first.

    ``record`` is what ``reducer.world.recorder`` wrote. ``node`` picks the pytest node (the first failure by default);
    ``own`` are the top-level module names of the case, whose functions a script cannot name.
    """
    failures = [f for f in record.get("failures", ()) if node is None or f.get("node") == node]
    found: list[str] = []
    for failure in failures[:1]:
        for error in reversed(failure["chain"]):  # the exception that ended the run, then what led to it
            if "site" in error:
                found += _scripts(error, frozenset(own))
    return list(dict.fromkeys(found))


def _scripts(error: Mapping[str, Any], own: frozenset[str]) -> Iterator[str]:
    site = error["site"]
    for line in _imports(site, str(error["message"]), own):
        yield PRELUDE + line + "\n"
    for statement in _targets(error):
        for deep in (False, True):
            for style in styles(_operands(statement, site)):
                writer = _Writer(site, style, own, deep)
                try:
                    yield writer.script(statement)
                except Unsynthesisable:
                    continue


def _imports(site: Mapping[str, Any], message: str, own: frozenset[str]) -> list[str]:
    """The failing import by itself, one name at a time, the one that the message mentions first."""
    if site.get("kind") not in ("Import", "ImportFrom"):
        return []
    statement = ast.parse(site["statement"]).body[0]
    lines: list[tuple[bool, str]] = []
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            if alias.name.split(".")[0] not in own:
                lines.append((alias.name.rpartition(".")[2] not in message, f"import {alias.name}"))
    elif isinstance(statement, ast.ImportFrom) and not statement.level:
        module = statement.module or ""
        foreign = module.split(".")[0] not in own
        lines += [(a.name not in message, f"from {module} import {a.name}") for a in statement.names if foreign]
    return [line for _, line in sorted(lines, key=lambda item: item[0])]


def _targets(error: Mapping[str, Any]) -> list[ast.stmt]:
    """The statements to try, in order: the failing expression with the call it belongs to, or the statement."""
    site = error["site"]
    if "expression" not in site:
        return _statement_targets(site)
    expressions = [_parse(site["expression"])]
    for text in site.get("context", ()):
        expressions.append(_parse(text))
    failing = expressions[0]
    if not isinstance(failing, ast.Attribute) or error["type"] != "AttributeError":
        return [ast.Expr(failing)]
    chain = [e for e in expressions if isinstance(e, ast.Attribute)]
    call = next((e for e in expressions if isinstance(e, ast.Call)), None)
    whole = next((c for c in reversed(chain) if call is None or ast.dump(c) in ast.dump(call)), failing)
    root = _root(failing)
    named = root is not None and root.id in site["imports"]
    attribute: list[ast.expr] = [whole, failing]
    wanted = [*attribute, *([call] if call else [])] if named else [*([call] if call else []), failing]
    return [ast.Expr(e) for e in {ast.dump(w): w for w in wanted}.values()]


def _statement_targets(site: Mapping[str, Any]) -> list[ast.stmt]:
    if "statement" not in site or site.get("kind") in ("Import", "ImportFrom", "Raise", "Assert", "Try"):
        return []
    statement = ast.parse(site["statement"]).body[0]
    if isinstance(statement, ast.AugAssign | ast.Delete | ast.ClassDef | ast.FunctionDef):
        return [statement]
    if isinstance(statement, ast.Assign):
        stores = any(not isinstance(t, ast.Name | ast.Tuple) for t in statement.targets)
        return [statement] if stores else [ast.Expr(statement.value)]
    value = getattr(statement, "value", None) or getattr(statement, "test", None) or getattr(statement, "iter", None)
    return [ast.Expr(value)] if isinstance(value, ast.expr) else []


def _parse(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _root(node: ast.expr) -> ast.Name | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _operands(statement: ast.stmt, site: Mapping[str, Any]) -> list[Described]:
    sources = {ast.unparse(n) for n in ast.walk(statement) if isinstance(n, ast.expr)}
    return [value for text, value in site["values"].items() if text in sources]


class _Writer:
    """Writes one script: one way to spell the operands, one choice of what counts as an operand.

    Not deep: the operands of the failing operation are values. Deep: the framework's own calls inside the operands
    stay calls, and only what they are made of are values.
    """

    def __init__(self, site: Mapping[str, Any], style: Style, own: frozenset[str], deep: bool) -> None:
        self.imports: dict[str, str] = dict(site["imports"])
        self.values: Mapping[str, Described] = site["values"]
        self.style = style
        self.own = own
        self.deep = deep
        self.needed: dict[str, None] = {}
        self.lines: list[str] = []
        self.variables: dict[tuple[str, str], str] = {}
        self.uses: dict[str, int] = {}

    def script(self, statement: ast.stmt) -> str:
        """The whole script. Raises Unsynthesisable when a part of the statement has no source."""
        statement = ast.parse(ast.unparse(ast.fix_missing_locations(statement))).body[0]
        for node in ast.walk(statement):
            if isinstance(node, ast.Name | ast.Attribute):
                text = ast.unparse(node)
                self.uses[text] = self.uses.get(text, 0) + 1
        text = ast.unparse(ast.fix_missing_locations(self._statement(statement)))
        body = "\n".join([*self.lines, text])
        tree = ast.parse(body)
        used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        for name in ("torch", "numpy"):
            if name in used:
                self.needed.setdefault(f"import {name}")
        heads = sorted(self.needed, key=lambda line: (not line.startswith("import torch"), line))
        return PRELUDE + "\n".join([*heads, body]) + "\n"

    def _statement(self, statement: ast.stmt) -> ast.stmt:
        if isinstance(statement, ast.Expr):
            statement.value = self._top(statement.value)
        elif isinstance(statement, ast.AugAssign):
            statement.target = self._stored(statement.target)  # type: ignore[assignment]
            statement.value = self._part(statement.value)
        elif isinstance(statement, ast.Assign):
            statement.targets = [self._stored(t) for t in statement.targets]
            statement.value = self._part(statement.value)
        elif isinstance(statement, ast.Delete):
            statement.targets = [self._stored(t) for t in statement.targets]
        elif isinstance(statement, ast.ClassDef):
            statement.bases = [self._part(b) for b in statement.bases]
            for keyword in statement.keywords:
                keyword.value = self._part(keyword.value)
            statement.decorator_list = []
        elif isinstance(statement, ast.FunctionDef):
            statement.decorator_list = [self._part(d) for d in statement.decorator_list]
            self._function(statement)
        return statement

    def _function(self, function: ast.FunctionDef) -> None:
        given = function.args
        for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
            if argument is not None and argument.annotation is not None:
                argument.annotation = self._part(argument.annotation)
        given.defaults = [self._part(d) for d in given.defaults]
        given.kw_defaults = [None if d is None else self._part(d) for d in given.kw_defaults]
        if function.returns is not None:
            function.returns = self._part(function.returns)

    def _stored(self, target: ast.expr) -> ast.expr:
        """A target of an assignment: what is stored into becomes a variable."""
        if isinstance(target, ast.Subscript):
            target.value = self._variable(target.value)
            target.slice = self._part(target.slice)
            return target
        if isinstance(target, ast.Attribute) and not self._is_tensor(ast.unparse(target)):
            target.value = self._variable(target.value)
            return target
        return ast.Name(ast.unparse(self._variable(target)), ast.Store())

    def _top(self, node: ast.expr) -> ast.expr:
        """The failing operation itself."""
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and not self._names_library(node.func):
                receiver = self._part(node.func.value) if self._quiet(node) else self._variable(node.func.value)
                node.func.value = receiver
            else:
                node.func = self._part(node.func)
            node.args = [self._part(a) for a in node.args]
            for keyword in node.keywords:
                keyword.value = self._part(keyword.value)
            return node
        if isinstance(node, ast.Attribute) and not self._names_library(node):
            node.value = self._part(node.value)
            return node
        return self._inside(node)

    def _quiet(self, call: ast.Call) -> bool:
        """True when the receiver may be written in place: the call has no tensor beside it."""
        return not any(
            self._is_tensor(ast.unparse(n)) for a in (*call.args, *call.keywords) for n in ast.walk(a) if _named(n)
        )

    def _is_tensor(self, text: str) -> bool:
        return self.values.get(text, {}).get("kind") == "tensor"

    def _part(self, node: ast.expr) -> ast.expr:
        """An operand."""
        text = ast.unparse(node)
        if isinstance(node, ast.Constant):
            return node
        if isinstance(node, ast.Name | ast.Attribute):
            if self._names_library(node):
                return self._library(node)
            if isinstance(node, ast.Attribute) and self.deep and self._is_tensor(ast.unparse(node.value)):
                node.value = self._part(node.value)
                return node
            return self._value(text)
        if isinstance(node, ast.Starred | ast.Slice | ast.Tuple | ast.List | ast.Dict | ast.Set | ast.UnaryOp):
            return self._inside(node)
        if text in self.values and not self.deep:
            try:
                return self._value(text)
            except Unsynthesisable:
                return self._kept(node)
        return self._kept(node)

    def _kept(self, node: ast.expr) -> ast.expr:
        """An operation inside an operand that stays an operation; its value when it is the case's own."""
        text = ast.unparse(node)
        if isinstance(node, ast.Call):
            own_method = isinstance(node.func, ast.Attribute) and (
                self.values.get(ast.unparse(node.func.value), {}).get("kind") == "opaque"
            )
            if own_method or (isinstance(node.func, ast.Name) and not self._names_library(node.func)):
                return self._value(text)
            return self._top(node)
        if isinstance(node, ast.BinOp | ast.Compare | ast.BoolOp | ast.Subscript | ast.IfExp):
            return self._inside(node)
        return self._value(text)

    def _inside(self, node: ast.expr) -> ast.expr:
        for name, child in ast.iter_fields(node):
            if isinstance(child, ast.expr):
                setattr(node, name, self._part(child))
            elif isinstance(child, list):
                setattr(node, name, [self._part(c) if isinstance(c, ast.expr) else c for c in child])
        if isinstance(node, ast.Name | ast.Attribute):
            return self._part(node)
        if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.JoinedStr):
            raise Unsynthesisable(type(node).__name__)
        return node

    def _value(self, text: str) -> ast.expr:
        described = self.values.get(text)
        if described is None:
            raise Unsynthesisable(f"{text} was not recorded")
        if self.uses.get(text, 0) > 1 and described["kind"] in ("tensor", "layer", "layers", "array"):
            return self._variable(_parse(text))
        return _parse(source(described, self.style))

    def _variable(self, node: ast.expr) -> ast.expr:
        """A variable that holds the operand; one variable for one object."""
        text = ast.unparse(node)
        described = self.values.get(text)
        if described is None or described["kind"] not in ("tensor", "layer", "layers", "array", "list", "dict"):
            return self._part(node)
        identity = str(described.get("id", "")) if isinstance(node, ast.Name | ast.Attribute) else text
        key = (described["kind"], identity)
        if key not in self.variables:
            if len(self.variables) == len(_NAMES):
                raise Unsynthesisable("too many operands")
            name = _NAMES[len(self.variables)]
            self.variables[key] = name
            self.lines.append(f"{name} = {source(described, self.style)}")
        return ast.Name(self.variables[key], ast.Load())

    def _names_library(self, node: ast.expr) -> bool:
        """True for a name (or an attribute of one) that an import of another package binds, or a builtin."""
        root = _root(node)
        if root is None:
            return False
        line = self.imports.get(root.id)
        if line is not None:
            return line.split()[1].split(".")[0] not in self.own
        if not isinstance(node, ast.Name):
            return False
        return hasattr(builtins, root.id) and self.values.get(root.id, {}).get("source", root.id) == root.id

    def _library(self, node: ast.expr) -> ast.expr:
        root = _root(node)
        assert root is not None
        line = self.imports.get(root.id)
        if line is None:
            return node
        full = dotted(line)
        if full.split(".")[0] == "torch" and (full.rpartition(".")[0] or "torch") in ALWAYS_LOADED:
            return _parse(full + ast.unparse(node)[len(root.id) :])
        self.needed[line] = None
        return node


def _named(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Attribute)


def dotted(line: str) -> str:
    """What the one name of an import statement stands for: ``from torch import nn`` -> ``torch.nn``."""
    statement = ast.parse(line).body[0]
    if isinstance(statement, ast.ImportFrom):
        return f"{statement.module}.{statement.names[0].name}"
    assert isinstance(statement, ast.Import)
    alias = statement.names[0]
    return alias.name if alias.asname else alias.name.split(".")[0]
