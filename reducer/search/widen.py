"""Confirming a slice, and widening it when something was missed."""

from __future__ import annotations

from collections.abc import Sequence

from reducer.search.closures import Dependencies, reduce_between
from reducer.search.plan import Plan, once


def confirm_slice(
    size: int, kept: frozenset[int], weights: Sequence[int], requires: Sequence[frozenset[int]] = ()
) -> Plan:
    """The slice ``kept`` (closed under ``requires``) if it is accepted (one question), else with what it lacked.

    Widening goes outwards from the slice: a sixteenth of what was dropped, light closures first, then twice as much,
    and so on; what is accepted is bisected for the closure that was missed, which joins the slice; and again until the
    slice is accepted. The result is an accepted superset of the slice, not a minimal one: the slice itself is left
    whole for the passes that follow. ``requires`` empty: no dependencies.
    """
    if len(weights) != size or (requires and len(requires) != size):
        raise ValueError("weights and requires must have one entry for each element")
    full = frozenset(range(size))
    if not kept <= full:
        raise ValueError("the slice holds an element that does not exist")
    needs = Dependencies(requires or [frozenset()] * size)
    base = needs.close(kept)
    return once(full, reduce_between(base, full, weights, needs, first_step=max(1, (size - len(base)) // 16)))
