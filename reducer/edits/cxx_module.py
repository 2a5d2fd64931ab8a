"""Shorter forms of what makes C++ functions known to Python: op registrations and the module's initialiser."""

from __future__ import annotations

from collections.abc import Iterator

from reducer.edits.cxx_functions import cxx_files, is_registration, span
from reducer.edits.edit import Edit, Splice
from reducer.edits.op_schemas import Registration, registrations
from reducer.edits.passes import Proposal, proposal
from reducer.syntax.cxx import includes_of
from reducer.syntax.cxx_outline import Function, Outline
from reducer.tree import SourceTree

EMPTY_MODULE = b"PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n"
_COVERED = {
    "Python.h",
    "pybind11/pybind11.h",
    "ATen/ATen.h",
    "ATen/Tensor.h",
    "torch/all.h",
    "torch/torch.h",
    "torch/types.h",
}
"""Headers that ``torch/extension.h`` stands for on both sides."""


class CxxModule:
    """Registrations merged (``m.def(schema, &f)``), empty blocks away, a hand-written ``PyInit_…`` by an empty
    pybind11 module, framework headers by ``torch/extension.h``. A sweep.

    ``importable``: the module must stay importable; when false, dropping its initialiser is offered first.
    """

    name = "cxx-module"

    def __init__(self, importable: bool = True) -> None:
        self._importable = importable

    def propose(self, tree: SourceTree) -> Proposal:
        edits: list[Edit] = []
        for path, view in cxx_files(tree):
            edits += self._initialiser(path, view)
        edits += self._merged(registrations(tree))
        for path, view in cxx_files(tree):
            edits += _empty_blocks(path, view)
            edits += _headers(path, view)
        return proposal(edits, "sweep")

    def _initialiser(self, path: str, view: Outline) -> Iterator[Edit]:
        file = view.file
        modules = [f for f in view.functions if is_registration(view, f) == "module" and f.body is not None]
        bound = any(file.text(f.name) == "PYBIND11_MODULE" for f in view.functions)
        if bound and not modules:
            for function in view.functions:
                empty = function.body is not None and not function.body.statements
                if not self._importable and file.text(function.name) == "PYBIND11_MODULE" and empty:
                    yield Edit((_whole(path, view, function),), "empty module", 40)
            return
        if not modules:
            return
        gone = tuple(_whole(path, view, f) for f in modules)
        gain = sum(s.end - s.start for s in gone)
        if not self._importable:
            yield Edit(gone, "module initialiser", gain)
        end = Splice(path, len(file.content), len(file.content), b"\n" + EMPTY_MODULE)
        ops = gone if bound else (*gone, end)
        included = _includes(view)
        if "torch/extension.h" in included.values():
            yield Edit(ops, "initialiser to an empty pybind11 module", gain)
        else:
            headers = _swap_headers(path, view, included) or (Splice(path, 0, 0, b"#include <torch/extension.h>\n"),)
            yield Edit((*ops, *headers), "initialiser to an empty pybind11 module", gain)
        if len(modules) == 1:
            shorter = _short_initialiser(path, view, modules[0])
            if shorter is not None:
                yield shorter

    def _merged(self, found: list[Registration]) -> Iterator[Edit]:
        for schema in found:
            if schema.kind != "def" or not schema.has_schema or schema.function or len(schema.arguments) != 1:
                continue
            impls = [r for r in found if r.kind == "impl" and (r.namespace, r.op) == (schema.namespace, schema.op)]
            if len(impls) != 1 or not impls[0].function or len(impls[0].arguments) < 2:
                continue
            impl = impls[0]
            file = impl.view.file
            target = file.content[slice(*file.extent(*impl.arguments[1]))]
            closing = schema.view.file.tokens[schema.arguments[-1][1]]
            text = schema.view.file.content[closing.start : closing.end] + b", " + target
            body = impl.block.body
            alone = body is not None and len(body.statements) == 1
            first, last = (impl.block.first, impl.block.last) if alone else (impl.statement.first, impl.statement.last)
            cut = Splice(impl.path, *span(file, first, last))
            defining = Splice(schema.path, closing.start, closing.end, text)
            late = impl.path == schema.path and _defined_after(schema, impl)
            if not late:
                yield Edit((defining, cut), f"registrations of {schema.op} in one", cut.end - cut.start)
                continue
            block = schema.block.body
            if block is None or len(block.statements) != 1 or not alone:
                continue
            # the function stands between the two blocks: the schema's block moves to where the other one was
            whole = Splice(schema.path, *span(file, schema.block.first, schema.block.last))
            start, end = file.extent(schema.block.first, schema.block.last)
            moved = file.content[start : closing.start] + text + file.content[closing.end : end]
            place = Splice(impl.path, *file.extent(impl.block.first, impl.block.last), moved)
            yield Edit((whole, place), f"registrations of {schema.op} in one", cut.end - cut.start)


def _defined_after(schema: Registration, impl: Registration) -> bool:
    """True when the function is first seen behind the schema's block."""
    file = schema.view.file
    places = [f.name for f in schema.view.functions if file.text(f.name) == impl.function]
    return bool(places) and min(places) > schema.block.last


def _whole(path: str, view: Outline, function: Function) -> Splice:
    """The function with the ``extern "C" { }`` around it when that holds nothing else."""
    first, last = function.first, function.last
    for scope in reversed(function.scopes):
        if scope.kind == "extern" and first == scope.open + 1 and last == scope.close - 1:
            first, last = scope.first, scope.last
    return Splice(path, *span(view.file, first, last))


def _short_initialiser(path: str, view: Outline, function: Function) -> Edit | None:
    file = view.file
    if function.body is None or len(function.body.statements) < 1:
        return None
    name = file.text(function.name)
    text = (
        f"PyMODINIT_FUNC {name}() {{\n"
        f'  static PyModuleDef def = {{PyModuleDef_HEAD_INIT, "{name.removeprefix("PyInit_")}"}};\n'
        "  return PyModule_Create(&def);\n}\n"
    ).encode()
    whole = _whole(path, view, function)
    if len(text.split()) >= len(file.content[whole.start : whole.end].split()):
        return None
    return Edit((Splice(path, whole.start, whole.end, text),), "short module initialiser", whole.end - whole.start)


def _includes(view: Outline) -> dict[int, str]:
    """The header named by each ``#include``, by token."""
    file = view.file
    lines = [i for i in range(len(file)) if file.kind(i) == "directive"]
    return {i: name for i in lines for name, *_ in includes_of(file.content[slice(*file.extent(i, i))])}


def _swap_headers(path: str, view: Outline, included: dict[int, str]) -> tuple[Splice, ...]:
    """``torch/extension.h`` in place of the first header that it covers; the others away."""
    covered = [i for i, name in included.items() if name in _COVERED]
    if not covered:
        return ()
    file = view.file
    first = file.tokens[covered[0]]
    ops = [Splice(path, first.start, first.end, b"#include <torch/extension.h>")]
    ops += [Splice(path, *span(file, i, i)) for i in covered[1:]]
    return tuple(ops)


def _headers(path: str, view: Outline) -> Iterator[Edit]:
    """Headers away that ``torch/extension.h`` covers; or all framework headers to that one."""
    included = _includes(view)
    covered = [i for i, name in included.items() if name in _COVERED]
    present = [i for i, name in included.items() if name == "torch/extension.h"]
    if present and covered:
        ops = tuple(Splice(path, *span(view.file, i, i)) for i in covered)
        yield Edit(ops, "headers that torch/extension.h covers", sum(o.end - o.start for o in ops))
    elif len(covered) > 1 and (ops := _swap_headers(path, view, included)):
        yield Edit(ops, "framework headers to torch/extension.h", 20)


def _empty_blocks(path: str, view: Outline) -> Iterator[Edit]:
    for function in view.functions:
        name = view.file.text(function.name)
        if name.startswith("TORCH_LIBRARY") and function.body is not None and not function.body.statements:
            whole = _whole(path, view, function)
            yield Edit((whole,), f"empty {name}", whole.end - whole.start)
