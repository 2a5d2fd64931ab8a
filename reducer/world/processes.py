"""Running one command: in its own directory, environment and session, with limits, and killed whole."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from reducer.oracle.observation import Step
from reducer.world import jail
from reducer.world.commands import parse_simple
from reducer.world.supervision import Limits, Stopped, Supervised, SupervisorLost, stop_all

__all__ = ["Limits", "Stopped", "SupervisorLost", "run", "stop_all"]

DEFAULT_LIMITS = Limits()


def run(
    command: str | Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    timeout: float,
    *,
    writable: Sequence[Path],
    limits: Limits = DEFAULT_LIMITS,
) -> Step:
    """Run ``command`` in ``cwd`` with exactly ``env`` and wait for it and all its descendants.

    A string without shell syntax is run directly, any other string by ``bash -c``. stdin is empty. Writes outside
    ``writable`` fail where the kernel has Landlock. After ``timeout`` seconds, on KeyboardInterrupt and at the
    command's own end, whatever is left of it is killed, also what moved to another session. A command that cannot be
    started ends like in a shell: 127 not found, 126 not executable, with the reason on stderr.

    Raises OSError when ``cwd`` is not a directory, SupervisorLost when the supervisor is killed from outside, and
    Stopped after ``stop_all``.
    """
    shown = command if isinstance(command, str) else shlex.join(command)
    environment = dict(env)
    if isinstance(command, str):
        simple = parse_simple(command)
        argv: Sequence[str] = simple.argv if simple else ["bash", "-c", command]
        environment.update(simple.env if simple else {})
    else:
        argv = command
    if not cwd.is_dir():
        raise NotADirectoryError(f"not a directory to run in: {cwd}")
    with Supervised(limits) as supervised:
        stdout, stderr, control, status = supervised.child_ends
        options = [part for path in writable or [Path(os.devnull)] for part in ("--write", os.fspath(path))]
        options += [part for name, value in limits.for_jail().items() for part in ("--limit", f"{name}={value}")]
        options += [] if limits.network else ["--no-network"]
        if "LC_CTYPE" not in environment:
            options += ["--unset", "LC_CTYPE"]  # the launcher's own Python may have set it (PEP 538)
        launcher = [sys.executable, "-I", "-S", jail.__file__, "--control", str(control), "--status", str(status)]
        process = subprocess.Popen(
            [*launcher, *options, "--", *argv],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            pass_fds=(control, status),
            start_new_session=True,
        )
        try:
            supervised.handed_over()
            return supervised.wait(shown, timeout)
        finally:
            supervised.kill()
            _reap(process)


def _reap(process: subprocess.Popen[bytes]) -> None:
    """Collect the supervisor, which ends by itself once it has nothing left to kill."""
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
