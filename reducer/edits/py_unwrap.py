"""Take compound statements apart: keep one of their blocks, cut the others."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from reducer.edits.edit import Edit, EditConflict, Splice
from reducer.edits.passes import Proposal, nothing, proposal
from reducer.syntax.python import PyModule, pinned_nodes, python_modules
from reducer.tree import SourceTree


class PyUnwrap:
    """Alternatives for every ``if``, ``for``, ``while``, ``with`` and ``try``: its body in its place (a loop with its
    first turn, a ``with`` with its assignment), or one of its parts gone."""

    name = "py_unwrap"

    def propose(self, tree: SourceTree) -> Proposal:
        edits: list[Edit] = []
        for module in python_modules(tree):
            fixed = pinned_nodes(module)
            for node in ast.walk(module.tree):
                if isinstance(node, ast.stmt) and node not in fixed:
                    edits += _alternatives(module, node)
        return proposal(edits, "sweep") if edits else nothing()


def _alternatives(module: PyModule, node: ast.stmt) -> Iterator[Edit]:
    kind = type(node).__name__.lower()
    for splices, what in _rewrites(module, node):
        weight = sum(s.end - s.start - len(s.text) for s in splices)
        yield Edit(tuple(splices), f"{what} at line {node.lineno} ({kind})", max(1, weight))


def _rewrites(module: PyModule, node: ast.stmt) -> Iterator[tuple[list[Splice], str]]:
    if isinstance(node, ast.If):
        elif_ = module.source.startswith(b"elif", module.start(node))
        if not elif_:
            yield from _keep(module, node, node.body, "", "body of if")
            if node.orelse:
                yield from _keep_else(module, node)
        if node.orelse and not _is_elif(module, node.orelse):
            yield from _cut_part(module, node.body, node.orelse, "else")
    elif isinstance(node, ast.For | ast.AsyncFor):
        for value in _first_values(module, node.iter):
            assign = f"{module.code(node.target)} = {value}\n"
            yield from _keep(module, node, node.body, assign, "first turn of loop")
        yield from _keep(module, node, node.body, "", "body of loop")
        if node.orelse:
            yield from _cut_part(module, node.body, node.orelse, "else")
    elif isinstance(node, ast.While):
        yield from _keep(module, node, node.body, "", "body of loop")
        if node.orelse:
            yield from _cut_part(module, node.body, node.orelse, "else")
    elif isinstance(node, ast.With | ast.AsyncWith):
        yield from _keep(module, node, node.body, "", "body of with")
        assigns = [
            f"{module.code(i.optional_vars)} = {module.code(i.context_expr)}\n" for i in node.items if i.optional_vars
        ]
        if assigns:
            yield from _keep(module, node, node.body, "".join(assigns), "body of with")
    elif isinstance(node, ast.Try):
        yield from _keep(module, node, node.body, "", "body of try")
        for handler in node.handlers:
            yield from _keep(module, node, handler.body, "", "handler of try")
        if node.orelse:
            yield from _keep(module, node, [*node.body, *node.orelse], "", "body and else of try", node.orelse)
            yield from _cut_part(module, [*node.body, *node.handlers], node.orelse, "else")
        if node.finalbody:
            yield from _keep(module, node, node.finalbody, "", "finally of try")
            if node.handlers:
                yield from _cut_part(module, [*node.handlers, *node.orelse], node.finalbody, "finally")
        if len(node.handlers) > 1:
            for handler in node.handlers:
                start = module.line_start(module.start(handler))
                yield [Splice(module.path, start, module.next_line(module.end(handler)))], "handler"


def _is_elif(module: PyModule, block: list[ast.stmt]) -> bool:
    return (
        len(block) == 1 and isinstance(block[0], ast.If) and module.source.startswith(b"elif", module.start(block[0]))
    )


def _alone(module: PyModule, node: ast.stmt) -> bool:
    """The statement begins its line and nothing but a comment follows it on its last one."""
    start, end = module.span(node)
    line = module.line_start(start)
    following = module.token_after(end)
    return not module.source[line:start].strip(b" \t\f") and not (following and following.text == ";")


def _keep(
    module: PyModule,
    node: ast.stmt,
    block: list[ast.stmt],
    prefix: str,
    what: str,
    second: list[ast.stmt] | None = None,
) -> Iterator[tuple[list[Splice], str]]:
    """The block in the statement's place, after ``prefix`` (whole lines). ``second``: the tail of ``block`` that
    stands behind another header."""
    if not _alone(module, node):
        return
    try:
        start, end = module.line_start(module.start(node)), module.next_line(module.end(node))
        indent = module.indent(node)
        lines = [indent + module.encode(line + "\n") for line in prefix.splitlines()]
        head = block if second is None else block[: len(block) - len(second)]
        splices = _move(module, head, indent)
        first, stop = _extent(module, head)
        splices.append(Splice(module.path, start, first, b"".join(lines)))
        if second is not None:
            splices += _move(module, second, indent)
            begin, finish = _extent(module, second)
            splices.append(Splice(module.path, stop, begin))
            stop = finish
        if stop < end:
            splices.append(Splice(module.path, stop, end))
    except EditConflict:
        return
    yield splices, what


def _keep_else(module: PyModule, node: ast.If) -> Iterator[tuple[list[Splice], str]]:
    if not _is_elif(module, node.orelse):
        yield from _keep(module, node, node.orelse, "", "else of if")
        return
    start, elif_ = module.start(node), module.start(node.orelse[0])
    yield [Splice(module.path, start, elif_ + 2)], "elif of if"  # what is left of "elif" is "if"


def _extent(module: PyModule, block: list[ast.stmt]) -> tuple[int, int]:
    """The whole lines of a block. Raises EditConflict when it stands on its header's line."""
    start = module.line_start(module.start(block[0]))
    if module.source[start : module.start(block[0])].strip(b" \t\f"):
        raise EditConflict("the block stands on its header's line")
    return start, module.next_line(module.end(block[-1]))


def _move(module: PyModule, block: list[ast.stmt], indent: bytes) -> list[Splice]:
    """Cut the columns between the statement's indentation and the block's from every line of the block.

    The cut columns of nested statements are disjoint, so that two levels can be unwrapped at once. Lines inside
    strings keep their text.
    """
    start, end = _extent(module, block)
    depth = len(module.indent(block[0]))
    strings = [(t.start, t.end) for t in module.tokens if start <= t.start < end and "\n" in t.text]
    splices = []
    for line in module.line_starts_in(start, end):
        if any(low < line < high for low, high in strings):
            continue
        content = module.source[line : module.next_line(line)]
        lead = len(content) - len(content.lstrip(b" \t\f"))
        low, high = min(len(indent), lead), min(depth, lead)
        if low < high:
            splices.append(Splice(module.path, line + low, line + high))
    return splices


def _cut_part(
    module: PyModule, before: Sequence[ast.stmt | ast.excepthandler], block: list[ast.stmt], keyword: str
) -> Iterator[tuple[list[Splice], str]]:
    """Cut ``keyword: block``, which follows ``before``."""
    token = module.token_after(module.end(before[-1]))
    while token is not None and token.text != keyword and token.start < module.start(block[0]):
        token = module.token_after(token.end)
    if token is None or token.text != keyword:
        return
    start = module.line_start(token.start)
    if module.source[start : token.start].strip(b" \t\f"):
        return
    yield [Splice(module.path, start, module.next_line(module.end(block[-1])))], keyword


def _first_values(module: PyModule, iterable: ast.expr) -> Iterator[str]:
    """Source text for the first item of an iterable, the plainest first."""
    if isinstance(iterable, ast.List | ast.Tuple | ast.Set) and iterable.elts:
        yield module.code(iterable.elts[0])
        return
    if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) and iterable.args:
        name, first = iterable.func.id, iterable.args[0]
        if name == "range":
            yield module.code(first) if len(iterable.args) > 1 else "0"
            return
        if name == "enumerate":
            yield from (f"0, {value}" for value in _first_values(module, first))
            return
        if name == "zip" and len(iterable.args) > 1:
            values = [next(_first_values(module, a)) for a in iterable.args]
            yield ", ".join(values)
            return
        if name in ("list", "tuple", "reversed", "sorted", "iter") and len(iterable.args) == 1:
            yield from _first_values(module, first)
            return
    yield f"next(iter({module.code(iterable)}))"
