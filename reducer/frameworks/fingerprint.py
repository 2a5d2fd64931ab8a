"""What an answer of the cheap tiers depends on besides the candidate: when it is another one, old answers are void."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from reducer.frameworks.side import ALLOWED, Side
from reducer.oracle.observation import SideName


def fingerprint(sides: Iterable[Side], versions: Mapping[SideName, Mapping[str, str | None]], case: object) -> str:
    """Hex digest of both environments (interpreters, installed distributions with their time, versions, the variables
    that a case sees), of this tool's own code, and of ``case`` (by its ``repr``)."""
    seen = sorted((name, value) for name, value in os.environ.items() if ALLOWED.fullmatch(name))
    facts: list[object] = [_own_code(), repr(case), seen]
    for side in sides:
        facts.append([side.name, str(side.python), versions[side.name], _distributions(side.python)])
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def _distributions(python: Path) -> list[tuple[str, int]]:
    """What an environment's site-packages hold, with the time of each entry's last change."""
    found: list[tuple[str, int]] = []
    for site in sorted((python.parent.parent / "lib").glob("python3*/site-packages")):
        with os.scandir(site) as entries:
            found += sorted((entry.name, entry.stat().st_mtime_ns) for entry in entries if entry.name != "__pycache__")
    return found


@lru_cache(maxsize=1)
def _own_code() -> str:
    state = hashlib.sha256()
    for path in sorted(Path(__file__).resolve().parent.parent.rglob("*.py")):
        state.update(path.name.encode() + path.read_bytes())
    return state.hexdigest()
