"""Short names for what is left of a library: op namespace, functions, parameters, variables, classes, module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from reducer.edits.cxx_functions import cxx_files, plain_type
from reducer.edits.cxx_signatures import FunctionGroup, callables
from reducer.edits.edit import Edit, Splice
from reducer.edits.op_schemas import python_calls, registrations
from reducer.edits.passes import Proposal, proposal
from reducer.syntax.cxx import is_cxx
from reducer.syntax.cxx_outline import Outline
from reducer.syntax.cxx_statements import statements_in
from reducer.tree import SourceTree

NAMESPACE = "mre"
MODULE = "mre_ext"
_FUNCTIONS = ("f", "g", "h", "f1", "f2", "f3", "f4", "f5")
_TELLING = {
    "index", "indices", "weight", "bias", "mask", "other", "input", "dim", "out", "values", "grad", "grads", "size",
    "self", "ctx", "dtype", "device", "shape", "scale", "options", "result", "name", "value", "key", "args",
}  # fmt: skip
_BY_TYPE = {
    "at::Tensor": ("x", "y", "z", "w"), "int64_t": ("n", "m", "k"), "int": ("n", "m", "k"), "double": ("a", "b", "c"),
    "float": ("a", "b", "c"), "bool": ("flag",), "std::string": ("name",), "std::vector<at::Tensor>": ("xs", "ys"),
    "at::TensorList": ("xs", "ys"), "at::IntArrayRef": ("sizes", "dims"), "std::vector<int64_t>": ("sizes", "dims"),
}  # fmt: skip


class CxxNames:
    """The edits of ``canonical_names`` as a pass."""

    name = "cxx-names"

    def __init__(self, module: str = "") -> None:
        self._module = module

    def propose(self, tree: SourceTree) -> Proposal:
        return proposal(canonical_names(tree, self._module), "sweep")


def canonical_names(tree: SourceTree, module: str = "") -> list[Edit]:
    """Renamings, each coupled over C++ and Python files: the op namespace to ``mre``, the extension ``module`` (its
    last dotted part; "" leaves it) to ``mre_ext``, functions and their ops to ``f``, ``g``, …, what they declare to
    short names of its type. Names that tell something (``index``, ``weight``) and one-letter names stay."""
    taken = {t.text for _, view in cxx_files(tree) for t in view.file.tokens if t.kind == "word"}
    edits: list[Edit] = []
    groups = callables(tree)
    edits += _functions(tree, groups, taken)
    edits += _namespaces(tree)
    for group in groups:
        edits += _inside(tree, group)
    edits += _classes(tree, taken)
    if module and module != MODULE:
        edits += _module(tree, module)
    return edits


def _identifiers(tree: SourceTree, old: str, new: str) -> Iterator[Splice]:
    """Every C++ identifier ``old``."""
    for path, view in cxx_files(tree):
        for token in view.file.tokens:
            if token.kind == "word" and token.text == old:
                yield Splice(path, token.start, token.end, new.encode())


def _namespaces(tree: SourceTree) -> Iterator[Edit]:
    used = dict.fromkeys(r.namespace for r in registrations(tree) if r.namespace)
    if len(used) != 1 or NAMESPACE in used:
        return
    old = next(iter(used))
    ops: list[Splice] = []
    for path, view in cxx_files(tree):
        for function in view.functions:
            if view.file.text(function.name).startswith("TORCH_LIBRARY") and function.parameters:
                token = view.file.tokens[function.parameters[0].first]
                ops.append(Splice(path, token.start, token.end, NAMESPACE.encode()))
    pattern = re.compile(rb"(\bops\s*\.\s*)%s\b|([\"'])%s(?=::\w)" % (old.encode(), old.encode()))
    for path in tree:
        for match in pattern.finditer(tree[path]):
            group = 1 if match.group(1) is not None else 2
            ops.append(Splice(path, match.end(group), match.end(), NAMESPACE.encode()))
    yield Edit(tuple(ops), f"op namespace {old} to {NAMESPACE}")


def _functions(tree: SourceTree, groups: list[FunctionGroup], taken: set[str]) -> Iterator[Edit]:
    free = [n for n in _FUNCTIONS if n not in taken]
    known = registrations(tree)
    for group in sorted(groups, key=lambda g: not g.registered):  # the ops get the first names
        if len(group.name) == 1 or any(f.scopes and f.scopes[-1].kind == "class" for _, _, f in group.places):
            continue  # a method's name may be what the framework calls
        if sum(1 for g in groups if g.name == group.name) > 1 or not free:
            continue
        new = free.pop(0)
        ops = list(_identifiers(tree, group.name, new))
        lines = {(r.namespace, r.op) for r in known if r.function == group.name}
        if len(lines) > 1:
            continue
        ops += (line.renamed(new) for line in known if (line.namespace, line.op) in lines)
        literals = {(line.path, line.view.file.tokens[line.item.literal].start) for line in known}
        for path, view in cxx_files(tree):  # AT_DISPATCH_…(type, "name", …), TORCH_CHECK(…, "name")
            for token in view.file.tokens:
                if token.text == f'"{group.name}"' and (path, token.start) not in literals:
                    ops.append(Splice(path, token.start + 1, token.end - 1, new.encode()))
        for op in {op for _, op in lines}:
            ops += _attribute_names(tree, op, new)
        yield Edit(tuple(ops), f"function {group.name} to {new}")
    ops_of_lambdas = [r for r in known if r.kind == "def" and not r.function and r.op not in taken and len(r.op) > 1]
    for line in ops_of_lambdas:
        if any(r.op == line.op and r.function for r in known) or not free:
            continue
        new = free.pop(0)
        ops = [r.renamed(new) for r in known if (r.namespace, r.op) == (line.namespace, line.op)]
        yield Edit((*ops, *_attribute_names(tree, line.op, new)), f"op {line.op} to {new}")


def _attribute_names(tree: SourceTree, old: str, new: str) -> Iterator[Splice]:
    """``….old`` in Python files, where it is read from ``torch.ops`` or from a module that could be the extension."""
    pattern = re.compile(rb"\bops\s*\.\s*\w+\s*\.\s*(%s)\b|::(%s)\b" % (old.encode(), old.encode()))
    for path in tree:
        if path.endswith(".py"):
            seen = set()
            for match in pattern.finditer(tree[path]):
                group = 1 if match.group(1) is not None else 2
                seen.add(match.start(group))
                yield Splice(path, match.start(group), match.end(group), new.encode())
            for where, call, starts in python_calls(tree, old):
                name = call.func
                if where != path or not isinstance(name, ast.Attribute) or not isinstance(name.value, ast.Name):
                    continue
                end = starts[(name.end_lineno or 1) - 1] + (name.end_col_offset or 0)
                if name.attr == old and end - len(old.encode()) not in seen:
                    yield Splice(path, end - len(old.encode()), end, new.encode())


def _inside(tree: SourceTree, group: FunctionGroup) -> Iterator[Edit]:
    """One edit for the parameters of a function with its schema, one for each local variable."""
    for path, view, function in group.places:
        if function.body is None:
            continue
        file = view.file
        used = {file.text(i) for i in range(function.first, function.last + 1) if file.kind(i) == "word"}
        renamed: dict[str, str] = {}
        order: list[tuple[str, str]] = []
        for parameter in function.parameters:
            if parameter.name is not None:
                old = file.text(parameter.name)
                new = _short(old, plain_type(file.source(parameter.first, parameter.type_last)), used)
                order.append((old, new))
                if new != old:
                    renamed[old] = new
                    used.add(new)
        if renamed:
            ops = list(_renamed(path, view, function.open, function.last, renamed))
            if len(order) == group.size:
                ops += _schema_names(tree, group, [new for _, new in order])
            yield Edit(tuple(ops), f"parameters of {group.name}")
        for statement in statements_in(function.body):
            for old in statement.declares:
                types = [file.text(i) for i in range(statement.first, min(statement.last, statement.first + 8))]
                kind = (
                    "at::Tensor"
                    if "Tensor" in types or "auto" in types
                    else next((t for t in types if t in _BY_TYPE), "")
                )
                new = _short(old, kind, used)
                if new != old:
                    used.add(new)
                    yield Edit(tuple(_renamed(path, view, function.open, function.last, {old: new})), f"variable {old}")


def _short(old: str, type_name: str, used: set[str]) -> str:
    if len(old) == 1 or old in _TELLING:
        return old
    return next((n for n in _BY_TYPE.get(type_name, ()) if n not in used), old)


def _renamed(path: str, view: Outline, first: int, last: int, names: dict[str, str]) -> Iterator[Splice]:
    file = view.file
    for i in range(first, last + 1):
        token = file.tokens[i]
        if token.kind == "word" and token.text in names and file.text(i - 1) not in (".", "->", "::"):
            yield Splice(path, token.start, token.end, names[token.text].encode())


def _schema_names(tree: SourceTree, group: FunctionGroup, names: list[str]) -> Iterator[Splice]:
    for line in group.registered:
        schema = line.schema
        if schema is None or len(schema.arguments) != len(names):
            continue
        olds = dict(zip(schema.names, names, strict=True))
        for (begin, end), old in zip(schema.arguments, schema.names, strict=True):
            stop = begin + len(line.text[begin:end].split("=")[0].rstrip())
            yield line.with_text(olds[old], stop - len(old), stop)
        for path, call, starts in python_calls(tree, line.op):
            for keyword in call.keywords:
                if keyword.arg in olds:
                    start = starts[keyword.lineno - 1] + keyword.col_offset
                    yield Splice(path, start, start + len(keyword.arg.encode()), olds[keyword.arg].encode())


def _classes(tree: SourceTree, taken: set[str]) -> Iterator[Edit]:
    names = dict.fromkeys(s.name for _, v in cxx_files(tree) for s in v.scopes if s.kind == "class" and len(s.name) > 2)
    free = [n for n in ("Op", "A", "B", "C", "D") if n not in taken]
    for old in names:
        if free:
            new = free.pop(0)
            yield Edit(tuple(_identifiers(tree, old, new)), f"class {old} to {new}")


def _module(tree: SourceTree, old: str) -> Iterator[Edit]:
    pattern = re.compile(rb"(?<![\w.])(PyInit_)?%s\b(?!\s*=[^=])" % re.escape(old.encode()))
    ops = [
        Splice(path, match.end(1) if match.group(1) else match.start(), match.end(), MODULE.encode())
        for path in tree
        if path.endswith(".py") or is_cxx(path)
        for match in pattern.finditer(tree[path])
    ]
    if ops:
        yield Edit(tuple(ops), f"module {old} to {MODULE}")
