"""The parameters of one pytest node as source: which elements of its ``parametrize`` marks the id stands for."""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reducer.edits.fold_sources import CannotFold, marks


@dataclass
class Axis:
    """One ``parametrize`` mark, or the ``params`` of one fixture (then ``names`` is the fixture's)."""

    names: list[str]
    values: ast.expr
    ids: ast.expr | None = None
    indirect: frozenset[str] = frozenset()

    def elements(self, module: Sequence[ast.stmt]) -> list[ast.expr] | None:
        """The elements, when they stand in a literal list (perhaps under a name of the module)."""
        value = self.values
        name = value.id if isinstance(value, ast.Name) else None
        for statement in module:
            if name and isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name:
                value = statement.value
        if isinstance(value, ast.List | ast.Tuple) and not any(isinstance(e, ast.Starred) for e in value.elts):
            return list(value.elts)
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "range":
            try:
                return [ast.Constant(n) for n in range(*(ast.literal_eval(a) for a in value.args))]
            except (ValueError, TypeError):
                return None
        return None


def axes(decorators: Sequence[ast.expr]) -> list[Axis]:
    """The ``parametrize`` marks among decorators, the nearest to the function first. Raises CannotFold."""
    found = []
    for call in reversed(marks(decorators, "parametrize")):
        given = dict(zip(("argnames", "argvalues", "indirect", "ids"), call.args, strict=False))
        given.update({k.arg: k.value for k in call.keywords if k.arg})
        if "argnames" not in given or "argvalues" not in given:
            raise CannotFold("parametrize with arguments that are not written out")
        names = _names(given["argnames"])
        indirect = given.get("indirect")
        found.append(Axis(names, given["argvalues"], given.get("ids"), _indirect(indirect, names)))
    return found


def _names(node: ast.expr) -> list[str]:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        raise CannotFold("parametrize over computed names") from None
    names = value.split(",") if isinstance(value, str) else value
    return [str(name).strip() for name in names if str(name).strip()]


def _indirect(node: ast.expr | None, names: list[str]) -> frozenset[str]:
    if node is None:
        return frozenset()
    try:
        value = ast.literal_eval(node)
    except ValueError:
        raise CannotFold("computed indirect=") from None
    return frozenset(names) if value is True else frozenset(value or ())


def choose(
    found: Sequence[Axis], text: str | None, indices: Mapping[str, int] | None, module: Sequence[ast.stmt]
) -> dict[str, ast.expr]:
    """The value of each parametrised name. ``indices`` (recorded at run time) decide; else the id's text does.

    Raises CannotFold when neither tells.
    """
    if not found:
        return {}
    if indices and all(name in indices for axis in found for name in axis.names):
        picked = [indices[axis.names[0]] for axis in found]
    elif text is None:
        raise CannotFold("a parametrised test without its parameters")
    else:
        picked = _match(found, text, module)
    values: dict[str, ast.expr] = {}
    for axis, index in zip(found, picked, strict=True):
        values.update(_values(axis, index, module))
    return values


def _values(axis: Axis, index: int, module: Sequence[ast.stmt]) -> dict[str, ast.expr]:
    elements = axis.elements(module)
    if elements is None:
        element: ast.expr = ast.Subscript(_call("list", axis.values), ast.Constant(index), ast.Load())
    elif index < len(elements):
        element = elements[index]
    else:
        raise CannotFold("an index outside the parameter list")
    if isinstance(element, ast.Call) and ast.unparse(element.func) in ("pytest.param", "param"):
        return dict(zip(axis.names, copy.deepcopy(element.args), strict=False))
    if len(axis.names) == 1:
        return {axis.names[0]: copy.deepcopy(element)}
    if isinstance(element, ast.Tuple | ast.List) and len(element.elts) == len(axis.names):
        return dict(zip(axis.names, copy.deepcopy(element.elts), strict=True))
    return {
        name: ast.Subscript(copy.deepcopy(element), ast.Constant(place), ast.Load())
        for place, name in enumerate(axis.names)
    }


def _call(name: str, argument: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [copy.deepcopy(argument)], [])


# -- ids ------------------------------------------------------------------------------------------------------------


def _match(found: Sequence[Axis], text: str, module: Sequence[ast.stmt]) -> list[int]:
    """The index on each axis so that the joined ids are the node's; the order of axes in an id is pytest's affair."""
    tables = [list(_ids(axis, module)) for axis in found]
    if len(found) > 5 or not all(tables):
        raise CannotFold("parameters that cannot be told from the id")
    for order in itertools.permutations(range(len(found))):
        picked = _walk(text, [tables[i] for i in order])
        if picked is not None:
            return [picked[order.index(i)] for i in range(len(found))]
    raise CannotFold(f"no parameters have the id {text}")


def _walk(text: str, tables: list[list[set[str]]]) -> list[int] | None:
    if not tables:
        return [] if text == "" else None
    for index, names in enumerate(tables[0]):
        for name in names:
            if len(tables) == 1:
                if text == name:
                    return [index]
            elif text.startswith(name + "-"):
                rest = _walk(text[len(name) + 1 :], tables[1:])
                if rest is not None:
                    return [index, *rest]
    return None


def _ids(axis: Axis, module: Sequence[ast.stmt]) -> Iterator[set[str]]:
    """For each element the ids that pytest may have given it."""
    elements = axis.elements(module)
    given: list[object] = []
    if isinstance(axis.ids, ast.List | ast.Tuple):
        given = [e.value if isinstance(e, ast.Constant) else None for e in axis.ids.elts]
    for index, element in enumerate(elements or ()):
        if index < len(given) and given[index] is not None:
            yield {str(given[index])}
            continue
        parts = [element]
        if isinstance(element, ast.Call) and ast.unparse(element.func) in ("pytest.param", "param"):
            own = next((k.value for k in element.keywords if k.arg == "id"), None)
            if isinstance(own, ast.Constant):
                yield {str(own.value)}
                continue
            parts = element.args
        elif len(axis.names) > 1 and isinstance(element, ast.Tuple | ast.List):
            parts = element.elts
        choices = [_texts(part, name, index) for part, name in zip(parts, axis.names, strict=False)]
        yield {"-".join(combination) for combination in itertools.product(*choices)}


def _texts(element: ast.expr, name: str, index: int) -> list[str]:
    fallback = f"{name}{index}"
    try:
        value = ast.literal_eval(element)
    except ValueError:
        if isinstance(element, ast.Name | ast.Attribute):
            return [fallback, ast.unparse(element).rpartition(".")[2]]
        return [fallback]
    if isinstance(value, str):
        return [value.encode("unicode_escape").decode("ascii"), value]
    if value is None or isinstance(value, bool | int | float | complex):
        return [str(value)]
    return [fallback]
