"""The slice of a tree's C++ declarations that a failure needs."""

from __future__ import annotations

from collections.abc import Iterable

from reducer.slicing.cxx_graph import CxxGraph, Element

Root = tuple[str, int] | str
"""Where a slice starts: (path, line from 1) of a failing place, or the name of an op (``ns::op``), a binding or a
function."""


def cxx_slice(graph: CxxGraph, roots: Iterable[Root]) -> frozenset[int]:
    """The elements to keep: what the roots name, all that it needs, its own registrations, and what makes the
    extension importable. A failing macro alone stands for its cheapest use; a failing line outside all declarations
    (an include) needs nothing but the module. Empty when no root is in the tree.
    """
    starts: set[int] = set()
    outside = False
    for root in roots:
        found = _start(graph, root)
        starts.update(found)
        outside = outside or (not found and not isinstance(root, str) and root[0] in graph.tree)
    if not starts and not outside:
        return frozenset()
    if starts and all(graph.elements[i].kind == "macro" for i in starts):
        starts |= _cheapest_user(graph, starts)
    named = {name for s in starts for name in graph.elements[s].names}
    for index, element in enumerate(graph.elements):
        if any(f is not None and f.split("::")[-1] in named for f in _functions(element)):
            starts.add(index)
    keep = graph.closure(starts, bring=True)
    starts |= {i for i, element in enumerate(graph.elements) if element.kind == "module"}
    return graph.closure(keep | starts | _callers(graph, keep), bring=True)


def _cheapest_user(graph: CxxGraph, macros: set[int]) -> set[int]:
    """The declaration that uses the macros with the smallest closure, through other macros if need be."""
    users = [
        i
        for i, element in enumerate(graph.elements)
        if element.kind in ("function", "module", "variable", "class", "call") and macros & graph.closure([i])
    ]
    return {min(users, key=lambda i: (len(graph.closure([i], bring=True)), i))} if users else set()


def _functions(element: Element) -> list[str | None]:
    return [item.function for item in element.registers]


def _start(graph: CxxGraph, root: Root) -> list[int]:
    if not isinstance(root, str):
        return sorted(graph.on_line(*root))
    registering = list(graph.registering(root))
    if registering:
        return registering
    last = root.split("::")[-1]
    return [i for i, e in enumerate(graph.elements) if last in e.names and e.kind not in ("statement", "namespace")]


def _callers(graph: CxxGraph, keep: frozenset[int]) -> set[int]:
    """The lines in module blocks that call a kept function which itself registers things (``init_ops(m);``)."""
    found: set[int] = set()
    blocks = {p for i in keep if graph.elements[i].registers for p in graph.elements[i].parents}
    functions = {p for p in blocks if graph.elements[p].kind == "function"}
    while True:
        more = {
            i
            for i, element in enumerate(graph.elements)
            if element.kind in ("statement", "link")
            and graph.requires[i] & functions
            and not functions & element.parents
        } - found
        if not more:
            return found
        found |= more
        functions |= {p for i in more for p in graph.elements[i].parents if graph.elements[p].kind == "function"}
