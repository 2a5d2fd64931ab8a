"""The syntax tier: does a translation unit compile? Asked of libclang, with the framework's headers precompiled."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from reducer.frameworks.pch import PchStore, clang_arguments, for_header
from reducer.oracle.observation import Diagnostic
from reducer.tree import check_relative
from reducer.world.clang_process import ClangFailed, ClangProcess

Precompiled = Literal["all", "base", "none"]  # which headers a unit finds precompiled

__all__ = ["ClangChecker", "ClangFailed", "Precompiled"]

_CHECK_TIMEOUT = 120.0  # seconds; a full parse of torch/extension.h takes ten on an idle machine
_BUILD_TIMEOUT = 600.0
_MAX_FILE = 4 << 20  # bytes; larger files of a case are data


class ClangChecker:
    """Checks units of one side. Start-up is lazy; use as a context manager, or call ``close``.

    ``flags`` are g++'s, as captured from a real build of that side; relative directories are the tree's. Two sets of
    headers are precompiled, as far as they exist on that side and compile: ``base`` with the ``common`` ones of the
    flags, which serves many cases, and ``extra`` on top of it. ``cache_dir`` keeps precompiled headers (bounded in
    number and size) from one run to the next.

    With a precompiled header *all* its headers are visible to a unit, whether or not it includes them: keep include
    lines, and macros defined before them, as they are while it is used, and ask for less otherwise.
    """

    def __init__(
        self,
        flags: Sequence[str],
        extra: Sequence[str],
        cache_dir: Path,
        base: Sequence[str] = (),
        common: Sequence[str] | None = None,
    ) -> None:
        self._process = ClangProcess(cache_dir)
        self._root = str(self._process.directory)
        self._arguments = clang_arguments(flags, self._root)
        self._common = clang_arguments(flags if common is None else common, self._root)
        self._base = tuple(base)
        self._extra = tuple(extra)
        self._store = PchStore(cache_dir)
        self._made: dict[Precompiled, Path | None] = {"none": None}
        self._preparing = threading.Lock()
        self.left_out: tuple[str, ...] = ()

    def __enter__(self) -> ClangChecker:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the worker process."""
        self._process.close()

    def prepare(self) -> bool:
        """Have the precompiled headers at hand, building them if needed; False when there are none to be had."""
        with self._preparing:
            if "all" not in self._made:
                base = self._obtain(self._common, self._base, None)
                self._made["base"] = base
                self._made["all"] = self._obtain(self._arguments, self._extra, base) or base
        return self._made["all"] is not None

    @property
    def root(self) -> str:
        """The directory that stands for the tree in ``parse_arguments``."""
        return self._root

    def parse_arguments(self) -> tuple[str, ...]:
        """clang's arguments for a unit of this side, with the precompiled headers when there are any."""
        return (*self._arguments, "-include-pch", str(self._made["all"])) if self.prepare() else self._arguments

    def _obtain(self, arguments: Sequence[str], headers: Sequence[str], below: Path | None) -> Path | None:
        """Precompile ``headers`` on top of another precompiled header."""
        if not headers:
            return None
        # The worker's directory is another one in every process and must not be part of the key.
        arguments = for_header(arguments, self._root)
        if below is not None:
            arguments = (*arguments, "-include-pch", str(below))

        def build(out: Path) -> bool:
            request = {"do": "precompile", "headers": headers, "arguments": arguments, "out": str(out)}
            answer = self._process.ask(request, _BUILD_TIMEOUT)
            self.left_out += tuple(answer["failed"])
            return bool(answer["saved"])

        return self._store.obtain(arguments, headers, build)

    def check(
        self, files: Mapping[str, bytes], unit: str, *, precompiled: Precompiled = "all"
    ) -> tuple[Diagnostic, ...]:
        """All errors of one translation unit, in clang's order; empty when it compiles.

        ``files`` is the whole tree (besides it, only the framework's and the system's headers are read). Files of
        the tree are named by their paths in it, others absolutely. Raises KeyError when ``unit`` is not among
        ``files``, ValueError for a path that leaves the tree, and ClangFailed when libclang crashes or takes too long.
        """
        if unit not in files:
            raise KeyError(unit)
        for path in files:
            check_relative(path)
        pch = self._made[precompiled] if precompiled != "none" and self.prepare() else None
        try:
            return self._ask(files, unit, pch)
        except ClangFailed:
            if pch is None or self._usable(pch):
                raise
        for stale in self._made.values():
            if stale is not None:
                self._store.forget(stale)
        self._made = {"none": None}
        return self._ask(files, unit, self._made[precompiled] if self.prepare() else None)

    def _usable(self, pch: Path) -> bool:
        """False for a precompiled header that clang refuses, as it does when a header has changed on disk."""
        try:
            return not self._ask({"empty.cc": b"\n"}, "empty.cc", pch)
        except ClangFailed:
            return False

    def _ask(self, files: Mapping[str, bytes], unit: str, pch: Path | None) -> tuple[Diagnostic, ...]:
        sent = {p: c for p, c in files.items() if p == unit or (len(c) <= _MAX_FILE and b"\0" not in c)}
        request = {
            "do": "check",
            "files": {path: content.decode("latin-1") for path, content in sent.items()},
            "unit": unit,
            "arguments": [*self._arguments, *(("-include-pch", str(pch)) if pch else ())],
        }
        return tuple(_diagnostic(item) for item in self._process.ask(request, _CHECK_TIMEOUT)["diagnostics"])


def _diagnostic(item: Any) -> Diagnostic:
    severity, message, file, line, column, places = item
    return Diagnostic(severity, message, file, line, column, tuple((name, number) for name, number in places))
