"""The oracle: judges candidates, from the cheapest tier that can decide to the real thing (DESIGN.md §5, §6).

Paddle is always asked first, the control only when Paddle shows the same failure: most candidates are refused by
Paddle, and the control is the dearer side.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from reducer.oracle.candidate import Candidate
from reducer.oracle.canonical import canonical_key
from reducer.oracle.failure import Failure, Signature
from reducer.oracle.memory import Memory
from reducer.oracle.names import bare
from reducer.oracle.observation import Observation, SideName
from reducer.oracle.signature import derive, same
from reducer.oracle.verdict import InfraError, Judgement, Unwanted, Verdict


class Observer(Protocol):
    """Builds and runs a candidate on one side; ``fast`` allows shortcuts that the real thing must confirm."""

    def __call__(self, side: SideName, candidate: Candidate, /, fast: bool) -> Observation: ...


class SyntaxTier(Protocol):
    """A compiler front end on one side: the diagnostics of all C++ of a candidate, or None when it cannot judge."""

    def __call__(self, side: SideName, candidate: Candidate, /) -> Observation | None: ...


@dataclass
class Statistics:
    """What the oracle spent. ``seconds`` and ``queries`` are by tier; a cache hit is no query."""

    queries: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    verdicts: Counter[str] = field(default_factory=Counter)
    cache_hits: int = 0
    slow: int = 0  # queries that took more than a second
    lost: int = 0  # queries that were asked ahead, on a guess that was wrong; not among the others
    disagreements: int = 0


class Oracle:
    """Answers whether a candidate still shows the expected failure on Paddle and works under PyTorch.

    ``checks`` are free tests of a candidate's text (it parses, it imports nothing that is gone); one that says no
    gives INVALID without a query. ``syntax`` may be switched off during a run (``syntax = None``). While
    ``defer_control`` is set, a warm query with C++ is content with a control that compiles; who sets it asks again,
    without it, about what came out. ``judge`` is safe to share between threads; the rest belongs to one of them.
    ``memory`` has the cheap tiers' answers of earlier runs of this case.
    """

    def __init__(
        self,
        expected: Signature,
        observe: Observer,
        syntax: SyntaxTier | None = None,
        match: re.Pattern[str] | None = None,
        checks: tuple[Callable[[Candidate], bool], ...] = (),
        memory: Memory | None = None,
    ) -> None:
        self.expected = expected
        self.observe = observe
        self.syntax = syntax
        self.match = match
        self.checks = checks
        self.memory = memory
        self.statistics = Statistics()
        self.defer_control = False
        self._known: dict[tuple[str, str], Judgement] = {}
        self._errors: frozenset[tuple[str, str]] | None = None
        self._counting = threading.Lock()

    def judge(
        self, candidate: Candidate, *, real: bool = False, wanted: Callable[[], bool] = lambda: True
    ) -> Judgement:
        """Judge one candidate. ``real``: by the library's own build and command in fresh processes on both sides.

        ``wanted`` turns false when nobody waits for the answer any more: the dear part of the question is left out
        then, and nothing is remembered, since the oracle may have been set otherwise meanwhile. Raises InfraError when
        the machine, not the candidate, fails twice, and Unwanted.
        """
        content = candidate.key if real else canonical_key(candidate)
        key = (content, "real" if real else "paddle" if self.defer_control else "both")
        known = self._recalled((key, (content, "both")) if not real else (key,))
        if known is not None:
            return self._without_new_errors(known)
        start = time.monotonic()
        judgement = self._free(candidate) or self._asked(candidate, real, wanted)
        seconds = time.monotonic() - start
        with self._counting:
            if not wanted():
                raise Unwanted
            if judgement.tier != "free":
                self.statistics.queries[judgement.tier] += 1
                self.statistics.seconds[judgement.tier] += seconds
                self.statistics.slow += seconds > 1.0
            self.statistics.verdicts[judgement.verdict.value] += 1
            if judgement.verdict is not Verdict.TIMEOUT:
                self._known[key] = judgement
                if self.memory is not None and not real and judgement.tier != "free":
                    self.memory.keep(" ".join(key), judgement)
        return self._without_new_errors(judgement)

    def _recalled(self, keys: tuple[tuple[str, str], ...]) -> Judgement | None:
        """What was answered before, in this run or an earlier one."""
        for key in keys:
            found = self._known.get(key)
            if found is None and self.memory is not None and key[1] != "real":
                found = self.memory.recall(" ".join(key))
            if found is not None:
                with self._counting:
                    self._known[key] = found
                    self.statistics.cache_hits += 1
                return found
        return None

    def settle(self, judgement: Judgement) -> None:
        """Take the compiler errors of an accepted candidate as the only ones that later candidates may show.

        One build often shows several gaps, and mutation makes more (a header that goes takes a macro along, which
        PyTorch gets by another way). The result shall show one.
        """
        if self.expected.stage == "compile" and judgement.paddle is not None:
            self._errors = _errors(judgement.paddle)

    def _without_new_errors(self, judgement: Judgement) -> Judgement:
        if self._errors is None or not judgement.accepted or judgement.paddle is None:
            return judgement
        if _errors(judgement.paddle) <= self._errors:
            return judgement
        return replace(judgement, verdict=Verdict.DIFFERENT)

    def shown_warm(self, candidate: Candidate) -> bool:
        """Whether Paddle shows the expected failure in a warm build and run. Counted as no query, and not remembered.

        Raises InfraError when the machine fails.
        """
        seen = self.observe("paddle", candidate, True)
        return self._on_paddle(derive(seen), output_of(seen)) is Verdict.SAME

    def forget_cheap(self) -> None:
        """Drop what the cheap tiers said (one of them was wrong)."""
        self._known = {key: judgement for key, judgement in self._known.items() if key[1] == "real"}
        if self.memory is not None:
            self.memory.forget()
        self._errors = None

    def _free(self, candidate: Candidate) -> Judgement | None:
        if all(check(candidate) for check in self.checks):
            return None
        return Judgement(Verdict.INVALID, "free")

    def _cheap(self, candidate: Candidate, wanted: Callable[[], bool]) -> Judgement:
        if self.syntax is None or self.expected.stage not in ("compile", "import", "run"):
            return self._run(candidate, wanted, fast=True)
        seen = self.syntax("paddle", candidate)
        if seen is None:
            return self._run(candidate, wanted, fast=True)
        failure = derive(seen)
        if self.expected.stage != "compile":
            if failure is not None:
                return Judgement(Verdict.INVALID, "syntax", failure)
            return self._run(candidate, wanted, fast=True)
        verdict = self._on_paddle(failure, "")
        if verdict is not Verdict.SAME:
            return Judgement(verdict, "syntax", failure)
        control = self.syntax("torch", candidate)
        if control is None:
            return self._run(candidate, wanted, fast=True)
        refused = derive(control)
        if refused is not None:
            return Judgement(Verdict.CONTROL_FAILS, "syntax", failure, refused)
        return Judgement(Verdict.SAME, "syntax", failure)

    def _asked(self, candidate: Candidate, real: bool, wanted: Callable[[], bool]) -> Judgement:
        """The tiers' answer; a fault of the machine is retried once, then passed on."""
        for last in (False, True):
            try:
                return self._run(candidate, wanted, fast=False) if real else self._cheap(candidate, wanted)
            except InfraError:
                with self._counting:
                    self.statistics.verdicts[Verdict.INFRA.value] += 1
                if last:
                    raise
        raise AssertionError("the second try returns or raises")

    def _run(self, candidate: Candidate, wanted: Callable[[], bool], *, fast: bool) -> Judgement:
        tier = "warm" if fast else "real"
        failure = None
        for seen in self.observe("paddle", candidate, fast).repeats:
            failure = derive(seen)
            verdict = self._on_paddle(failure, output_of(seen))
            if verdict is not Verdict.SAME:
                return Judgement(verdict, tier, failure)
        if not wanted():
            raise Unwanted
        if fast and self.syntax is not None and self.expected.stage in ("import", "run"):
            compiled = self.syntax("torch", candidate)  # tenths of a second, where a build costs seconds
            refused = derive(compiled) if compiled is not None else None
            if refused is not None:
                return Judgement(Verdict.CONTROL_FAILS, tier, failure, refused)
            if self.defer_control:
                return Judgement(Verdict.SAME, tier, failure)
        refused = derive(self.observe("torch", candidate, fast))
        if refused is not None:
            return Judgement(Verdict.CONTROL_FAILS, tier, failure, refused)
        return Judgement(Verdict.SAME, tier, failure)

    def _on_paddle(self, failure: Failure | None, output: str) -> Verdict:
        if failure is None:
            return Verdict.PASSES
        if same(self.expected, failure, self.match, output):
            return Verdict.SAME
        if failure.signature.kind == "timeout":
            return Verdict.TIMEOUT
        return Verdict.DIFFERENT


def _errors(failure: Failure) -> frozenset[tuple[str, str]]:
    """Types and bare symbols of all compiler errors of a build."""
    return frozenset((s.type, bare(s.symbol)) for s in (failure.signature, *failure.also))


def agrees(syntax: SyntaxTier, baseline: Candidate, expected: Signature) -> bool:
    """Whether the syntax tier sees the untouched case as the real build did: it may only judge candidates then."""
    seen, control = syntax("paddle", baseline), syntax("torch", baseline)
    if seen is None or control is None or derive(control) is not None:
        return False
    failure = derive(seen)
    if expected.stage == "compile":
        return failure is not None and same(expected, failure, None, "")
    return failure is None


def output_of(seen: Observation) -> str:
    """All that one side printed."""
    steps = [step.output for step in (seen.build, seen.run) if step is not None]
    return "\n".join([*(call.stderr for call in seen.calls), *steps])
