"""Inline variables: a value into its only use, a plain value or an alias into all of its uses."""

from __future__ import annotations

import ast
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reducer.edits.edit import Edit, Op, Splice
from reducer.edits.passes import Proposal, nothing, proposal
from reducer.edits.py_expressions import loose
from reducer.edits.py_signatures import is_plain
from reducer.syntax.python import FUNCTIONS, PyModule, all_blocks, pinned_nodes, python_modules
from reducer.syntax.python_names import bound_names, dotted, local_names
from reducer.tree import SourceTree

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_LATER = (*FUNCTIONS, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LONGEST_LINE = 88
_LONGEST_COPY = 30  # a plain value is copied to several uses only when it is at most this long


@dataclass(frozen=True, slots=True)
class _Variable:
    """``name = value`` and the uses that this assignment alone reaches."""

    statement: ast.stmt
    cut: tuple[int, int]
    name: str
    value: ast.expr
    uses: tuple[ast.Name, ...]


class PyInline:
    """All variables that can be inlined at once in each file, then one by one; assignments that nothing reads become
    plain expressions; tuple assignments become single ones."""

    name = "py_inline"

    def propose(self, tree: SourceTree) -> Proposal:
        edits: list[Edit] = []
        for module in python_modules(tree):
            found = list(_variables(module))
            used = _readable(module, [v for v in found if v.uses])
            if len(used) > 1:
                edits.append(_all_at_once(module, used))
            edits += [_one(module, v) for v in used]
            edits += [_without_target(module, v) for v in found if not v.uses]
            edits += _tuple_assignments(module)
        return proposal(edits, "sweep") if edits else nothing()


def _variables(module: PyModule) -> Iterator[_Variable]:
    fixed = pinned_nodes(module)
    reachable = set(module.expressions)
    index = _Index(module)
    for owner, block in all_blocks(module.tree):
        if isinstance(owner, ast.ClassDef):
            continue
        for position, statement in enumerate(block):
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target, value = statement.targets[0], statement.value
            elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                target, value = statement.target, statement.value
            else:
                continue
            if not isinstance(target, ast.Name) or statement in fixed or target.id.startswith("__"):
                continue
            uses = _reached(index, owner, block, position, target.id, value)
            if uses is None or any(u not in reachable for u in uses):
                continue
            before = block[position - 1] if position else None
            after = block[position + 1] if position + 1 < len(block) else None
            span = module.statement_span(statement, before, after)
            if not isinstance(owner, ast.Module) and len(block) == 1:
                continue
            yield _Variable(statement, span, target.id, value, tuple(uses))


class _Index:
    """Where each name of a module stands, and what its statements bind, looked up once."""

    def __init__(self, module: PyModule) -> None:
        self.module = module
        self._names: dict[str, list[tuple[int, ast.Name]]] = defaultdict(list)
        self._bound: dict[ast.stmt, set[str]] = {}
        self.globals: set[str] = set()
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Name):
                self._names[node.id].append((module.start(node), node))
            elif isinstance(node, ast.Global):
                self.globals.update(node.names)

    def named_in(self, node: ast.AST, name: str) -> list[ast.Name]:
        """The places at which the name stands inside the node."""
        start, end = (0, len(self.module.source)) if isinstance(node, ast.Module) else self.module.span(node)
        return [found for at, found in self._names.get(name, ()) if start <= at < end]

    def bound(self, statement: ast.stmt) -> set[str]:
        if statement not in self._bound:
            self._bound[statement] = bound_names(statement)
        return self._bound[statement]


def _reached(
    index: _Index, owner: ast.AST, block: list[ast.stmt], position: int, name: str, value: ast.expr
) -> list[ast.Name] | None:
    """The uses that read this assignment and no other one; None when it cannot be inlined (soundly enough)."""
    module = index.module
    scope = owner
    while not isinstance(scope, (ast.Module, *FUNCTIONS, ast.ClassDef)):
        scope = module.parents[scope]
    if isinstance(scope, ast.ClassDef):
        return None
    uses: list[ast.Name] = []
    closed = False
    for statement in block[position + 1 :]:
        found = index.named_in(statement, name)
        if isinstance(statement, FUNCTIONS) and name in local_names(statement):
            continue
        uses += [n for n in found if isinstance(n.ctx, ast.Load)]
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            if statement.target.id == name:
                return None
        elif name in index.bound(statement):
            plain = isinstance(statement, ast.Assign) and all(isinstance(t, ast.Name) for t in statement.targets)
            if not plain:
                return None
            closed = True
            break
        elif any(not isinstance(n.ctx, ast.Load) for n in found):
            return None
    mine = set(uses)
    others = [n for n in _in_scope(index, scope, name) if n not in mine]
    if not closed:
        after = any(n.lineno > block[position].lineno for n in others)
        if after or name in index.globals:
            return None
    if any(_is_late(module, n, scope) for n in others):
        return None
    copied = is_plain(value) or dotted(value) is not None
    if len(uses) > 1 and not (copied and module.end(value) - module.start(value) <= _LONGEST_COPY):
        return None
    if not copied and any(_is_late(module, u, owner) for u in uses):
        return None
    return uses


def _in_scope(index: _Index, scope: ast.AST, name: str) -> Iterator[ast.Name]:
    """The places at which the scope's variable is named; inner functions with a local of that name are left out."""
    for found in index.named_in(scope, name):
        functions = itertools.takewhile(lambda above: above is not scope, index.module.enclosing(found))
        if not any(isinstance(f, (*FUNCTIONS, ast.Lambda)) and name in local_names(f) for f in functions):
            yield found


def _is_late(module: PyModule, use: ast.AST, scope: ast.AST) -> bool:
    """The use runs in another turn or call than the assignment does."""
    for above in module.enclosing(use):
        if above is scope:
            return False
        if isinstance(above, (*_LATER, *_LOOPS)):
            return True
    return False


def _text(module: PyModule, value: ast.expr, values: Mapping[ast.AST, ast.expr]) -> bytes:
    """The value's source with the uses in ``values`` replaced, in parentheses where it may need them."""
    start, end = module.span(value)
    inner = sorted((module.span(n), v) for n, v in values.items() if start <= module.start(n) < end)
    pieces = []
    for (low, high), replacement in inner:
        pieces += [module.source[start:low], _text(module, replacement, values)]
        start = high
    body = b"".join([*pieces, module.source[start:end]])
    if loose(value) or b"\n" in body:
        return b"(" + body + b")"
    return body


def _fits(module: PyModule, use: ast.Name, text: bytes, growth: int = 0) -> bool:
    """The statement stays on one readable line (or had several before); ``growth``: what other changes add to it."""
    statement = module.statement_of(use)
    if statement is None:
        return False
    start, end = module.span(statement)
    if module.next_line(start) < end:
        return True
    return end - module.line_start(start) + len(text) - len(use.id) + growth <= _LONGEST_LINE


def _all_at_once(module: PyModule, variables: list[_Variable]) -> Edit:
    """All of them together, except for those that would make a line too long."""
    while True:
        values: dict[ast.AST, ast.expr] = {use: v.value for v in variables for use in v.uses}
        spans = [module.span(v.statement) for v in variables]
        texts: dict[ast.Name, bytes] = {}
        for variable in variables:
            for use in variable.uses:
                start, end = module.span(use)
                if not any(low <= start and end <= high for low, high in spans):
                    texts[use] = _text(module, variable.value, values)
        long = _too_long(module, texts)
        if long is None:
            break
        variables = [v for v in variables if long not in v.uses]
    ops: list[Op] = [Splice(module.path, *v.cut) for v in variables]
    ops += [Splice(module.path, *module.span(use), text) for use, text in texts.items()]
    return Edit(tuple(ops), f"inline {len(variables)} variables", max(1, sum(v.cut[1] - v.cut[0] for v in variables)))


def _readable(module: PyModule, variables: list[_Variable]) -> list[_Variable]:
    """Without those that, all inlined, would make a line too long."""
    while True:
        long = _too_long(module, {u: _text(module, v.value, {}) for v in variables for u in v.uses})
        if long is None:
            return variables
        variables = [v for v in variables if long not in v.uses]


def _too_long(module: PyModule, texts: Mapping[ast.Name, bytes]) -> ast.Name | None:
    """The use that adds most to a statement which would get too long."""
    growth: Counter[ast.stmt | None] = Counter()
    for use, text in texts.items():
        growth[module.statement_of(use)] += len(text) - len(use.id)
    long = [use for use in texts if not _fits(module, use, use.id.encode(), growth[module.statement_of(use)])]
    return max(long, key=lambda use: len(texts[use]), default=None)


def _one(module: PyModule, variable: _Variable) -> Edit:
    text = _text(module, variable.value, {})
    ops: list[Op] = [Splice(module.path, *variable.cut)]
    ops += [Splice(module.path, *module.span(use), text) for use in variable.uses]
    return Edit(tuple(ops), f"inline {variable.name}", variable.cut[1] - variable.cut[0])


def _without_target(module: PyModule, variable: _Variable) -> Edit:
    start, value = module.start(variable.statement), module.start(variable.value)
    opening = module.token_before(value)
    while opening is not None and opening.text == "(" and opening.start > start:
        value = opening.start
        opening = module.token_before(value)
    return Edit((Splice(module.path, start, value),), f"unused {variable.name}", value - start)


def _tuple_assignments(module: PyModule) -> Iterator[Edit]:
    """``a, b = x, y`` becomes two statements."""
    fixed = pinned_nodes(module)
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or node in fixed:
            continue
        target, value = node.targets[0], node.value
        if not isinstance(target, ast.Tuple | ast.List) or not isinstance(value, ast.Tuple | ast.List):
            continue
        starred = any(isinstance(e, ast.Starred) for e in (*target.elts, *value.elts))
        if starred or len(target.elts) != len(value.elts):
            continue
        lines = [f"{ast.unparse(t)} = {ast.unparse(v)}" for t, v in zip(target.elts, value.elts, strict=True)]
        indent = module.indent(node).decode(module.encoding)
        if module.line_start(module.start(node)) + len(module.indent(node)) != module.start(node):
            continue
        text = module.encode(f"\n{indent}".join(lines))
        yield Edit((Splice(module.path, *module.span(node), text),), f"split {module.code(target)}", 1)
