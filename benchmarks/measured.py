"""One run of the main job in a process of its own, with its time and its memory; shared by the benchmarks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.mre import metadata

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT.parent / "shared" / "bench"
_SAMPLE = 0.5  # seconds between two looks at the memory


@dataclass(frozen=True, slots=True)
class Library:
    """What a benchmark runs on."""

    name: str
    directory: Path
    failing_cmd: str
    build_cmd: str | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """``seconds`` of the whole command, ``peak`` memory in MiB of all its processes (shared pages once), its
    metadata.json ({} when it wrote nothing) and what it printed."""

    seconds: float
    exit_code: int
    peak: float
    data: dict[str, Any]
    log: str

    @property
    def search(self) -> dict[str, Any]:
        """The search part of the metadata."""
        found: dict[str, Any] = self.data.get("search", {})
        return found

    @property
    def slow_share(self) -> float:
        """The share of the queries that took over a second."""
        slow, queries = self.search.get("slow", 0), self.search.get("queries", 0)
        return float(slow) / max(1, int(queries))

    @property
    def tokens(self) -> str:
        """Tokens before and after."""
        size = self.data.get("size", {})
        return f"{size['before']['tokens']} → {size['after']['tokens']}" if size else "-"


def known(bench: Path = BENCH) -> dict[str, Library]:
    """The benchmark libraries by name; those of ``bench`` only where it is there."""
    found = [
        Library("compile_gap", bench / "compile_gap", "python setup.py build_ext --inplace"),
        Library("python_gap", bench / "python_gap", "python -m pytest -q"),
        Library("run_gap", ROOT / "benchmarks" / "run_gap", "python -m pytest -q"),
        Library("cxx_run", ROOT / "fixtures" / "cxx_run" / "library", "python -m pytest -q tests/test_ensemble.py"),
    ]
    return {library.name: library for library in found if library.directory.is_dir()}


def copy_of(library: Library, place: Path) -> Path:
    """A clean copy below ``place``."""
    target = place / library.name
    ignored = shutil.ignore_patterns("case.json", "build", "__pycache__", ".pytest_cache", "*.so", "*.egg-info")
    shutil.copytree(library.directory, target, ignore=ignored)
    return target


def main_job(
    library: Library, place: Path, python: Path, cache: Path, limit: float, core: int | None = None
) -> Measured:
    """Run ``reduce`` on a copy in the new directory ``place``; ``cache`` is its XDG_CACHE_HOME, ``core`` the only CPU
    that it may use. After ``limit`` seconds it is asked to end, then killed with all that it started."""
    place.mkdir(parents=True)
    checkout, out, log = copy_of(library, place), place / "mre", place / "log"
    command = [str(python), "-m", "reducer", "--repo", str(checkout), "--out", str(out)]
    command += ["--fresh", "--failing-cmd", library.failing_cmd]
    command += ["--build-cmd", library.build_cmd] if library.build_cmd is not None else []
    command = ["taskset", "-c", str(core), *command] if core is not None else command
    (place / "tmp").mkdir()
    env = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(ROOT), "TMPDIR": str(place / "tmp")}
    began = time.monotonic()
    with open(log, "wb") as stream:
        process = subprocess.Popen(command, cwd=place, env=env, stdout=stream, stderr=stream, start_new_session=True)
    peak, asked = 0, False
    try:
        while process.poll() is None:
            peak = max(peak, memory(process.pid))
            over = time.monotonic() - began - limit
            if over > 0 and not asked:
                process.send_signal(signal.SIGINT)
                asked = True
            if over > 60:
                end(process)
            time.sleep(_SAMPLE)
    except BaseException:
        end(process)
        raise
    seconds = time.monotonic() - began
    data = metadata(out) if (out / "metadata.json").is_file() else {}
    return Measured(seconds, process.returncode, peak / 1024, data, log.read_text(encoding="utf-8", errors="replace"))


def descendants(pid: int) -> list[int]:
    """A process and all below it, whichever session they are in."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, at = [pid], 0
    while at < len(found):
        found += children.get(found[at], [])
        at += 1
    return found


def memory(pid: int) -> int:
    """KiB that a process and all below it hold, each shared page counted once."""
    total = 0
    for each in descendants(pid):
        try:
            lines = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all below it, and wait for it."""
    for each in reversed(descendants(process.pid)):
        try:
            os.kill(each, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()
