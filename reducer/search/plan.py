"""What a search strategy is, and the wrapper that keeps every strategy honest.

A strategy is a generator: it yields the set of element indices to *keep* and is told whether that candidate is
accepted; it returns the set it ends with. It runs nothing and knows nothing of what the indices stand for.
(lithium asks in the same manner; picire's stop exceptions, too, carry the best result.)
"""

from __future__ import annotations

from collections.abc import Generator

Plan = Generator[frozenset[int], bool, frozenset[int]]


class Stopped(Exception):
    """A search ended early. ``best`` is the last accepted set (the full set if none was), ``reason`` a short phrase."""

    def __init__(self, best: frozenset[int], reason: str) -> None:
        super().__init__(f"search stopped: {reason}")
        self.best = best
        self.reason = reason


class Halt(Exception):
    """Thrown *into* a plan to end it; the plan answers with Stopped. ``reason`` is passed on."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def once(full: frozenset[int], strategy: Plan) -> Plan:
    """``strategy`` with a memory: ``full`` is taken as accepted and never asked, no set is asked twice.

    Strategies may so ask freely for what they already know, which keeps them short. The plan returns only what was
    accepted. Halt or KeyboardInterrupt, thrown in or raised while the strategy thinks, come out as Stopped.
    """
    answers = {_key(full): True}
    best = full
    try:
        keep = next(strategy)
        while True:
            key = _key(keep)
            if key not in answers:
                accepted = yield keep
                answers[key] = accepted
                if accepted:
                    best = keep
            keep = strategy.send(answers[key])
    except StopIteration as end:
        result: frozenset[int] = end.value
    except Halt as halt:
        raise Stopped(best, halt.reason) from None
    except KeyboardInterrupt as interrupt:
        raise Stopped(best, "interrupted") from interrupt
    if not answers.get(_key(result)):
        raise RuntimeError(f"the strategy returned {sorted(result)}, which was not accepted")
    return result


def _key(elements: frozenset[int]) -> bytes:
    """A bitmap: some hundred times smaller than the set, which counts when thousands of them are remembered."""
    bits = bytearray(max(elements, default=-1) // 8 + 1)
    for element in elements:
        bits[element >> 3] |= 1 << (element & 7)
    return bytes(bits)
