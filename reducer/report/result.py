"""What one finished reduction has to say: the input of everything in this package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from reducer.oracle.failure import Signature
from reducer.tree import SourceTree

Form = Literal["script", "extension"]
Layer = Literal["cxx_api", "op_registration", "python_interface", "python_proxy", "build_tooling"]
GapClass = Literal["A", "B"]
Advice = Literal["issue", "workaround", "not_a_gap"]


@dataclass(frozen=True, slots=True)
class Commands:
    """Plain command lines without shell operators, to run in the directory of the MRE with that side's ``python``
    first on PATH. None: this step does not exist (no build, or nothing left to run)."""

    build: str | None = None
    run: str | None = None
    control_build: str | None = None
    control_run: str | None = None


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Runs of the written directory: how often on each side, and how often with the expected outcome."""

    paddle_runs: int
    paddle_same: int
    torch_runs: int
    torch_passed: int


@dataclass(frozen=True, slots=True)
class SearchStats:
    """What the search spent. ``tiers``: queries by tier; ``verdicts``: answers by verdict, free ones included;
    ``slow``: queries that took over a second; ``disagreements``: how often the real thing differed from a cheap tier;
    ``lost``: questions asked ahead on a wrong guess, counted nowhere else; ``seconds``: wall time of the whole
    reduction."""

    queries: int
    cache_hits: int
    seconds: float
    tiers: Mapping[str, int] = field(default_factory=dict)
    verdicts: Mapping[str, int] = field(default_factory=dict)
    slow: int = 0
    disagreements: int = 0
    lost: int = 0


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that metadata.json records.

    ``message``: the failure's message as printed. ``gap_class``: A for public API, B for private behaviour.
    ``verdict``: what to do about it; ``evidence`` and ``advice`` say why and how, in English sentences.
    ``paddle`` and ``torch``: ``version``, ``commit``, ``cuda``, ... as ``frameworks.versions.probe`` returns them;
    ``environment``: the same for what both share. ``before`` and ``after``: as ``sizes.measure`` returns them.
    ``original_command``: the failing command that the user gave. ``also_found``: other failures seen on the way.
    """

    form: Form
    signature: Signature
    message: str
    layer: Layer
    gap_class: GapClass
    verdict: Advice
    evidence: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    paddle: Mapping[str, str | None]
    torch: Mapping[str, str | None]
    environment: Mapping[str, str | None]
    commands: Commands
    confirmed: Confirmed
    before: Mapping[str, int]
    after: Mapping[str, int]
    search: SearchStats
    original_command: str
    also_found: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MreResult(Facts):
    """An MRE: its facts, its sources (written byte for byte), and what the confirming runs printed."""

    files: SourceTree
    paddle_log: str
    torch_log: str
