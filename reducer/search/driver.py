"""Running a plan: asking its questions one after the other, within a budget.

Why another driver needs no other strategies: a plan is a deterministic function of the answers it got, and thinking
costs microseconds where a question costs tenths of seconds. A driver that asks several questions at once takes a plan
*factory*, replays the answers so far into a fresh plan, and sends it guesses ("no" nearly always) to learn what it
would ask next; it starts those questions, takes the real answers in the plan's own order, and cancels the ones whose
guess was wrong. The result is the one that this sequential driver gets.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from reducer.search.plan import Halt, Plan, Stopped

__all__ = ["Budget", "Plan", "Stopped", "drive"]


@dataclass
class Budget:
    """What a search may spend; one budget may be shared by many searches.

    ``max_queries``: questions in all. ``deadline``: seconds on ``clock``; no question is started at or after it (one
    that runs is not cut short). None: no limit. ``queries`` counts the questions that were answered.
    """

    max_queries: int | None = None
    deadline: float | None = None
    clock: Callable[[], float] = time.monotonic
    queries: int = field(default=0, init=False)

    def spent(self) -> str | None:
        """Why no further question may be asked, or None."""
        if self.max_queries is not None and self.queries >= self.max_queries:
            return f"{self.max_queries} queries are used up"
        if self.deadline is not None and self.clock() >= self.deadline:
            return "the time is used up"
        return None


def drive(
    plan: Plan,
    ask: Callable[[frozenset[int]], bool],
    on_accept: Callable[[frozenset[int]], None] | None = None,
    budget: Budget | None = None,
) -> frozenset[int]:
    """Run ``plan`` (made by one of this package's strategies) to its end and return the set it ends with.

    ``on_accept`` is called after each accepted question, before the next one is asked. Raises Stopped, with the best
    set so far, when the budget is spent or at Ctrl-C. What ``ask`` and ``on_accept`` raise otherwise passes through.
    """
    budget = budget or Budget()
    best: frozenset[int] | None = None
    try:
        keep = next(plan)
        while True:
            reason = budget.spent()
            if reason is not None:
                plan.throw(Halt(reason))
            accepted = ask(keep)
            budget.queries += 1
            if accepted:
                best = keep
                if on_accept is not None:
                    on_accept(keep)
            keep = plan.send(accepted)
    except StopIteration as end:
        result: frozenset[int] = end.value
        return result
    except KeyboardInterrupt as interrupt:
        if best is None:
            plan.throw(interrupt)  # the plan knows the full set and answers with Stopped
            raise
        raise Stopped(best, "interrupted") from interrupt
