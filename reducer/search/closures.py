"""Minimising elements that need one another: binary reduction of dependency closures."""

from __future__ import annotations

from collections.abc import Sequence

from reducer.search.plan import Plan, once


class Dependencies:
    """The transitive closure of "i needs j", with cycles taken as one.

    ``closed[i]``: all that must stay when i stays, i included. ``dependents[i]``: all that must go when i goes, i
    included. Elements of one cycle have equal entries.
    """

    def __init__(self, requires: Sequence[frozenset[int]]) -> None:
        size = len(requires)
        if any(not 0 <= j < size for wanted in requires for j in wanted):
            raise ValueError("a requirement names no element")
        self.closed: list[frozenset[int]] = [frozenset()] * size
        dependents: list[set[int]] = [set() for _ in range(size)]
        for component in _components(requires):  # what a component needs comes before it
            closed = set(component)
            for i in component:
                for j in requires[i]:
                    closed |= self.closed[j]
            for i in component:
                self.closed[i] = frozenset(closed)
            for j in closed:
                dependents[j].update(component)
        self.dependents = [frozenset(d) for d in dependents]

    def close(self, elements: frozenset[int]) -> frozenset[int]:
        """``elements`` and all that they need."""
        return elements.union(*(self.closed[i] for i in elements))


def minimize_closures(weights: Sequence[int], requires: Sequence[frozenset[int]]) -> Plan:
    """A small subset that is closed under ``requires`` (i kept: all of ``requires[i]`` kept).

    Binary reduction (Kalhauge & Palsberg, "Binary Reduction of Dependency Graphs", 2019) in about kept x log n
    questions, then a sweep: at the end no element can go together with all that depend on it, whatever the predicate.
    Only closed sets are asked. Raises ValueError for a requirement outside the range.
    """
    if len(weights) != len(requires):
        raise ValueError("requires must have one entry for each weight")
    return once(frozenset(range(len(weights))), _minimize(weights, Dependencies(requires)))


def _minimize(weights: Sequence[int], needs: Dependencies) -> Plan:
    full = frozenset(range(len(weights)))
    kept = yield from reduce_between(frozenset(), full, weights, needs)
    while True:
        before = kept
        units = {needs.dependents[i] for i in kept}  # one for each cycle
        for unit in sorted(units, key=lambda u: (-sum(weights[i] for i in u & kept), sorted(u))):
            if unit & kept and (yield kept - unit):
                kept -= unit
        if kept == before:
            return kept


def reduce_between(
    base: frozenset[int], universe: frozenset[int], weights: Sequence[int], needs: Dependencies, first_step: int = 0
) -> Plan:
    """Shrink ``universe`` (closed, accepted) to an accepted superset of ``base`` (closed).

    Each round sorts the closures that are left by what they add, light ones first, finds by bisection the shortest
    sequence of them that is accepted on top of the base, and moves the last one of it into the base. ``first_step``
    above 0: the first round tries that many first, then twice as many, and so on, instead of starting in the middle.
    """
    while not (yield base):
        order = _light_first(base, universe, weights, needs)
        low, high = 0, len(order)  # the first `low` closures are refused on top of the base, the first `high` accepted
        step = first_step
        while high - low > 1:
            middle = min(low + step, high - 1) if step else (low + high) // 2
            prefix = base | needs.close(frozenset(order[:middle]))
            if (yield prefix):
                high, universe = middle, prefix
                step = 0
            else:
                low = middle
                step *= 2
        base |= needs.closed[order[high - 1]]
        first_step = 0
    return base


def _light_first(
    base: frozenset[int], universe: frozenset[int], weights: Sequence[int], needs: Dependencies
) -> list[int]:
    """Elements whose closures, one after the other, each add something to ``base`` until ``universe`` is reached."""
    cost = {i: sum(weights[j] for j in needs.closed[i] - base) for i in universe - base}
    order: list[int] = []
    grown = set(base)
    for element in sorted(cost, key=lambda i: (cost[i], i)):
        if element not in grown:
            grown |= needs.closed[element]
            order.append(element)
    return order


def _components(requires: Sequence[frozenset[int]]) -> list[list[int]]:
    """The strongly connected components, what is needed first (Tarjan's algorithm without recursion)."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    for root in range(len(requires)):
        if root in order:
            continue
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        path = [(root, iter(sorted(requires[root])))]
        while path:
            node, targets = path[-1]
            for target in targets:
                if target not in order:
                    order[target] = low[target] = len(order)
                    stack.append(target)
                    on_stack.add(target)
                    path.append((target, iter(sorted(requires[target]))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], order[target])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == order[node]:
                    at = stack.index(node)
                    found.append(sorted(stack[at:]))
                    on_stack.difference_update(stack[at:])
                    del stack[at:]
    return found
