"""Candidates: a changed tree and the commands that build and run it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from reducer.tree import SourceTree


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a tree is built and run. ``build`` None: nothing to build. ``run`` None: the case ends with its build.

    ``control_run`` replaces ``run`` on the control when the user gave another command for it.
    """

    build: str | None
    run: str | None
    control_run: str | None = None

    def for_side(self, side: str) -> str | None:
        """The run command of a side."""
        return self.control_run if side == "torch" and self.control_run else self.run


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the oracle judges."""

    tree: SourceTree
    recipe: Recipe

    @property
    def key(self) -> str:
        """Hex SHA-256 of content and commands: equal keys get equal verdicts in one environment."""
        words = (self.tree.digest, self.recipe.build, self.recipe.run, self.recipe.control_run)
        return hashlib.sha256(repr(words).encode()).hexdigest()

    def with_tree(self, tree: SourceTree) -> Candidate:
        """This candidate with another tree."""
        return replace(self, tree=tree)
