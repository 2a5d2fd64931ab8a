"""An oracle that writes down what it was asked, and two published minimisers to compare with."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from hashlib import blake2b

from reducer.search.driver import drive
from reducer.search.plan import Plan, once

Predicate = Callable[[frozenset[int]], bool]


class Recorder:
    """Answers by ``predicate``; ``asked`` is every question in order, ``accepted`` those with a yes."""

    def __init__(self, predicate: Predicate) -> None:
        self.predicate = predicate
        self.asked: list[frozenset[int]] = []
        self.accepted: list[frozenset[int]] = []

    def __call__(self, keep: frozenset[int]) -> bool:
        self.asked.append(keep)
        answer = self.predicate(keep)
        if answer:
            self.accepted.append(keep)
        return answer


def count(plan: Plan, predicate: Predicate) -> tuple[int, int]:
    """(questions asked, elements left)."""
    oracle = Recorder(predicate)
    left = len(drive(plan, oracle))
    return len(oracle.asked), left


def needs_all_of(*wanted: int) -> Predicate:
    needed = frozenset(wanted)
    return lambda keep: needed <= keep


def noise(seed: int, percent: int) -> Predicate:
    """A predicate without any structure: about ``percent`` of all sets are accepted, always the same ones."""

    def predicate(keep: frozenset[int]) -> bool:
        text = f"{seed}:{sorted(keep)}".encode()
        return blake2b(text, digest_size=2).digest()[0] % 100 < percent

    return predicate


def plain_ddmin(size: int) -> Plan:
    """Zeller & Hildebrandt's ddmin, asking the empty set first and nothing twice, as the product does."""
    return once(frozenset(range(size)), _ddmin(size))


def _ddmin(size: int) -> Plan:
    kept = list(range(size))
    if (yield frozenset()):
        return frozenset()
    parts = 2
    while len(kept) >= 2:
        cuts = [len(kept) * k // parts for k in range(parts + 1)]
        subsets = [kept[a:b] for a, b in itertools.pairwise(cuts)]
        chosen: list[int] | None = None
        for subset in subsets:
            if (yield frozenset(subset)):
                chosen, parts = subset, 2
                break
        else:
            for subset in subsets:
                rest = [i for i in kept if i not in set(subset)]
                if (yield frozenset(rest)):
                    chosen, parts = rest, max(parts - 1, 2)
                    break
        if chosen is not None:
            kept = chosen
        elif parts >= len(kept):
            break
        else:
            parts = min(len(kept), 2 * parts)
    return frozenset(kept)


def plain_cdd(size: int, chance: float = 0.1) -> Plan:
    """Counter-based delta debugging with the published start value, then one-by-one sweeps."""
    return once(frozenset(range(size)), _cdd(size, chance))


def _cdd(size: int, chance: float) -> Plan:
    kept = frozenset(range(size))
    if (yield frozenset()):
        return frozenset()
    group = len(kept)
    while group > 1:
        group = max(1, round(-1 / math.log(1 - chance)))
        order = sorted(kept, reverse=True)
        for start in range(0, len(order), group):
            keep = kept.difference(order[start : start + group])
            if (yield keep):
                kept = keep
        chance = min(0.999, chance / (1 - (1 - chance) ** group))
    while True:
        before = kept
        for element in sorted(kept):
            if (yield kept - {element}):
                kept -= {element}
        if kept == before:
            return kept


def closed_only(requires: Sequence[frozenset[int]], predicate: Predicate) -> Predicate:
    """What a reducer without dependency knowledge sees: sets that are not closed do not even build."""
    return lambda keep: all(requires[i] <= keep for i in keep) and predicate(keep)
