"""Verdicts: the oracle's answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from reducer.oracle.failure import Failure
from reducer.oracle.signature import describe


class Verdict(Enum):
    """What a query showed."""

    SAME = "same"
    DIFFERENT = "different"
    PASSES = "passes"
    INVALID = "invalid"
    CONTROL_FAILS = "control fails"
    TIMEOUT = "timeout"
    INFRA = "infra"


class InfraError(Exception):
    """The machine failed, not the candidate: out of memory, a full disk, killed from outside. Never a "no"."""


class Unwanted(Exception):
    """Nobody waits for this answer any more."""


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
    def reason(self) -> str:
        """The verdict with the failure that led to it, in one line."""
        seen = self.control or (self.paddle if self.verdict is not Verdict.SAME else None)
        return self.verdict.value + (f" ({describe(seen.signature)[:160]})" if seen else "")

    @property
    def accepted(self) -> bool:
        """Whether the candidate may replace the best one."""
        return self.verdict is Verdict.SAME
