"""What a pass is: a pure source of edits for one tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from reducer.edits.edit import Edit
from reducer.tree import SourceTree

Strategy = Literal["closures", "list", "sweep"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """Edits that a pass offers for one base tree, and how to search among them.

    ``closures``: ``requires[i]`` holds the indices of the elements that must *stay* when element i stays (what it
    refers to); the search only ever asks for dependency-closed subsets.
    ``list``: any subset makes sense (delta debugging). ``sweep``: alternatives, tried one by one in order, each on top
    of what was accepted; edits that conflict with accepted ones are skipped without a query.
    """

    edits: tuple[Edit, ...]
    strategy: Strategy = "list"
    requires: tuple[frozenset[int], ...] = ()

    def __post_init__(self) -> None:
        if self.requires and len(self.requires) != len(self.edits):
            raise ValueError("requires must have one entry for each edit")


class Pass(Protocol):
    """A source of edits. ``propose`` reads nothing but the tree and runs nothing of the case."""

    @property
    def name(self) -> str: ...

    def propose(self, tree: SourceTree) -> Proposal: ...


def nothing() -> Proposal:
    """The proposal of a pass that has nothing to offer."""
    return Proposal(())


def proposal(edits: Sequence[Edit], strategy: Strategy) -> Proposal:
    """A proposal without dependencies."""
    return Proposal(tuple(edits), strategy)


class Restricted:
    """A pass that may only touch the paths that ``allowed`` admits."""

    def __init__(self, source: Pass, allowed: Callable[[str], bool]) -> None:
        self._source = source
        self._allowed = allowed

    @property
    def name(self) -> str:
        return self._source.name

    def propose(self, tree: SourceTree) -> Proposal:
        """The edits whose operations all lie on allowed paths; what they required of the others always stays."""
        offer = self._source.propose(tree)
        kept = [i for i, edit in enumerate(offer.edits) if all(self._allowed(op.path) for op in edit.ops)]
        if not offer.requires:
            return Proposal(tuple(offer.edits[i] for i in kept), offer.strategy)
        fixed = frozenset(range(len(offer.edits))) - frozenset(kept)
        needed = _reachable(fixed, offer.requires)
        free = [i for i in kept if i not in needed]
        index = {old: new for new, old in enumerate(free)}
        requires = tuple(frozenset(index[r] for r in offer.requires[i] if r in index) for i in free)
        return Proposal(tuple(offer.edits[i] for i in free), offer.strategy, requires)


def _reachable(start: frozenset[int], requires: Sequence[frozenset[int]]) -> frozenset[int]:
    seen = set(start)
    todo = list(start)
    while todo:
        for other in requires[todo.pop()] - seen:
            seen.add(other)
            todo.append(other)
    return frozenset(seen)
