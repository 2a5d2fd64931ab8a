"""Builds without the build system: the compiler calls of one build, repeated on another candidate.

A candidate that differs from an earlier one only in the text of its C++ files is built by the same calls. Repeating
them costs what the changed file costs; starting setuptools and cpp_extension costs half a second to two on top.
"""

from __future__ import annotations

import hashlib
import posixpath
import shlex
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from reducer.frameworks.build_command import CXX_HEADER, CXX_SOURCE, is_build_input
from reducer.oracle.candidate import Candidate
from reducer.oracle.observation import CompilerCall
from reducer.world.workspace import QueryDirectory

_ROOT = "<reduce-root>"


@dataclass(frozen=True, slots=True)
class Replay:
    """``script``: shell commands with a placeholder for the query's directory. ``made``: product, and the link output
    that it is a copy of (paths below the query's directory). ``kept``: where the other products are stored."""

    script: str
    made: tuple[tuple[str, str], ...]
    kept: Path

    def command(self, places: QueryDirectory) -> str:
        """What a shell is to run in a query's directory."""
        return self.script.replace(_ROOT, str(places.root))

    def finish(self, places: QueryDirectory) -> None:
        """Put the products where the build system would have put them. Raises OSError when one was not made."""
        copy_new(self.kept / "tree", places.tree)
        copy_new(self.kept / "site", places.root / "home" / "site")
        for product, output in self.made:
            if product == output:
                continue  # linked where it belongs
            target = places.root / product
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(places.root / output, target)


def replay_key(candidate: Candidate) -> str:
    """Equal for candidates that the same compiler calls build: hex digest of the command, of all files that the build
    may read but C++, and of the names of the C++ sources."""
    build = candidate.recipe.build or ""
    state = hashlib.sha256(build.encode())
    for path, content in candidate.tree.items():
        if path.endswith((*CXX_SOURCE, *CXX_HEADER)):
            content = b""
            if path.endswith(CXX_HEADER):
                continue
        elif not is_build_input(path, candidate.tree, build):
            continue
        state.update(path.encode("utf-8", "surrogateescape") + b"\0%d\0" % len(content) + content)
    return state.hexdigest()[:32]


def replay_of(
    places: QueryDirectory, candidate: Candidate, calls: Iterable[CompilerCall], products: Path
) -> Replay | None:
    """How to repeat a finished build, or None when its calls do not tell.

    ``products`` is a directory that nobody writes to any more with what the build left in ``tree`` and ``site``.
    """
    root = str(places.root)
    lines, outputs = [], {}
    for call in calls:
        if call.exit_code:
            return None
        source = next((w for w in call.argv[1:] if w.endswith(CXX_SOURCE) and not w.startswith("-")), None)
        if "-o" not in call.argv[:-1] or ("-c" in call.argv) != (source is not None):
            return None
        output = Path(posixpath.join(call.cwd, call.argv[call.argv.index("-o") + 1]))
        full = posixpath.normpath(posixpath.join(call.cwd, source)) if source else ""
        if source and not _in_tree(full, places, candidate):
            return None
        if not output.is_relative_to(root) or (source is None and not output.is_file()):
            return None  # objects may be gone: Paddle's build removes them
        here = f"mkdir -p {shlex.quote(str(output.parent))} && cd {shlex.quote(call.cwd)}"
        lines.append(f"{here} && {shlex.join(call.argv)}")
        if source is None:
            outputs[_digest(output)] = str(output.relative_to(root))
    made = []
    for part, place in (("tree", "tree"), ("site", "home/site")):
        for path in (products / part).rglob("*.so"):
            known = outputs.get(_digest(path))
            if known is None:
                return None
            made.append((f"{place}/{path.relative_to(products / part)}", known))
    return Replay(" &&\n".join(lines).replace(root, _ROOT), tuple(made), products) if made else None


def copy_new(source: Path, target: Path) -> None:
    """Copy files below ``source`` that ``target`` does not have: the candidate's own files win."""
    for path in source.rglob("*"):
        goal = target / path.relative_to(source)
        if path.is_file() and not goal.exists():
            goal.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, goal)


def _in_tree(path: str, places: QueryDirectory, candidate: Candidate) -> bool:
    return path.startswith(f"{places.tree}/") and path[len(str(places.tree)) + 1 :] in candidate.tree


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
