"""Asking ahead: the same result as one question after the other, and bounded loss."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reducer.search.ahead import drive_ahead
from reducer.search.closures import minimize_closures
from reducer.search.driver import Budget, Stopped, drive
from reducer.search.lists import minimize_list
from reducer.search.plan import Plan
from reducer.search.sweep import sweep
from tests.search.fake_oracle import Predicate, Recorder, needs_all_of, noise


class Asked:
    """A question of the fake oracle, answered when it is waited for."""

    def __init__(self, log: Log, keep: frozenset[int]) -> None:
        self.log, self.keep = log, keep

    def answer(self) -> bool:
        answer = self.log.answered(self.keep)
        self.log.open.remove(self.keep)
        return answer

    def drop(self) -> None:
        self.log.open.remove(self.keep)
        self.log.dropped.append(self.keep)


class Log:
    """What was begun, waited for and dropped; ``most``: how many were open at once."""

    def __init__(self, predicate: Predicate) -> None:
        self.answered = Recorder(predicate)
        self.open: list[frozenset[int]] = []
        self.dropped: list[frozenset[int]] = []
        self.most = 0

    def begin(self, keep: frozenset[int]) -> Asked:
        self.open.append(keep)
        self.most = max(self.most, len(self.open))
        return Asked(self, keep)


SIZE = 24
PLANS: dict[str, Callable[[], Plan]] = {
    "list": lambda: minimize_list([1 + i % 5 for i in range(SIZE)]),
    "closures": lambda: minimize_closures([1] * SIZE, [frozenset({i // 2}) - {i} for i in range(SIZE)]),
    "sweep": lambda: sweep(SIZE, lambda removed: sum(removed) % 7 != 3),
}


@given(st.sampled_from(sorted(PLANS)), st.integers(0, 500), st.integers(0, 90), st.integers(1, 5))
def test_the_answers_waited_for_are_those_of_the_sequential_driver(
    name: str, seed: int, percent: int, depth: int
) -> None:
    one_by_one = Recorder(noise(seed, percent))
    expected = drive(PLANS[name](), one_by_one)
    log = Log(noise(seed, percent))
    taken: list[frozenset[int]] = []
    assert drive_ahead(PLANS[name], log.begin, depth, taken.append) == expected
    assert log.answered.asked == one_by_one.asked
    assert taken == one_by_one.accepted
    assert log.most <= depth and not log.open
    assert len(log.dropped) <= (depth - 1) * (len(taken) + 1)


def test_refusals_are_asked_side_by_side() -> None:
    log = Log(needs_all_of(*range(SIZE)))
    drive_ahead(PLANS["list"], log.begin, 3)
    assert log.most == 3
    assert not log.dropped, "every guess was right"


def test_a_spent_budget_drops_what_is_open() -> None:
    log = Log(needs_all_of(3, 20))
    with pytest.raises(Stopped) as stopped:
        drive_ahead(PLANS["list"], log.begin, 4, budget=Budget(max_queries=5))
    assert len(log.answered.asked) == 5
    assert not log.open
    assert stopped.value.best == (log.answered.accepted or [frozenset(range(SIZE))])[-1]


@pytest.mark.parametrize("after", [0, 6])
def test_ctrl_c_keeps_the_best_and_drops_what_is_open(after: int) -> None:
    def predicate(keep: frozenset[int]) -> bool:
        if len(log.answered.asked) > after:
            raise KeyboardInterrupt
        return {3, 20} <= keep

    log = Log(predicate)
    with pytest.raises(Stopped) as stopped:
        drive_ahead(PLANS["list"], log.begin, 3)
    assert stopped.value.reason == "interrupted"
    assert stopped.value.best == (log.answered.accepted or [frozenset(range(SIZE))])[-1]
    assert not log.open


def test_what_a_question_raises_is_passed_on_and_the_others_are_dropped() -> None:
    def predicate(keep: frozenset[int]) -> bool:
        raise OSError("no space left")

    log = Log(predicate)
    with pytest.raises(OSError, match="no space left"):
        drive_ahead(PLANS["sweep"], log.begin, 3)
    assert not log.open and log.dropped
