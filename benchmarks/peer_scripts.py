"""The scripts that the peers ask: the one that a user would write, and our oracle's client in its place.

Either notes each question's begin and end, and keeps each state that it accepted, so that a peer that is ended in the
middle has its best state counted, whatever it leaves behind itself.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from benchmarks.peer_tools import INTERESTING, Layout
from reducer.tree import SourceTree
from reducer.world.freeze import freeze

FILE = "PEER_FILE"  # environment variable: the one file that is being reduced
LIMIT = 300  # seconds for one build and run of the user's script
_CALLS, _KEPT = "calls", "kept"


@dataclass(frozen=True, slots=True)
class Call:
    """One question: seconds since the epoch, and the script's exit code."""

    began: float
    ended: float
    code: int


@dataclass(frozen=True, slots=True)
class Sources:
    """What scripts read and write. ``frozen``: the untouched library; ``tree``: the peer's own copy; ``files``: those
    that it reduces; ``place``: an existing directory for the notes."""

    frozen: Path
    tree: Path
    files: tuple[str, ...]
    layout: Layout
    place: Path


def cheap(ask: str, sources: Sources) -> str:
    """The script that asks our oracle by the command that ``reduce oracle start`` printed."""
    if sources.layout == "files":
        words = " ".join(f"--file {shlex.quote(file)}" for file in sources.files)
    elif sources.layout == "tree":
        words = '"${1:-.}"'
    else:
        base = f"--base {shlex.quote(str(sources.tree))} " if len(sources.files) > 1 else ""
        words = f'{base}--file "${FILE}" "$1"'
    return _script(f"check() {{\n  {ask} --quiet {words}\n}}", sources)


def user(commands: Sequence[str], pattern: str, python: Path, stand_in: Path, sources: Sources) -> str:
    """The script that a user would write: build and run on Paddle, look for the words (an extended regular expression)
    in the output, then build and run under PyTorch with a paddle module on the path that only has the switches."""
    body = f"""check() {{
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  export PATH={shlex.quote(str(python.parent))}:"$PATH" PYTHONDONTWRITEBYTECODE=1
  candidate "$work/paddle"
  candidate "$work/torch"
  cd "$work/paddle" || exit 1
  commands > "$work/log" 2>&1 && exit 1
  grep -qE {shlex.quote(pattern)} "$work/log" || exit 1
  cd "$work/torch" || exit 1
  export PYTHONPATH={shlex.quote(str(stand_in))} USE_TORCH=1
  commands > "$work/log" 2>&1
}}

commands() {{
  {" && ".join(f"timeout {LIMIT} sh -c {shlex.quote(command)}" for command in commands)}
}}

candidate() {{
{_placed(sources, '"$1"', '"$given"')}
}}"""
    return _script(body, sources)


def _placed(sources: Sources, target: str, given: str) -> str:
    """Shell lines that put the whole candidate at ``target``; ``given`` is the script's own argument."""
    if sources.layout == "tree":
        return f"  cp -r {given} {target}"
    base = sources.tree if sources.layout == "file" else sources.frozen
    lines = [f"  cp -r {shlex.quote(str(base))} {target}"]
    if sources.layout == "file":
        lines.append(f'  cp {given} {target}/"${FILE}"')
    else:
        lines += [
            f"  cp {shlex.quote(PurePosixPath(file).name)} {target}/{shlex.quote(file)}" for file in sources.files
        ]
    return "\n".join(lines)


def _script(body: str, sources: Sources) -> str:
    """``body`` defines ``check``, which is run in a shell of its own; what it accepts is kept under its end's time."""
    calls, kept = (shlex.quote(str(sources.place / name)) for name in (_CALLS, _KEPT))
    return f"""#!/bin/bash
export LC_ALL=C
given="${{1:-.}}"

{body}

began=$EPOCHREALTIME
(check "$@")
code=$?
ended=$EPOCHREALTIME
if [ $code = 0 ]; then
  mkdir -p {kept}
{_placed(sources, f'{kept}/"$ended"', '"$given"')}
  echo {INTERESTING}
fi
echo "$began $ended $code" >> {calls}
exit $code
"""


def calls(place: Path) -> list[Call]:
    """The questions that ended, in order; one that was cut off is not there."""
    notes = place / _CALLS
    if not notes.is_file():
        return []
    found = []
    for line in notes.read_text(encoding="utf-8").splitlines():
        match = re.fullmatch(r"(\d+\.\d+) (\d+\.\d+) (\d+)", line)
        if match:
            found.append(Call(float(match[1]), float(match[2]), int(match[3])))
    return found


def accepted(place: Path) -> list[tuple[float, SourceTree]]:
    """The states that were accepted, each with its seconds since the epoch, in order."""
    ended = {f"{call.ended:.6f}" for call in calls(place) if call.code == 0}  # one cut off in its copying is not there
    kept = place / _KEPT
    folders = [folder for folder in kept.iterdir() if folder.name in ended] if kept.is_dir() else []
    return sorted(((float(folder.name), freeze(folder).tree) for folder in folders), key=lambda state: state[0])
