"""Runs the tool on a directory of cases and writes a table of what came out.

    python benchmarks/cases.py DIR [--only NAME...] [--out TABLE.md] [--keep DIR]

Each case is a folder with a ``case.json`` (``stage``, ``symbol``, ``failing_cmd``, optional ``build_cmd``) beside its
files. The tool gets a copy without the ``case.json``. Every row says what was expected, what was found, how large the
result is and whether that is within the size limits (``LIMITS`` below).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.mre import Rerun, Shape, metadata, rerun, shape, sources

# Non-blank lines that a result may have, by stage. "cxx": beyond the registration for compile, all of it for run.
LIMITS = {
    "build": "setup.py 10 lines, one source of 3 lines",
    "compile": "10 lines of C++ beyond the registration, 3 includes",
    "extension": "18 lines of C++, 8 of script",
    "script": "6 lines of script",
}
HEADER = (
    "| case | stage: expected / seen | symbol in the MRE | form | C++ | script | setup | queries | seconds | exit "
    "| re-run | in limits |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n"
)


@dataclass(frozen=True, slots=True)
class Row:
    """What the tool did with one case. ``shape`` None: nothing was written. ``rerun``: "paddle fails, torch passes"
    holds for the written directory; None when nothing was written."""

    name: str
    expected: str
    seen: str
    symbol: str
    named: bool
    form: str
    shape: Shape | None
    queries: int
    seconds: float
    exit_code: int
    holds: bool | None
    within: bool
    log: str

    @property
    def good(self) -> bool:
        """Reduced, confirmed, still true when run again, and small enough."""
        return self.exit_code == 0 and bool(self.holds) and self.within

    def markdown(self) -> str:
        """One line of the table."""
        s = self.shape
        sizes = [f"{s.cxx} ({s.registration} reg.)", str(s.script), str(s.setup)] if s else ["", "", ""]
        cells = [
            self.name,
            f"{self.expected} / {self.seen}",
            mark(self.named),
            self.form,
            *sizes,
            str(self.queries),
            f"{self.seconds:.0f}",
            str(self.exit_code),
            "" if self.holds is None else mark(self.holds),
            mark(self.within),
        ]
        return "| " + " | ".join(cells) + " |\n"


def mark(value: bool) -> str:
    """A cell for a fact: one that does not hold stands out."""
    return "yes" if value else "NO"


def run_case(folder: Path, place: Path, python: Path, limit: float, keep: Path | None = None) -> Row:
    """Run the tool on a copy of ``folder`` below ``place`` and look at what it wrote; ``limit`` in seconds."""
    stated = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    checkout, out = place / folder.name, place / "mre"
    shutil.copytree(folder, checkout, ignore=shutil.ignore_patterns("case.json", "build", "__pycache__"))
    command = [str(python), "-m", "reducer", "--repo", str(checkout), "--out", str(out)]
    command += [
        "--fresh",
        "--paddle-python",
        str(python),
        "--torch-python",
        str(python),
        "--failing-cmd",
        stated["failing_cmd"],
    ]
    if stated.get("build_cmd"):
        command += ["--build-cmd", stated["build_cmd"]]
    began = time.monotonic()
    code, log = _bounded(command, place, limit)
    seconds = time.monotonic() - began
    if keep is not None:
        target = keep / folder.name
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        (target / "reduce.log").write_text(log, encoding="utf-8")
        if out.is_dir():
            shutil.copytree(out, target / "mre")
    if not out.is_dir():
        return Row(folder.name, stated["stage"], "-", "", False, "-", None, 0, seconds, code, None, False, log)
    data, measured = metadata(out), shape(out)
    signature = data["signature"]
    words = identifiers(f"{stated['symbol']} {signature['symbol']}")
    text = "\n".join(sources(out).values())
    paddle = rerun(out, "paddle", python, _new(place / "rerun-paddle"))
    torch = rerun(out, "torch", python, _new(place / "rerun-torch"))
    return Row(
        name=folder.name,
        expected=stated["stage"],
        seen=signature["stage"],
        symbol=signature["symbol"] or "",
        named=any(re.search(rf"\b{re.escape(word)}\b", text) for word in words),
        form=data["form"],
        shape=measured,
        queries=data["search"]["queries"],
        seconds=seconds,
        exit_code=code,
        holds=_holds(paddle, torch),
        within=within_limits(signature["stage"], data["form"], measured),
        log=log,
    )


def _holds(paddle: Rerun, torch: Rerun) -> bool:
    return not paddle.passed and torch.passed


def _new(path: Path) -> Path:
    path.mkdir()
    return path


def _bounded(command: list[str], place: Path, limit: float) -> tuple[int, str]:
    """Exit code and output; 124 when it was stopped after ``limit`` seconds."""
    log = place / "reduce.log"
    with open(log, "wb") as stream:
        process = subprocess.Popen(command, cwd=place, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)  # SIGINT may be ignored: a shell's background jobs are born so
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            code = 124
    return code, log.read_text(encoding="utf-8", errors="replace")


def identifiers(symbol: str) -> list[str]:
    """The names in a free-text symbol that an MRE would spell: ``at::Tensor::to(Device, ...)`` gives ``to``."""
    found = []
    for chain in re.findall(r"[A-Za-z_]\w*(?:(?:\.|::|/)[A-Za-z_]\w*)+|[A-Za-z_]\w*(?=[(<])|\b[A-Z]\w*_\w+", symbol):
        found.append(re.split(r"\.|::|/", chain)[-1])
    return [name for name in dict.fromkeys(found) if name not in ("h", "hpp")] or re.findall(r"\w{4,}", symbol)


def within_limits(stage: str, form: str, size: Shape) -> bool:
    """Whether a result is as small as ``LIMITS`` asks."""
    if form == "script":
        return size.script <= 6 or (stage in ("setup", "link") and size.setup <= 10)
    if stage in ("setup", "link"):
        return size.setup <= 10 and size.sources <= 1 and size.cxx <= 3
    if stage == "compile":
        return size.cxx - size.registration <= 10 and size.includes <= 3
    return size.cxx <= 18 and size.script <= 8


def cases(directory: Path, only: list[str]) -> list[Path]:
    """The case folders below ``directory``, all or those named. Raises SystemExit for a name that is not there."""
    found = {path.parent.name: path.parent for path in sorted(directory.glob("*/case.json"))}
    unknown = [name for name in only if name not in found]
    if unknown or not found:
        raise SystemExit(f"no such case in {directory}: {', '.join(unknown) or '(there are none at all)'}")
    return [found[name] for name in (only or found)]


def main() -> int:
    parser = argparse.ArgumentParser(description="Run reduce on every case of a directory and write a table.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these cases only")
    parser.add_argument("--out", type=Path, default=Path("cases.md"), metavar="TABLE.md")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep every MRE and log below DIR")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="has reduce and both frameworks")
    parser.add_argument("--limit", type=float, default=900.0, metavar="S", help="seconds for one case")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="cases at a time")
    options = parser.parse_args()
    folders = cases(options.directory, options.only)
    python = Path(os.path.abspath(options.python))
    rows: list[Row] = []

    def work(folder: Path) -> Row:
        with tempfile.TemporaryDirectory(prefix="case-", ignore_cleanup_errors=True) as place:
            return run_case(folder, Path(place), python, options.limit, options.keep)

    with ThreadPoolExecutor(options.workers) as pool:
        for row in pool.map(work, folders):
            rows.append(row)
            print(row.markdown(), end="", flush=True)
            options.out.write_text(table(rows), encoding="utf-8")
    good = sum(row.good for row in rows)
    print(f"{good} of {len(rows)} good; the table is in {options.out}")
    return 0 if good == len(rows) else 1


def table(rows: list[Row]) -> str:
    """The whole table, with a line that sums it up and the limits."""
    good = sum(row.good for row in rows)
    reduced = sum(row.exit_code == 0 for row in rows)
    summary = f"{len(rows)} cases: {reduced} reduced and confirmed, {good} of them true when run again and in limits.\n"
    limits = "".join(f"- {name}: {text}\n" for name, text in LIMITS.items())
    return f"{summary}\n{HEADER}{''.join(row.markdown() for row in rows)}\nLimits (non-blank lines):\n\n{limits}"


if __name__ == "__main__":
    sys.exit(main())
