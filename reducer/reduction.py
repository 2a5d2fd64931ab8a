"""The state of a reduction: the best candidate, and how passes are run on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

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


class Reduction:
    """Owns the best candidate so far; every change of it was accepted by the oracle.

    ``say`` prints one line of progress. Raises Stopped when the budget is spent; ``best`` stays valid. ``pool``: asks
    about several candidates at once where that is of use.
    """

    def __init__(
        self,
        start: Candidate,
        oracle: Oracle,
        say: Callable[[str], None],
        budget: Budget,
        pool: Pool | None = None,
    ) -> None:
        self._pool = pool
        self.best = start
        self._start = start
        self.oracle = oracle
        self.real_only = False
        self.trusts_front_end = True
        self._say = say
        self._budget = budget

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
        self._take(candidate, judgement)
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
        the whole pass came to, and run the pass again with every control when that is refused.
        """
        if not defer_control or self.oracle.syntax is None or self.real_only:
            return self._pass(source)
        start, checked = self.best, False
        self.oracle.defer_control = True
        try:
            progress = self._pass(source)
            self.oracle.defer_control = False
            checked = not progress or self.judge(self.best).accepted
        finally:
            self.oracle.defer_control = False
            if not checked:
                self.best = start
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
                self._take(changed, judgement)
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

    def disagree(self, why: str) -> bool:
        """The real build and command do not confirm the best candidate: go back to the start without the tier that was
        wrong, first the syntax tier, then every shortcut. False when none is left to blame."""
        self.oracle.statistics.disagreements += 1
        if self.oracle.syntax is not None:
            self.oracle.syntax = None
            self.trusts_front_end = False
            self._say(f"{why}: again, without the compiler front end's answers")
        elif not self.real_only:
            self.real_only = True
            self._say(f"{why}: again, with real builds and commands only")
        else:
            return False
        self.oracle.forget_cheap()
        self.best = self._start
        return True

    def _take(self, candidate: Candidate, judgement: Judgement) -> None:
        self.best = candidate
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
