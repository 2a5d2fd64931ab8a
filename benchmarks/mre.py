"""Reads and re-runs a written MRE with nothing of the tool's own code: a check from outside of what a reader gets."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CXX = (".cc", ".cpp", ".cxx", ".c", ".cu", ".h", ".hh", ".hpp", ".hxx", ".cuh")
PRELUDE_LINES = 2
_INCLUDE = re.compile(r"\s*#\s*include\b")
_REGISTRATION = re.compile(r"\s*(TORCH_LIBRARY\w*|PYBIND11_MODULE|STABLE_TORCH_LIBRARY\w*|PyMODINIT_FUNC)\b")


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of an MRE in non-blank lines. ``script``: what follows the prelude. ``registration`` is part of ``cxx``."""

    cxx: int
    registration: int
    includes: int
    script: int
    setup: int
    sources: int


def metadata(directory: Path) -> dict[str, Any]:
    """The metadata.json of a written MRE. Raises OSError, ValueError."""
    data: dict[str, Any] = json.loads((directory / "metadata.json").read_text(encoding="utf-8"))
    return data


def sources(directory: Path) -> dict[str, str]:
    """The MRE's own files (no report, no logs) as text, by relative path."""
    found = {}
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if path.is_file() and name not in ("README.md", "metadata.json") and not name.startswith("logs/"):
            found[name] = path.read_text(encoding="utf-8", errors="replace")
    return found


def shape(directory: Path) -> Shape:
    """Count the lines of a written MRE."""
    files = sources(directory)
    cxx = {path: _filled(text) for path, text in files.items() if path.endswith(CXX)}
    lines = [line for text in cxx.values() for line in text]
    return Shape(
        cxx=len(lines),
        registration=sum(_registration(text) for text in cxx.values()),
        includes=sum(bool(_INCLUDE.match(line)) for line in lines),
        script=max(0, len(_filled(files.get("repro.py", ""))) - PRELUDE_LINES),
        setup=len(_filled(files.get("setup.py", ""))),
        sources=len(cxx),
    )


def _filled(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _registration(lines: list[str]) -> int:
    """Lines of registration blocks, from the macro's name to the brace that closes its block."""
    count, depth, inside = 0, 0, False
    for line in lines:
        inside = inside or bool(_REGISTRATION.match(line))
        if inside:
            count += 1
            depth += line.count("{") - line.count("}")
            inside = depth > 0 or ("{" not in line and not line.rstrip().endswith((";", "}")))
    return count


@dataclass(frozen=True, slots=True)
class Rerun:
    """What one side did: exit codes of the commands that were run, and all that they printed."""

    codes: tuple[int, ...]
    output: str

    @property
    def passed(self) -> bool:
        return all(code == 0 for code in self.codes)


def rerun(directory: Path, side: str, python: Path, place: Path, timeout: float = 900.0) -> Rerun:
    """Copy the MRE to the new directory ``place`` and run its recorded commands for ``side`` there, as a reader would.

    ``python``'s folder stands first on PATH; nothing else of this process's environment is passed on. A command that
    takes more than ``timeout`` seconds counts as exit code 124.
    """
    tree = place / "mre"
    shutil.copytree(directory, tree)
    for name in ("home", "tmp"):
        (place / name).mkdir()
    env = {
        "PATH": os.pathsep.join([str(python.parent), os.defpath, "/usr/local/bin"]),
        "HOME": str(place / "home"),
        "TMPDIR": str(place / "tmp"),
        "LC_ALL": "C.UTF-8",
    }
    commands = metadata(directory)["commands"]
    keys = ("build", "run") if side == "paddle" else ("control_build", "control_run")
    codes: list[int] = []
    output: list[str] = []
    for command in (commands[key] for key in keys):
        if command is None:
            continue
        try:
            done = subprocess.run(
                shlex.split(command),
                cwd=tree,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            codes.append(124)
            output.append(f"{command}: no end in {timeout:.0f} s")
            break
        codes.append(done.returncode)
        output.append(done.stdout)
        if done.returncode:
            break
    return Rerun(tuple(codes), "\n".join(output))


def decisive_words(message: str) -> list[str]:
    """The words of a message's first line that any run prints again: no numbers, paths or placeholders."""
    first = next((line for line in message.splitlines() if line.strip()), "")
    first = re.sub(r"<[^<>]*>|\S*/\S*|\x1b\[[0-9;]*m", " ", first)
    return [word for word in re.findall(r"[A-Za-z_][A-Za-z_]{3,}", first) if not word.startswith("_Z")]
