"""Minimising a list in which any subset makes sense."""

from __future__ import annotations

from collections.abc import Sequence

from reducer.search.groups import remove_groups
from reducer.search.plan import Plan, once


def minimize_list(weights: Sequence[int]) -> Plan:
    """A 1-minimal subset of ``range(len(weights))``: no single element of the result can go, whatever the predicate.

    ``weights`` are positive sizes (bytes, say): heavy elements are tried in small groups or alone. Deterministic.
    Groups first (see remove_groups), then a one-by-one sweep; when the sweep finds something, both again, the other
    way round. The first round starts at the end of the list, since code comes before what uses it.
    """
    if any(w <= 0 for w in weights):
        raise ValueError("weights must be positive")
    return once(frozenset(range(len(weights))), _minimize(weights))


def _minimize(weights: Sequence[int]) -> Plan:
    if (yield frozenset()):
        return frozenset()
    kept = frozenset(range(len(weights)))
    backwards = True
    while True:
        size = sum(weights[i] for i in kept) // 2
        kept = yield from remove_groups(kept, sorted(kept, reverse=backwards), weights, size)
        backwards = not backwards
        before = kept
        for element in sorted(kept, reverse=backwards):
            if (yield kept - {element}):
                kept -= {element}
        if kept == before:
            return kept
