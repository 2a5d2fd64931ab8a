"""Directories for queries: fresh, alone, and gone afterwards."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

_PREFIX = "queries-"
_LOCK = "lock"
_OWN_FOLDERS = ("__pycache__", ".pytest_cache")


@dataclass(frozen=True, slots=True)
class QueryDirectory:
    """The place of one query. ``tree`` is for the candidate's files; all three exist and are empty at first."""

    root: Path

    @property
    def tree(self) -> Path:
        return self.root / "tree"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"

    def environment(self) -> dict[str, str]:
        """The variables that keep a command's own files here: home, temporary files, and build caches of both sides."""
        return {
            "HOME": str(self.home),
            "TMPDIR": str(self.tmp),
            "XDG_CACHE_HOME": str(self.home / ".cache"),
            "PADDLE_EXTENSION_DIR": str(self.home / "paddle_extensions"),
            "TORCH_EXTENSIONS_DIR": str(self.home / "torch_extensions"),
        }


def listing(places: QueryDirectory) -> dict[str, tuple[int, int]]:
    """What lies in the tree: sizes and times of files, by path; without what Python and pytest keep for themselves."""
    found: dict[str, tuple[int, int]] = {}
    for folder, folders, files in os.walk(places.tree):
        folders[:] = [name for name in folders if name not in _OWN_FOLDERS]
        found.update((os.path.join(folder, name), (0, 0)) for name in folders)
        for name in files:
            with contextlib.suppress(FileNotFoundError):
                stat = os.lstat(os.path.join(folder, name))
                found[os.path.join(folder, name)] = (stat.st_size, stat.st_mtime_ns)
    return found


class Workspace:
    """Fresh directories below ``root`` for the queries of one run, and a place for its results.

    Paths of queries that follow one another are the same, so that messages which name them are too. The directories
    of runs that were killed are removed when the next run starts. Use as a context manager, or call ``close``. Safe
    to share between threads.
    """

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = root.resolve()
        _remove_abandoned(self.root)
        self._queries = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self.root))
        self._lock = os.open(self._queries / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._mutex = threading.Lock()
        self._taken: set[int] = set()
        self._closed = False

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Remove all query directories. What was kept stays."""
        if not self._closed:
            self._closed = True
            remove(self._queries)
            os.close(self._lock)

    @contextlib.contextmanager
    def fresh(self) -> Iterator[QueryDirectory]:
        """A new directory that is removed when the block is left, in whatever way."""
        number = self._take()
        try:
            directory = QueryDirectory(self._queries / str(number))
            for part in (directory.tree, directory.home, directory.tmp):
                part.mkdir(parents=True)
            yield directory
        finally:
            try:
                remove(self._queries / str(number))
            finally:
                with self._mutex:
                    self._taken.discard(number)

    def _take(self) -> int:
        with self._mutex:
            number = 0
            while number in self._taken or os.path.lexists(self._queries / str(number)):
                number += 1
            self._taken.add(number)
            return number

    def keep(self, directory: QueryDirectory, name: str) -> Path:
        """Move a query's directory to ``root/kept/name``, where it stays; an older one of that name is replaced."""
        target = self.root / "kept" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        remove(target)
        directory.root.rename(target)
        return target


def remove(path: Path) -> None:
    """Remove a file or a directory tree, also one with read-only or unreadable directories, or of absurd depth.

    Nothing happens when it does not exist. Raises OSError when it cannot be removed.
    """
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(path)
        return
    # chmod and rm have neither Python's recursion limit nor its path length limit; neither follows links below path.
    subprocess.run(["chmod", "-R", "u+rwX", "--", path], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    done = subprocess.run(["rm", "-rf", "--", path], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if os.path.lexists(path):
        raise OSError(f"cannot remove {path}: {done.stderr.decode(errors='replace')[:500]}")


def _remove_abandoned(root: Path) -> None:
    """Remove query directories whose run holds no lock on them any more."""
    for queries in root.glob(f"{_PREFIX}*"):
        try:
            lock = os.open(queries / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # just being made, or just being removed
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            remove(queries)
        finally:
            os.close(lock)
