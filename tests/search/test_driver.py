"""Budgets, interruption, and that the best is never lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reducer.search.driver import Budget, Stopped, drive
from reducer.search.lists import minimize_list
from reducer.search.plan import Plan, once
from tests.search.fake_oracle import Recorder, needs_all_of

FULL = frozenset(range(100))


@given(st.integers(0, 60))
def test_a_spent_budget_stops_with_the_last_accepted_set(limit: int) -> None:
    oracle = Recorder(needs_all_of(3, 50, 97))
    budget = Budget(max_queries=limit)
    try:
        result = drive(minimize_list([1] * 100), oracle, budget=budget)
    except Stopped as stop:
        assert len(oracle.asked) == budget.queries == limit
        assert "queries" in stop.reason
        result = stop.best
    assert result == (oracle.accepted or [FULL])[-1]


def test_one_budget_lasts_for_several_searches() -> None:
    budget = Budget(max_queries=2)
    assert drive(minimize_list([1] * 10), lambda _keep: True, budget=budget) == frozenset()
    assert drive(minimize_list([1] * 10), lambda _keep: True, budget=budget) == frozenset()
    with pytest.raises(Stopped) as stop:
        drive(minimize_list([1] * 10), lambda _keep: True, budget=budget)
    assert stop.value.best == frozenset(range(10))


def test_no_question_starts_after_the_deadline() -> None:
    now = 100.0

    def ask(keep: frozenset[int]) -> bool:
        nonlocal now
        now += 1
        return needs_all_of(3, 50)(keep)

    oracle = Recorder(ask)
    with pytest.raises(Stopped, match="time") as stop:
        drive(minimize_list([1] * 100), oracle, budget=Budget(deadline=105.0, clock=lambda: now))
    assert len(oracle.asked) == 5
    assert stop.value.best == oracle.accepted[-1]


@pytest.mark.parametrize("after", [0, 1, 2, 5, 9])
def test_an_interrupted_question_does_not_lose_the_best(after: int) -> None:
    oracle = Recorder(needs_all_of(3, 50))

    def ask(keep: frozenset[int]) -> bool:
        if len(oracle.asked) == after:
            raise KeyboardInterrupt
        return oracle(keep)

    with pytest.raises(Stopped, match="interrupted") as stop:
        drive(minimize_list([1] * 100), ask)
    assert stop.value.best == (oracle.accepted or [FULL])[-1]


def test_an_interrupt_while_the_best_is_being_saved_keeps_it() -> None:
    def save(_keep: frozenset[int]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Stopped, match="interrupted") as stop:
        drive(minimize_list([1] * 4), lambda _keep: True, save)
    assert stop.value.best == frozenset()


def test_an_interrupt_while_the_plan_thinks_keeps_the_best() -> None:
    def thinking() -> Plan:
        yield frozenset({1})
        raise KeyboardInterrupt

    with pytest.raises(Stopped, match="interrupted") as stop:
        drive(once(frozenset({0, 1}), thinking()), lambda _keep: True)
    assert stop.value.best == {1}


def test_every_accepted_set_is_reported_before_the_next_question() -> None:
    events: list[tuple[str, frozenset[int]]] = []
    oracle = Recorder(needs_all_of(2))

    def ask(keep: frozenset[int]) -> bool:
        events.append(("ask", keep))
        return oracle(keep)

    drive(minimize_list([1] * 8), ask, lambda keep: events.append(("accept", keep)))
    for position, (what, keep) in enumerate(events):
        if what == "accept":
            assert events[position - 1] == ("ask", keep)
    assert [keep for what, keep in events if what == "accept"] == oracle.accepted


def test_a_failing_oracle_is_not_swallowed() -> None:
    def ask(_keep: frozenset[int]) -> bool:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        drive(minimize_list([1] * 4), ask)


def test_a_strategy_that_returns_what_was_not_accepted_is_caught() -> None:
    def liar() -> Plan:
        yield frozenset({1})
        return frozenset({0})

    with pytest.raises(RuntimeError, match="not accepted"):
        drive(once(frozenset({0, 1}), liar()), lambda _keep: True)
