"""One real run of the tool on a shipped fixture, with all that the tests look at afterwards."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"
PYTHON = Path(sys.executable)


def expectations() -> dict[str, dict[str, Any]]:
    """What each fixture states about itself, by name."""
    return {
        path.parent.name: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(FIXTURES.glob("*/expect.json"))
    }


def checkout_of(fixture: str, place: Path) -> Path:
    """A copy of a fixture as a user has it: a git work tree (only added, which is all that the tool asks git for)."""
    checkout = place / fixture
    shutil.copytree(FIXTURES / fixture / "library", checkout, ignore=shutil.ignore_patterns("__pycache__", "build"))
    if shutil.which("git"):
        subprocess.run(["git", "init", "-q"], cwd=checkout, check=True)
        subprocess.run(["git", "add", "-A"], cwd=checkout, check=True)
    return checkout


def contents(directory: Path) -> dict[str, str]:
    """Every file and folder below a directory: a hash of the content, or the kind."""
    found = {}
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
    return found


def installed() -> dict[str, tuple[int, int]]:
    """Size and modification time of the frameworks' files (two levels), and the names beside them.

    Byte code is left out: any other process that uses this environment may write it.
    """
    site = Path(os.__file__).parent / "site-packages"
    if sys.prefix != sys.base_prefix:
        site = Path(sys.prefix) / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    found = {path.name: (0, 0) for path in site.iterdir() if path.name != "__pycache__"}
    for framework in ("paddle", "torch"):
        for path in (*(site / framework).glob("*"), *(site / framework).glob("*/*")):
            if path.is_file() and "__pycache__" not in path.parts:
                state = path.stat()
                found[path.relative_to(site).as_posix()] = (state.st_size, state.st_mtime_ns)
    return found


@dataclass(frozen=True, slots=True)
class Job:
    """A finished run. ``before`` and ``after`` are the checkout's contents, ``site_*`` the frameworks' files."""

    expect: dict[str, Any]
    done: subprocess.CompletedProcess[str]
    out: Path
    before: dict[str, str]
    after: dict[str, str]
    site_before: dict[str, tuple[int, int]]
    site_after: dict[str, tuple[int, int]]

    @property
    def story(self) -> str:
        """What the run printed, for a failing test's message."""
        return f"exit code {self.done.returncode}\n{self.done.stderr[-6000:]}\n{self.done.stdout[-3000:]}"


def run_job(fixture: str, place: Path, *options: str, timeout: float = 1500.0) -> Job:
    """Run the real command on a copy of the fixture, in a process of its own."""
    expect = expectations()[fixture]
    checkout, out = checkout_of(fixture, place), place / "result"
    command = [str(PYTHON), "-m", "reducer", "--repo", str(checkout), "--out", str(out)]
    command += ["--fresh", "--failing-cmd", expect["failing_cmd"], *options]
    if expect["build_cmd"] is not None:
        command += ["--build-cmd", expect["build_cmd"]]
    before, site_before = contents(checkout), installed()
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=timeout, check=False)
    return Job(expect, done, out, before, contents(checkout), site_before, installed())
