"""Logs what a case's own code asks of the framework, as operations on tensors in the order in which they ran.

A stand-alone module (standard library only) beside ``recorder.py``, which runs it inside the case's interpreter. The
case's modules are compiled with each call, operator, subscript and attribute going through a ``Tracer``: an operation
of a straight-line program, whose operands are results of earlier ones or plain values. The idea is that of tracing in
a compiler for tensors (only the operations on tensors are kept; control flow and bookkeeping have happened), taken at
the level of the public API. Positions in the source stay what they are.
"""

import ast
import builtins
import importlib.machinery
import operator
import sys
import types
from typing import Any, Callable  # noqa: UP035

NAME = "__reduce_tracer__"
MAX_OPERATIONS = 4000
_FRAMEWORKS = ("torch", "paddle")
_UNTOUCHED = {"super", "locals", "globals", "vars", "dir", "eval", "exec", "breakpoint", "isinstance", "type", "print"}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "Div": operator.truediv, "Mod": operator.mod,
    "FloorDiv": operator.floordiv, "Pow": operator.pow, "MatMult": operator.matmul, "BitAnd": operator.and_,
    "BitOr": operator.or_, "BitXor": operator.xor, "LShift": operator.lshift, "RShift": operator.rshift,
    "Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt,
    "GtE": operator.ge,
}  # fmt: skip
_INPLACE: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul, "Div": operator.itruediv, "Mod": operator.imod,
    "FloorDiv": operator.ifloordiv, "Pow": operator.ipow, "MatMult": operator.imatmul, "BitAnd": operator.iand,
    "BitOr": operator.ior, "BitXor": operator.ixor, "LShift": operator.ilshift, "RShift": operator.irshift,
}  # fmt: skip
_UNARY: dict[str, Callable[[Any], Any]] = {"USub": operator.neg, "UAdd": operator.pos, "Invert": operator.invert}


class Tracer:
    """The log of one run. ``own`` says whether a file is the case's; ``describe`` writes a value down."""

    def __init__(self, own: Callable[[str], bool], describe: Callable[[object], dict[str, Any]]) -> None:
        self.own = own
        self.describe = describe
        self.operations: list[dict[str, Any]] = []
        self.references: dict[int, list[int]] = {}  # id -> [operation] or [operation, item of its result]
        self.alive: list[object] = []  # an id names an object only while it lives
        self.kinds: dict[type, bool] = {}
        self.closed = False

    # -- what the compiled code calls ----------------------------------------------------------------------------

    def call(self, source: str, function: Any, /, *arguments: Any, **keywords: Any) -> Any:
        result = function(*arguments, **keywords)
        if self._counts(function, result, (arguments, keywords)):
            self._log("call", self._function(source, function), arguments, keywords, result)
        return result

    def method(self, source: str, receiver: Any, name: str, /, *arguments: Any, **keywords: Any) -> Any:
        function = getattr(receiver, name)
        tracked = self._tracked(receiver)
        if tracked and name.endswith("_"):
            self.value(receiver)  # what it is made of, before it changes
        result = function(*arguments, **keywords)
        if tracked:
            self._log("method", {"name": name, "receiver": self.value(receiver)}, arguments, keywords, result)
        elif self._counts(function, result, (arguments, keywords)):
            self._log("call", self._function(source, function), arguments, keywords, result)
        return result

    def attribute(self, receiver: Any, name: str) -> Any:
        result = getattr(receiver, name)
        if self._tensor(result) and self._tracked(receiver) and id(result) not in self.references:
            self._log("attribute", {"name": name, "receiver": self.value(receiver)}, (), {}, result)
        return result

    def binary(self, name: str, left: Any, right: Any) -> Any:
        result = _BINARY[name](left, right)
        if self._tracked(left) or self._tracked(right):
            self._log("binary", {"name": name}, (left, right), {}, result)
        return result

    def inplace(self, name: str, left: Any, right: Any) -> Any:
        before = self.value(left) if self._tracked(left) else None
        result = _INPLACE[name](left, right)
        if before is not None or self._tracked(right):
            self._log("inplace", {"name": name}, (left, right), {}, result)
        return result

    def unary(self, name: str, operand: Any) -> Any:
        result = _UNARY[name](operand)
        if self._tracked(operand):
            self._log("unary", {"name": name}, (operand,), {}, result)
        return result

    def item(self, receiver: Any, key: Any) -> Any:
        result = receiver[key]
        if self._tensor(receiver) and self._tensor(result):
            self._log("item", {}, (receiver, key), {}, result)
        return result

    def store(self, receiver: Any, key: Any, value: Any) -> None:
        receiver[key] = value
        if self._tensor(receiver):
            self._log("store", {}, (receiver, key, value), {}, None)

    # -- the log -------------------------------------------------------------------------------------------------

    def reference(self, value: object) -> list[int] | None:
        """The operation that made the value, if one of the log did."""
        return self.references.get(id(value))

    def value(self, value: Any) -> dict[str, Any]:
        """An operand: a reference, a container with references inside, or a description."""
        found = self.reference(value)
        if found is not None:
            return {"kind": "reference", "of": found}
        if self._tensor(value) and not self.closed:
            self._add({"kind": "input", "value": self.describe(value)}, value)
            return self.describe(value)
        if type(value) in (list, tuple):
            return {"kind": type(value).__name__, "items": [self.value(item) for item in value]}
        if type(value) is slice:
            return {"kind": "slice", "items": [self.value(v) for v in (value.start, value.stop, value.step)]}
        return self.describe(value)

    def _function(self, source: str, function: Any) -> dict[str, Any]:
        line, _, text = source.partition("\n")
        return {"import": line, "function": text, "named": self.describe(function)}

    def _log(self, kind: str, more: dict[str, Any], arguments: Any, keywords: Any, result: Any) -> None:
        given = [self.value(a) for a in arguments]
        named = {k: self.value(v) for k, v in keywords.items()}
        self._add({"kind": kind, **more, "arguments": given, "keywords": named}, result)

    def _add(self, operation: dict[str, Any], result: Any) -> None:
        self.closed = self.closed or len(self.operations) >= MAX_OPERATIONS
        if self.closed:
            return
        at = len(self.operations)
        operation["result"] = None
        operation["silent"] = result is None
        self.operations.append(operation)
        known = self.reference(result)
        if known is not None:
            operation["same"] = known
        elif self._trackable(result):
            operation["result"] = at
            self._remember(result, [at])
            if isinstance(result, (list, tuple)):
                for index, item in enumerate(result):
                    if self._trackable(item) and id(item) not in self.references:
                        self._remember(item, [at, index])

    def _remember(self, value: object, reference: list[int]) -> None:
        self.references[id(value)] = reference
        self.alive.append(value)

    def _counts(self, function: Any, result: Any, arguments: Any) -> bool:
        """True for what the framework does, and for what others make of its tensors."""
        if self._is_own(function):
            return False
        if _module(function) in _FRAMEWORKS:
            return True
        if id(result) in self.references:
            return False  # handed through
        tensors = self._tracked(arguments[0]) or self._tracked(tuple(arguments[1].values()))
        return tensors and (self._tensor(result) or type(result).__name__ in ("float", "ndarray"))

    def _is_own(self, function: Any) -> bool:
        function = getattr(function, "func", function)
        receiver = getattr(function, "__self__", None)
        if receiver is not None and not isinstance(receiver, types.ModuleType) and not self._tensor(receiver):
            kind = receiver if isinstance(receiver, type) else type(receiver)
            module = sys.modules.get(str(kind.__module__))
            if self.own(str(getattr(module, "__file__", None) or "")):
                return True
        code = getattr(function, "__code__", None)
        if code is not None:
            return self.own(code.co_filename)
        kind = function if isinstance(function, type) else type(function)
        module = sys.modules.get(str(getattr(kind, "__module__", "")))
        return self.own(str(getattr(module, "__file__", None) or ""))

    def _tracked(self, value: Any) -> bool:
        if id(value) in self.references or self._tensor(value):
            return True
        return type(value) in (list, tuple) and any(self._tracked(item) for item in value)

    def _trackable(self, value: Any) -> bool:
        """Small and shared values have no identity to know them by."""
        if isinstance(value, (list, tuple)):
            return any(self._tensor(item) for item in value)
        return value is not None and type(value) not in (bool, int, str, bytes, type, dict, types.ModuleType)

    def _tensor(self, value: Any) -> bool:
        kind = type(value)
        if kind not in self.kinds:
            names = {(c.__module__.split(".")[0], c.__name__) for c in kind.__mro__}
            self.kinds[kind] = any((root, "Tensor") in names for root in _FRAMEWORKS)
        return self.kinds[kind]


def _module(function: Any) -> str:
    receiver = getattr(function, "__self__", None)
    for owner in (function, receiver if isinstance(receiver, type) else type(receiver), type(function)):
        root = str(getattr(owner, "__module__", None) or "").split(".")[0]
        if root in _FRAMEWORKS:
            return root
    return ""


# -- compiling the case's modules ---------------------------------------------------------------------------------


def install(tracer: Tracer) -> None:
    """From now on compile the case's modules so that they report to the tracer."""
    setattr(builtins, NAME, tracer)
    plain = importlib.machinery.SourceFileLoader.source_to_code

    def traced(self: Any, data: Any, path: Any, *rest: Any, **more: Any) -> Any:
        if isinstance(path, str) and tracer.own(path) and isinstance(data, (bytes, str)):
            return compiled(data, path)
        return plain(self, data, path, *rest, **more)

    importlib.machinery.SourceFileLoader.source_to_code = traced  # type: ignore[method-assign]


def compiled(data: Any, path: str) -> types.CodeType:
    """The code of a module that reports. Raises SyntaxError."""
    module = ast.parse(data)
    module = _Rewriter(_imports(module)).visit(module)
    return compile(ast.fix_missing_locations(module), path, "exec", dont_inherit=True)


def _imports(module: ast.Module) -> dict[str, str]:
    """Names bound by absolute imports anywhere in the module, and the statement that binds each."""
    found: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.split(".")[0]] = ast.unparse(ast.Import([alias]))
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                found[alias.asname or alias.name] = ast.unparse(ast.ImportFrom(node.module, [alias], 0))
    return found


class _Rewriter(ast.NodeTransformer):
    def __init__(self, imports: dict[str, str]) -> None:
        self.imports = imports

    def _source(self, function: ast.expr) -> ast.Constant:
        """The import that binds the function's first name ("": none does), and how the function is spelt."""
        root = function
        while isinstance(root, ast.Attribute):
            root = root.value
        line = self.imports.get(root.id, "") if isinstance(root, ast.Name) else ""
        return ast.Constant(f"{line}\n{ast.unparse(function)}")

    def _ask(self, node: ast.expr, name: str, *arguments: ast.expr) -> ast.Call:
        own = ast.Attribute(ast.Name(NAME, ast.Load()), name, ast.Load())
        call = ast.Call(own, list(arguments), [])
        for inner in (own.value, own, call):
            ast.copy_location(inner, node)
        return call

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        if isinstance(function, ast.Name) and function.id in _UNTOUCHED:
            return self.generic_visit(node)
        source = self._source(function)
        looked_up = isinstance(function, ast.Call) and isinstance(function.func, ast.Name)
        if looked_up and function.func.id == "getattr" and len(function.args) == 2 and not function.keywords:  # type: ignore[attr-defined]
            call = self._ask(node, "method", source, *map(self.visit, function.args))  # type: ignore[attr-defined]
        elif isinstance(function, ast.Attribute) and not _private(function.attr):
            name = ast.Constant(function.attr)
            call = self._ask(node, "method", source, self.visit(function.value), name)
        else:
            call = self._ask(node, "call", source, self.visit(function))
        call.args += [self.visit(a) for a in node.args]
        call.keywords = [self.visit(k) for k in node.keywords]
        return call

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or _private(node.attr):
            return node
        return self._ask(node, "attribute", node.value, ast.Constant(node.attr))

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return self._ask(node, "binary", ast.Constant(type(node.op).__name__), node.left, node.right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        name = type(node.op).__name__
        return self._ask(node, "unary", ast.Constant(name), node.operand) if name in _UNARY else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        name = type(node.ops[0]).__name__
        if len(node.ops) > 1 or name not in _BINARY:
            return node
        return self._ask(node, "binary", ast.Constant(name), node.left, node.comparators[0])

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        return self._ask(node, "item", node.value, _key(node.slice)) if isinstance(node.ctx, ast.Load) else node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Subscript):
            return node
        call = self._ask(node.value, "store", target.value, _key(target.slice), node.value)
        return ast.copy_location(ast.Expr(call), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        left = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        call = self._ask(node.value, "inplace", ast.Constant(type(node.op).__name__), left, node.value)
        return ast.copy_location(ast.Assign([node.target], call), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.args = self.visit(node.args)
        node.body = [self.visit(s) for s in node.body]
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = [self.visit(s) for s in node.body]
        return node

    def visit_Match(self, node: ast.Match) -> ast.AST:
        node.subject = self.visit(node.subject)
        for case in node.cases:
            case.body = [self.visit(s) for s in case.body]
        return node


def _private(name: str) -> bool:
    """A name that means another one inside a class."""
    return name.startswith("__") and not name.endswith("__")


def _key(node: ast.expr) -> ast.expr:
    """A subscript as an expression of its own: ``1:2`` means ``slice(1, 2, None)``."""
    if isinstance(node, ast.Slice):
        parts = [part or ast.Constant(None) for part in (node.lower, node.upper, node.step)]
        return ast.copy_location(ast.Call(ast.Name("slice", ast.Load()), parts, []), node)
    if isinstance(node, ast.Tuple):
        if any(isinstance(e, ast.Starred) for e in node.elts):
            return node
        return ast.copy_location(ast.Tuple([_key(e) for e in node.elts], ast.Load()), node)
    return node
