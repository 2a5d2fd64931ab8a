"""Rename what is left of the library's long names to short ones."""

from __future__ import annotations

import ast
import itertools
import keyword
import re
from collections import defaultdict
from collections.abc import Iterator

from reducer.edits.edit import Edit, Op, Splice
from reducer.edits.passes import Proposal, nothing, proposal
from reducer.syntax.python import DEFINITIONS, FUNCTIONS, PyModule, pinned_nodes, python_modules
from reducer.syntax.python_names import BUILTINS, dotted
from reducer.tree import SourceTree

_GOOD = re.compile("[a-z]{1,7}$|[A-Z][A-Za-z]{0,7}$")
_TENSORS = ("x", "y", "z", "w", "v", "u")
_VALUES = ("a", "b", "c", "d", "e", "n", "m", "k")
_RESULTS = ("out", "result", "got", "res")
_FUNCTIONS = ("f", "g", "h", "p", "q", "r")
_MODELS = ("Model", "Block", "Layer", "Net")
_OPERATIONS = ("Op", "Fn", "Operation")
_CLASSES = ("A", "B", "C", "D")


class PyNaming:
    """All renamings of the tree at once, then one by one. Attributes, keywords of other people's functions, imported
    names and names that stand in strings are left alone. Meant for a tree of one script: names are a file's own."""

    name = "py_naming"

    def propose(self, tree: SourceTree) -> Proposal:
        edits = [edit for module in python_modules(tree) for edit in _renamings(module)]
        if len(edits) < 2:
            return proposal(edits, "sweep") if edits else nothing()
        together = Edit(tuple(op for e in edits for op in e.ops), "all names", sum(e.weight for e in edits))
        return proposal([together, *edits], "sweep")


def _renamings(module: PyModule) -> Iterator[Edit]:
    fixed = {n.id for p in pinned_nodes(module) for n in ast.walk(p) if isinstance(n, ast.Name)}
    taken = _identifiers(module)
    blocked = fixed | _blocked(module)
    all_places = _places(module)
    for name, pool in _own_names(module).items():
        if name in blocked or _GOOD.match(name) or name.startswith("__"):
            continue
        numbered = (f"{pool[0]}{n}" for n in itertools.count(2))
        new = next(c for c in itertools.chain(pool, numbered) if c not in taken)
        taken.add(new)
        places = all_places[name]
        size = len(name.encode(module.encoding))
        ops: tuple[Op, ...] = tuple(Splice(module.path, at, at + size, module.encode(new)) for at in places)
        yield Edit(ops, f"{name} to {new}", max(1, (len(name) - len(new)) * len(ops)))


def _own_names(module: PyModule) -> dict[str, tuple[str, ...]]:
    """The names that the module itself binds, with the names that may stand for them, in source order."""
    found: dict[str, tuple[str, ...]] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef):
            bases = {part for base in node.bases for part in dotted(base) or []}
            pool = _MODELS if "Module" in bases else _OPERATIONS if "Function" in bases else _CLASSES
            found.setdefault(node.name, pool)
        elif isinstance(node, FUNCTIONS) and not isinstance(module.parents.get(node), ast.ClassDef):
            found.setdefault(node.name, _FUNCTIONS)
        elif isinstance(node, ast.arg):
            found.setdefault(node.arg, _TENSORS)
        elif isinstance(node, ast.Assign) and not isinstance(module.parents.get(node), ast.ClassDef):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, _pool(node.value))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            statement = module.statement_of(node)
            if statement is None or not isinstance(module.parents.get(statement), ast.ClassDef):
                found.setdefault(node.id, _VALUES)
    return found


def _pool(value: ast.expr) -> tuple[str, ...]:
    if isinstance(value, ast.Call):
        chain = dotted(value.func)
        made = chain is not None and chain[0] == "torch" and not any(isinstance(a, ast.Name) for a in value.args)
        return _TENSORS if made else _RESULTS
    return _VALUES


def _identifiers(module: PyModule) -> set[str]:
    found = {t.text for t in module.tokens if t.text.isidentifier()}
    return found | BUILTINS | set(keyword.kwlist)


def _blocked(module: PyModule) -> set[str]:
    """Names that cannot be renamed by changing names alone."""
    blocked: set[str] = set()
    reachable = set(module.expressions)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Global | ast.Nonlocal):
            blocked.update(node.names)
        elif isinstance(node, ast.keyword) and node.arg:
            blocked.add(node.arg)
        elif isinstance(node, ast.alias):
            blocked.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.Name) and node not in reachable:
            blocked.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            blocked.update(re.findall(r"\w+", node.value))
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            blocked.update([node.name] if node.name else [])
        elif isinstance(node, DEFINITIONS) and isinstance(module.parents.get(node), ast.ClassDef):
            blocked.add(node.name)
    return blocked


def _places(module: PyModule) -> dict[str, list[int]]:
    """Where each name stands, definitions and parameters included."""
    places: dict[str, list[int]] = defaultdict(list)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name):
            places[node.id].append(module.start(node))
        elif isinstance(node, ast.arg):
            places[node.arg].append(module.start(node))
        elif isinstance(node, DEFINITIONS):
            token = module.token_after(module.offset(node.lineno, node.col_offset))
            while token is not None and token.text != node.name:
                token = module.token_after(token.end)
            if token is not None:
                places[node.name].append(token.start)
    return places
