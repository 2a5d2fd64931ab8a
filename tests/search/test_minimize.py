"""What every strategy promises, for predicates of any shape."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reducer.search.closures import Dependencies, minimize_closures
from reducer.search.driver import drive
from reducer.search.lists import minimize_list
from reducer.search.plan import Plan
from reducer.search.sweep import sweep
from reducer.search.widen import confirm_slice
from tests.search.fake_oracle import Predicate, Recorder, needs_all_of, noise


@st.composite
def monotone(draw: st.DrawFn, size: int) -> Predicate:
    """Accepts what holds one of a few needed sets."""
    elements = st.frozensets(st.integers(0, size - 1), max_size=size) if size else st.just(frozenset[int]())
    wanted = draw(st.lists(elements, min_size=1, max_size=3))
    return lambda keep: any(w <= keep for w in wanted)


def predicates(size: int) -> st.SearchStrategy[Predicate]:
    return monotone(size) | st.builds(noise, st.integers(0, 10_000), st.integers(0, 60))


@st.composite
def weighted(draw: st.DrawFn) -> tuple[list[int], Predicate]:
    weights = draw(st.lists(st.integers(1, 500), max_size=24))
    return weights, draw(predicates(len(weights)))


@st.composite
def linked(draw: st.DrawFn) -> tuple[list[int], list[frozenset[int]], Predicate]:
    weights = draw(st.lists(st.integers(1, 500), min_size=1, max_size=16))
    size = len(weights)
    links = st.frozensets(st.integers(0, size - 1), max_size=3)
    return weights, draw(st.lists(links, min_size=size, max_size=size)), draw(predicates(size))


def run(plan: Plan, predicate: Predicate, size: int) -> tuple[frozenset[int], Recorder]:
    """Drive to the end and check what holds for every strategy."""
    full = frozenset(range(size))
    oracle = Recorder(predicate)
    result = drive(plan, oracle)
    assert len(set(oracle.asked)) == len(oracle.asked), "a set was asked twice"
    assert full not in oracle.asked, "the full set is known"
    assert result in [full, *oracle.accepted], "the result was never accepted"
    return result, oracle


@given(weighted())
def test_list_result_is_one_minimal(case: tuple[list[int], Predicate]) -> None:
    weights, predicate = case
    result, oracle = run(minimize_list(weights), predicate, len(weights))
    assert not weights or oracle.asked[0] == frozenset()
    for element in result:
        rest = result - {element}
        assert rest in oracle.asked and not predicate(rest), f"{element} can go"


@given(linked())
def test_closure_result_is_one_minimal_and_only_closed_sets_are_asked(
    case: tuple[list[int], list[frozenset[int]], Predicate],
) -> None:
    weights, requires, predicate = case
    result, oracle = run(minimize_closures(weights, requires), predicate, len(weights))
    assert oracle.asked[0] == frozenset()
    for asked in oracle.asked:
        assert all(requires[i] <= asked for i in asked)
    for element in result:
        gone = {element}
        while more := {i for i in result - gone if requires[i] & gone}:
            gone |= more
        assert not predicate(result - gone), f"{element} can go with all that needs it"


@given(
    st.integers(1, 14).flatmap(
        lambda n: st.lists(st.frozensets(st.integers(0, n - 1), max_size=3), min_size=n, max_size=n)
    )
)
def test_dependencies_agree_with_following_every_link(requires: list[frozenset[int]]) -> None:
    needs = Dependencies(requires)
    for start in range(len(requires)):
        reached = {start}
        while more := {j for i in reached for j in requires[i]} - reached:
            reached |= more
        assert needs.closed[start] == reached
        assert all(start in needs.dependents[i] for i in reached)
    for i, dependents in enumerate(needs.dependents):
        assert all(i in needs.closed[j] for j in dependents)


@given(linked(), st.data())
def test_a_refused_slice_is_widened_to_an_accepted_closed_superset(
    case: tuple[list[int], list[frozenset[int]], Predicate], data: st.DataObject
) -> None:
    weights, requires, predicate = case
    size = len(weights)
    kept = data.draw(st.frozensets(st.integers(0, size - 1)))
    result, oracle = run(confirm_slice(size, kept, weights, requires), predicate, size)
    closed = Dependencies(requires).close(kept)
    assert not oracle.asked or oracle.asked[0] == closed
    if oracle.asked and predicate(closed):
        assert (result, len(oracle.asked)) == (closed, 1)
    for asked in [*oracle.asked, result]:
        assert kept <= asked
        assert all(requires[i] <= asked for i in asked)


@given(st.integers(0, 14), st.frozensets(st.integers(0, 13)), st.integers(0, 10_000), st.data())
def test_a_sweep_never_asks_what_is_incompatible(
    size: int, vetoed: frozenset[int], seed: int, data: st.DataObject
) -> None:
    predicate = data.draw(predicates(size))
    clashes = [frozenset({i, i + 1}) for i in vetoed]

    def compatible(removed: frozenset[int]) -> bool:
        return not any(clash <= removed for clash in clashes)

    result, oracle = run(sweep(size, compatible), predicate, size)
    full = frozenset(range(size))
    assert all(compatible(full - asked) for asked in oracle.asked)
    assert compatible(full - result)


@given(st.integers(1, 30), st.data())
def test_a_sweep_applies_every_alternative_that_the_oracle_likes(size: int, data: st.DataObject) -> None:
    wanted = data.draw(st.frozensets(st.integers(0, size - 1)))
    result, _ = run(sweep(size, lambda _removed: True), needs_all_of(*wanted), size)
    assert result == wanted


def test_a_sweep_prefers_the_earlier_of_two_alternatives_for_one_place() -> None:
    """0, 1, 2 rewrite the same place; 0 is refused, 1 and 2 would both do."""

    def compatible(removed: frozenset[int]) -> bool:
        return len(removed) <= 1

    result, oracle = run(sweep(3, compatible), needs_all_of(0), 3)
    assert result == {0, 2}
    assert oracle.asked == [{1, 2}, {0, 2}]


@given(weighted())
def test_the_same_questions_every_time(case: tuple[list[int], Predicate]) -> None:
    weights, predicate = case
    first = run(minimize_list(weights), predicate, len(weights))[1].asked
    assert run(minimize_list(weights), predicate, len(weights))[1].asked == first
