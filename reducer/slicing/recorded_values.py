"""Recorded values (see ``reducer.world.recorder.describe``) as torch source code, from plain contents to exact ones."""

from __future__ import annotations

import ast
import itertools
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Described = Mapping[str, Any]
Fill = Literal["zeros", "ones", "arange", "exact"]
SMALL = 16  # contents of at most so many elements are written out


class Unsynthesisable(ValueError):
    """A value or an expression that no source text stands for."""


@dataclass(frozen=True)
class Style:
    """How tensors are written: their contents, a smaller size for each recorded one, and whether what is a parameter
    or takes gradients is written as a plain tensor."""

    fill: Fill
    sizes: Mapping[int, int] = field(default_factory=dict)
    plain: bool = False

    def size(self, recorded: int) -> int:
        return self.sizes.get(recorded, recorded)


def styles(described: Iterable[Described]) -> list[Style]:
    """The ways to write a call's tensors, smallest first: small sizes, then the recorded sizes, then the contents."""
    values = list(described)
    sizes = sorted({size for value in values for tensor in _tensors(value) for size in tensor["shape"] if size > 1})
    smaller = {size: index for index, size in enumerate(sizes, start=2) if index < size}
    found = [Style("zeros", smaller), Style("ones", smaller)] if smaller else []
    found += [Style("zeros"), Style("ones"), Style("arange"), Style("exact")]
    if any(t.get("parameter") or t.get("requires_grad") for value in values for t in _tensors(value)):
        return [replace(style, plain=True) for style in found[:2]] + found
    return found


def _tensors(value: Described) -> Iterator[Described]:
    if value["kind"] == "tensor":
        yield value
    elif value["kind"] in ("list", "tuple", "set", "frozenset", "layers"):
        for item in value["items"]:
            yield from _tensors(item)
    elif value["kind"] == "dict":
        for pair in value["items"]:
            yield from _tensors(pair[1])
    elif value["kind"] == "method":
        yield value["self"]


def source(value: Described, style: Style) -> str:
    """The value as a Python expression over ``torch`` (and ``numpy`` for arrays). Raises Unsynthesisable."""
    kind = value["kind"]
    if kind in ("literal", "name"):
        return str(value["source"])
    if kind == "dtype":
        return f"torch.{value['name']}"
    if kind == "tensor":
        return _tensor(value, style)
    if kind == "method":
        return f"{source(value['self'], style)}.{value['name']}"
    if kind == "slice":
        return f"slice({', '.join(source(item, style) for item in value['items'])})"
    if kind in ("list", "tuple", "set", "frozenset"):
        return _sequence(kind, [source(item, style) for item in value["items"]])
    if kind == "dict":
        return "{" + ", ".join(f"{source(k, style)}: {source(v, style)}" for k, v in value["items"]) + "}"
    if kind == "layer":
        return _layer(value["source"])
    if kind == "layers" and value["name"] == "Sequential":
        return f"torch.nn.Sequential({', '.join(source(item, style) for item in value['items'])})"
    if kind == "array" and "values" in value:
        return f'numpy.array({value["values"]!r}, dtype="{value["dtype"]}")'
    raise Unsynthesisable(f"no source for {kind} {value.get('type', '')}")


def _sequence(kind: str, items: list[str]) -> str:
    inner = ", ".join(items)
    if kind == "list":
        return f"[{inner}]"
    if kind == "tuple":
        return f"({inner},)" if len(items) == 1 else f"({inner})"
    if not items:
        return f"{kind}()"
    return f"{{{inner}}}" if kind == "set" else f"frozenset({{{inner}}})"


def _layer(text: str) -> str:
    """``Linear(in_features=2, out_features=3)`` as a constructor call; words that are no literals are left out."""
    try:
        call = ast.parse(text, mode="eval").body
    except SyntaxError:
        raise Unsynthesisable(f"layer {text}") from None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise Unsynthesisable(f"layer {text}")
    arguments = [ast.unparse(a) for a in call.args if _is_literal(a)]
    arguments += [f"{k.arg}={ast.unparse(k.value)}" for k in call.keywords if k.arg != "dtype" and _is_literal(k.value)]
    name = call.func.id
    if name[-2:] in ("1D", "2D", "3D"):
        name = name[:-1] + "d"
    return f"torch.nn.{name}({', '.join(arguments)})"


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


# -- tensors --------------------------------------------------------------------------------------------------------


def _tensor(value: Described, style: Style) -> str:
    shape = [style.size(size) for size in value["shape"]]
    dtype = str(value["dtype"])
    text = _contents(value, shape, dtype, style)
    if style.plain:
        return text
    if value.get("parameter"):
        return f"torch.nn.Parameter({text})"
    if value.get("requires_grad"):
        return f"{text[:-1]}, requires_grad=True)"
    return text


def _contents(value: Described, shape: list[int], dtype: str, style: Style) -> str:
    floating = dtype.startswith(("float", "bfloat", "complex"))
    known = "values" in value
    if style.fill == "exact":
        if not known:
            raise Unsynthesisable("contents too large")
        return _literal(_rounded(value["values"], dtype), dtype)
    if not floating and known and _count(shape) <= SMALL:
        # Indices, masks and labels carry meaning: their own contents, kept below the sizes they may index.
        bound = min(style.sizes.values(), default=0)
        cropped = _crop(value["values"], shape)
        return _literal(_clip(cropped, bound) if bound and dtype != "bool" else cropped, dtype)
    tail = "" if dtype == "float32" else f", dtype=torch.{dtype}"
    dimensions = ", ".join(map(str, shape))
    if style.fill == "arange" and dtype != "bool" and shape:
        count = _count(shape)
        plain = f"torch.arange({count}{'.0' if floating else ''}{'' if dtype in ('float32', 'int64') else tail})"
        return plain if len(shape) == 1 else f"{plain}.reshape({dimensions})"
    fill = "ones" if style.fill == "arange" else style.fill
    if not shape:
        return _literal(_scalar(dtype, 0 if fill == "zeros" else 1), dtype)
    return f"torch.{fill}({dimensions}{tail})"


def _scalar(dtype: str, number: int) -> object:
    if dtype == "bool":
        return bool(number)
    return float(number) if dtype.startswith(("float", "bfloat", "complex")) else number


def _literal(values: object, dtype: str) -> str:
    if _empty(values):
        raise Unsynthesisable("a literal cannot tell an empty tensor's shape")
    natural = dtype in ("float32", "int64", "bool", "complex64")
    return f"torch.tensor({values!r}{'' if natural else f', dtype=torch.{dtype}'})"


def _empty(values: object) -> bool:
    return isinstance(values, list) and (not values or all(_empty(v) for v in values))


def _count(shape: list[int]) -> int:
    product = 1
    for size in shape:
        product *= size
    return product


def _crop(values: object, shape: list[int]) -> object:
    """The first elements along each axis."""
    if isinstance(values, list) and shape:
        return [_crop(item, shape[1:]) for item in itertools.islice(values, shape[0])]
    return values


def _clip(values: object, bound: int) -> object:
    if isinstance(values, list):
        return [_clip(item, bound) for item in values]
    return min(values, bound - 1) if isinstance(values, int) else values


class _Source(str):
    """Text whose repr is itself: a number in the spelling wanted."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _rounded(values: object, dtype: str) -> object:
    if isinstance(values, list):
        return [_rounded(item, dtype) for item in values]
    if isinstance(values, float):
        if values != values or values in (float("inf"), float("-inf")):
            return _Source(f'float("{values}")')
        return _Source(_shortest(values)) if dtype != "float64" else values
    if isinstance(values, str):  # a number that JSON has not: complex
        return _Source(values)
    return values


def _shortest(value: float) -> str:
    """The shortest decimal that is the same single-precision number."""
    for digits in range(1, 10):
        text = repr(float(f"{value:.{digits}g}"))
        if struct.pack("f", float(text)) == struct.pack("f", value):
            return text
    return repr(value)
