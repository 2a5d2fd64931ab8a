"""Freeze a checkout: read it once into an immutable tree; the user's files are never written."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from reducer.tree import SourceTree

LARGE = 64 * 1024 * 1024  # bytes; a larger file is data that no gap needs, and would be copied for every query

_SKIPPED_FOLDERS = re.compile(
    r"\.git|\.hg|\.svn|__pycache__|\.tox|\.nox|\.venv|venv|\.eggs|.*\.egg-info|node_modules|\.mypy_cache|\.ruff_cache"
    r"|\.pytest_cache|\.hypothesis|\.reduce"
)
_SKIPPED_AT_THE_TOP = frozenset({"build", "dist", "mre"})  # deeper down these are names of packages
_SKIPPED_FILES = re.compile(r".*\.(pyc|pyo|o|obj|so|pyd|dylib|whl)|.*_pd_\.so|\.coverage")


class FreezeError(Exception):
    """The checkout cannot be read. The message says what, why and what to do."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """A checkout as it was read. ``notes`` are sentences for the user: what was left out, and why."""

    tree: SourceTree
    notes: tuple[str, ...]


def freeze(repo: Path, output: Path | None = None) -> Frozen:
    """Read what git tracks below ``repo``, and what it does not ignore; with no git, all but build products.

    What lies below ``output`` (an earlier result in the checkout) is left out. Symbolic links to files inside the
    checkout are read through; links that leave it, and loops, are left out. Raises FreezeError.
    """
    if not repo.exists():
        raise FreezeError(f"{repo} does not exist. Give the library's checkout with --repo.")
    if not repo.is_dir():
        raise FreezeError(f"{repo} is a file. Give the library's checkout (a directory) with --repo.")
    notes: list[str] = []
    paths = _tracked(repo)
    if paths is None:
        paths = _walk(repo)
    root = repo.resolve()
    earlier = output.resolve() if output is not None else None
    files: dict[str, bytes] = {}
    executable: list[str] = []
    for path in _through_links(repo, root, paths):
        source = repo / path
        try:
            real = source.resolve()
            if earlier is not None and real.is_relative_to(earlier):
                continue
            if not real.is_relative_to(root) and not (source.is_symlink() and not real.exists()):
                notes.append(f"{path} links to a place outside the checkout and was left out")
                continue
            if not real.is_file():
                if source.is_symlink() and not real.exists():
                    notes.append(f"{path} is a broken link and was left out")
                continue  # deleted in the work tree, or a submodule's folder
            if real.stat().st_size > LARGE:
                notes.append(f"{path} is larger than {LARGE >> 20} MiB and was left out")
                continue
            files[path] = source.read_bytes()
        except (OSError, RuntimeError) as error:
            notes.append(f"{path} could not be read and was left out ({error})")
            continue
        if os.access(source, os.X_OK):
            executable.append(path)
    if not files:
        raise FreezeError(f"{repo} holds no files to reduce. Run the tool in the library's checkout, or give --repo.")
    return Frozen(SourceTree(files, executable), tuple(notes))


def _through_links(repo: Path, root: Path, paths: list[str]) -> list[str]:
    """``paths`` with, for each link to a folder of the checkout, the files that lie there."""
    found: dict[str, None] = {}
    for path in paths:
        found[path] = None
        source = repo / path
        if source.is_symlink() and source.is_dir():
            target = source.resolve()
            inside = target.is_relative_to(root) and not source.absolute().is_relative_to(target)
            if inside:
                below = target.relative_to(root).as_posix() + "/"
                found.update((f"{path}/{other[len(below) :]}", None) for other in paths if other.startswith(below))
    return list(found)


def _tracked(repo: Path) -> list[str] | None:
    """Paths relative to ``repo`` that git knows of, or None without git."""
    command = ["git", "-C", str(repo), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(
            [*command, "--recurse-submodules"] if _has_submodules(repo) else command, capture_output=True, check=False
        )
        if listed.returncode != 0 and _has_submodules(repo):
            listed = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        return None
    if listed.returncode != 0:
        return None
    names = {os.fsdecode(name) for name in listed.stdout.split(b"\0") if name}
    return sorted(n for n in names if _wanted(n)) or None


def _has_submodules(repo: Path) -> bool:
    return (repo / ".gitmodules").exists()


def _wanted(path: str) -> bool:
    """Build products are stale state (a tracked .so would be loaded instead of the candidate's own)."""
    return _SKIPPED_FILES.fullmatch(path.rsplit("/", 1)[-1]) is None


def _walk(repo: Path) -> list[str]:
    found: list[str] = []
    for folder, folders, names in os.walk(repo):
        base = Path(folder).relative_to(repo)
        skipped = _SKIPPED_AT_THE_TOP if base == Path() else frozenset()
        folders[:] = sorted(f for f in folders if f not in skipped and not _SKIPPED_FOLDERS.fullmatch(f))
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        found += [(base / name).as_posix() for name in sorted((*names, *links)) if _wanted(name)]
    return found
