"""The whole command against its floor: the real builds and runs that no tool can do without.

    python -m benchmarks.floor --out TABLE.md [--only NAME...] [--bench DIR] [--python PYTHON]

The floor is measured in the same run: the untouched library, twice on each side, by its own build and command in fresh
directories and processes, one after the other. Then comes ``reduce``, first with an empty cache, then with what that
run left there.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measured import BENCH, Library, Measured, copy_of, known, main_job
from reducer.frameworks import build_command
from reducer.frameworks.runner import Runner, Timeouts
from reducer.frameworks.side import Side
from reducer.oracle.candidate import Candidate, Recipe
from reducer.world.freeze import freeze
from reducer.world.processes import Limits
from reducer.world.workspace import Workspace

REPEATS = 2  # the baseline and the confirmation
HEADER = (
    "| case | floor s | cache | seconds | × floor | queries | over 1 s | peak MiB | tokens | exit |\n"
    "|---|---|---|---|---|---|---|---|---|---|\n"
)


def floor(library: Library, place: Path, python: Path) -> float:
    """Seconds of ``REPEATS`` real builds and runs on each side."""
    tree = freeze(copy_of(library, place)).tree
    build = build_command.find(tree) if library.build_cmd is None else library.build_cmd or None
    candidate = Candidate(tree, Recipe(build, library.failing_cmd))
    total = 0.0
    with Workspace(place / "work") as workspace:
        runner = Runner(workspace, Timeouts(), Limits(network=False))
        sides = [Side("paddle", python, place / "paddle", 2), Side("torch", python, place / "torch", 2)]
        for side in sides:
            side.prepare()
            for _ in range(REPEATS):
                began = time.monotonic()
                runner.observe(side, candidate)
                total += time.monotonic() - began
        runner.close()
    return total


def row(library: Library, least: float, cache: str, seen: Measured) -> str:
    """One line of the table."""
    cells = [
        library.name,
        f"{least:.1f}",
        cache,
        f"{seen.seconds:.1f}",
        f"{seen.seconds / least:.2f}",
        str(seen.search.get("queries", "-")),
        f"{100 * seen.slow_share:.1f} %",
        f"{seen.peak:.0f}",
        seen.tokens,
        str(seen.exit_code),
    ]
    return "| " + " | ".join(cells) + " |\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the whole command against its floor.")
    parser.add_argument("--out", type=Path, default=Path("floor.md"), metavar="TABLE.md")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--bench", type=Path, default=BENCH, metavar="DIR", help="has compile_gap and python_gap")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="has reduce and both frameworks")
    parser.add_argument("--limit", type=float, default=900.0, metavar="S", help="seconds for one run of reduce")
    options = parser.parse_args()
    libraries = known(options.bench.resolve())
    unknown = [name for name in options.only if name not in libraries]
    if unknown or not libraries:
        parser.error(f"not there: {', '.join(unknown)} (there are: {', '.join(libraries) or 'none'})")
    python = Path(os.path.abspath(options.python))
    table = HEADER
    for library in (libraries[name] for name in (options.only or libraries)):
        with tempfile.TemporaryDirectory(prefix="floor-", ignore_cleanup_errors=True) as folder:
            place = Path(folder)
            (place / "floor").mkdir()
            least = floor(library, place / "floor", python)
            for cache in ("cold", "warm"):
                seen = main_job(library, place / cache, python, place / "cache", options.limit)
                line = row(library, least, cache, seen)
                print(line if seen.exit_code == 0 else line + seen.log[-2000:], end="", flush=True)
                table += line
                options.out.write_text(table, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
