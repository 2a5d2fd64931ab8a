"""Loads what real builds and runs showed (data/), and makes observations of texts."""

from __future__ import annotations

import json
from pathlib import Path

from reducer.oracle.observation import CompilerCall, Observation, Step

DATA = Path(__file__).parent / "data"
ROOT = "/case"


def observed(name: str) -> Observation:
    """The recorded observation of one failing library (paths made anonymous, nothing else changed)."""
    raw = json.loads((DATA / "observed" / f"{name}.json").read_text(encoding="utf-8"))
    return Observation(
        side="paddle",
        root=raw["root"],
        build=Step(**raw["build"]) if raw["build"] else None,
        calls=tuple(CompilerCall(tuple(c["argv"]), c["cwd"], c["exit_code"], c["stderr"]) for c in raw["calls"]),
        run=Step(**raw["run"]) if raw["run"] else None,
        built=raw["built"],
    )


def ran(output: str, exit_code: int = 1, command: str = "python test.py") -> Observation:
    """A run that printed ``output`` on stderr."""
    return Observation("paddle", ROOT, run=Step(command, exit_code, "", output))


def compiled(stderr: str, source: str = "a.cc") -> Observation:
    """A build whose one compile call failed with this text."""
    call = CompilerCall(("g++", "-c", source), ROOT, 1, stderr)
    return Observation("paddle", ROOT, build=Step("build", 1, "", ""), calls=(call,))
