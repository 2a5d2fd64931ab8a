"""Precompiled headers for clang: arguments from g++ flags, and a bounded store on disk."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from reducer.frameworks.shim import LANGUAGE, WITH_VALUE
from reducer.syntax.cxx import builtin_headers

_DIRECTORIES = ("-I", "-isystem", "-iquote", "-idirafter")
# The extension's own name varies from case to case and means nothing to a syntax check: one header serves all.
EXTENSION_NAME = re.compile(r"-D((?:TORCH|PADDLE)_EXTENSION_NAME)=.*")
# What g++ accepts and clang rejects by default.
_LENIENT = ("-w", "-Wno-c++11-narrowing", "-Wno-register", "-Wno-enum-constexpr-conversion")
_FORMAT = 2  # to be raised when a stored header is made in another way
_COMMON = (
    *_LENIENT,
    "-ferror-limit=0",
    "-ftemplate-backtrace-limit=0",
    "-fmacro-backtrace-limit=0",
    "-fno-spell-checking",  # a corrected name hides the errors that follow from it
)


@cache
def gcc_directory() -> str:
    """Where the installed g++ keeps its own files; empty without one."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        found = subprocess.run(
            ["g++", "-print-libgcc-file-name"], capture_output=True, text=True, check=True, timeout=10
        )
        directory = Path(found.stdout.strip()).parent
        return str(directory) if directory.is_dir() else ""
    return ""


def language_flags(flags: Sequence[str], root: str) -> list[str]:
    """Those of g++'s flags that decide what is valid C++, in a form that clang knows.

    Relative directories are below ``root``. Optimisation, debugging and warning flags are dropped.
    """
    kept: list[str] = []
    position = 0
    while position < len(flags):
        flag = flags[position]
        position += 1
        name = next((n for n in WITH_VALUE if flag.startswith(n)), None)
        if name is None:
            kept += [flag] if re.fullmatch(LANGUAGE, flag) else []
            continue
        value = flag[len(name) :]
        if not value:
            if position == len(flags):
                break
            value = flags[position]
            position += 1
        if name in _DIRECTORIES and not os.path.isabs(value):
            value = os.path.normpath(os.path.join(root, value))
        kept += [name + value] if len(name) == 2 else [name, value]
    if not any(flag.startswith("-std=") for flag in kept):
        kept.append("-std=gnu++17")  # the default of g++ 11 and later
    return kept


def clang_arguments(flags: Sequence[str], root: str) -> tuple[str, ...]:
    """libclang's arguments for a C++ unit that g++ compiles with ``flags`` (see language_flags).

    Both compilers see the same standard library; what g++ has and clang's own headers lack (``omp.h``) comes from g++.
    """
    kept = [EXTENSION_NAME.sub(r"-D\1=reduced_extension", flag) for flag in language_flags(flags, root)]
    arguments = ["-x", "c++", *kept, "-resource-dir", builtin_headers(), *_COMMON]
    if directory := gcc_directory():
        arguments += [f"--gcc-install-dir={directory}", "-idirafter", f"{directory}/include"]
    return tuple(arguments)


def for_header(arguments: Sequence[str], root: str) -> tuple[str, ...]:
    """The arguments for making the precompiled header: without the case's own directories and forced includes."""
    kept: list[str] = []
    skip = False
    for position, argument in enumerate(arguments):
        value = arguments[position + 1] if position + 1 < len(arguments) else ""
        own = argument == "-include" or (argument in _DIRECTORIES and value.startswith(root))
        if not skip and not own and not argument.startswith(f"-I{root}"):
            kept.append(argument)
        skip = own and not skip
    kept[kept.index("c++")] = "c++-header"
    return tuple(kept)


class PchStore:
    """Precompiled headers below ``directory``, the least recently used ones removed beyond the two limits.

    ``suffix`` names the kind of file that is kept; stores of several kinds may share a directory.
    """

    def __init__(self, directory: Path, max_files: int = 12, max_bytes: int = 3 << 30, suffix: str = ".pch") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._suffix = suffix
        self._max_files = max_files
        self._max_bytes = max_bytes

    def obtain(self, arguments: Sequence[str], headers: Sequence[str], build: Callable[[Path], bool]) -> Path | None:
        """The header for this content, made by ``build`` (True: written) if there is none; None when it cannot be.

        Nobody builds the same content twice at the same time. A failure is remembered with the content.
        """
        key = _key(arguments, headers)
        path = self._directory / f"{key}{self._suffix}"
        with self._locked(key):
            if not path.exists():
                handle, name = tempfile.mkstemp(dir=self._directory, suffix=".part")
                os.close(handle)
                try:
                    if not build(Path(name)):
                        Path(name).write_bytes(b"")
                    Path(name).replace(path)
                finally:
                    Path(name).unlink(missing_ok=True)
            os.utime(path)
            self._prune(path)
        return path if path.stat().st_size else None

    def find(self, arguments: Sequence[str], headers: Sequence[str]) -> Path | None:
        """The header for this content if it was made before."""
        path = self._directory / f"{_key(arguments, headers)}{self._suffix}"
        return path if path.exists() and path.stat().st_size else None

    def forget(self, path: Path) -> None:
        """Remove a header that clang found out of date."""
        path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        with (self._directory / f"lock-{key[0]}").open("w") as stream:  # sixteen in all, which nobody has to remove
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield

    def _prune(self, newest: Path) -> None:
        stats = sorted(
            ((p.stat(), p) for p in self._directory.glob(f"*{self._suffix}")), key=lambda s: -s[0].st_mtime_ns
        )
        total = 0
        for number, (stat, path) in enumerate(stats, 1):
            total += stat.st_size
            if path != newest and (number > self._max_files or total > self._max_bytes):
                path.unlink()


def _key(arguments: Sequence[str], headers: Sequence[str]) -> str:
    """Hex digest of all that decides the content: arguments, headers, and the state of the include directories.

    clang itself checks every file when it loads a precompiled header, so this may be a good guess only.
    """
    state = hashlib.sha256(repr((_FORMAT, tuple(arguments), tuple(headers))).encode())
    for argument in arguments:
        directory = argument.removeprefix("-I")
        if os.path.isabs(directory):
            with contextlib.suppress(OSError):
                state.update(str(Path(directory).stat().st_mtime_ns).encode())
    return state.hexdigest()[:32]
