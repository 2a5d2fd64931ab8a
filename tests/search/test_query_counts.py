"""Golden query counts: a change of a strategy shows here as a number, next to what ddmin and CDD need."""

from __future__ import annotations

import random

import pytest

from reducer.search.closures import minimize_closures
from reducer.search.lists import minimize_list
from reducer.search.widen import confirm_slice
from tests.search.fake_oracle import Predicate, closed_only, count, needs_all_of, plain_cdd, plain_ddmin

SCATTERED = tuple(random.Random(8).sample(range(256), 8))
HALF = tuple(random.Random(9).sample(range(200), 100))


@pytest.mark.parametrize(
    ("size", "needed", "ours", "ddmin", "cdd"),
    [
        pytest.param(1000, (637,), 13, 16, 118, id="1 of 1000"),
        pytest.param(256, SCATTERED, 72, 310, 89, id="8 scattered of 256"),
        pytest.param(256, tuple(range(100, 108)), 38, 40, 50, id="8 together of 256"),
        pytest.param(200, HALF, 345, 3616, 440, id="100 scattered of 200"),
        pytest.param(64, tuple(range(64)), 70, 251, 136, id="all 64"),
        pytest.param(64, (), 1, 1, 1, id="none of 64"),
    ],
)
def test_lists(size: int, needed: tuple[int, ...], ours: int, ddmin: int, cdd: int) -> None:
    predicate = needs_all_of(*needed)
    left = len(needed)
    assert count(minimize_list([1] * size), predicate) == (ours, left)
    assert count(plain_ddmin(size), predicate) == (ddmin, left)
    assert count(plain_cdd(size), predicate) == (cdd, left)


def test_a_heavy_element_is_tried_early() -> None:
    """One function of 5,000 bytes among 200 of 10: most of the weight is gone after the third question."""
    weights = [10] * 200
    weights[120] = 5000
    sizes: list[int] = []

    def predicate(keep: frozenset[int]) -> bool:
        answer = 3 in keep
        if answer:
            sizes.append(sum(weights[i] for i in keep))
        return answer

    assert count(minimize_list(weights), predicate) == (11, 1)
    assert sizes[1] < 2000


CHAIN = [frozenset({i - 1}) if i else frozenset[int]() for i in range(200)]
"""Every element needs the one before it."""
STAR = [frozenset({0}) if i else frozenset[int]() for i in range(200)]
"""Every element needs element 0."""
LAYERS = [frozenset({i // 2, i // 3}) - {i} for i in range(400)]
"""A deep graph in which later elements need earlier ones."""


@pytest.mark.parametrize(
    ("requires", "needed", "left", "ours", "ddmin"),
    [
        pytest.param(CHAIN, (20,), 21, 25, 92, id="chain"),
        pytest.param(STAR, (77,), 2, 11, 45, id="star"),
        pytest.param(LAYERS, (301, 222), 28, 47, 1936, id="layers"),
        pytest.param([frozenset({(i + 1) % 50}) for i in range(50)], (7,), 50, 1, 195, id="one cycle"),
    ],
)
def test_closures(requires: list[frozenset[int]], needed: tuple[int, ...], left: int, ours: int, ddmin: int) -> None:
    predicate: Predicate = needs_all_of(*needed)
    assert count(minimize_closures([1] * len(requires), requires), predicate) == (ours, left)
    blind = count(plain_ddmin(len(requires)), closed_only(requires, predicate))
    assert blind[0] == ddmin
    assert blind[1] >= left


@pytest.mark.parametrize(
    ("kept", "needed", "questions", "left"),
    [
        pytest.param((1, 2, 3), (2,), 1, 3, id="right at once"),
        pytest.param((1, 2, 3), (2, 40), 10, 4, id="one missed"),
        pytest.param((1, 2, 3), (2, 40, 390), 22, 5, id="two missed"),
    ],
)
def test_widening(kept: tuple[int, ...], needed: tuple[int, ...], questions: int, left: int) -> None:
    plan = confirm_slice(400, frozenset(kept), [1] * 400)
    assert count(plan, needs_all_of(*needed)) == (questions, left)
