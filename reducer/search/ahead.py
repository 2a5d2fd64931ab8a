"""Running a plan on several cores: the questions that it asks next if the open ones are refused are asked meanwhile.

A plan is a deterministic function of the answers it got, and thinking costs far less than a question. A second copy of
the plan, the scout, is told "no" (the right guess nine times out of ten) to learn what comes next. Answers are taken
in the plan's own order, so the result is the one that the sequential driver gets. A "yes" ends what was asked on the
wrong guess, and a new scout is brought to where the plan stands. (treereduce's start, poll and cancel; C-Vise, too,
runs the candidates that follow a refusal.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from reducer.search.driver import Budget
from reducer.search.plan import Halt, Plan, Stopped


class Question(Protocol):
    """A question that was started. ``answer`` waits for it; ``drop`` says that nobody will."""

    def answer(self) -> bool: ...

    def drop(self) -> None: ...


def drive_ahead(
    make: Callable[[], Plan],
    begin: Callable[[frozenset[int]], Question],
    depth: int,
    on_accept: Callable[[frozenset[int]], None] | None = None,
    budget: Budget | None = None,
) -> frozenset[int]:
    """Run the plan that ``make`` gives, with up to ``depth`` questions open; otherwise as ``drive``.

    ``make`` gives a new copy of the same plan each time. A question that was dropped counts for no budget.
    """
    budget = budget or Budget()
    plan = make()
    answers: list[bool] = []
    scout: Plan | None = None
    open_questions: deque[Question] = deque()
    best: frozenset[int] | None = None
    try:
        keep = next(plan)
        while True:
            reason = budget.spent()
            if reason is not None:
                plan.throw(Halt(reason))
            if not open_questions:
                open_questions.append(begin(keep))
                scout = _at(make, answers) if depth > 1 else None
            while scout is not None and len(open_questions) < depth:
                try:
                    following = scout.send(False)
                except StopIteration:
                    scout = None
                else:
                    open_questions.append(begin(following))
            accepted = open_questions[0].answer()
            open_questions.popleft()
            budget.queries += 1
            answers.append(accepted)
            if accepted:
                best = keep
                while open_questions:
                    open_questions.pop().drop()
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
    finally:
        while open_questions:
            open_questions.pop().drop()


def _at(make: Callable[[], Plan], answers: Sequence[bool]) -> Plan:
    """A copy of the plan that stands at its next question after ``answers``."""
    plan = make()
    next(plan)
    for answer in answers:
        plan.send(answer)
    return plan
