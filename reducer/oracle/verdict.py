"""Verdicts: the oracle's answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from reducer.oracle.failure import Failure


class Verdict(Enum):
    """What a query showed (DESIGN.md §5)."""

    SAME = "same"
    DIFFERENT = "different"
    PASSES = "passes"
    INVALID = "invalid"
    CONTROL_FAILS = "control fails"
    TIMEOUT = "timeout"
    FLAKY = "flaky"
    INFRA = "infra"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its evidence. ``tier`` names the cheapest tier that could decide; ``seconds`` is its cost."""

    verdict: Verdict
    tier: str
    paddle: Failure | None = None
    control: Failure | None = None
    seconds: float = 0.0
    cached: bool = False

    @property
    def accepted(self) -> bool:
        """Whether the candidate may replace the best one."""
        return self.verdict is Verdict.SAME
