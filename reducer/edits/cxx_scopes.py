"""Passes that flatten C++: namespaces and classes of static functions unwrapped, templates instantiated."""

from __future__ import annotations

from collections.abc import Iterator

from reducer.edits.cxx_functions import cxx_files, span
from reducer.edits.edit import Edit, Splice
from reducer.edits.passes import Proposal, proposal
from reducer.syntax.cxx_outline import Function, Outline, Scope
from reducer.tree import SourceTree

_FRAMEWORK = {"at", "c10", "torch", "std", "paddle", "phi", "pybind11", "py", "cuda", "native", "autograd", "nn"}


class CxxScopes:
    """``namespace n { }`` and ``struct S { static … };`` unwrapped with the references fixed; function templates
    instantiated with the one type they are used with. A sweep, everything at once first."""

    name = "cxx-scopes"

    def propose(self, tree: SourceTree) -> Proposal:
        views = list(cxx_files(tree))
        scopes = [(path, view, scope) for path, view in views for scope in view.scopes]
        names = dict.fromkeys(s.name for _, _, s in scopes if s.kind == "namespace" and _own(s.name))
        edits = [_namespace(views, scopes, name) for name in names]
        for path, view, scope in scopes:
            if scope.kind == "extern":
                edits.append(Edit(_braces(path, view, scope), "linkage block", 10))
            elif scope.kind == "class":
                edits += _static_class(views, path, view, scope)
        for path, view in views:
            for function in view.functions:
                edits += _instantiated(views, path, view, function)
        return proposal(edits, "sweep")


def _own(name: str) -> bool:
    return not set(name.split("::")) & _FRAMEWORK


def _braces(path: str, view: Outline, scope: Scope) -> tuple[Splice, ...]:
    return (
        Splice(path, *span(view.file, scope.first, scope.open)),
        Splice(path, *span(view.file, scope.close, scope.last)),
    )


def _namespace(views: list[tuple[str, Outline]], scopes: list[tuple[str, Outline, Scope]], name: str) -> Edit:
    ops = [op for path, view, s in scopes if s.kind == "namespace" and s.name == name for op in _braces(path, view, s)]
    for path, view in views:
        ops += _unqualified(path, view, name.split("::")) if name else ()
    return Edit(tuple(ops), f"namespace {name or '(anonymous)'}", sum(o.end - o.start for o in ops))


def _unqualified(path: str, view: Outline, parts: list[str]) -> Iterator[Splice]:
    """Cuts of ``a::b::`` and ``b::`` where they qualify something; ``using namespace a::b;`` goes whole."""
    file = view.file
    position = 0
    while position < len(file):
        matched = 0
        if file.text(position) in parts and file.text(position - 1) not in (".", "->"):
            start = parts.index(file.text(position))
            while start + matched < len(parts) and file.text(position + 2 * matched) == parts[start + matched]:
                matched += 1
                if file.text(position + 2 * matched - 1) != "::":
                    break
            complete = start + matched == len(parts)
            last = position + 2 * matched - 1
            begin = position - 1 if file.text(position - 1) == "::" and file.kind(position - 2) != "word" else position
            if complete and file.text(begin - 1) != "::":
                if file.text(last) == "::":
                    yield Splice(path, file.tokens[begin].start, file.tokens[last + 1].start)
                elif file.text(begin - 1) == "namespace" and file.text(begin - 2) == "using":
                    yield Splice(path, *span(file, begin - 2, last))
        position += max(1, 2 * matched - 1)


def _static_class(views: list[tuple[str, Outline]], path: str, view: Outline, scope: Scope) -> Iterator[Edit]:
    """A class of static functions only, without bases, to its functions."""
    file = view.file
    inside = [f for f in view.functions if f.scopes and f.scopes[-1] is scope]
    data = [d for d in view.declarations if d.scopes and d.scopes[-1] is scope]
    plain = ":" not in {file.text(i) for i in range(scope.first, scope.open)} and file.text(scope.first) != "template"
    if not inside or data or not plain or not scope.name:
        return
    ops = list(_braces(path, view, scope))
    for function in inside:
        at = next((i for i in range(function.first, function.name) if file.text(i) == "static"), None)
        if at is None:
            return
        ops.append(Splice(path, file.tokens[at].start, file.tokens[at + 1].start))
    for i in range(scope.open, scope.close):
        if file.text(i) in ("public", "private", "protected") and file.text(i + 1) == ":":
            ops.append(Splice(path, *span(file, i, i + 1)))
    for other, outline in views:
        ops += _unqualified(other, outline, [scope.name])
    yield Edit(tuple(ops), f"class {scope.name} to functions", sum(o.end - o.start for o in ops))


def _instantiated(views: list[tuple[str, Outline]], path: str, view: Outline, function: Function) -> Iterator[Edit]:
    """A function template by a function, for the types of its first explicit use, or ``float``."""
    file = view.file
    if function.template is None or function.body is None:
        return
    parameters = [
        file.text(b) for a, b in file.split(function.template[0] + 2, function.template[1] - 1) if _is_type(view, a, b)
    ]
    if not parameters or len(parameters) != len(file.split(function.template[0] + 2, function.template[1] - 1)):
        return
    name = file.text(function.name)
    chosen: list[str] = []
    ops: list[Splice] = []
    for other, outline in views:
        tokens = outline.file
        for i in range(len(tokens)):
            if tokens.text(i) == name and tokens.text(i + 1) == "<" and (end := tokens.angle_end(i + 1)) is not None:
                given = [tokens.source(a, b) for a, b in tokens.split(i + 2, end - 1)]
                chosen = chosen or (given if len(given) == len(parameters) else [])
                ops.append(Splice(other, *tokens.extent(i + 1, end)))
    header = Splice(path, file.tokens[function.template[0]].start, file.tokens[function.template[1] + 1].start)
    for types in dict.fromkeys([tuple(chosen or ["float"] * len(parameters)), ("float",) * len(parameters)]):
        replaced = dict(zip(parameters, types, strict=True))
        inside = [
            Splice(path, *file.extent(i, i), replaced[file.text(i)].encode())
            for i in range(function.template[1] + 1, function.last + 1)
            if file.text(i) in replaced and file.text(i) != replaced[file.text(i)]
        ]
        yield Edit((header, *inside, *ops), f"{name} for {', '.join(types)}", header.end - header.start)


def _is_type(view: Outline, first: int, last: int) -> bool:
    return last == first + 1 and view.file.text(first) in ("typename", "class") and view.file.kind(last) == "word"
