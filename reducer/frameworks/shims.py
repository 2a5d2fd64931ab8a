"""Installs the compiler shims of one side and reads what they recorded."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path

from reducer.oracle.observation import CompilerCall

COMPILERS = ("gcc", "g++", "cc", "c++", "clang", "clang++", "x86_64-linux-gnu-gcc", "x86_64-linux-gnu-g++", "nvcc")

# A command that sets PYTHONPATH itself must not lose what the side has on it: without the stand-in a control would run
# Paddle, and pass or fail for the wrong framework.
_PATHS = """case "${REDUCE_PATHS:+set}:$PYTHONPATH:" in
:*|*":$REDUCE_PATHS:"*) ;;
*) export PYTHONPATH="$REDUCE_PATHS${PYTHONPATH:+:$PYTHONPATH}" ;;
esac
"""


def install(directory: Path) -> None:
    """Fill ``directory`` (to stand first on PATH) with a shim for each compiler that this machine has."""
    directory.mkdir(parents=True, exist_ok=True)
    shim = directory / "shim.py"
    shutil.copyfile(Path(__file__).with_name("shim.py"), shim)
    # The tool's own interpreter runs the shims: the side's may be slow to start (a .pth file that imports much).
    start = f"exec {shlex.quote(sys.executable)} -I -S {shlex.quote(str(shim))}"
    for name in COMPILERS:
        if shutil.which(name):
            _executable(directory / name, f'#!/bin/sh\n{start} {name} "$@"\n')


def install_interpreter(directory: Path, python: Path) -> None:
    """Fill ``directory`` with ``python``, ``pytest`` and ``pip`` commands of the interpreter ``python``: its own folder
    may lack some of these names."""
    directory.mkdir(parents=True, exist_ok=True)
    own = shlex.quote(str(python))
    for name in ("python", "python3"):
        _executable(directory / name, f'#!/bin/sh\n{_PATHS}exec {own} "$@"\n')
    # `python -m pytest` would put the current directory on Python's path, which the program of that name does not.
    script = directory / "run_pytest"
    script.write_text("import sys\nfrom pytest import console_main\nsys.exit(console_main())\n", encoding="utf-8")
    runs_pytest = shlex.quote(str(script))
    for name, what in (("pytest", runs_pytest), ("py.test", runs_pytest), ("pip", "-m pip"), ("pip3", "-m pip")):
        _executable(directory / name, f'#!/bin/sh\n{_PATHS}exec {own} {what} "$@"\n')


def read_log(path: Path) -> tuple[CompilerCall, ...]:
    """The calls recorded in a shim log, in order; a torn last line is dropped."""
    if not path.exists():
        return ()
    calls: list[CompilerCall] = []
    for line in path.read_bytes().splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # torn by a kill
        calls.append(CompilerCall(tuple(entry["argv"]), entry["cwd"], entry["exit_code"], entry["stderr"]))
    return tuple(calls)


def _executable(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
