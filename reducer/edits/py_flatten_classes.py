"""Turn a class with one instance into functions and variables, which the inlining passes then take apart."""

from __future__ import annotations

import ast
import copy
import itertools
import keyword
from collections import Counter
from dataclasses import dataclass, field

from reducer.edits.edit import Edit, Write
from reducer.edits.passes import Proposal, nothing, proposal
from reducer.syntax.python import PyModule, is_docstring, pinned_nodes, prelude_nodes, python_modules
from reducer.syntax.python_names import BUILTINS, dotted
from reducer.tree import SourceTree

_REGISTERING = ("register_buffer", "register_parameter", "add_module", "register_module")
_OPERATORS = ("__len__", "__getitem__")


class _Unsuitable(Exception):
    """The class cannot be taken apart this way."""


class PyFlattenClasses:
    """One edit for each class of a module that has one instance (or none and only static methods): its methods become
    functions, its attributes variables. ``__init__`` becomes a function called where the instance was made."""

    name = "py_flatten_classes"

    def propose(self, tree: SourceTree) -> Proposal:
        edits = []
        for module in python_modules(tree):
            fixed = pinned_nodes(module)
            uses = Counter(n.id for n in ast.walk(module.tree) if isinstance(n, ast.Name))
            for position, node in enumerate(module.tree.body):
                if isinstance(node, ast.ClassDef) and node not in fixed and _may_flatten(node, uses[node.name]):
                    try:
                        text = _Flattening(module, position).text()
                    except (_Unsuitable, UnicodeEncodeError):
                        continue
                    edits.append(Edit((Write(module.path, text),), f"class {node.name} as functions", 40))
        return proposal(edits, "sweep") if edits else nothing()


def _may_flatten(node: ast.ClassDef, uses: int) -> bool:
    """A quick look before the tree is copied: one use, or static methods only."""
    inside = sum(isinstance(n, ast.Name) and n.id == node.name for n in ast.walk(node))
    if uses - inside == 1:
        return True
    methods = [s for s in node.body if isinstance(s, ast.FunctionDef)]
    return all(any(getattr(d, "id", "") == "staticmethod" for d in m.decorator_list) for m in methods)


def rewritten(module: PyModule, body: list[ast.stmt]) -> bytes:
    """The module with other statements: the prelude byte for byte at its top, then the statements."""
    prelude = prelude_nodes(module)
    kept = b"".join(module.source[module.start(s) : module.end(s)] + module.encode("\n") for s in prelude)
    rest = [s for s in body if s not in prelude]
    code = ast.unparse(ast.fix_missing_locations(ast.Module(rest, [])))
    mark = b"\xef\xbb\xbf" if module.source.startswith(b"\xef\xbb\xbf") else b""
    return mark + kept + module.encode(code + "\n")


@dataclass(slots=True)
class _Parts:
    """What a class body consists of."""

    methods: dict[str, ast.FunctionDef] = field(default_factory=dict)
    static: set[str] = field(default_factory=set)
    properties: set[str] = field(default_factory=set)
    values: list[tuple[str, ast.expr]] = field(default_factory=list)


class _Flattening:
    def __init__(self, module: PyModule, position: int) -> None:
        self._module = module
        copied = copy.deepcopy(module.tree)
        self._prelude = [copied.body[module.tree.body.index(s)] for s in prelude_nodes(module)]
        self._tree = copied
        node = copied.body[position]
        assert isinstance(node, ast.ClassDef)
        self._class = node
        self._taken = {n.id for n in ast.walk(copied) if isinstance(n, ast.Name)} | BUILTINS | set(keyword.kwlist)
        self._taken |= {n.arg for n in ast.walk(copied) if isinstance(n, ast.arg)}
        self._taken |= {n.name for n in ast.walk(copied) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        self._names: dict[str, str] = {}

    def text(self) -> bytes:
        decorators = [dotted(d.func if isinstance(d, ast.Call) else d) for d in self._class.decorator_list]
        data = any(d is not None and d[-1] == "dataclass" for d in decorators)
        if len(decorators) > (1 if data else 0) or self._class.keywords:
            raise _Unsuitable
        parts = self._parts(data)
        uses = [n for n in ast.walk(self._tree) if isinstance(n, ast.Name) and n.id == self._class.name]
        parents = {c: n for n in ast.walk(self._tree) for c in ast.iter_child_nodes(n)}
        inside = {n for n in ast.walk(self._class) if isinstance(n, ast.Name)}
        made = [p for u in uses if isinstance(p := parents.get(u), ast.Call) and p.func is u and u not in inside]
        changer = _Uses(self, parts)
        if made:
            if len(made) > 1:
                raise _Unsuitable
            self._hoist(made[0], parents, changer)
        elif any(name not in parts.static for name in parts.methods):
            raise _Unsuitable
        functions = [self._function(name, node, parts, changer) for name, node in parts.methods.items()]
        body: list[ast.stmt] = []
        for statement in self._tree.body:
            if statement is self._class:
                for name, value in parts.values:
                    target = ast.Name(self.name_of(name), ast.Store())
                    body.append(ast.Assign([target], changer.visit(value), lineno=1))
                body += functions
            elif statement in self._prelude:
                body.append(statement)
            else:
                body.append(changer.visit(statement))
        changer.check()
        left = [n for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and n.id == self._class.name]
        if left:
            raise _Unsuitable
        return self._assemble(body)

    def _assemble(self, body: list[ast.stmt]) -> bytes:
        module = self._module
        originals = prelude_nodes(module)
        mapping = dict(zip(map(id, self._prelude), originals, strict=True))
        return rewritten(module, [mapping.get(id(s), s) for s in body])

    def name_of(self, attribute: str) -> str:
        """The variable or function that stands for an attribute of the instance."""
        if attribute not in self._names:
            plain = attribute.strip("_") or "value"
            candidates = itertools.chain([plain], (f"{plain}{n}" for n in itertools.count(2)))
            name = next(c for c in candidates if c not in self._taken)
            self._names[attribute] = name
            self._taken.add(name)
        return self._names[attribute]

    # -- the class ----------------------------------------------------------------------------------------------

    def _parts(self, data: bool) -> _Parts:
        parts = _Parts()
        fields: list[tuple[str, ast.expr | None]] = []
        for statement in self._class.body:
            if is_docstring(statement) or isinstance(statement, ast.Pass):
                continue
            if isinstance(statement, ast.FunctionDef):
                kinds = [d.id if isinstance(d, ast.Name) else "?" for d in statement.decorator_list]
                if kinds not in ([], ["staticmethod"], ["property"]):
                    raise _Unsuitable
                parts.methods[statement.name] = statement
                parts.static.update([statement.name] if kinds == ["staticmethod"] else [])
                parts.properties.update([statement.name] if kinds == ["property"] else [])
            elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                if data:
                    fields.append((statement.target.id, statement.value))
                elif statement.value is not None:
                    parts.values.append((statement.target.id, statement.value))
            elif isinstance(statement, ast.Assign) and all(isinstance(t, ast.Name) for t in statement.targets):
                for target in statement.targets:
                    assert isinstance(target, ast.Name)
                    parts.values.append((target.id, statement.value))
            else:
                raise _Unsuitable
        if data and "__init__" not in parts.methods:
            parts.methods["__init__"] = _dataclass_init(fields, "__post_init__" in parts.methods)
        for name in parts.methods:
            if name.startswith("__") and name not in ("__init__", "__call__", "__post_init__", *_OPERATORS):
                raise _Unsuitable
        return parts

    def _hoist(self, call: ast.Call, parents: dict[ast.AST, ast.AST], changer: _Uses) -> None:
        """Make the construction a statement of its own at the top level and remember the instance's name."""
        node: ast.AST = call
        while not isinstance(node, ast.stmt):
            node = parents[node]
        if node not in self._tree.body:
            raise _Unsuitable
        position = self._tree.body.index(node)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            raise _Unsuitable
        plain = isinstance(node, ast.Assign) and node.value is call and len(node.targets) == 1
        if plain and isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            instance = node.targets[0].id
            stores = [
                n
                for n in ast.walk(self._tree)
                if isinstance(n, ast.Name) and n.id == instance and not isinstance(n.ctx, ast.Load)
            ]
            if len(stores) != 1:
                raise _Unsuitable
            self._tree.body[position] = ast.Expr(call)
        else:
            instance = self.name_of(f"{self._class.name.lower()}_instance")
            changer.constructor = call
            self._tree.body.insert(position, ast.Expr(copy.deepcopy(call)))
        changer.instance = instance

    def _function(self, name: str, node: ast.FunctionDef, parts: _Parts, changer: _Uses) -> ast.FunctionDef:
        args = node.args
        owner = None
        if name not in parts.static:
            plain = args.posonlyargs or args.args
            if not plain:
                raise _Unsuitable
            owner = plain.pop(0).arg
        node.decorator_list = []
        inner = _Uses(self, parts, owner, shared=changer)
        node.body = [s for s in (inner.visit(s) for s in node.body) if s is not None] or [ast.Pass()]
        node.args.defaults = [changer.visit(d) for d in args.defaults]
        stored = sorted(inner.stored)
        if stored:
            node.body.insert(0, ast.Global(stored))
        inner.check()
        node.name = self.name_of(name)
        return node


def _dataclass_init(fields: list[tuple[str, ast.expr | None]], post: bool) -> ast.FunctionDef:
    parameters, lines = [], []
    for name, value in fields:
        default = ""
        if value is not None:
            default = f" = {ast.unparse(value)}"
            if isinstance(value, ast.Call) and dotted(value.func) in (["field"], ["dataclasses", "field"]):
                given = {k.arg: k.value for k in value.keywords}
                if "default" in given:
                    default = f" = {ast.unparse(given['default'])}"
                elif "default_factory" in given:
                    default = f" = ({ast.unparse(given['default_factory'])})()"
                else:
                    raise _Unsuitable
        parameters.append(f"{name}{default}")
        lines.append(f"    self.{name} = {name}")
    if post:
        lines.append("    self.__post_init__()")
    try:
        made = ast.parse(f"def __init__({', '.join(['self', *parameters])}):\n" + "\n".join(lines or ["    pass"]))
    except SyntaxError as error:
        raise _Unsuitable from error
    function = made.body[0]
    assert isinstance(function, ast.FunctionDef)
    return function


class _Uses(ast.NodeTransformer):
    """Rewrite what is done with the instance (or with ``self``, when ``owner`` names it)."""

    def __init__(self, flat: _Flattening, parts: _Parts, owner: str | None = None, shared: _Uses | None = None) -> None:
        self._flat = flat
        self._parts = parts
        self._owner = owner
        self.instance: str | None = shared.instance if shared is not None else None
        self.constructor: ast.Call | None = shared.constructor if shared is not None else None
        self.stored: set[str] = set()
        self._bare = False

    def check(self) -> None:
        """Raises _Unsuitable when the instance was used as a whole."""
        if self._bare:
            raise _Unsuitable

    def _is_instance(self, node: ast.AST) -> bool:
        if node is self.constructor:
            return True
        return isinstance(node, ast.Name) and node.id in (self._owner, self.instance) and node.id is not None

    def _is_class(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id == self._flat._class.name

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            base = call.func.value
            if isinstance(base, ast.Call) and isinstance(base.func, ast.Name) and base.func.id == "super":
                return ast.Pass() if call.func.attr == "__init__" else self._give_up(node)
            if self._is_instance(base) and call.func.attr in _REGISTERING and len(call.args) > 1:
                name = call.args[0]
                if isinstance(name, ast.Constant) and isinstance(name.value, str) and name.value.isidentifier():
                    target = self._variable(name.value, ast.Store())
                    return ast.Assign([target], self.visit(call.args[1]), lineno=1)
        return self.generic_visit(node)

    def _give_up(self, node: ast.AST) -> ast.AST:
        self._bare = True
        return node

    def _variable(self, attribute: str, context: ast.expr_context) -> ast.Name:
        name = self._flat.name_of(attribute)
        if not isinstance(context, ast.Load):
            self.stored.add(name)
        return ast.Name(name, context)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if node is self.constructor:
            return self._give_up(node)
        if self._is_class(node.func):
            node.args = [self.visit(a) for a in node.args]
            node.keywords = [self.visit(k) for k in node.keywords]
            if "__init__" in self._parts.methods:
                node.func = ast.Name(self._flat.name_of("__init__"), ast.Load())
                return node
            return ast.Constant(None)
        if self._is_instance(node.func):
            method = "forward" if "forward" in self._parts.methods else "__call__"
            if method not in self._parts.methods:
                return self._give_up(node)
            node.func = ast.Name(self._flat.name_of(method), ast.Load())
            node.args = [self.visit(a) for a in node.args]
            node.keywords = [self.visit(k) for k in node.keywords]
            return node
        length = isinstance(node.func, ast.Name) and node.func.id == "len" and "__len__" in self._parts.methods
        if length and len(node.args) == 1 and self._is_instance(node.args[0]):
            return ast.Call(ast.Name(self._flat.name_of("__len__"), ast.Load()), [], [])
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if self._is_instance(node.value) and "__getitem__" in self._parts.methods:
            return ast.Call(ast.Name(self._flat.name_of("__getitem__"), ast.Load()), [self.visit(node.slice)], [])
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if self._is_instance(node.value):
            if node.attr.startswith("__") and node.attr not in self._parts.methods:
                return self._give_up(node)
            name = self._variable(node.attr, node.ctx)
            return ast.Call(name, [], []) if node.attr in self._parts.properties else name
        if self._is_class(node.value) and (node.attr in self._parts.static or node.attr in dict(self._parts.values)):
            return self._variable(node.attr, node.ctx)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._give_up(node) if self._is_instance(node) else node
