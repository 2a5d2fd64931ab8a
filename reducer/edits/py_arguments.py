"""Cut arguments of calls and elements of list, tuple, set and dict displays."""

from __future__ import annotations

import ast

from reducer.edits.edit import Edit, Op, Splice
from reducer.edits.passes import Proposal, nothing, proposal
from reducer.syntax.python import PyModule, pinned_nodes, python_modules
from reducer.syntax.python_lists import Item, call_items, literal_items
from reducer.syntax.python_names import dotted
from reducer.tree import SourceTree


class PyArguments:
    """Every argument and every element of a display, any subset of which may go (a trailing comma may stay)."""

    name = "py_arguments"

    def propose(self, tree: SourceTree) -> Proposal:
        edits: list[Edit] = []
        for module in python_modules(tree):
            fixed = pinned_nodes(module)
            for node in module.expressions:
                if node in fixed or isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
                    continue
                items = call_items(module, node) if isinstance(node, ast.Call) else literal_items(module, node)
                first = 1 if not isinstance(node, ast.Call) and _is_tensor_data(module, node) else 0
                for position, item in list(enumerate(items))[first:]:
                    edits.append(_edit(module, node, items, position, item))
        return proposal(edits, "list") if edits else nothing()


def _is_tensor_data(module: PyModule, node: ast.expr) -> bool:
    """A display, or one inside it, that ``torch`` makes a tensor or shape of: an empty one is a case of its own."""
    parent = module.parents.get(node)
    while isinstance(parent, ast.List | ast.Tuple | ast.keyword):
        parent = module.parents.get(parent)
    chain = dotted(parent.func) if isinstance(parent, ast.Call) else None
    return chain is not None and chain[0] == "torch"


def _edit(module: PyModule, node: ast.expr, items: list[Item], position: int, item: Item) -> Edit:
    ops: list[Op] = [Splice(module.path, *item.cut)]
    last = items[-1]
    if isinstance(node, ast.Tuple):  # one element left over must stay a tuple
        if position + 1 < len(items):
            if last.cut[1] == last.end:
                ops.append(Splice(module.path, last.end, last.end, b","))
        else:
            ops = [Splice(module.path, last.start, module.end(node), b")")]
    text = module.source[item.start : item.end].decode(module.encoding, "replace")
    return Edit(tuple(ops), f"argument {text[:40]}", max(1, item.cut[1] - item.cut[0]))
