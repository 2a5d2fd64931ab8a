"""The other reducers: what each can reduce, how it hands over a candidate, and its commands."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

# How a candidate reaches the script: the files by their bare names in the current directory; one file as the argument;
# a whole tree as the argument, else as the current directory.
Layout = Literal["files", "file", "tree"]
INTERESTING = "interesting"  # what the script prints, for reducers that look at the output
_QUERY = 300  # seconds that a question may take


@dataclass(frozen=True, slots=True)
class Job:
    """What a peer gets. ``tree``: a copy of the library for its eyes only; ``files``: those that it may reduce, by
    their path in the tree; ``place``: an existing directory for what it leaves."""

    program: Path
    script: Path
    tree: Path
    files: tuple[str, ...]
    cxx: bool
    place: Path

    @property
    def bare(self) -> tuple[str, ...]:
        """The files' bare names."""
        return tuple(PurePosixPath(file).name for file in self.files)


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a peer, run in ``cwd``. With ``file``, only that one is reduced, and ``result`` replaces it in
    the tree when the command has ended."""

    argv: tuple[str, ...]
    cwd: Path
    file: str = ""
    result: Path | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """How a peer hands candidates over, and its commands, one after the other."""

    layout: Layout
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Peer:
    """Another reducer. ``probe``: arguments with which it says its version, or at least that it can run."""

    name: str
    plan: Callable[[Job], Plan]
    cxx: bool = True
    python: bool = True
    probe: str = "--version"

    def suits(self, cxx: bool) -> bool:
        """Whether it can do something with C++ (else Python) sources."""
        return self.cxx if cxx else self.python


def _flat(job: Job) -> Path:
    """C-Vise and C-Reduce take no folders in a file's name."""
    flat = job.place / "flat"
    flat.mkdir()
    for file, name in zip(job.files, job.bare, strict=True):
        shutil.copyfile(job.tree / file, flat / name)
    return flat


def _cvise(job: Job) -> Plan:
    language = () if job.cxx else ("--not-c",)
    argv = (str(job.program), "--n", "1", "--timeout", str(_QUERY), *language, str(job.script), *job.bare)
    return Plan("files", (Step(argv, _flat(job)),))


def _creduce(job: Job) -> Plan:
    language = () if job.cxx else ("--not-c",)
    argv = (str(job.program), "--n", "1", "--timeout", str(_QUERY), *language, str(job.script), *job.bare)
    return Plan("files", (Step(argv, _flat(job)),))


def _shrinkray(job: Job) -> Plan:
    one = len(job.files) == 1
    target = job.files[0] if one else str(job.tree)
    words = ["--timeout", str(_QUERY), "--parallelism", "1", "--input-type", "arg", "--ui", "basic"]
    words += ["--formatter", "none"]
    words += ["--no-clang-delta"] if job.cxx and shutil.which("clang_delta") is None else []
    argv = (str(job.program), *words, str(job.script), target)
    return Plan("file" if one else "tree", (Step(argv, job.tree if one else job.place, job.files[0] if one else ""),))


def _pysource_minimize(job: Job) -> Plan:
    named = [word for file in job.files for word in ("--file", file)]
    argv = (str(job.program), *named, "--track", INTERESTING, "--write", "--", str(job.script))
    return Plan("tree", (Step(argv, job.tree),))


def _picire(job: Job) -> Plan:
    steps = []
    for number, (file, name) in enumerate(zip(job.files, job.bare, strict=True)):
        out = job.place / f"picire{number}"
        argv = (str(job.program), "--input", file, "--test", str(job.script), "--out", str(out))
        steps.append(Step(argv, job.tree, file, out / name))
    return Plan("file", tuple(steps))


PEERS = {
    peer.name: peer
    for peer in (
        Peer("cvise", _cvise),
        Peer("creduce", _creduce, python=False),
        Peer("shrinkray", _shrinkray),
        Peer("pysource-minimize", _pysource_minimize, cxx=False, probe="--help"),
        Peer("picire", _picire),
    )
}


def find(name: str, folders: Sequence[Path]) -> Path | None:
    """A peer's program in ``folders``, else on PATH."""
    path = os.pathsep.join([*map(str, folders), os.environ.get("PATH", os.defpath)])
    found = shutil.which(name, path=path)
    return Path(os.path.abspath(found)) if found else None


def version(peer: Peer, program: Path) -> tuple[str, bool]:
    """What the program says of itself in one line, and whether it can be run at all."""
    try:
        done = subprocess.run([str(program), peer.probe], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error), False
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    said = lines[0] if lines else "says nothing"
    return (said if peer.probe == "--version" or done.returncode else "version not said"), done.returncode == 0


def files_of(texts: dict[str, str], suffixes: frozenset[str], symbol: str) -> tuple[str, ...]:
    """The files of a library (texts by path) that a peer may reduce: those of the language, less the build's and the
    test runner's own and empty ones; first the ones that name the symbol. Of equal bare names only the first."""
    wanted = [
        path
        for path, text in sorted(texts.items())
        if PurePosixPath(path).suffix in suffixes
        and text.strip()
        and PurePosixPath(path).name not in ("setup.py", "conftest.py")
    ]
    wanted.sort(key=lambda path: symbol not in texts[path])
    chosen: dict[str, str] = {}
    for path in wanted:
        chosen.setdefault(PurePosixPath(path).name, path)
    return tuple(chosen.values())
