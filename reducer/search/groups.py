"""Removing elements in groups whose size follows what was found: the core of list minimising and of sweeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from reducer.search.plan import Plan


def remove_groups(
    kept: frozenset[int],
    order: Sequence[int],
    weights: Sequence[int],
    size: int,
    allowed: Callable[[frozenset[int]], bool] | None = None,
) -> Plan:
    """Decide each element of ``order`` once, in that order, on top of what was removed before.

    Adaptive group testing: a group of about ``size`` weight is tried as a whole. If it can go, the next group is twice
    as heavy. If not, it is halved by weight until one element that must stay is found; the untried rest goes back to
    the queue, and the next group is as heavy as the run of elements that went since the previous find. So a list with
    one needed element costs about 2 log n questions and one where all are needed costs one question each, with no
    prior guess at the density (after Hwang, "A method for detecting all defective members in a population by group
    testing", 1972, and Du & Hwang's competitive variant; weights as in weighted delta debugging). The gap between the
    last two finds is the counter that sets the size, where counter-based delta debugging (CDD) uses one for the whole
    list; on scattered and clustered survivors this asks a fifth to a half less (tests/search/test_query_counts.py).

    ``allowed(keep)`` false: that set is not asked, as if the answer had been no.
    """
    pending = list(order)
    run = 0
    while pending:
        group = _fill(kept, pending, weights, size, allowed)
        if not group:  # not even the first one may go on top of what went before
            pending.pop(0)
            continue
        if (yield kept.difference(group)):
            kept = kept.difference(group)
            pending = _without(pending, group)
            run += sum(weights[i] for i in group)
            size *= 2
            continue
        while len(group) > 1:
            half = _first_half(group, weights)
            candidate = kept.difference(half)
            if (allowed is None or allowed(candidate)) and (yield candidate):
                kept = candidate
                pending = _without(pending, half)
                run += sum(weights[i] for i in half)
                group = group[len(half) :]  # exactly this was refused as part of the whole group: no need to ask again
            else:
                group = half
        pending.remove(group[0])
        size, run = max(1, run), 0
    return kept


def _fill(
    kept: frozenset[int],
    pending: Sequence[int],
    weights: Sequence[int],
    size: int,
    allowed: Callable[[frozenset[int]], bool] | None,
) -> list[int]:
    """The first pending element and as many next ones as fit into ``size``; those not allowed with them wait."""
    group: list[int] = []
    total = 0
    for element in pending:
        if group and total + weights[element] > size:
            break
        if allowed is not None and not allowed(kept.difference(group, (element,))):
            if not group:
                break
            continue
        group.append(element)
        total += weights[element]
    return group


def _first_half(group: Sequence[int], weights: Sequence[int]) -> list[int]:
    """The shortest beginning with half of the weight, without the last element."""
    sums = list(accumulate(weights[i] for i in group))
    return list(group[: min(len(group) - 1, next(k for k, s in enumerate(sums, 1) if 2 * s >= sums[-1]))])


def _without(elements: Sequence[int], gone: Sequence[int]) -> list[int]:
    out = set(gone)
    return [i for i in elements if i not in out]
