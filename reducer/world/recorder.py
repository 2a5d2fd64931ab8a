"""Runs a Python command of a case and records what it executed, read, and saw when it failed.

A stand-alone module (standard library only): it runs inside the case's interpreter, which need not have this project:

    python recorder.py --out FILE --root DIR [--trace] -- [-m MODULE | -c CODE | SCRIPT] ARGS...

FILE gets JSON when the process ends, by an exception too: ``executed`` (path -> lines), ``read`` (data files opened),
``tests`` (for each pytest node: outcome, callspec indices, fixtures and their files) and ``failures``. Each
failure holds the chain of exceptions, root cause first; each of these has its ``site``: the failing expression of the
innermost frame below DIR and the values of what it is made of. With --trace FILE gets
``operations`` too: what ``tracer.py``, a file beside this one, logs of a script; values that these made are given as
references then. FILE.lines is written through while the program runs
(``path:line``, each line once, in the order of first execution), so that it also survives a crash of the process.
"""

import ast
import builtins
import contextlib
import copy
import importlib
import itertools
import json
import os
import runpy
import sys
import threading
import traceback
import types
from typing import Any, Iterator, Mapping, Sequence  # noqa: UP035

MAX_VALUES = 256
MAX_ITEMS = 64
MAX_DEPTH = 6
MAX_EVALUATED = 60
_NAMESPACES = ("", ".nn", ".nn.functional", ".linalg", ".fft", ".autograd", ".nn.init", ".optim", ".special")


class Recorder:
    """Gathers one run's record. ``root`` limits what counts as the case's own code."""

    def __init__(self, out: str, root: str) -> None:
        self.out = out
        self.root = os.path.realpath(root) + os.sep
        self.start = os.getcwd()
        self.paths: dict[str, str | None] = {}
        self.executed: dict[str, set[int]] = {}
        self.read: set[str] = set()
        self.tests: dict[str, dict[str, Any]] = {}
        self.failures: list[dict[str, Any]] = []
        self.tracer: Any = None
        self.pid = os.getpid()
        self.lines = os.open(out + ".lines", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)

    def relative(self, filename: str) -> str | None:
        """The path below the root, or None for code that is not the case's."""
        if filename not in self.paths:
            found = None
            if filename and not filename.startswith("<"):
                full = os.path.realpath(os.path.join(self.start, filename))
                if full.startswith(self.root) and f"{os.sep}site-packages{os.sep}" not in full:
                    found = full[len(self.root) :].replace(os.sep, "/")
            self.paths[filename] = found
        return self.paths[filename]

    def install(self) -> None:
        """Start to trace lines and to watch the files that are opened."""
        sys.addaudithook(self._audit)
        self.resume()

    def resume(self) -> None:
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    def stop(self) -> None:
        sys.settrace(None)
        threading.settrace(None)
        if self.tracer is not None:
            self.tracer.closed = True

    def _trace(self, frame: types.FrameType, event: str, argument: object) -> Any:
        path = self.relative(frame.f_code.co_filename)
        if path is None:
            return None
        lines = self.executed.setdefault(path, set())

        def line(inner: types.FrameType, kind: str, value: object) -> Any:
            if inner.f_lineno not in lines and inner.f_lineno:
                lines.add(inner.f_lineno)
                with contextlib.suppress(OSError):
                    os.write(self.lines, f"{path}:{inner.f_lineno}\n".encode("utf-8", "surrogateescape"))
            return line

        return line(frame, event, argument)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and arguments and isinstance(arguments[0], (str, bytes)):
            path = self.relative(os.fsdecode(arguments[0]))
            if path is not None and not path.endswith((".py", ".pyc")) and os.getpid() == self.pid:
                self.read.add(path)

    def fail(self, error: BaseException, node: str = "", when: str = "") -> None:
        """Record one exception with its chain, root cause first."""
        self.stop()
        chain: list[BaseException] = []
        current: BaseException | None = error
        while current is not None and current not in chain and len(chain) < 8:
            chain.append(current)
            following = current.__cause__
            if following is None and not current.__suppress_context__:
                following = current.__context__
            current = following
        self.failures.append({"node": node, "when": when, "chain": [self._describe(e) for e in reversed(chain)]})

    def _describe(self, error: BaseException) -> dict[str, Any]:
        frames: list[dict[str, Any]] = []
        inner: types.TracebackType | None = None
        trace = error.__traceback__
        while trace is not None:
            path = self.relative(trace.tb_frame.f_code.co_filename)
            if path is not None:
                inner = trace
                name = trace.tb_frame.f_code.co_name
                frames.append({"file": path, "line": trace.tb_lineno, "function": name})
            trace = trace.tb_next
        found: dict[str, Any] = {"type": type(error).__name__, "message": str(error)[:2000], "frames": frames}
        if inner is not None:
            with contextlib.suppress(Exception):  # a record without its site is still of use
                found["site"] = site(inner)
        return found

    def dump(self) -> None:
        """Write the record; replaces what an earlier call wrote."""
        if os.getpid() != self.pid:
            return
        record = {
            "schema": 1,
            "executed": {path: sorted(lines) for path, lines in sorted(self.executed.items())},
            "read": sorted(self.read),
            "tests": self.tests,
            "failures": self.failures,
        }
        if self.tracer is not None:
            record["operations"] = self.tracer.operations
        temporary = self.out + ".part"
        with open(temporary, "w", encoding="utf-8") as stream:
            json.dump(record, stream)
        os.replace(temporary, self.out)


class PytestPlugin:
    """Reports nodes, parameters, fixtures and failures of a pytest run to a recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def pytest_runtest_setup(self, item: Any) -> None:
        callspec = getattr(item, "callspec", None)
        fixtures: dict[str, list[str]] = {}
        definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
        for name, found in definitions.items():
            files = [self.recorder.relative(getattr(d.func, "__code__", _NO_CODE).co_filename) for d in found]
            fixtures[name] = [f for f in files if f]
        self.recorder.tests[item.nodeid] = {
            "outcome": "passed",
            "when": "",
            "indices": dict(getattr(callspec, "indices", {}) or {}),
            "id": getattr(callspec, "id", ""),
            "fixtures": fixtures,
            "names": list(getattr(item, "fixturenames", [])),
        }

    def pytest_runtest_logreport(self, report: Any) -> None:
        test = self.recorder.tests.get(report.nodeid)
        if test is not None and report.outcome != "passed" and test["outcome"] != "failed":
            test.update(outcome=report.outcome, when=report.when)

    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        if call.excinfo is not None:
            self.recorder.fail(call.excinfo.value, getattr(node, "nodeid", ""), getattr(call, "when", ""))
            self.recorder.resume()


class _NoCode:
    co_filename = ""


_NO_CODE = _NoCode()


# -- the failing expression --------------------------------------------------------------------------------------


def site(trace: types.TracebackType) -> dict[str, Any]:
    """Where the traceback entry stands: its statement, the failing expression, and the values these consist of."""
    frame = trace.tb_frame
    code = frame.f_code
    with open(code.co_filename, "rb") as stream:
        module = ast.parse(stream.read())
    parents = {child: node for node in ast.walk(module) for child in ast.iter_child_nodes(node)}
    statement = _statement_at(module, trace.tb_lineno)
    node = _failing_node(module, trace)
    found: dict[str, Any] = {"line": trace.tb_lineno, "function": code.co_name, "imports": _imports(module)}
    if statement is not None:
        found["kind"] = type(statement).__name__
        found["statement"] = ast.unparse(_head(statement))
    if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        found["expression"] = ast.unparse(node)
        found["context"] = _context(node, parents)
        evaluated = [found["expression"], *found["context"]]
    elif statement is not None:
        evaluated = [found["statement"]]
    else:
        evaluated = []
    found["values"] = _values(evaluated, frame)
    return found


def _failing_node(module: ast.Module, trace: types.TracebackType) -> ast.AST | None:
    """The node that the failing instruction was compiled from (Python 3.11 and later; else None)."""
    positions = getattr(trace.tb_frame.f_code, "co_positions", None)
    if positions is None or trace.tb_lasti < 0:
        return None
    position = next(itertools.islice(positions(), trace.tb_lasti // 2, None), None)
    if position is None:
        return None
    line, end_line, column, end_column = position
    for node in ast.walk(module):
        if (
            isinstance(node, (ast.expr, ast.stmt))
            and (node.lineno, node.col_offset) == (line, column)
            and (node.end_lineno, node.end_col_offset) == (end_line, end_column)
        ):
            return node
    return None


def _statement_at(module: ast.Module, line: int) -> ast.stmt | None:
    found: ast.stmt | None = None
    for node in ast.walk(module):
        if isinstance(node, ast.stmt):
            first = min([node.lineno, *[d.lineno for d in getattr(node, "decorator_list", [])]])
            inside = first <= line <= (node.end_lineno or node.lineno)
            if inside and (found is None or node.lineno >= found.lineno):
                found = node
    return found


def _head(statement: ast.stmt) -> ast.stmt:
    """The statement without the blocks below it."""
    changes: dict[str, Any] = {}
    for name in ("body", "orelse", "finalbody", "handlers"):
        if hasattr(statement, name):
            changes[name] = [ast.Pass()] if name == "body" else []
    if not changes:
        return statement
    if isinstance(statement, ast.Try):
        changes["finalbody"] = [ast.Pass()]
    bare = copy.copy(statement)
    for name, value in changes.items():
        setattr(bare, name, value)
    return bare


def _context(node: ast.expr, parents: Mapping[ast.AST, ast.AST]) -> list[str]:
    """The expressions around the failing one, inner first: the attribute chain and the call that it begins."""
    found = []
    current: ast.AST = node
    while True:
        parent = parents.get(current)
        if isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Call) and parent.func is current):
            found.append(ast.unparse(parent))
            current = parent
        else:
            return found


def _imports(module: ast.Module) -> dict[str, str]:
    """Names bound by absolute imports anywhere in the file, and the statement that binds each."""
    found: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.split(".")[0]] = ast.unparse(ast.Import([alias]))
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                found[alias.asname or alias.name] = ast.unparse(ast.ImportFrom(node.module, [alias], 0))
    return found


def _values(sources: Sequence[str], frame: types.FrameType) -> dict[str, Any]:
    """The values of all sub-expressions of the sources that can be had without running much: by source text."""
    found: dict[str, Any] = {}
    if not sources:
        return found
    tree = ast.parse(max(sources, key=len))
    tops = {ast.dump(statement.value) for statement in tree.body if isinstance(statement, ast.Expr)}
    bound = {
        name.id
        for scope in ast.walk(tree)
        if isinstance(scope, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp))
        for name in ast.walk(scope)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }
    for node in _inner_first(tree):
        if len(found) >= MAX_EVALUATED or not isinstance(node, ast.expr) or ast.dump(node) in tops:
            continue
        if isinstance(node, (ast.Constant, ast.Starred, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, ast.Slice)):
            continue
        if _has_effects(node) or any(isinstance(n, ast.Name) and n.id in bound for n in ast.walk(node)):
            continue
        source = ast.unparse(node)  # evaluated as text: the node may stand where it is stored to
        if source not in found:
            try:
                value = eval(compile(source, "<recorded>", "eval"), frame.f_globals, dict(frame.f_locals))
                found[source] = describe(value)
            except Exception:  # what cannot be evaluated or looked at again has no value to record
                continue
    return found


def _inner_first(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield from _inner_first(child)
    yield node


def _has_effects(node: ast.expr) -> bool:
    """True for a call that may change its operands, by its name."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            name = inner.func.attr if isinstance(inner.func, ast.Attribute) else getattr(inner.func, "id", "")
            if (name.endswith("_") and not name.endswith("__")) or name in _EFFECTS:
                return True
    return False


_EFFECTS = {"pop", "append", "next", "backward", "step", "send", "read", "write", "clear", "update", "exit", "input"}


# -- values ------------------------------------------------------------------------------------------------------


def describe(value: object, depth: int = 0) -> dict[str, Any]:
    """A value as JSON: literals as source text, tensors by shape, dtype and small contents, torch's things by name."""
    made = _made(value)
    if made is not None:
        return {"kind": "reference", "of": made}
    if type(value) in (type(None), type(Ellipsis), bool, int, str, bytes) and len(repr(value)) < 500:
        return {"kind": "literal", "source": "..." if value is Ellipsis else repr(value)}
    if type(value) in (float, complex):
        return {"kind": "literal", "source": _number(value)}
    if depth > MAX_DEPTH:
        return _opaque(value)
    if isinstance(value, slice):
        parts = [describe(part, depth + 1) for part in (value.start, value.stop, value.step)]
        return {"kind": "slice", "items": parts}
    if _is_tensor(value):
        return _tensor(value)
    module = str(getattr(type(value), "__module__", "")).split(".")[0]
    if type(value).__name__ in ("dtype", "VarType", "DataType") and module in ("paddle", "torch"):
        return {"kind": "dtype", "name": str(value).rpartition(".")[2].lower()}
    if isinstance(value, (list, tuple, set, frozenset)) and len(value) <= MAX_ITEMS:
        shape = type(value).__name__ if type(value) in (list, tuple, set, frozenset) else "tuple"
        if type(value).__name__ == "Size" or type(value) in (list, tuple, set, frozenset):
            items = [describe(item, depth + 1) for item in value]
            return {"kind": shape, "items": items, "id": id(value)}
    if type(value).__name__ in ("dict", "OrderedDict") and isinstance(value, dict) and len(value) <= MAX_ITEMS:
        pairs = [[describe(k, depth + 1), describe(v, depth + 1)] for k, v in value.items()]
        return {"kind": "dict", "items": pairs, "id": id(value)}
    if type(value).__name__ == "ndarray" and module == "numpy":
        return _array(value)
    if type(value).__name__ in ("Place", "CPUPlace", "device") and module in ("paddle", "torch"):
        return {"kind": "literal", "source": "'cpu'"}
    receiver = getattr(value, "__self__", None)
    if isinstance(value, (types.MethodType, types.BuiltinMethodType)) and _is_tensor(receiver):
        return {"kind": "method", "name": value.__name__, "self": _tensor(receiver)}
    return _named(value, depth)


def _no_trace(value: object) -> Any:
    return None


_made = _no_trace  # which operation of a trace made a value
tracer_module: Any = None


def _number(value: object) -> str:
    text = repr(value)
    return text if all(part not in text for part in ("inf", "nan")) else f'{type(value).__name__}("{text}")'


def _is_tensor(value: object) -> bool:
    for cls in type(value).__mro__:
        if cls.__name__ == "Tensor" and cls.__module__.split(".")[0] in ("paddle", "torch"):
            return hasattr(value, "shape") and hasattr(value, "dtype")
    return False


def _tensor(value: Any) -> dict[str, Any]:
    shape = [int(size) for size in value.shape]
    count = 1
    for size in shape:
        count *= size
    stopped = getattr(value, "stop_gradient", None)
    found: dict[str, Any] = {
        "kind": "tensor",
        "id": id(value),
        "shape": shape,
        "dtype": str(value.dtype).rpartition(".")[2].lower(),
        "requires_grad": (not stopped) if stopped is not None else bool(value.requires_grad),
        "parameter": "Param" in type(value).__name__,
    }
    with contextlib.suppress(Exception):  # e.g. a dtype without a conversion: shape and dtype say enough
        if count <= MAX_VALUES:
            found["values"] = json.loads(json.dumps(value.detach().tolist(), default=repr))
        elif not str(value.dtype).rpartition(".")[2].startswith(("float", "bfloat", "complex")):
            found["range"] = [int(value.min()), int(value.max())]
    return found


def _array(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": "array", "id": id(value), "shape": list(value.shape), "dtype": str(value.dtype)}
    if value.size <= MAX_VALUES:
        with contextlib.suppress(Exception):
            found["values"] = json.loads(json.dumps(value.tolist()))
    return found


def _named(value: object, depth: int) -> dict[str, Any]:
    """Functions, classes, modules and layers of the framework, by torch's name for them."""
    for root in ("torch", "paddle"):
        base = sys.modules.get(root)
        for suffix in _NAMESPACES if base is not None else ():
            space: Any = base
            for part in suffix.split(".")[1:]:
                space = getattr(space, part, None)
            if space is value and space is not None:
                return {"kind": "name", "source": "torch" + suffix}
            name = getattr(value, "__name__", None)
            if isinstance(name, str) and getattr(space, name, None) is value:
                return {"kind": "name", "source": f"torch{suffix}.{name}"}
    name = getattr(value, "__name__", None)
    if isinstance(name, str) and getattr(builtins, name, None) is value:
        return {"kind": "name", "source": name}
    kinds = {(c.__module__.split(".")[0], c.__name__) for c in type(value).__mro__}
    if kinds & {("paddle", "Layer"), ("torch", "Module")}:
        return _layer(value, depth)
    return _opaque(value)


def _layer(value: Any, depth: int) -> dict[str, Any]:
    children = [describe(child, depth + 1) for child in value.children()]
    name = type(value).__name__
    if children:
        return {"kind": "layers", "name": name, "items": children, "id": id(value)}
    return {"kind": "layer", "source": repr(value)[:300], "id": id(value)}


def _opaque(value: object) -> dict[str, Any]:
    return {"kind": "opaque", "type": type(value).__name__, "id": id(value)}


# -- running -----------------------------------------------------------------------------------------------------


def record(out: str, root: str, arguments: list[str], trace: bool = False) -> None:
    """Run ``[-m MODULE | -c CODE | SCRIPT] ARGS...`` as ``python`` would, and record it."""
    recorder = Recorder(out, root)
    if trace:
        _install_tracer(recorder)
    else:
        recorder.install()
    try:
        _run(recorder, arguments)
    except SystemExit:
        raise
    except BaseException as error:
        recorder.fail(error)
        recorder.dump()
        shown = error.__traceback__
        while shown is not None and (shown.tb_frame.f_code.co_filename in (__file__, runpy.__file__) or _frozen(shown)):
            shown = shown.tb_next
        traceback.print_exception(type(error), error, shown or error.__traceback__)
        sys.exit(130 if isinstance(error, KeyboardInterrupt) else 1)
    finally:
        recorder.stop()
        recorder.dump()


def _install_tracer(recorder: Recorder) -> None:
    """Load the file beside this one, wherever the two were put."""
    global _made, tracer_module
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    tracer_module = importlib.import_module("tracer")
    del sys.path[0]
    recorder.tracer = tracer_module.Tracer(lambda filename: recorder.relative(filename) is not None, describe)
    tracer_module.install(recorder.tracer)
    _made = recorder.tracer.reference


def _frozen(trace: types.TracebackType) -> bool:
    return trace.tb_frame.f_code.co_filename == "<frozen runpy>"


def _run(recorder: Recorder, arguments: list[str]) -> None:
    if arguments[0] == "-m":
        module, rest = arguments[1], arguments[2:]
        sys.path[0] = os.getcwd()
        if module == "pytest":
            sys.argv = [module, *rest]
            import pytest

            sys.exit(pytest.main(rest, plugins=[PytestPlugin(recorder)]))
        sys.argv = [module, *rest]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    elif arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        sys.path[0] = ""
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__", "__builtins__": builtins})
    else:
        sys.argv = list(arguments)
        sys.path[0] = os.path.dirname(os.path.realpath(arguments[0]))
        if recorder.tracer is not None:
            with open(arguments[0], "rb") as stream:
                code = tracer_module.compiled(stream.read(), arguments[0])
            main_module = sys.modules["__main__"] = types.ModuleType("__main__")
            main_module.__dict__.update(__file__=arguments[0], __builtins__=builtins)
            exec(code, main_module.__dict__)
            return
        runpy.run_path(arguments[0], run_name="__main__")


_FLAGS_WITH_VALUE = ("-W", "-X")


def command(argv: Sequence[str], recorder: str, out: str, root: str, trace: bool = False) -> list[str] | None:
    """The command line that records ``argv`` (``python ...`` or ``pytest ...``); None for any other program."""
    name = os.path.basename(argv[0]) if argv else ""
    head = [recorder, "--out", out, "--root", root, *(["--trace"] if trace else []), "--"]
    if name in ("pytest", "py.test"):
        return ["python", *head, "-m", "pytest", *argv[1:]]
    if not name.startswith("python"):
        return None
    flags: list[str] = []
    rest = list(argv[1:])
    while rest and rest[0].startswith("-") and not rest[0].startswith(("-m", "-c")) and rest[0] != "-":
        flags.append(rest.pop(0))
        if flags[-1] in _FLAGS_WITH_VALUE and rest:
            flags.append(rest.pop(0))
    if not rest or rest[0] == "-":
        return None
    if rest[0].startswith(("-m", "-c")) and len(rest[0]) > 2:
        rest[:1] = [rest[0][:2], rest[0][2:]]
    return [argv[0], *flags, *head, *rest]


def load(out: str) -> dict[str, Any]:
    """The record at ``out``; after a crash, what FILE.lines still tells. Raises OSError when there is neither."""
    try:
        with open(out, encoding="utf-8") as stream:
            found: dict[str, Any] = json.load(stream)
    except FileNotFoundError:
        found = {"schema": 1, "executed": {}, "read": [], "tests": {}, "failures": [], "crashed": True}
        with open(out + ".lines", encoding="utf-8", errors="surrogateescape") as lines:
            for text in lines:
                path, _, line = text.strip().rpartition(":")
                found["executed"].setdefault(path, []).append(int(line))
                found["last"] = [path, int(line)]
    return found


def main() -> None:
    arguments = sys.argv[1:]
    trace = arguments[4:5] == ["--trace"]
    if trace:
        del arguments[4]
    if len(arguments) < 6 or arguments[0] != "--out" or arguments[2] != "--root" or arguments[4] != "--":
        sys.exit("usage: recorder.py --out FILE --root DIR -- [-m MODULE | -c CODE | SCRIPT] ARGS...")
    record(os.path.abspath(arguments[1]), arguments[3], arguments[5:], trace)


if __name__ == "__main__":
    main()
