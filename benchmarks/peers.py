"""Ours and the other reducers side by side: time, questions and sizes on the benchmark libraries.

    python -m benchmarks.peers [--only CASE...] [--peers NAME...] [--oracle user cheap] [--limit 240] [--core 0]
        [--peer-bin DIR]... --out TABLE.md

Each peer that is installed gets (a) ``user``: the script that a user would write, with real builds and a grep, and
(b) ``cheap``: our oracle, by ``reduce oracle start``; all on one core. After ``--limit`` seconds a peer is ended with
all that it started; its best state counts. An oracle's baseline is not in the peer's time. It installs no peer.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks import peer_scripts, peer_tools
from benchmarks.measured import BENCH, Library, Measured, copy_of, known, main_job
from benchmarks.mre import decisive_words, rerun
from benchmarks.peer_runs import OracleError, PeerRun, Service, run_peer, service
from benchmarks.peer_table import OWN, Curve, Row, Size, curve, statistics, table
from benchmarks.peer_tools import PEERS, Job, Peer
from reducer.frameworks import build_command
from reducer.frameworks.side import STAND_IN
from reducer.report.sizes import CXX, PYTHON, measure
from reducer.tree import SourceTree
from reducer.world.freeze import freeze

OURS = "ours"
CASES = ("compile_gap", "python_gap", "run_gap")  # of those that are there
PATTERNS = {  # what a user would look for; of other cases: the words of the failure
    "compile_gap": r"error:.*index_add_",
    "python_gap": r"Error:.*index_copy_",
}
SYMBOLS = {"compile_gap": "index_add_", "python_gap": "index_copy_"}


@dataclass(frozen=True)
class Bench:
    """One library, prepared: ``place`` is a directory of its own, ``frozen`` the untouched copy in it."""

    library: Library
    place: Path
    python: Path
    core: int | None
    frozen: Path
    stack: ExitStack

    @cached_property
    def tree(self) -> SourceTree:
        """The untouched library."""
        return freeze(self.frozen).tree

    @cached_property
    def cxx(self) -> bool:
        """Whether it has C++ sources: then those are what peers reduce."""
        return any(Path(path).suffix in CXX for path in self.tree)

    @cached_property
    def files(self) -> tuple[str, ...]:
        """What peers reduce."""
        suffixes = CXX if self.cxx else PYTHON
        texts = {path: self.tree.text(path) for path in self.tree if Path(path).suffix in suffixes}
        return peer_tools.files_of(texts, frozenset(suffixes), SYMBOLS.get(self.library.name, ""))

    @cached_property
    def judge(self) -> Service:
        """An oracle for the questions about end states, and for what the failure is. Raises OracleError."""
        place = self.place / "judge"
        return self.stack.enter_context(service(self.library, self.frozen, place, self.python, None))

    def pattern(self) -> str:
        """The extended regular expression that a user would look for. Raises OracleError."""
        if self.library.name in PATTERNS:
            return PATTERNS[self.library.name]
        return ".*".join(map(re.escape, decisive_words(self.judge.failure)))

    def commands(self) -> list[str]:
        """What a user runs: the build, unless the failing command is one, and the failing command."""
        library = self.library
        build = build_command.find(self.tree) if library.build_cmd is None else library.build_cmd
        return (
            [build, library.failing_cmd] if build and "setup.py" not in library.failing_cmd else [library.failing_cmd]
        )

    def size(self, tree: SourceTree, files: bool = True) -> Size:
        """How large a state is."""
        whole = measure(tree)
        part = measure(SourceTree({path: tree[path] for path in self.files if path in tree}))
        return Size(whole["lines"], whole["tokens"], part["tokens"] if files else None)


def ours(bench: Bench, limit: float) -> tuple[Row, Curve | None]:
    """The main job, from an empty cache."""
    place = bench.place / OURS
    seen = main_job(bench.library, place, bench.python, place / "cache", limit, bench.core)
    found = curve(seen.log)
    size = seen.data.get("size", {}).get("after")
    search = seen.search
    tiers = ", ".join(f"{count} {name}" for name, count in search.get("tiers", {}).items())
    verdicts = ", ".join(f"{count} {name}" for name, count in search.get("verdicts", {}).items())
    queries = int(search.get("queries", 0))
    seconds = found.ended - found.began if found is not None else None
    before = bench.size(bench.tree, files=False)
    row = Row(
        case=bench.library.name,
        peer=OURS,
        oracle=OWN,
        wall=seen.seconds,
        search=seconds,
        queries=queries,
        answers=f"{tiers}; {search.get('cache_hits', 0)} known; {verdicts}",
        per_query=seconds / queries if seconds is not None and queries else None,
        before=before,
        after=Size(size["lines"], size["tokens"]) if size else before,
        valid=_confirmed(bench, seen, place),
        note="" if seen.exit_code == 0 else f"exit code {seen.exit_code}",
    )
    return row, found


def _confirmed(bench: Bench, seen: Measured, place: Path) -> str:
    """Whether what was written fails on Paddle with the words of the failure, and passes under PyTorch, by its own
    commands with nothing of the tool."""
    if not seen.data:
        return "no: nothing was written"
    sides = {}
    for side in ("paddle", "torch"):
        (place / side).mkdir()
        sides[side] = rerun(place / "mre", side, bench.python, place / side)
    words = decisive_words(str(seen.data["signature"]["message"]))
    same = not sides["paddle"].passed and all(word in sides["paddle"].output for word in words)
    if same and sides["torch"].passed:
        return "yes"
    return "no: Paddle fails otherwise" if not same else "no: PyTorch fails too"


def peer_row(bench: Bench, peer: Peer, program: Path, oracle: str, limit: float) -> Row:
    """One peer with one oracle. Raises OracleError."""
    place = bench.place / f"{peer.name}-{oracle}"
    tree = place / "tree"
    shutil.copytree(bench.frozen, tree)
    script = place / "interesting.sh"
    job = Job(program, script, tree, bench.files, bench.cxx, place)
    plan = peer.plan(job)
    sources = peer_scripts.Sources(bench.frozen, tree, bench.files, plan.layout, place)

    def run(text: str) -> PeerRun:
        script.write_text(text, encoding="utf-8")
        script.chmod(0o755)
        return run_peer(plan.steps, tree, place, limit, bench.core)

    if oracle == "cheap":
        with service(bench.library, bench.frozen, place / "o", bench.python, bench.core) as asked:
            seen = run(peer_scripts.cheap(asked.ask, sources))
            answers = str(statistics(asked.counts()))
            return _row(bench, peer.name, oracle, seen, place, lambda: asked, answers)
    stand_in = place / "stand_in"
    (stand_in / "paddle").mkdir(parents=True)
    (stand_in / "paddle" / "__init__.py").write_text(STAND_IN, encoding="utf-8")
    seen = run(peer_scripts.user(bench.commands(), bench.pattern(), bench.python, stand_in, sources))
    return _row(bench, peer.name, oracle, seen, place, lambda: bench.judge, None)


def _row(
    bench: Bench, name: str, oracle: str, seen: PeerRun, place: Path, judge: Callable[[], Service], answers: str | None
) -> Row:
    """The best state is the smallest accepted one, as the reader of the whole tree counts it; the first of equals."""
    before = bench.size(bench.tree)
    asked, states = peer_scripts.calls(place), peer_scripts.accepted(place)
    yes = sum(call.code == 0 for call in asked)
    search, best = None, bench.tree
    for ended, state in states:
        if measure(state)["tokens"] < measure(best)["tokens"]:
            search, best = ended - seen.began, state
    valid = "-"
    if search is not None:
        best.write(place / "best")
        holds, text = judge().real(place / "best")
        valid = "yes" if holds else f"no: {text}"
    notes = ["ended at the limit"] if seen.over else []
    notes += [f"exit codes {', '.join(map(str, seen.codes))}"] if any(seen.codes) else []
    notes += [f"left {seen.left} processes"] if seen.left else []
    notes += [f"last line: {_last(seen.log)}"] if not states else []
    return Row(
        case=bench.library.name,
        peer=name,
        oracle=oracle,
        wall=seen.wall,
        search=search,
        queries=len(asked),
        answers=answers if answers is not None else f"{yes} yes, {len(asked) - yes} no",
        per_query=sum(call.ended - call.began for call in asked) / len(asked) if asked else None,
        before=before,
        after=bench.size(best),
        valid=valid,
        note="; ".join(notes),
    )


def _last(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1] if lines else "none"


def measured_rows(
    bench: Bench, chosen: dict[str, Path], oracles: list[str], with_ours: bool, limit: float
) -> Iterator[tuple[Row, Curve | None]]:
    """The rows of one library as they come. ``chosen``: the peers' programs by name."""
    if with_ours:
        yield ours(bench, max(limit, 900.0))
    for name, program in chosen.items():
        if not PEERS[name].suits(bench.cxx):
            continue
        for oracle in oracles:
            try:
                yield peer_row(bench, PEERS[name], program, oracle, limit), None
            except OracleError as error:
                size = bench.size(bench.tree)
                yield Row(bench.library.name, name, oracle, 0, None, 0, "-", None, size, size, "-", str(error)), None


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure ours and the other reducers on the same cases.")
    parser.add_argument("--out", type=Path, required=True, metavar="TABLE.md")
    parser.add_argument("--only", nargs="+", default=[], metavar="CASE")
    parser.add_argument("--peers", nargs="+", default=[OURS, *PEERS], choices=[OURS, *PEERS], metavar="NAME")
    parser.add_argument("--oracle", nargs="+", default=["user", "cheap"], choices=["user", "cheap"])
    parser.add_argument("--limit", type=float, default=240.0, metavar="S", help="seconds for one run of a peer")
    parser.add_argument("--core", type=int, default=0, help="the only CPU that all of it may use")
    parser.add_argument("--peer-bin", type=Path, action="append", default=[], metavar="DIR", help="has peers' programs")
    parser.add_argument("--bench", type=Path, default=BENCH, metavar="DIR", help="has compile_gap and python_gap")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="has reduce and both frameworks")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _interrupt)
    libraries = known(options.bench.resolve())
    names = options.only or [name for name in CASES if name in libraries]
    unknown = [name for name in names if name not in libraries]
    if unknown or not names:
        parser.error(f"not there: {', '.join(unknown)} (there are: {', '.join(libraries) or 'none'})")
    versions: dict[str, str] = {}
    chosen: dict[str, Path] = {}
    for name in (name for name in options.peers if name != OURS):
        program = peer_tools.find(name, options.peer_bin)
        said, works = peer_tools.version(PEERS[name], program) if program is not None else ("not installed", False)
        versions[name] = said if works or program is None else f"does not run: {said}"
        if works and program is not None:
            chosen[name] = program
    python = Path(os.path.abspath(options.python))
    rows: list[Row] = []
    curves: dict[str, Curve] = {}
    for name in names:
        with (
            tempfile.TemporaryDirectory(prefix="peers-", ignore_cleanup_errors=True) as folder,
            ExitStack() as stack,
        ):
            place = Path(folder)
            (place / "frozen").mkdir()
            frozen = copy_of(libraries[name], place / "frozen")
            bench = Bench(libraries[name], place, python, options.core, frozen, stack)
            for row, found in measured_rows(bench, chosen, options.oracle, OURS in options.peers, options.limit):
                rows.append(row)
                if found is not None:
                    curves[name] = found
                print(row.text(curves.get(name)), end="", flush=True)
                options.out.write_text(table(rows, curves, versions), encoding="utf-8")
    options.out.write_text(table(rows, curves, versions), encoding="utf-8")
    return 0


def _interrupt(number: int, frame: object) -> None:
    """Asked to end: what runs is ended first, as at Ctrl-C."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
