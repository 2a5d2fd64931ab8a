"""Immutable source trees: what a candidate is made of."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path


class SourceTree(Mapping[str, bytes]):
    """An immutable mapping of relative POSIX paths to file contents.

    ``executable`` names the files that carry the executable bit. Two trees are equal when paths, contents and
    executable bits are equal; ``digest`` is a hex SHA-256 of all three.
    """

    __slots__ = ("__dict__", "_files", "executable")

    def __init__(self, files: Mapping[str, bytes], executable: Iterable[str] = ()) -> None:
        for path in files:
            check_relative(path)
        self._files: dict[str, bytes] = {path: bytes(files[path]) for path in sorted(files)}
        self.executable: frozenset[str] = frozenset(p for p in executable if p in self._files)

    def __getitem__(self, path: str) -> bytes:
        return self._files[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SourceTree) and self.digest == other.digest

    def __repr__(self) -> str:
        return f"SourceTree({len(self)} files, {self.digest[:12]})"

    @cached_property
    def digest(self) -> str:
        """Hex SHA-256 over paths, contents and executable bits."""
        state = hashlib.sha256()
        for path, content in self._files.items():
            name = path.encode("utf-8", "surrogateescape")
            state.update(b"%d:%s%d:%d:" % (len(name), name, path in self.executable, len(content)))
            state.update(content)
        return state.hexdigest()

    def updated(self, changes: Mapping[str, bytes | None]) -> SourceTree:
        """This tree with files written (bytes) or dropped (None)."""
        files = dict(self._files)
        for path, content in changes.items():
            if content is None:
                files.pop(path, None)
            else:
                files[path] = content
        return SourceTree(files, self.executable)

    def text(self, path: str) -> str:
        """The file decoded for reading; bytes that are not UTF-8 survive as surrogates."""
        return self._files[path].decode("utf-8", "surrogateescape")

    def write(self, directory: Path) -> None:
        """Write every file below ``directory`` (created if needed). Raises OSError as the system does."""
        for path, content in self._files.items():
            target = directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(target, content)
            if path in self.executable:
                target.chmod(0o755)

    @classmethod
    def read(cls, directory: Path, paths: Iterable[str]) -> SourceTree:
        """Read the named files below ``directory``. Raises OSError when one cannot be read."""
        files: dict[str, bytes] = {}
        executable: list[str] = []
        for path in paths:
            source = directory / path
            files[path] = source.read_bytes()
            if os.access(source, os.X_OK):
                executable.append(path)
        return cls(files, executable)


def check_relative(path: str) -> None:
    """Raise ValueError unless ``path`` is a normal relative POSIX path that stays inside its tree."""
    parts = path.split("/")
    if not path or path.startswith("/") or "\0" in path or any(p in ("", ".", "..") for p in parts):
        raise ValueError(f"not a path inside a tree: {path!r}")


def write_atomic(target: Path, content: bytes) -> None:
    """Replace ``target`` so that a reader sees the old bytes or the new ones, never a part."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".write-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.chmod(name, 0o644)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
