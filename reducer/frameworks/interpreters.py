"""Which interpreters the two sides use when the user names none."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path


class InterpreterError(Exception):
    """An interpreter the user named does not exist or cannot be executed."""


@dataclass(frozen=True, slots=True)
class Interpreters:
    """Absolute paths of the two sides' interpreters; they may be the same one."""

    paddle: Path
    torch: Path


def find(paddle: Path | None, torch: Path | None) -> Interpreters:
    """The named interpreters; else the one that runs this tool when it has the framework, else ``python`` on PATH.

    A virtual environment's interpreter is kept as named: resolving its link would lose the environment. Raises
    InterpreterError.
    """
    first = _named(paddle, "--paddle-python") or _default("paddle")
    return Interpreters(
        first, _named(torch, "--torch-python") or (first if _has(first, "torch") else _default("torch"))
    )


def _named(python: Path | None, option: str) -> Path | None:
    if python is None:
        return None
    found = shutil.which(str(python.expanduser()))
    if found is None:
        raise InterpreterError(f"{option} {python}: no such program. Give the path of a Python interpreter.")
    return Path(os.path.abspath(found))


def _default(framework: str) -> Path:
    own = Path(sys.executable)
    if _has(own, framework):
        return own
    other = shutil.which("python") or shutil.which("python3")
    return Path(other) if other else own


def _has(python: Path, framework: str) -> bool:
    """Whether the interpreter's own site-packages hold the framework, looked up without starting it."""
    lib = python.parent.parent / "lib"
    return any(lib.glob(f"python3*/site-packages/{framework}/__init__.py"))
