"""Comma-separated lists of a Python file: arguments, elements, parameters, bases; and where to cut one item."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from reducer.syntax.python import FunctionNode, PyModule, Token
from reducer.syntax.python_names import parameters


@dataclass(frozen=True, slots=True)
class Item:
    """One item: its node, its span with parentheses, and the range to cut so that it is gone with one comma."""

    node: ast.AST
    start: int
    end: int
    cut: tuple[int, int]


def call_items(module: PyModule, call: ast.Call) -> list[Item]:
    """The arguments of a call in source order; [] for a lone generator that shares the call's parentheses."""
    opening = module.token_after(module.end(call.func))
    while opening is not None and opening.text != "(":
        opening = module.token_after(opening.end)
    nodes = sorted([*call.args, *call.keywords], key=module.start)
    if opening is None or (nodes and module.start(nodes[0]) <= opening.start):
        return []
    return _items(module, [(n, n) for n in nodes], opening.end, module.end(call) - 1)


def literal_items(module: PyModule, node: ast.expr) -> list[Item]:
    """The elements of a list, set, dict (node: the value) or parenthesised tuple of two or more, in source order."""
    if isinstance(node, ast.List | ast.Set):
        pairs = [(e, e) for e in node.elts]
    elif isinstance(node, ast.Tuple):
        if len(node.elts) < 2 or not _bracketed(module, node):
            return []
        pairs = [(e, e) for e in node.elts]
    elif isinstance(node, ast.Dict):
        pairs = [(key or value, value) for key, value in zip(node.keys, node.values, strict=True)]
        if None in node.keys:
            return []
    else:
        return []
    return _items(module, pairs, module.start(node) + 1, module.end(node) - 1)


def parameter_items(module: PyModule, function: FunctionNode) -> list[Item]:
    """The parameters of a function in source order; an item spans its stars, annotation and default too."""
    args = function.args
    opening = _opening(module, function)
    if opening is None:
        return []
    plain = [*args.posonlyargs, *args.args]
    defaults: dict[ast.arg, ast.expr] = dict(zip(reversed(plain), reversed(args.defaults), strict=False))
    defaults |= {a: d for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None}
    spans: list[tuple[ast.AST, int, int]] = []
    for parameter in parameters(function):
        start, end = module.span(parameter)
        default = defaults.get(parameter)
        if default is not None:
            end = module.outer_span(default, end, len(module.source))[1]
            closing = module.token_after(end)
            if closing is not None and closing.text == ")" and end > _closing(module, opening):
                end = module.end(default)
        star = module.token_before(start)
        if star is not None and star.text in ("*", "**") and parameter in (args.vararg, args.kwarg):
            start = star.start
        spans.append((parameter, start, end))
    return _spans(module, spans, _closing(module, opening))


def base_items(module: PyModule, node: ast.ClassDef) -> list[Item]:
    """The bases and keywords of a class, in source order."""
    nodes: list[ast.AST] = sorted([*node.bases, *node.keywords], key=module.start)
    if not nodes:
        return []
    opening = module.token_before(module.start(nodes[0]))
    if opening is None:
        return []
    return _items(module, [(n, n) for n in nodes], opening.end, _closing(module, opening))


def _opening(module: PyModule, function: FunctionNode) -> Token | None:
    token = module.token_after(module.offset(function.lineno, function.col_offset))
    while token is not None and token.text != "(":
        token = module.token_after(token.end)
    return token


def _closing(module: PyModule, opening: Token) -> int:
    """The offset of the bracket that closes ``opening``."""
    depth = 0
    token: Token | None = opening
    while token is not None:
        if token.text in ("(", "[", "{"):
            depth += 1
        elif token.text in (")", "]", "}"):
            depth -= 1
            if depth == 0:
                return token.start
        token = module.token_after(token.end)
    return len(module.source)


def _bracketed(module: PyModule, node: ast.Tuple) -> bool:
    opening = module.token_after(module.start(node))
    return opening is not None and opening.text == "(" and _closing(module, opening) == module.end(node) - 1


def _items(
    module: PyModule, pairs: list[tuple[ast.AST, ast.AST]] | list[tuple[ast.expr, ast.expr]], low: int, high: int
) -> list[Item]:
    spans: list[tuple[ast.AST, int, int]] = []
    for first, last in pairs:
        start = module.outer_span(first, low, high)[0]
        end = module.outer_span(last, start if first is not last else low, high)[1]
        spans.append((first if first is last else last, start, end))
        low = end
    return _spans(module, spans, high)


def _spans(module: PyModule, spans: list[tuple[ast.AST, int, int]], high: int) -> list[Item]:
    found = []
    for position, (node, start, end) in enumerate(spans):
        if position + 1 < len(spans):
            stop = spans[position + 1][1]
            between = module.token_after(end)
            after = module.token_after(between.end) if between is not None else None
            if after is not None and after.start < stop and between is not None:
                stop = between.end  # a bare "*" or "/" follows: only the comma goes
        else:
            stop = end
            comma = module.token_after(end)
            if comma is not None and comma.text == "," and comma.end <= high:
                stop = comma.end
        found.append(Item(node, start, end, (start, stop)))
    return found
