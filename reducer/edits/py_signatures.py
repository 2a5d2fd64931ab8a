"""Simpler signatures: annotations, decorators, bases, and parameters together with the arguments passed for them."""

from __future__ import annotations

import ast
import copy
from collections import defaultdict
from collections.abc import Iterator

from reducer.edits.edit import Edit, Op, Splice
from reducer.edits.passes import Proposal, nothing, proposal
from reducer.syntax.python import DEFINITIONS, FUNCTIONS, FunctionNode, PyModule, pinned_nodes, python_modules
from reducer.syntax.python_lists import Item, base_items, call_items, parameter_items
from reducer.syntax.python_names import bound_names, parameters
from reducer.tree import SourceTree

_KINDS = ("staticmethod", "classmethod", "property")
_Site = tuple[PyModule, ast.Call, int]  # a call, and how many parameters it fills implicitly


class PySignatures:
    """Alternatives one by one: all annotations of the tree, then decorators, bases, and each parameter that the body
    does not use or that is always given one plain value (which then takes its place)."""

    name = "py_signatures"

    def propose(self, tree: SourceTree) -> Proposal:
        modules = python_modules(tree)
        edits: list[Edit] = []
        annotations = [s for m in modules for s in _annotations(m)]
        if annotations:
            edits.append(Edit(tuple(annotations), "all annotations", sum(s.end - s.start for s in annotations)))
            edits += [Edit((s,), "annotation", max(1, s.end - s.start)) for s in annotations if len(annotations) > 1]
        sites = _call_sites(modules)
        for module in modules:
            fixed = pinned_nodes(module)
            for node in ast.walk(module.tree):
                if not isinstance(node, DEFINITIONS) or node in fixed:
                    continue
                edits += _evaluated(module, node)
                edits += _decorators(module, node)
                if isinstance(node, ast.ClassDef):
                    edits += _bases(module, node)
                else:
                    edits += _parameters(module, node, sites)
        return proposal(edits, "sweep") if edits else nothing()


def _annotations(module: PyModule) -> Iterator[Splice]:
    fixed = pinned_nodes(module)
    for node in ast.walk(module.tree):
        if node in fixed:
            continue
        if isinstance(node, ast.arg) and node.annotation is not None:
            start = module.start(node)
            yield Splice(module.path, start + len(node.arg.encode(module.encoding)), module.end(node))
        elif isinstance(node, FUNCTIONS) and node.returns is not None:
            arrow = module.token_before(module.start(node.returns))
            while arrow is not None and arrow.text != "->":
                arrow = module.token_before(arrow.start)
            colon = module.token_after(module.end(node.returns))
            while colon is not None and colon.text != ":":
                colon = module.token_after(colon.end)
            if arrow is not None and colon is not None:
                before = module.token_before(arrow.start)
                yield Splice(module.path, before.end if before else arrow.start, colon.start)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            if isinstance(module.parents.get(node), ast.ClassDef):
                continue  # may be a field of a dataclass
            equals = module.token_after(module.end(node.annotation))
            while equals is not None and equals.text != "=":
                equals = module.token_after(equals.end)
            if equals is not None:
                yield Splice(module.path, module.end(node.target), equals.start, b" ")


def _evaluated(module: PyModule, node: FunctionNode | ast.ClassDef) -> Iterator[Edit]:
    """Instead of a definition one of the expressions that defining it evaluates: decorators, bases, defaults,
    annotations."""
    parts: list[ast.expr] = [d for d in node.decorator_list if not isinstance(d, ast.Name)]
    if isinstance(node, ast.ClassDef):
        parts += [b for b in node.bases if not isinstance(b, ast.Name)]
    else:
        parts += [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
        parts += [p.annotation for p in parameters(node) if p.annotation is not None]
        parts += [node.returns] if node.returns is not None else []
    start, end = module.span(node)
    for part in parts:
        if not isinstance(part, ast.Constant | ast.Starred | ast.Name):
            text = ast.unparse(part)
            yield Edit((Splice(module.path, start, end, module.encode(text)),), f"only {text[:30]}", end - start)


def _decorators(module: PyModule, node: FunctionNode | ast.ClassDef) -> Iterator[Edit]:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Name) and decorator.id in _KINDS:
            continue  # runs without, at times, but nobody writes it so
        at = module.source.rindex(b"@", 0, module.start(decorator))
        end = module.next_line(module.end(decorator))
        if module.line_start(at) + len(module.indent(node)) == at:
            code = module.code(decorator)
            yield Edit((Splice(module.path, module.line_start(at), end),), f"decorator {code[:30]}", end - at)


def _bases(module: PyModule, node: ast.ClassDef) -> Iterator[Edit]:
    items = base_items(module, node)
    for item in items:
        text = module.source[item.start : item.end].decode(module.encoding, "replace")
        start, end = item.cut
        if len(items) == 1:
            name_end = module.token_before(module.token_before(item.start).start)  # type: ignore[union-attr]
            closing = module.token_after(item.cut[1])
            if name_end is not None and closing is not None and closing.text == ")":
                start, end = name_end.end, closing.end
        yield Edit((Splice(module.path, start, end),), f"base {text[:30]} of {node.name}", end - start)


def _call_sites(modules: list[PyModule]) -> dict[str, list[_Site]]:
    """Calls by the last name of what they call. ``Class.apply(...)`` is also a call of ``forward`` with ``ctx``."""
    sites: dict[str, list[_Site]] = defaultdict(list)
    for module in modules:
        for node in module.expressions:
            if not isinstance(node, ast.Call):
                continue
            if isinstance(node.func, ast.Name):
                sites[node.func.id].append((module, node, 0))
            elif isinstance(node.func, ast.Attribute):
                sites[node.func.attr].append((module, node, 0))
                if node.func.attr == "apply" and isinstance(node.func.value, ast.Name):
                    sites[f"{node.func.value.id}.forward"].append((module, node, 0))
    return sites


def _parameters(module: PyModule, node: FunctionNode, sites: dict[str, list[_Site]]) -> Iterator[Edit]:
    owner = module.parents.get(node)
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
    bound = isinstance(owner, ast.ClassDef) and not static
    calls = list(sites.get(node.name, ()))
    skip = 1 if bound else 0
    if isinstance(owner, ast.ClassDef):
        if node.name == "__init__":
            calls = [*sites.get(owner.name, ()), *(c for c in calls if _on_super(c[1]))]
        elif f"{owner.name}.forward" in sites and node.name == "forward" and static:
            calls, skip = list(sites[f"{owner.name}.forward"]), 1
    names = {p.arg for p in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    items = parameter_items(module, node)
    for position, item in enumerate(items):
        parameter = item.node
        if not isinstance(parameter, ast.arg) or position < skip:
            continue
        uses = [n for s in node.body for n in ast.walk(s) if isinstance(n, ast.Name) and n.id == parameter.arg]
        ops: list[Op] = [_cut_parameter(module, node, item, items)]
        passed: list[ast.expr | None] = []
        possible = True
        for other, call, _ in calls:
            found = _passed(other, call, parameter, position - skip, node, names)
            if found is None:
                possible = False
                break
            for argument in found:
                ops.append(Splice(other.path, *argument.cut))
            value = found[0].node if len(found) == 1 else None
            passed.append(value.value if isinstance(value, ast.keyword) else value)  # type: ignore[arg-type]
        if not possible:
            continue
        if uses:
            text = _single_value(module, node, parameter, passed, calls)
            rebound = any(parameter.arg in bound_names(s) for s in node.body)
            if text is None or rebound or any(not isinstance(u.ctx, ast.Load) for u in uses):
                continue
            reachable = set(module.expressions)
            if any(u not in reachable for u in uses):
                continue
            ops += [Splice(module.path, *module.span(u), module.encode(text)) for u in uses]
        yield Edit(tuple(dict.fromkeys(ops)), f"parameter {parameter.arg} of {node.name}", item.cut[1] - item.cut[0])
    for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
        equals = module.token_before(module.start(default))
        while equals is not None and equals.text == "(":
            equals = module.token_before(equals.start)
        before = module.token_before(equals.start) if equals is not None else None
        if equals is not None and before is not None and equals.text == "=":
            start, end = before.end, module.outer_span(default, equals.end, len(module.source))[1]
            if any(item.start <= start and end <= item.end for item in items):
                yield Edit((Splice(module.path, start, end),), f"default of {before.text}", end - start)


def _on_super(call: ast.Call) -> bool:
    value = getattr(call.func, "value", None)
    return isinstance(value, ast.Call) and getattr(value.func, "id", "") == "super"


def _cut_parameter(module: PyModule, node: FunctionNode, item: Item, items: list[Item]) -> Splice:
    """The cut of one parameter; with the only keyword-only one goes its bare star."""
    start, end = item.cut
    keyword_only = node.args.kwonlyargs
    if item.node in keyword_only and len(keyword_only) == 1 and node.args.vararg is None:
        star = module.token_before(item.start)
        comma = module.token_before(star.start) if star is not None and star.text == "," else None
        if comma is not None and comma.text == "*":
            start = comma.start
    return Splice(module.path, start, end)


def _passed(
    module: PyModule, call: ast.Call, parameter: ast.arg, position: int, node: FunctionNode, names: set[str]
) -> list[Item] | None:
    """The arguments of a call that land in the parameter; None when that cannot be told."""
    items = call_items(module, call)
    if len(items) != len(call.args) + len(call.keywords):
        return None
    by_node = {item.node: item for item in items}
    if parameter is node.args.vararg:
        first = len(node.args.posonlyargs) + len(node.args.args)
        return [by_node[a] for a in call.args if isinstance(a, ast.Starred)] or (
            [] if len(call.args) <= first else None
        )
    if parameter is node.args.kwarg:
        extra = [k for k in call.keywords if k.arg is None or k.arg not in names]
        return [by_node[k] for k in extra]
    for keyword in call.keywords:
        if keyword.arg == parameter.arg:
            return [by_node[keyword]]
    if parameter in node.args.kwonlyargs:
        return []
    before = call.args[: position + 1]
    if any(isinstance(a, ast.Starred) for a in before):
        return None
    return [by_node[before[position]]] if len(before) > position else []


def _single_value(
    module: PyModule, node: FunctionNode, parameter: ast.arg, passed: list[ast.expr | None], calls: list[_Site]
) -> str | None:
    """Source for the one plain value that the parameter always has; None when there is none."""
    if parameter in (node.args.vararg, node.args.kwarg):
        return None
    plain = [*node.args.posonlyargs, *node.args.args]
    defaults: dict[ast.arg, ast.expr | None] = dict(zip(reversed(plain), reversed(node.args.defaults), strict=False))
    defaults |= dict(zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True))
    values = [defaults.get(parameter) if value is None else value for value in passed] or [defaults.get(parameter)]
    texts = set()
    for value in values:
        if value is None or not is_plain(value):
            return None
        texts.add(ast.unparse(copy.deepcopy(value)))
    return texts.pop() if len(texts) == 1 else None


def is_plain(node: ast.expr) -> bool:
    """True for constants, signed numbers, and displays of such: what reads the same wherever it stands."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.UnaryOp):
        return is_plain(node.operand)
    if isinstance(node, ast.List | ast.Tuple):
        return all(is_plain(e) for e in node.elts)
    return False
