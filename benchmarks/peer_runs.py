"""Processes of the peers benchmark: an oracle for one peer, and the peer itself, ended with all that it started."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measured import ROOT, Library, end
from benchmarks.peer_scripts import FILE
from benchmarks.peer_tools import Step
from reducer.oracle_client import SAME, exchange

MARK = "REDUCE_PEER"  # environment variable by which a peer's processes are known, whoever their parent is now
READY = 1200.0  # seconds for an oracle's baseline
_LOOK = 0.2  # seconds between two looks


class OracleError(Exception):
    """The oracle did not come up, or does not answer. The message ends with what it printed."""


def on_core(core: int | None) -> list[str]:
    """What stands before a command that may use one CPU only."""
    return ["taskset", "-c", str(core)] if core is not None else []


@dataclass(frozen=True, slots=True)
class Service:
    """A running ``reduce oracle``. ``ask``: the command that it printed; ``failure``: the line that it asks about."""

    socket: str
    ask: str
    failure: str

    def counts(self) -> str:
        """What was asked so far. Raises OracleError."""
        return self._exchange("counts")[1]

    def stop(self) -> str:
        """End it; what it was asked. Raises OracleError."""
        return self._exchange("stop")[1]

    def real(self, directory: Path) -> tuple[bool, str]:
        """Whether the tree in ``directory`` is the same failure by the real build and command on both sides, and the
        answer's text. Raises OracleError."""
        code, text = self._exchange("ask", str(directory), "", "", "real")
        return code == SAME, text

    def _exchange(self, *fields: str) -> tuple[int, str]:
        code, text = exchange(self.socket, list(fields))
        if code == 125:
            raise OracleError(text)
        return code, text


@contextlib.contextmanager
def service(library: Library, checkout: Path, place: Path, python: Path, core: int | None) -> Iterator[Service]:
    """An oracle for ``library`` in the new directory ``place``, with a cache of its own; gone afterwards.

    Raises OracleError when it does not get ready.
    """
    temporary = place / "t"
    temporary.mkdir(parents=True)
    socket = place / "s"
    command = [*on_core(core), str(python), "-m", "reducer", "oracle", "start", "--socket", str(socket), "--json"]
    command += ["--repo", str(checkout), "--failing-cmd", library.failing_cmd]
    command += ["--build-cmd", library.build_cmd] if library.build_cmd is not None else []
    env = {**os.environ, "XDG_CACHE_HOME": str(place / "cache"), "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)}
    out, log = place / "out", place / "log"
    with open(out, "wb") as said, open(log, "wb") as progress:
        process = subprocess.Popen(
            command, cwd=place, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=progress, start_new_session=True
        )
    serves = False
    try:
        until = time.monotonic() + READY
        while not out.read_text(encoding="utf-8").endswith("\n"):
            if process.poll() is not None or time.monotonic() > until:
                raise OracleError(f"no oracle for {library.name}: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(_LOOK)
        ready = json.loads(out.read_text(encoding="utf-8"))
        if "ask" not in ready:
            raise OracleError(f"no oracle for {library.name}: {ready}")
        serves = True
        yield Service(str(socket), ready["ask"], ready["failure"])
    finally:
        if serves:
            exchange(str(socket), ["stop"])
        else:  # in its baseline it hears nothing else
            process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(60)
        if process.poll() is None:
            end(process)


@dataclass(frozen=True, slots=True)
class PeerRun:
    """``began``: seconds since the epoch; ``wall``: seconds until it ended or was ended; ``left``: processes that it
    had left behind when it ended by itself; ``codes`` of the commands that ended by themselves; what it printed."""

    began: float
    wall: float
    over: bool
    left: int
    codes: tuple[int, ...]
    log: str


def run_peer(steps: Sequence[Step], tree: Path, place: Path, limit: float, core: int | None) -> PeerRun:
    """Run a peer's commands one after the other, at most ``limit`` seconds in all, in the existing ``place``."""
    temporary = place / "t"
    temporary.mkdir()
    mark = uuid.uuid4().hex
    env = {**os.environ, "TMPDIR": str(temporary), MARK: mark}
    began, start = time.time(), time.monotonic()
    codes: list[int] = []
    over, left = False, 0
    log = place / "log"
    with open(log, "wb") as stream:
        for step in steps:
            process = subprocess.Popen(
                [*on_core(core), *step.argv],
                cwd=step.cwd,
                env={**env, FILE: step.file},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
            try:
                codes.append(process.wait(max(0.0, limit - (time.monotonic() - start))))
            except subprocess.TimeoutExpired:
                over = True
            finally:
                wall = time.monotonic() - start
                remaining = end_all(process, mark)
            if over:
                break
            left += remaining
            if step.result is not None and step.result.is_file():
                shutil.copyfile(step.result, tree / step.file)
    return PeerRun(began, wall, over, left, tuple(codes), log.read_text(encoding="utf-8", errors="replace"))


def end_all(process: subprocess.Popen[bytes], mark: str) -> int:
    """Kill ``process`` with all below it, and then whatever else carries the mark: processes whose parent is gone, in
    whichever session. How many of the latter there were."""
    if process.poll() is None:
        end(process)
    found: set[int] = set()
    while marked := _marked(mark):
        found.update(marked)
        for pid in marked:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    return len(found)


def _marked(mark: str) -> list[int]:
    """Living processes with the mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:  # a process that has died, a zombie too, has no environment left to read
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found
