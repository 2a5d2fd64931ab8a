"""What a pass is: a pure source of edits for one tree."""

from __future__ import annotations

from collections.abc import Sequence
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
