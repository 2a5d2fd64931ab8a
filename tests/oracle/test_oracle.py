"""The oracle's order of asking, with an observer that keeps a list of what it was asked."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from reducer.oracle.candidate import Candidate, Recipe
from reducer.oracle.failure import Signature
from reducer.oracle.observation import CompilerCall, Observation, SideName, Step
from reducer.oracle.oracle import Oracle
from reducer.oracle.signature import derive
from reducer.oracle.verdict import Verdict
from reducer.tree import SourceTree

RECIPE = Recipe(None, "python repro.py")
ROOT = "/q/0/tree"
Ending = Callable[[bytes], str]


def candidate(text: str) -> Candidate:
    return Candidate(SourceTree({"repro.py": text.encode()}), RECIPE)


def raised(error: str) -> str:
    return f'Traceback (most recent call last):\n  File "{ROOT}/repro.py", line 3, in <module>\n    x()\n{error}\n'


def ran(side: SideName, stderr: str, *, timed_out: bool = False, code: int = 1) -> Observation:
    exit_code = code if stderr or timed_out else 0
    return Observation(side, ROOT, None, (), Step("python repro.py", exit_code, "", stderr, timed_out, 0.1))


MISSING = raised("AttributeError: module 'paddle' has no attribute 'frobnicate'")
OTHER = raised("AttributeError: module 'paddle' has no attribute 'twiddle'")
CHECK = raised("NameError: name 'x' is not defined")


def expected() -> Signature:
    failure = derive(ran("paddle", MISSING))
    assert failure is not None
    return failure.signature


class Observer:
    """Answers by the words in a candidate's script; ``asked`` is every question in order."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, bool]] = []

    def __call__(self, side: SideName, candidate: Candidate, /, fast: bool) -> Observation:
        self.asked.append((side, fast))
        text = candidate.tree.text("repro.py")
        if side == "torch":
            return ran("torch", CHECK if "torch refuses" in text else "")
        if "hangs" in text:
            return ran("paddle", "", timed_out=True, code=-9)
        for word, error in (("same", MISSING), ("other", OTHER)):
            if word in text:
                return ran("paddle", error)
        return ran("paddle", "")


def test_paddle_first_and_the_control_only_after_the_same_failure() -> None:
    observe = Observer()
    oracle = Oracle(expected(), observe)
    for text, verdict, asked in (
        ("same", Verdict.SAME, [("paddle", True), ("torch", True)]),
        ("other", Verdict.DIFFERENT, [("paddle", True)]),
        ("fine", Verdict.PASSES, [("paddle", True)]),
        ("hangs", Verdict.TIMEOUT, [("paddle", True)]),
        ("same, torch refuses", Verdict.CONTROL_FAILS, [("paddle", True), ("torch", True)]),
    ):
        observe.asked.clear()
        judgement = oracle.judge(candidate(text))
        assert judgement.verdict is verdict, text
        assert judgement.accepted is (verdict is Verdict.SAME)
        assert observe.asked == asked, text


def test_an_answer_is_remembered_by_content_and_commands() -> None:
    observe = Observer()
    oracle = Oracle(expected(), observe)
    assert oracle.judge(candidate("same")).accepted
    asked = len(observe.asked)
    assert oracle.judge(candidate("same")).accepted
    assert (len(observe.asked), oracle.statistics.cache_hits) == (asked, 1)
    oracle.judge(Candidate(candidate("same").tree, Recipe(None, "python -u repro.py")))
    assert len(observe.asked) > asked
    assert oracle.statistics.queries.total() == 2


def test_a_quick_answer_is_no_real_one() -> None:
    observe = Observer()
    oracle = Oracle(expected(), observe)
    oracle.judge(candidate("same"))
    observe.asked.clear()
    assert oracle.judge(candidate("same"), real=True).tier == "real"
    assert observe.asked == [("paddle", False), ("torch", False)]


def test_a_timeout_is_asked_again() -> None:
    observe = Observer()
    oracle = Oracle(expected(), observe)
    oracle.judge(candidate("hangs"))
    oracle.judge(candidate("hangs"))
    assert len(observe.asked) == 2


def test_forgetting_the_cheap_answers_keeps_the_real_ones() -> None:
    observe = Observer()
    oracle = Oracle(expected(), observe)
    oracle.judge(candidate("same"))
    oracle.judge(candidate("same"), real=True)
    oracle.forget_cheap()
    observe.asked.clear()
    oracle.judge(candidate("same"), real=True)
    assert observe.asked == []
    oracle.judge(candidate("same"))
    assert observe.asked == [("paddle", True), ("torch", True)]


def test_free_checks_come_before_any_query() -> None:
    observe = Observer()
    oracle = Oracle(expected(), observe, checks=(lambda c: "(" not in c.tree.text("repro.py"),))
    judgement = oracle.judge(candidate("same ("))
    assert (judgement.verdict, judgement.tier, observe.asked) == (Verdict.INVALID, "free", [])
    assert oracle.statistics.queries.total() == 0
    assert oracle.judge(candidate("same")).accepted


def test_other_failures_are_counted() -> None:
    oracle = Oracle(expected(), Observer())
    oracle.judge(candidate("other"))
    oracle.judge(candidate("other, again"))
    assert oracle.statistics.verdicts == {"different": 2}


def test_the_users_expression_decides_on_what_was_printed() -> None:
    oracle = Oracle(expected(), Observer(), match=re.compile("no attribute 'twiddle'"))
    assert oracle.judge(candidate("other")).accepted
    assert not oracle.judge(candidate("same")).accepted


class Compiler:
    """A syntax tier: an error on either side by the words in the source; None when it is not to judge."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, side: SideName, candidate: Candidate, /) -> Observation | None:
        self.asked.append(side)
        text = candidate.tree.text("repro.py")
        if "unclear" in text:
            return None
        word = {"paddle": "gap", "torch": "broken"}[side]
        stderr = f"{ROOT}/a.cc:3:5: error: 'class at::Tensor' has no member named 'narrow'\n" if word in text else ""
        calls = (CompilerCall(("g++", "-c", "a.cc"), ROOT, int(bool(stderr)), stderr),)
        return Observation(side, ROOT, Step("g++", int(bool(stderr)), "", stderr), calls, None)


def compile_signature() -> Signature:
    seen = Compiler()("paddle", candidate("gap"))
    failure = derive(seen) if seen is not None else None
    assert failure is not None
    assert failure.signature.stage == "compile"
    return failure.signature


def test_a_compile_failure_is_judged_by_the_front_end_alone() -> None:
    observe, compiler = Observer(), Compiler()
    oracle = Oracle(compile_signature(), observe, compiler)
    for text, verdict, asked in (
        ("gap", Verdict.SAME, ["paddle", "torch"]),
        ("gap, broken", Verdict.CONTROL_FAILS, ["paddle", "torch"]),
        ("nothing", Verdict.PASSES, ["paddle"]),
    ):
        compiler.asked.clear()
        judgement = oracle.judge(candidate(text))
        assert (judgement.verdict, judgement.tier, compiler.asked) == (verdict, "syntax", asked)
    assert observe.asked == []


def test_the_real_answer_never_comes_from_the_front_end() -> None:
    observe, compiler = Observer(), Compiler()
    oracle = Oracle(compile_signature(), observe, compiler)
    oracle.judge(candidate("gap"), real=True)
    assert compiler.asked == []
    assert observe.asked == [("paddle", False)]


def test_a_front_end_that_cannot_judge_leaves_it_to_the_next_tier() -> None:
    observe, compiler = Observer(), Compiler()
    oracle = Oracle(expected(), observe, compiler)
    assert oracle.judge(candidate("same, unclear")).accepted
    assert observe.asked == [("paddle", True), ("torch", True)]


def test_a_run_stage_candidate_that_does_not_compile_is_not_run() -> None:
    observe, compiler = Observer(), Compiler()
    oracle = Oracle(expected(), observe, compiler)
    assert oracle.judge(candidate("same, gap")).verdict is Verdict.INVALID
    assert observe.asked == []
    assert oracle.judge(candidate("same, broken")).verdict is Verdict.CONTROL_FAILS
    assert observe.asked == [("paddle", True)], "the control does not compile: it is not built"
    assert oracle.judge(candidate("same")).accepted


def test_a_case_must_show_the_same_when_it_is_run_again() -> None:
    def observe(side: SideName, candidate: Candidate, /, fast: bool) -> Observation:
        text = candidate.tree.text("repro.py")
        first = ran(side, MISSING if side == "paddle" else "")
        other = ran(side, raised("FileExistsError: [Errno 17] File exists: 'out'")).run
        return replace(first, again=None if side == "torch" else other if "leaves" in text else first.run)

    oracle = Oracle(expected(), observe)
    for text, verdict in (
        ("repeats", Verdict.SAME),
        ("leaves", Verdict.DIFFERENT),
    ):
        assert oracle.judge(candidate(text)).verdict is verdict
