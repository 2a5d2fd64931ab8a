"""Passes over C++ function signatures, coupled with call sites, op schemas and plain Python callers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reducer.edits.cxx_functions import (
    cxx_files,
    is_inherited,
    is_registration,
    plain_type,
    return_type,
    returns_of,
    span,
)
from reducer.edits.cxx_typed import all_types
from reducer.edits.edit import Edit, Splice
from reducer.edits.op_schemas import (
    Registration,
    list_cuts,
    python_calls,
    registrations,
    schema_without,
    without_arguments,
)
from reducer.edits.passes import Proposal, proposal
from reducer.syntax.cxx import CxxParser
from reducer.syntax.cxx_outline import Function, Outline
from reducer.syntax.cxx_statements import Lambda
from reducer.syntax.cxx_types import TypesByPlace
from reducer.tree import SourceTree

SCHEMA_TYPES = {
    "at::Tensor": "Tensor", "int64_t": "int", "double": "float", "bool": "bool", "std::string": "str", "void": "()",
}  # fmt: skip
_NATURAL = {
    "long": "int64_t",
    "int": "int64_t",
    "double": "double",
    "float": "double",
    "bool": "bool",
    "at::Tensor": "at::Tensor",
}


@dataclass(slots=True)
class FunctionGroup:
    """All declarations and definitions of one function name with one number of parameters."""

    name: str
    places: list[tuple[str, Outline, Function]]
    registered: list[Registration]  # its schemas' lines

    @property
    def size(self) -> int:
        return len(self.places[0][2].parameters)


def callables(tree: SourceTree) -> list[FunctionGroup]:
    """The functions of the tree that have a body and no base to obey; overloads with equal parameter counts are one."""
    groups: dict[tuple[str, int], list[tuple[str, Outline, Function]]] = {}
    for path, view in cxx_files(tree):
        for function in view.functions:
            if is_registration(view, function) or is_inherited(view, function):
                continue
            if view.file.text(function.name - 1) != "operator":
                key = (view.file.text(function.name), len(function.parameters))
                groups.setdefault(key, []).append((path, view, function))
    known = registrations(tree)
    found: list[FunctionGroup] = []
    for (name, _), places in groups.items():
        if any(f.body is not None for _, _, f in places):
            lines = [r for r in known if r.function == name]
            ops = {(r.namespace, r.op) for r in lines}
            schemas = [r for r in known if r.kind == "def" and (r.namespace, r.op) in ops]
            found.append(FunctionGroup(name, places, schemas))
    return found


class CxxSignatures:
    """Unused parameters away (with arguments, schema items and Python arguments), results that carry nothing to
    ``void``, result types to what is returned, optional parameters to plain ones. A sweep."""

    name = "cxx-signatures"

    def __init__(self, parser: CxxParser | None = None) -> None:
        self._parser = parser

    def propose(self, tree: SourceTree) -> Proposal:
        types = all_types(self._parser, tree)
        edits: list[Edit] = []
        for function in callables(tree):
            edits += _parameters(tree, function)
            edits += _to_void(tree, function)
            edits += _natural_result(function, types)
            edits += _plain_optionals(function)
        for line in registrations(tree):
            edits += _lambda_parameters(tree, line)
        return proposal(edits, "sweep")


# -- parameters ------------------------------------------------------------------------------------------------------


def _parameters(tree: SourceTree, function: FunctionGroup) -> Iterator[Edit]:
    unused = [i for i in range(function.size) if all(_is_unused(v, f, i) for _, v, f in function.places)]
    groups = [set(unused)] if len(unused) > 1 else []
    for dropped in [*groups, *({i} for i in unused)]:
        ops = _without(tree, function, dropped)
        if ops is not None:
            names = ", ".join(str(i + 1) for i in sorted(dropped))
            yield Edit(tuple(ops), f"parameters {names} of {function.name}", 10 * len(dropped))


def _is_unused(view: Outline, function: Function, index: int) -> bool:
    name = function.parameters[index].name
    if name is None or function.body is None:
        return True
    text = view.file.text(name)
    inside = range(function.close + 1, function.last + 1)
    return not any(view.file.text(i) == text and view.file.text(i - 1) not in (".", "->", "::") for i in inside)


def _without(tree: SourceTree, function: FunctionGroup, dropped: set[int]) -> list[Splice] | None:
    """Splices that take the parameters away everywhere; None when some call cannot be followed."""
    ops: list[Splice] = []
    for path, view, declared in function.places:
        spans = [view.file.extent(p.first, p.last) for p in declared.parameters]
        ops += [Splice(path, a, b) for a, b in list_cuts(spans, [i in dropped for i in range(function.size)])]
    names = {(path, f.name) for path, _, f in function.places}
    for path, view in cxx_files(tree):
        for arguments in _calls(path, view, function.name, names):
            if len(arguments) > function.size:
                return None
            spans = [view.file.extent(a, b) for a, b in arguments]
            ops += [Splice(path, a, b) for a, b in list_cuts(spans, [i in dropped for i in range(len(arguments))])]
    return ops if _schemas_without(tree, function.registered, dropped, ops) else None


def _schemas_without(tree: SourceTree, lines: list[Registration], dropped: set[int], ops: list[Splice]) -> bool:
    """Add what the registered ops' schemas and Python callers need; False when one cannot be followed."""
    for line in lines:
        schema = line.schema
        if line.has_schema:
            text = None if schema is None else schema_without(schema, dropped)
            if text is None:
                return False
            ops.append(line.with_text(text))
        for path, call, starts in python_calls(tree, line.op):
            cuts = without_arguments(path, call, starts, dropped, schema.names if schema is not None else [])
            if cuts is None:
                return False
            ops += cuts
    return True


def _calls(path: str, view: Outline, name: str, declared: set[tuple[str, int]]) -> Iterator[list[tuple[int, int]]]:
    """The arguments (token ranges) of each call of ``name`` in one file."""
    file = view.file
    for i in range(len(file)):
        if file.text(i) != name or (path, i) in declared:
            continue
        opening = i + 1
        if file.text(opening) == "<" and (end := file.angle_end(opening)) is not None:
            opening = end + 1
        if file.text(opening) == "(" and opening in file.match:
            yield [a for a in file.split(opening + 1, file.match[opening] - 1) if a[0] <= a[1]]


def _lambda_parameters(tree: SourceTree, line: Registration) -> Iterator[Edit]:
    """Unused parameters of a lambda that is registered in place."""
    file = line.view.file
    registered: list[Lambda] = [x for x in line.statement.lambdas if any(a == x.first for a, _ in line.arguments)]
    if len(registered) != 1 or registered[0].parameters is None:
        return
    function = registered[0]
    assert function.parameters is not None
    items = [a for a in file.split(*function.parameters) if a[0] <= a[1]]
    body = {file.text(i) for i in range(function.body.open, function.body.close)}
    for index, (_, last) in enumerate(items):
        if file.kind(last) == "word" and file.text(last) not in body:
            cuts = list_cuts([file.extent(a, b) for a, b in items], [i == index for i in range(len(items))])
            ops = [Splice(line.path, a, b) for a, b in cuts]
            if _schemas_without(tree, [line], {index}, ops):
                yield Edit(tuple(ops), f"parameter {index + 1} of {line.op}", 10)


# -- results ---------------------------------------------------------------------------------------------------------


def _to_void(tree: SourceTree, function: FunctionGroup) -> Iterator[Edit]:
    """A result that is only a parameter or a default, in a body that does something else, to ``void``."""
    ops: list[Splice] = []
    for path, view, declared in function.places:
        result = return_type(view, declared)
        if result in (None, "void") or declared.returns is None:
            return
        ops.append(_result_splice(path, view, declared, b"void"))
        if declared.body is None:
            continue
        if len(declared.body.statements) < 2:
            return
        names = {view.file.text(p.name) for p in declared.parameters if p.name is not None}
        for statement in returns_of(view, declared.body):
            value = view.file.source(statement.first + 1, statement.last - 1)
            if value not in names | {"{}", "0", "1", "false", "true"}:
                return
            final = statement is declared.body.statements[-1]
            start, end = span(view.file, statement.first, statement.last)
            ops.append(Splice(path, start, end, b"" if final else b"return;"))
    declared_at = {(path, f.name) for path, _, f in function.places}
    for path, view in cxx_files(tree):
        file = view.file
        for i in range(len(file)):
            if file.text(i) == function.name and file.text(i + 1) == "(" and (path, i) not in declared_at:
                before = i - 1
                while file.text(before) == "::":
                    before -= 2
                if file.text(before) not in (";", "{", "}", ")"):
                    return  # the value is used
    if _schema_results(function, "()", ops):
        yield Edit(tuple(ops), f"{function.name} to void", 20)


def _natural_result(function: FunctionGroup, types: TypesByPlace) -> Iterator[Edit]:
    """The declared result type to the type of what is returned, when it is another one that ops may return."""
    if len(function.places) != 1:
        return
    path, view, declared = function.places[0]
    result = return_type(view, declared)
    if declared.body is None or result is None:
        return
    known: set[str | None] = set()
    for statement in returns_of(view, declared.body):
        if statement.last - 1 > statement.first:
            known.add(types.get((path, *view.file.extent(statement.first + 1, statement.last - 1))))
    only = next(iter(known)) if len(known) == 1 else None
    natural = _NATURAL.get(plain_type(only)) if only else None
    if natural is None or natural == result or _NATURAL.get(result) == natural:
        return
    ops = [_result_splice(path, view, declared, natural.encode())]
    if _schema_results(function, SCHEMA_TYPES[natural], ops):
        yield Edit(tuple(ops), f"{function.name} returns {natural}", 1)


def _result_splice(path: str, view: Outline, function: Function, text: bytes) -> Splice:
    """Replace the result type, not the specifiers before it."""
    assert function.returns is not None
    first, last = function.returns
    while first < last and (
        view.file.text(first) in ("static", "inline", "constexpr", "extern", "virtual")
        or view.file.kind(first) == "string"
    ):
        first += 1
    return Splice(path, *view.file.extent(first, last), text)


def _schema_results(function: FunctionGroup, result: str, ops: list[Splice]) -> bool:
    for line in function.registered:
        if not line.has_schema:
            continue
        schema = line.schema
        if schema is None:
            return False
        ops.append(line.with_text(f"{line.text[: schema.result[0]]} {result}{line.text[schema.result[1] :]}"))
    return True


# -- plain types -----------------------------------------------------------------------------------------------------


def _plain_optionals(function: FunctionGroup) -> Iterator[Edit]:
    for index in range(function.size):
        ops: list[Splice] = []
        for path, view, declared in function.places:
            file = view.file
            parameter = declared.parameters[index]
            at = next((i for i in range(parameter.first, parameter.type_last) if file.text(i) == "optional"), None)
            end = file.angle_end(at + 1) if at is not None else None
            if at is None or end is None:
                break
            first = at
            while file.text(first - 1) == "::" and file.kind(first - 2) == "word" and first - 2 >= parameter.first:
                first -= 2
            ops.append(Splice(path, file.tokens[first].start, file.tokens[at + 2].start))
            ops.append(Splice(path, *view.file.extent(end, end)))
            if parameter.name is not None and parameter.last > parameter.name:
                ops.append(Splice(path, file.tokens[parameter.name].end, file.tokens[parameter.last].end))
            if parameter.name is not None and declared.body is not None:
                ops += _plain_uses(path, view, declared, file.text(parameter.name))
        else:
            if _schemas_plain(function, index, ops):
                yield Edit(tuple(ops), f"plain parameter {index + 1} of {function.name}", 10)


def _plain_uses(path: str, view: Outline, function: Function, name: str) -> Iterator[Splice]:
    """``k.value()``, ``k.value_or(0)``, ``*k`` to ``k``; ``k.has_value()`` to ``true``."""
    file = view.file
    for i in range(function.close + 1, function.last + 1):
        if file.text(i) != name or file.text(i - 1) in (".", "->", "::"):
            continue
        if file.text(i + 1) == "." and file.text(i + 2) in ("value", "value_or", "has_value") and i + 3 in file.match:
            end = file.tokens[file.match[i + 3]].end
            if file.text(i + 2) == "has_value":
                yield Splice(path, file.tokens[i].start, end, b"true")
            else:
                yield Splice(path, file.tokens[i].end, end)
        elif file.text(i - 1) == "*":
            multiplied = file.kind(i - 2) in ("word", "number") or file.text(i - 2) in (")", "]")
            if not multiplied:
                yield Splice(path, *view.file.extent(i - 1, i - 1))


def _schemas_plain(function: FunctionGroup, index: int, ops: list[Splice]) -> bool:
    for line in function.registered:
        if not line.has_schema:
            continue
        schema = line.schema
        if schema is None or index >= len(schema.arguments):
            return False
        begin, end = schema.arguments[index]
        item = line.text[begin:end].split("=")[0].replace("?", "").rstrip()
        ops.append(line.with_text(line.text[:begin] + item + line.text[end:]))
    return True
