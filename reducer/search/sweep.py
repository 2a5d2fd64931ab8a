"""Trying alternatives in order, each on top of those already accepted."""

from __future__ import annotations

from collections.abc import Callable

from reducer.search.groups import remove_groups
from reducer.search.plan import Plan, once


def sweep(size: int, compatible: Callable[[frozenset[int]], bool]) -> Plan:
    """Which of ``size`` alternatives stay unused ("kept"); the others are applied ("removed"), earlier ones first.

    ``compatible(removed)`` false: that combination means nothing; it is never asked. All of them (the first ones that
    go together) are tried at once first; then one by one, in growing groups while they succeed, so that many refusals
    cost one question each. Every alternative gets one chance; propose again on the new tree for another round.
    """
    full = frozenset(range(size))
    return once(full, _sweep(full, compatible))


def _sweep(full: frozenset[int], compatible: Callable[[frozenset[int]], bool]) -> Plan:
    def allowed(keep: frozenset[int]) -> bool:
        return compatible(full - keep)

    keep = full
    for alternative in sorted(full):
        if allowed(keep - {alternative}):
            keep -= {alternative}
    if len(full - keep) > 1 and (yield keep):
        return keep
    return (yield from remove_groups(full, sorted(full), [1] * len(full), 1, allowed))
