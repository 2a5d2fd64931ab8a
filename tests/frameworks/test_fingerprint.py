"""What makes old answers void."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reducer.frameworks.fingerprint import fingerprint
from reducer.frameworks.side import Side
from reducer.oracle.observation import SideName

VERSIONS: dict[SideName, dict[str, str | None]] = {"paddle": {"version": "3.3.1"}, "torch": {"version": "2.13.0"}}


def sides(place: Path) -> list[Side]:
    python = place / "bin" / "python"
    return [Side(name, python, place / name) for name in ("paddle", "torch")]


def test_another_environment_case_or_variable_is_another_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLAGS_something", "0")
    monkeypatch.setenv("UNRELATED", "0")
    site = tmp_path / "lib" / "python3.11" / "site-packages"
    (site / "torch").mkdir(parents=True)

    def taken(case: object = "case", versions: dict[SideName, dict[str, str | None]] = VERSIONS) -> str:
        return fingerprint(sides(tmp_path), versions, case)

    first = taken()
    monkeypatch.setenv("UNRELATED", "1")
    assert taken() == first
    seen = {first, taken(case="other"), taken(versions={**VERSIONS, "torch": {"version": "2.14.0"}})}
    (site / "einops").mkdir()
    seen.add(taken())
    os.utime(site / "torch", (1, 1))
    seen.add(taken())
    monkeypatch.setenv("FLAGS_something", "1")
    seen.add(taken())
    assert len(seen) == 6
