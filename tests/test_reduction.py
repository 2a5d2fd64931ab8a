"""The reduction's state: passes move the best candidate only by accepted answers, and real ones have the last word."""

from __future__ import annotations

import itertools
import math
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reducer.asking import Pool
from reducer.edits.edit import Edit, Splice, cut
from reducer.edits.passes import Proposal, Strategy
from reducer.oracle.candidate import Candidate, Recipe
from reducer.oracle.observation import Observation, SideName, Step
from reducer.oracle.oracle import Oracle
from reducer.oracle.signature import derive
from reducer.oracle.verdict import Judgement, Unwanted, Verdict
from reducer.reduction import Disagreement, Reduction, Shortcut
from reducer.search.driver import Budget, Stopped
from reducer.tree import SourceTree
from reducer.world.processes import run

ROOT = "/q/0/tree"
ERROR = (
    f'Traceback (most recent call last):\n  File "{ROOT}/a.py", line 1, in <module>\n'
    "AttributeError: module 'paddle' has no attribute 'frobnicate'\n"
)
Holds = Callable[[str], bool]


def observation(side: SideName, fails: bool) -> Observation:
    return Observation(side, ROOT, None, (), Step("python a.py", int(fails), "", ERROR if fails else ""))


class World:
    """Both frameworks as predicates on the text of ``a.py``; ``accepted`` lists the texts that both sides liked."""

    def __init__(self, paddle_fails: Holds, torch_passes: Holds, really: Holds | None = None) -> None:
        self.paddle_fails, self.torch_passes = paddle_fails, torch_passes
        self.really = really or paddle_fails
        self.accepted: set[str] = set()
        self.asked = 0

    def __call__(self, side: SideName, candidate: Candidate, /, fast: bool) -> Observation:
        text = candidate.tree.text("a.py")
        if side == "paddle":
            self.asked += 1
            return observation(side, (self.paddle_fails if fast else self.really)(text))
        passes = self.torch_passes(text)
        if passes:
            self.accepted.add(text)
        return observation(side, not passes)


class Lines:
    """Offers to cut each line of ``a.py``."""

    name = "lines"

    def __init__(self, strategy: Strategy = "list") -> None:
        self.strategy = strategy

    def propose(self, tree: SourceTree) -> Proposal:
        ends = [0, *itertools.accumulate(map(len, tree["a.py"].splitlines(keepends=True)))]
        return Proposal(tuple(cut("a.py", a, b) for a, b in itertools.pairwise(ends)), self.strategy)


class Offers:
    """A pass that offers what it is given."""

    name = "offers"

    def __init__(self, edits: Sequence[Edit], strategy: Strategy = "sweep") -> None:
        self.offer = Proposal(tuple(edits), strategy)

    def propose(self, tree: SourceTree) -> Proposal:
        return self.offer


def reduction(
    text: str,
    world: World,
    budget: Budget | None = None,
    shortcuts: tuple[Shortcut, ...] = ("warm runs",),
    patience: float | None = None,
) -> tuple[Reduction, list[str]]:
    failure = derive(observation("paddle", True))
    assert failure is not None
    start = Candidate(SourceTree({"a.py": text.encode(), "b.txt": b"other"}), Recipe(None, "python a.py"))
    said: list[str] = []
    oracle = Oracle(failure.signature, world)
    budget = budget or Budget()
    return Reduction(start, oracle, said.append, budget, shortcuts=shortcuts, patience=patience), said


def has(*wanted: str) -> Holds:
    return lambda text: all(word in text.split() for word in wanted)


TEXT = "".join(f"l{i}\n" for i in range(12))


def text_of(state: Reduction) -> str:
    return state.best.tree.text("a.py")


@given(st.sets(st.integers(0, 11), min_size=1), st.sets(st.integers(0, 11)))
@settings(max_examples=60, deadline=None)
def test_the_result_is_what_both_sides_need(paddle: set[int], torch: set[int]) -> None:
    world = World(has(*(f"l{i}" for i in paddle)), has(*(f"l{i}" for i in torch)))
    state, _ = reduction(TEXT, world)
    state.fixpoint([Lines()])
    assert text_of(state) == "".join(f"l{i}\n" for i in sorted(paddle | torch))
    assert state.best.tree["b.txt"] == b"other"


@given(st.lists(st.booleans(), min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_nothing_is_ever_best_that_was_not_accepted(answers: list[bool]) -> None:
    """Also with answers that follow no rule."""
    stream = itertools.cycle(answers)
    world = World(lambda _: next(stream), lambda _: next(stream))
    state, _ = reduction(TEXT, world)
    state.run(Lines())
    assert text_of(state) in world.accepted | {TEXT}


def test_a_pass_without_progress_says_so() -> None:
    state, said = reduction(TEXT, World(has(*TEXT.split()), lambda _: True))
    before = state.best
    assert not state.run(Lines())
    assert not state.run(Offers([]))
    assert state.best is before
    assert said == []


def test_edits_that_change_nothing_cost_no_query() -> None:
    world = World(lambda _: True, lambda _: True)
    state, _ = reduction("x\n", world)
    assert not state.run(Offers([Edit((Splice("a.py", 0, 1, b"x"),))]))
    assert world.asked == 0


def test_edits_that_conflict_are_never_asked_together() -> None:
    world = World(lambda text: "!" not in text, lambda _: True)
    state, _ = reduction("abcdef", world)
    edits = [Edit((Splice("a.py", 0, 3, b"X"),)), Edit((Splice("a.py", 2, 5, b"Y"),)), Edit((Splice("a.py", 5, 6),))]
    assert state.run(Offers(edits))
    assert text_of(state) == "Xde"


def test_closures_only_ask_for_closed_sets() -> None:
    """l1 needs l0, and l2 needs l1: no candidate has a line without what it needs."""
    seen: list[str] = []

    def fails(text: str) -> bool:
        seen.append(text)
        return "l1" in text.split()

    class Chain(Lines):
        def propose(self, tree: SourceTree) -> Proposal:
            lines = tree.text("a.py").split()
            edits = super().propose(tree).edits
            needs = [frozenset({lines.index(f"l{int(name[1:]) - 1}")} if name != "l0" else ()) for name in lines]
            return Proposal(edits, "closures", tuple(needs))

    state, _ = reduction(TEXT, World(fails, lambda _: True))
    state.run(Chain())
    assert text_of(state) == "l0\nl1\n"
    assert all(text.split() == [f"l{i}" for i in range(len(text.split()))] for text in seen)


def test_a_disagreement_goes_back_to_the_last_confirmed_step_and_on_with_real_answers_only() -> None:
    """The quick runs see the failure whenever l3 is there; in truth it needs l7 too."""
    world = World(has("l3"), lambda _: True, really=has("l3", "l7"))
    state, said = reduction(TEXT, world)
    state.run(Lines())
    assert text_of(state) == "l3\n"
    assert state.disagree("the written files behave otherwise")
    assert has("l3", "l7")(text_of(state))
    assert any("behave otherwise" in line for line in said)
    state.run(Lines())
    assert text_of(state) == "l3\nl7\n"
    assert not state.disagree("again"), "nothing is left to blame"
    assert state.oracle.statistics.disagreements == 2


@given(st.sets(st.integers(0, 11), min_size=1), st.sets(st.integers(0, 11)))
@settings(max_examples=60, deadline=None)
def test_going_back_ends_where_the_real_thing_agrees(cheap: set[int], more: set[int]) -> None:
    """Whatever the cheap answers miss; and it costs the logarithm of the steps."""
    really = has(*(f"l{i}" for i in cheap | more))
    world = World(has(*(f"l{i}" for i in cheap)), lambda _: True, really=really)
    state, _ = reduction(TEXT, world)
    state.fixpoint([Lines("sweep")])
    if really(text_of(state)):
        return
    steps = 12 - len(text_of(state).split())
    assert state.disagree("the written files behave otherwise")
    assert really(text_of(state))
    assert state.oracle.statistics.queries["real"] <= math.ceil(math.log2(max(2, steps)))
    state.fixpoint([Lines("sweep")])
    assert text_of(state) == "".join(f"l{i}\n" for i in sorted(cheap | more))


def test_shortcuts_are_blamed_one_after_the_other() -> None:
    world = World(has("l3"), lambda _: True, really=has("l3", "l7"))
    state, _ = reduction(TEXT, world, shortcuts=("quick builds", "warm runs"))
    state.run(Lines())
    assert state.disagree("first") and state.distrusted == {"quick builds"} and not state.real_only
    assert state.disagree("second") and state.real_only
    assert not state.disagree("third")


def test_a_checkpoint_asks_the_real_thing_when_the_search_was_long() -> None:
    world = World(has("l3"), lambda _: True, really=has("l3", "l7"))
    state, said = reduction(TEXT, world, patience=0.0)
    with pytest.raises(Disagreement):
        state.run(Lines())
    assert has("l3", "l7")(text_of(state)) and state.real_only
    assert any(line.startswith("checkpoint") for line in said)
    state.run(Lines())
    assert text_of(state) == "l3\nl7\n"


def test_what_a_checkpoint_confirmed_is_not_given_up() -> None:
    world = World(has("l3", "l7"), lambda _: True)
    state, said = reduction(TEXT, world, patience=0.0)
    state.run(Lines())
    assert "checkpoint: the real build and command agree" in said
    assert state.disagree("the written files behave otherwise")
    assert text_of(state) == "l3\nl7\n"


@pytest.mark.parametrize("queries", range(1, 12))
def test_a_spent_budget_keeps_the_best(queries: int) -> None:
    world = World(has("l3", "l8"), lambda _: True)
    state, _ = reduction(TEXT, world, Budget(max_queries=queries))
    with pytest.raises(Stopped) as stopped:
        for _ in range(queries):
            state.fixpoint([Lines()])
            state.tree(state.best.tree.updated({"b.txt": None}), "b.txt")
    assert "used up" in stopped.value.reason
    assert text_of(state) in world.accepted | {TEXT}


def test_the_first_tree_that_is_accepted() -> None:
    state, said = reduction(TEXT, World(has("l3"), lambda _: True))
    trees = [state.best.tree.updated({"a.py": text}) for text in (b"l1\n", b"l3 l4\n", b"l3\n")]
    assert state.first(trees, "short forms")
    assert text_of(state) == "l3 l4\n"
    assert [line.split(",")[0] for line in said[:1]] == ["short forms: refused"]
    assert [line.split(":")[0] for line in said[1:]] == ["short forms"]


@given(st.sets(st.integers(0, 11), min_size=1), st.sets(st.integers(0, 11)))
@settings(max_examples=20, deadline=None)
def test_several_questions_at_once_give_the_same_result(paddle: set[int], torch: set[int]) -> None:
    needs = (has(*(f"l{i}" for i in paddle)), has(*(f"l{i}" for i in torch)))
    alone, _ = reduction(TEXT, World(*needs))
    alone.fixpoint([Lines(), Lines("sweep")])
    pool = Pool(3)
    try:
        failure = derive(observation("paddle", True))
        assert failure is not None
        start = Candidate(SourceTree({"a.py": TEXT.encode(), "b.txt": b"other"}), Recipe(None, "python a.py"))
        state = Reduction(start, Oracle(failure.signature, World(*needs)), lambda line: None, Budget(), pool)
        state.fixpoint([Lines(), Lines("sweep")])
    finally:
        pool.close()
    assert text_of(state) == text_of(alone)


def test_an_answer_that_nobody_wants_is_neither_counted_nor_remembered() -> None:
    failure = derive(observation("paddle", True))
    assert failure is not None
    world = World(has("l1"), has("l2"))
    oracle = Oracle(failure.signature, world)
    candidate = Candidate(SourceTree({"a.py": b"l1\nl2\n"}), Recipe(None, "python a.py"))
    with pytest.raises(Unwanted):
        oracle.judge(candidate, wanted=lambda: False)
    assert not world.accepted, "PyTorch was asked in vain"
    assert oracle.statistics.queries.total() == 0
    assert oracle.judge(candidate).accepted and oracle.statistics.cache_hits == 0


def test_closing_ends_questions_that_run() -> None:
    begun, ended = threading.Event(), threading.Event()

    def judge(*, wanted: Callable[[], bool]) -> Judgement:
        begun.set()
        try:
            run("sleep 600", Path("/"), {"PATH": os.defpath}, 600, writable=())
        finally:
            ended.set()
        return Judgement(Verdict.PASSES, "warm")

    pool = Pool(2)
    pool.ask(judge, lambda judgement: False, lambda: None)
    assert begun.wait(300)
    pool.close()
    assert ended.is_set()
