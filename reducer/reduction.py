"""The state of a reduction: the best candidate, and how passes are run on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Literal

from reducer.asking import Known, Pool
from reducer.edits.edit import EditConflict, apply
from reducer.edits.passes import Pass, Proposal
from reducer.oracle.candidate import Candidate
from reducer.oracle.oracle import Oracle
from reducer.oracle.verdict import Judgement
from reducer.report.sizes import measure
from reducer.search.ahead import Question, drive_ahead
from reducer.search.closures import minimize_closures
from reducer.search.driver import Budget, Plan, Stopped, drive
from reducer.search.lists import minimize_list
from reducer.search.sweep import sweep
from reducer.tree import SourceTree

ROUNDS = 12  # of all passes; a fixpoint comes far earlier, this only bounds a cycle of rewrites

Shortcut = Literal["clang", "quick builds", "warm runs"]
_WITHOUT: dict[Shortcut, str] = {
    "clang": "without clang's answers",
    "quick builds": "with the library's own optimisation",
    "warm runs": "with real builds and commands only",
}


class Disagreement(Exception):
    """The real thing did not confirm what cheap answers had accepted. The reduction is back at a confirmed state and
    does without the shortcut that it blames; whoever planned the passes starts again from there."""


class Reduction:
    """Owns the best candidate so far; every change of it was accepted by the oracle.

    ``say`` prints one line of progress. Raises Stopped when the budget is spent; ``best`` stays valid. ``pool``: asks
    about several candidates at once where that is of use. ``shortcuts``: what is to blame when the real thing
    disagrees, the likeliest first. ``patience``: seconds of search on cheap answers alone after which the real thing
    is asked (``run`` raises Disagreement when it says no); None: never before the end.
    """

    def __init__(
        self,
        start: Candidate,
        oracle: Oracle,
        say: Callable[[str], None],
        budget: Budget,
        pool: Pool | None = None,
        shortcuts: Sequence[Shortcut] = ("warm runs",),
        patience: float | None = None,
    ) -> None:
        self._pool = pool
        # Every best candidate since the last confirmed one, which is the first, with what made it.
        self._steps = [(start, "the baseline")]
        self.oracle = oracle
        self._checks = oracle.checks
        self._shortcuts = tuple(shortcuts)
        self.distrusted: set[Shortcut] = set()
        self._say = say
        self._budget = budget
        self._patience = patience
        self._confirmed_at = time.monotonic()

    @property
    def best(self) -> Candidate:
        """The smallest candidate that was accepted."""
        return self._steps[-1][0]

    @property
    def real_only(self) -> bool:
        """Whether every candidate is built and run for real."""
        return "warm runs" in self.distrusted

    def judge(self, candidate: Candidate) -> Judgement:
        """Ask the oracle within the budget."""
        reason = self._budget.spent()
        if reason is not None:
            raise Stopped(frozenset(), reason)
        return self.oracle.judge(candidate, real=self.real_only)

    def accepts(self, candidate: Candidate, label: str) -> bool:
        """Make ``candidate`` the best one when the oracle accepts it."""
        if candidate == self.best:
            return True
        judgement = self.judge(candidate)
        if not judgement.accepted:
            self._say(f"{label}: refused, {judgement.reason}")
            return False
        self._take(candidate, judgement, label)
        self._progress(label)
        return True

    def tree(self, tree: SourceTree, label: str) -> bool:
        """Try another tree with the same commands."""
        return self.accepts(self.best.with_tree(tree), label)

    def first(self, trees: Iterable[SourceTree], label: str) -> bool:
        """The first of several trees that is accepted."""
        return any(self.tree(tree, label) for tree in trees)

    def run(self, source: Pass, *, defer_control: bool = False) -> bool:
        """Run one pass on the best candidate. True when it made progress.

        ``defer_control``: builds for the control cost more than all else; ask for the control's run once, about what
        the whole pass came to, and run the pass again with every control when that is refused. Raises Disagreement.
        """
        progress = self._with_control_at_the_end(source) if defer_control else self._pass(source)
        if progress:
            self._checkpoint()
        return progress

    def _with_control_at_the_end(self, source: Pass) -> bool:
        if self.oracle.syntax is None or self.real_only:
            return self._pass(source)
        start, checked = len(self._steps), False
        self.oracle.defer_control = True
        try:
            progress = self._pass(source)
            self.oracle.defer_control = False
            checked = not progress or self.judge(self.best).accepted
        finally:
            self.oracle.defer_control = False
            if not checked:
                del self._steps[start:]
        if checked:
            return progress
        self._say(f"{source.name}: refused by the control, once more in single steps")
        return self._pass(source)

    def _pass(self, source: Pass) -> bool:
        base = self.best
        offer = source.propose(base.tree)
        if not offer.edits:
            return False
        everything = frozenset(range(len(offer.edits)))

        def candidate(keep: frozenset[int]) -> Candidate | None:
            try:
                return base.with_tree(apply(base.tree, (offer.edits[i] for i in everything - keep)))
            except EditConflict:
                return None

        known: dict[frozenset[int], bool] = {}

        def compatible(removed: frozenset[int]) -> bool:
            if removed not in known:
                known[removed] = candidate(everything - removed) is not None
            return known[removed]

        return self.search(lambda: _plan(offer, compatible), candidate, source.name)

    def search(
        self, make: Callable[[], Plan], candidate: Callable[[frozenset[int]], Candidate | None], label: str
    ) -> bool:
        """Run the plan that ``make`` gives, each time the same, whose sets stand for candidates (None: means nothing,
        refused). True when one was accepted."""
        base = self.best

        def take(changed: Candidate, judgement: Judgement) -> bool:
            if judgement.accepted:
                self._take(changed, judgement, label)
            return judgement.accepted

        def ask(keep: frozenset[int]) -> bool:
            changed = candidate(keep)
            return changed is not None and changed != base and take(changed, self.judge(changed))

        def begin(pool: Pool, keep: frozenset[int]) -> Question:
            changed = candidate(keep)
            if changed is None or changed == base:
                return Known(False)
            return pool.ask(partial(self.oracle.judge, changed), partial(take, changed), self._lost)

        pool = self._pool
        if pool is None or not self._worth_asking_ahead:
            drive(make(), ask, budget=self._budget)
        else:
            drive_ahead(make, partial(begin, pool), pool.width + 1, budget=self._budget)
        if self.best == base:
            return False
        self._progress(label)
        return True

    @property
    def _worth_asking_ahead(self) -> bool:
        """Not for real builds, which use all cores themselves, nor where one compiler front end answers them all."""
        return not self.real_only and not (self.oracle.syntax is not None and self.oracle.expected.stage == "compile")

    def _lost(self) -> None:
        self.oracle.statistics.lost += 1

    def fixpoint(self, passes: Sequence[Pass], *, defer_control: bool = False) -> None:
        """Run the passes over and over until a whole round changes nothing."""
        for _ in range(ROUNDS):
            progress = False
            for source in passes:
                progress |= self.run(source, defer_control=defer_control)
            if not progress:
                return

    def _checkpoint(self) -> None:
        """Ask the real thing about the best candidate when many cheap answers stand unconfirmed."""
        waited = time.monotonic() - self._confirmed_at
        if self._patience is None or waited < self._patience or self.real_only or len(self._steps) == 1:
            return
        judgement = self.oracle.judge(self.best, real=True)
        if judgement.accepted:
            self._say("checkpoint: the real build and command agree")
            self._confirmed(len(self._steps) - 1)
        elif self.disagree(f"checkpoint: the real build and command say otherwise ({judgement.reason})"):
            raise Disagreement

    def disagree(self, why: str) -> bool:
        """The real build and command do not confirm the best candidate: go back to the last one that they do confirm,
        and blame the likeliest shortcut. False when none is left to blame.

        Where they part is found by bisection over the accepted steps, so that short runs need no checkpoints: log2 of
        the steps, in real builds, and only when something is wrong.
        """
        self.oracle.statistics.disagreements += 1
        blamed = next((shortcut for shortcut in self._shortcuts if shortcut not in self.distrusted), None)
        if blamed is None:
            return False
        self.distrust(blamed)
        self.oracle.checks = self._checks
        low, high = 0, len(self._steps) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self.oracle.judge(self._steps[middle][0], real=True).accepted:
                low = middle
            else:
                high = middle
        parted = self._steps[high][1]
        self._confirmed(low)
        if low:
            self.oracle.settle(self.oracle.judge(self.best, real=True))  # known already
        self._say(f'{why}: since "{parted}"; back to the state before it, and on {_WITHOUT[blamed]}')
        self._progress("confirmed")
        return True

    def distrust(self, shortcut: Shortcut) -> None:
        """Do without a shortcut from now on, and forget what was answered with it."""
        self.distrusted.add(shortcut)
        if shortcut == "clang":
            self.oracle.syntax = None
        self.oracle.forget_cheap()

    def _confirmed(self, index: int) -> None:
        self._steps = [self._steps[index]]
        self._confirmed_at = time.monotonic()

    def _take(self, candidate: Candidate, judgement: Judgement, label: str) -> None:
        self._steps.append((candidate, label))
        self.oracle.settle(judgement)

    def _progress(self, label: str) -> None:
        size = measure(self.best.tree)
        queries = self.oracle.statistics.queries.total()
        self._say(f"{label}: {size['files']} files, {size['lines']} lines, {size['tokens']} tokens ({queries} queries)")


def _plan(offer: Proposal, compatible: Callable[[frozenset[int]], bool]) -> Plan:
    if offer.strategy == "sweep":
        return sweep(len(offer.edits), compatible)
    weights = [edit.weight for edit in offer.edits]
    if offer.strategy == "closures" or offer.requires:
        return minimize_closures(weights, offer.requires or (frozenset(),) * len(weights))
    return minimize_list(weights)
