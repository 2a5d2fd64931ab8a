"""What an earlier run was answered: it comes back as it was, and goes when a cheap tier was wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reducer.oracle.candidate import Candidate, Recipe
from reducer.oracle.failure import Failure, Signature
from reducer.oracle.memory import Memory
from reducer.oracle.observation import Observation, SideName, Step
from reducer.oracle.oracle import Oracle
from reducer.oracle.signature import derive
from reducer.oracle.verdict import Judgement, Verdict
from reducer.tree import SourceTree

SIGNATURES = st.builds(Signature, st.just("compile"), st.just("diagnostic"), st.text(), st.text(), st.text())
FAILURES = st.builds(Failure, SIGNATURES, st.text(max_size=100), also=st.lists(SIGNATURES, max_size=3).map(tuple))
JUDGEMENTS = st.builds(Judgement, st.sampled_from(Verdict), st.text(), st.none() | FAILURES, st.none() | FAILURES)


class Texts(dict[str, str]):
    """Texts that live as long as the test."""

    def put(self, key: str, text: str) -> None:
        self[key] = text


@given(JUDGEMENTS)
def test_a_judgement_comes_back_as_it_was(judgement: Judgement) -> None:
    memory = Memory(Texts())
    memory.keep("k", judgement)
    found = memory.recall("k")
    assert found == judgement
    memory.forget()
    assert memory.recall("k") is None


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"verdict": "perhaps", "tier": "warm", "paddle": null, "control": null}']
)
def test_what_cannot_be_read_is_not_there(text: str) -> None:
    texts = Texts(k=text)
    assert Memory(texts).recall("k") is None


class World:
    """Paddle fails on every text with "gap"; ``asked`` counts the questions to both sides."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, side: SideName, candidate: Candidate, /, fast: bool) -> Observation:
        self.asked += 1
        fails = side == "paddle" and "gap" in candidate.tree.text("a.py")
        error = "AttributeError: module 'paddle' has no attribute 'gap'\n" if fails else ""
        trace = f'Traceback (most recent call last):\n  File "/q/a.py", line 1, in <module>\n{error}' if error else ""
        return Observation(side, "/q", None, (), Step("python a.py", int(fails), "", trace))


def candidate(text: str) -> Candidate:
    return Candidate(SourceTree({"a.py": text.encode()}), Recipe(None, "python a.py"))


def test_a_later_run_does_not_ask_again_but_for_real() -> None:
    failure = derive(World()("paddle", candidate("gap"), fast=False))
    assert failure is not None
    texts = Texts()
    first = Oracle(failure.signature, World(), memory=Memory(texts))
    answers = [first.judge(candidate(text)) for text in ("gap", "none")]
    world = World()
    later = Oracle(failure.signature, world, memory=Memory(texts))
    assert [later.judge(candidate(text)).verdict for text in ("gap", "none")] == [a.verdict for a in answers]
    assert world.asked == 0 and later.statistics.cache_hits == 2 and not later.statistics.queries
    assert later.judge(candidate("gap"), real=True).accepted
    assert world.asked == 2, "the real thing has the last word every time"
    later.forget_cheap()
    later.judge(candidate("none"))
    assert world.asked == 3 and list(texts) == [key for key in texts if key in texts][:1]
