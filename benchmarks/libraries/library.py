"""What the benchmark knows about one library of the package index: how it is fetched, migrated, built and run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Change:
    """The smallest repair of one gap, the same on both sides: ``old`` stands ``times`` times in ``path``."""

    path: str
    old: str
    new: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Expected:
    """How the run should end. ``lines``: non-blank lines of the script after the prelude; ``cxx``: of the C++ beyond
    its registration; ``setup``: of setup.py; None: there should be none of it. ``seconds``: of the whole command."""

    stage: str = "-"
    symbol: str = ""
    exit_code: int = 0
    lines: int | None = 8
    cxx: int | None = None
    setup: int | None = None
    seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Library:
    """One case: a released library with a migration and a command that fails on Paddle.

    ``name`` is the case's own (a library may be several cases), ``project`` the name on the index. ``form`` is the kind
    of distribution that is fetched. ``needs`` are requirements beside the frameworks, installed without their own
    dependencies. ``files`` are added to the unpacked distribution, ``changes`` made in it.
    """

    name: str
    project: str
    version: str
    failing_cmd: str
    expected: Expected
    form: Literal["wheel", "sdist"] = "wheel"
    needs: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    build_cmd: str | None = None
