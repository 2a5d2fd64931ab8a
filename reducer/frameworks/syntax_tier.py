"""The syntax tier of both sides: all C++ of a candidate through libclang, with the flags of the baseline's builds."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from reducer.frameworks.build_command import CXX_SOURCE
from reducer.frameworks.clang_check import ClangChecker, ClangFailed, Precompiled
from reducer.frameworks.flags import BASE_HEADERS, covers, system_includes, units
from reducer.oracle.candidate import Candidate
from reducer.oracle.observation import Diagnostic, Observation, SideName
from reducer.syntax.cxx import CxxParser, cxx_digest
from reducer.tree import SourceTree

_CUDA = (".cu",)
KEPT_UNITS = 2  # parsed units in memory; one of them is some 300 MB with PyTorch's headers


class ClangTier:
    """Answers with the diagnostics of one side, or None where it cannot judge (CUDA sources, a libclang crash).

    ``precompiled`` must be off while includes are reduced: with it every header of the library is visible to every
    unit. Without it only headers are precompiled that each source includes anyway.
    """

    def __init__(self, tree: SourceTree) -> None:
        self._headers = system_includes(tree)
        self._checkers: dict[SideName, ClangChecker] = {}
        self._parser: CxxParser | None = None
        self._known: dict[tuple[SideName, bool, str], tuple[Diagnostic, ...] | None] = {}
        self.precompiled = True

    def learn(self, seen: Observation) -> bool:
        """Take the flags of a side from its build. False when it compiled nothing."""
        found = units(seen)
        if found and seen.side not in self._checkers:
            base = BASE_HEADERS[seen.side]
            extra = [name for name in self._headers if name not in base]
            self._checkers[seen.side] = ClangChecker(found[0].flags, extra, cache_directory(), base, found[0].common)
        return bool(found)

    @property
    def ready(self) -> bool:
        """Whether both sides are known."""
        return len(self._checkers) == 2

    def prepare(self, side: SideName) -> None:
        """Have the side's precompiled header made, by whoever comes first."""
        with contextlib.suppress(ClangFailed):
            self._checkers[side].prepare()

    def close(self) -> None:
        """End the worker processes."""
        for checker in self._checkers.values():
            checker.close()
        self._checkers.clear()

    def __call__(self, side: SideName, candidate: Candidate, /) -> Observation | None:
        sources = [path for path in candidate.tree if path.endswith(CXX_SOURCE)]
        if candidate.recipe.build is None or not sources or any(path.endswith(_CUDA) for path in sources):
            return None
        precompiled = self.precompiled  # once: who asks ahead may be answered after it has changed
        key = (side, precompiled, cxx_digest(candidate.tree))
        if key not in self._known:
            self._known[key] = self._check(side, candidate.tree, sources, precompiled)
        found = self._known[key]
        return None if found is None else Observation(side, "", diagnostics=found)

    def parser(self) -> CxxParser:
        """A parser with the control's flags and precompiled headers: there the code is free of errors."""
        if self._parser is None:
            checker = self._checkers["torch"]
            self._parser = CxxParser(checker.parse_arguments(), checker.root, keep=KEPT_UNITS)
        return self._parser

    def _check(
        self, side: SideName, tree: SourceTree, sources: list[str], precompiled: bool
    ) -> tuple[Diagnostic, ...] | None:
        checker = self._checkers[side]
        fair: Precompiled = "base" if covers(tree, BASE_HEADERS[side]) else "none"
        found: list[Diagnostic] = []
        for source in sources:
            try:
                found += checker.check(tree, source, precompiled="all" if precompiled else fair)
            except ClangFailed:
                return None
        return tuple(found)


def cache_directory() -> Path:
    """Where precompiled headers are kept from one run to the next."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "torch-compat-reduce" / "pch"
