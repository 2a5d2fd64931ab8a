"""Quick objects: clang with the framework's headers precompiled, and *their code compiled once* beside them.

Where a warm query has C++ to build, most of a compiler's time goes into reading the framework's headers and into code
of their inline functions. clang puts both aside (``-fpch-codegen``: the header's functions become an object of their
own), which makes an object in 0.2 s that takes g++ with a precompiled header 2.4 s. The linker drops what is not used.

PyTorch's headers need one step more (see virtual_members.py). It takes a minute, once for an environment; meanwhile,
objects are made with the header alone.

The settings go to the compiler shims as a JSON file: ``compiler`` and ``code`` (the command), ``pch``, ``library``
(arguments beside the objects of a link) and ``link`` (arguments at its end).
"""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from reducer.frameworks.flags import BASE_HEADERS, units
from reducer.frameworks.pch import EXTENSION_NAME, PchStore, for_header, language_flags
from reducer.frameworks.side import Side
from reducer.frameworks.toolchain import Toolchain
from reducer.frameworks.virtual_members import instantiations
from reducer.oracle.observation import Observation, SideName

_BUILD_TIMEOUT = 600.0  # seconds; torch/extension.h takes 25 on an idle machine
# What g++ accepts and clang rejects by default; sections, so that the linker can drop what is not used.
_CODE = (
    *("-O0", "-g0", "-w", "-fPIC", "-ffunction-sections", "-fdata-sections"),
    "-fclang-abi-compat=17",  # clang 18 mangles constrained templates as no g++ before 14 does
    *("-Wno-c++11-narrowing", "-Wno-register", "-Wno-enum-constexpr-conversion"),
)
# PyTorch's do not survive it as they are: what clang 18 instantiates only when it makes the code (virtual members of
# templates) forgets that a tuple can be taken apart.
_CODE_ASIDE: tuple[SideName, ...] = ("paddle",)
_NOWHERE = "/nowhere"  # directories of the case have no part in a header that serves all candidates


class _StoppedError(Exception):
    """Killed half-way: that says nothing of the next time, and the stores must not remember it."""


class QuickObjects:
    """Prepares the settings of both sides, each when it is first asked for, and remembers what cannot be had."""

    def __init__(self, toolchain: Toolchain, seen: Iterable[Observation], directory: Path) -> None:
        self._toolchain = toolchain
        self._flags = {observation.side: found[0].common for observation in seen if (found := units(observation))}
        self._headers = PchStore(directory)  # clang goes by the suffix
        self._libraries = PchStore(directory, suffix=".a")
        self._instantiations = PchStore(directory, suffix=".inst")
        self._aside: set[SideName] = set()
        self._known: dict[SideName, Path | None] = {}
        self._preparing: dict[SideName, threading.Lock] = {side: threading.Lock() for side in self._flags}
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def close(self) -> None:
        """End what is being made; nothing more is made after this."""
        self._closed = True
        for process in tuple(self._running):
            process.kill()

    def settings(self, side: Side) -> Path | None:
        """The file for the shims of ``side``; None where clang cannot do it: g++ makes the objects then."""
        if side.name not in self._flags:
            return None
        with self._preparing[side.name]:
            if side.name not in self._known:
                self._known[side.name] = None
                with contextlib.suppress(_StoppedError):
                    self._known[side.name] = self._prepare(side)
            return self._known[side.name]

    def improve(self, side: Side) -> None:
        """Put the code of ``side``'s headers aside as well, where ``settings`` could not do it at once."""
        if self.settings(side) is None or side.name in self._aside:
            return
        arguments, headers = self._arguments(side), BASE_HEADERS[side.name]
        with contextlib.suppress(_StoppedError):
            again = self._instantiations_of(arguments, headers)
            found = self._with_library(arguments, headers, again) if again is not None else None
            if found is not None:
                self._write(side, *found)

    def _prepare(self, side: Side) -> Path | None:
        arguments, headers = self._arguments(side), BASE_HEADERS[side.name]
        if side.name in _CODE_ASIDE:
            again: str | None = ""
        else:
            stored = self._instantiations.find(self._key(arguments), headers)
            again = stored.read_text(encoding="utf-8") if stored is not None else None
        found = self._with_library(arguments, headers, again) if again is not None else None
        if found is not None:
            return self._write(side, *found)
        pch = self._precompiled(arguments, headers)
        return self._write(side, pch, None) if pch is not None else None

    def _arguments(self, side: Side) -> tuple[str, ...]:
        flags = [f for f in language_flags(self._flags[side.name], _NOWHERE) if not EXTENSION_NAME.fullmatch(f)]
        return for_header(["-x", "c++", *flags], _NOWHERE)

    def _with_library(self, arguments: Sequence[str], headers: Sequence[str], more: str) -> tuple[Path, Path] | None:
        """The header with ``more`` behind it, without its code, and the library of that code."""
        pch = self._precompiled((*arguments, "-fpch-codegen"), headers, more)
        library = self._library(pch) if pch is not None else None
        return (pch, library) if pch is not None and library is not None else None

    def _precompiled(self, arguments: Sequence[str], headers: Sequence[str], more: str = "") -> Path | None:
        code = (*_CODE, *arguments, "-fpch-instantiate-templates")
        text = "".join(f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n" for name in headers) + more

        def build(out: Path) -> bool:
            return self._run([*code, "-", "-o", str(out)], text) and out.stat().st_size > 0

        return self._headers.obtain(self._key(code), (*headers, *((more,) if more else ())), build)

    def _instantiations_of(self, arguments: Sequence[str], headers: Sequence[str]) -> str | None:
        """What stands behind the header, so that units need not instantiate it; None when that cannot be found."""
        pch = self._precompiled(arguments, headers)

        def build(out: Path) -> bool:
            trace = out.with_suffix(".json")
            unit = [argument if argument != "c++-header" else "c++" for argument in arguments]
            watched = [f"-ftime-trace={trace}", "-ftime-trace-granularity=0", "-o", str(out.with_suffix(".o"))]
            try:
                if pch is None or not self._run([*_CODE, *unit, "-include-pch", str(pch), "-c", "-", *watched]):
                    return False
                text = instantiations(trace.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                return False
            finally:
                trace.unlink(missing_ok=True)
                out.with_suffix(".o").unlink(missing_ok=True)
            out.write_text(text, encoding="utf-8")
            return bool(text)

        stored = self._instantiations.obtain(self._key(arguments), headers, build)
        return stored.read_text(encoding="utf-8") if stored is not None else None

    def _library(self, pch: Path) -> Path | None:
        """The code of the header as an archive of one object: of an archive, the linker may hide and drop symbols."""

        def build(out: Path) -> bool:
            code, archive = out.with_suffix(".o"), out.with_suffix(".ar")
            made = self._run([*_CODE, "-c", str(pch), "-o", str(code)]) and self._succeeds(
                ["ar", "rc", str(archive), str(code)]
            )
            if made:
                archive.replace(out)
            code.unlink(missing_ok=True)
            return made

        return self._libraries.obtain(self._key(()), (str(pch),), build)

    def _key(self, arguments: Sequence[str]) -> tuple[str, ...]:
        return (self._toolchain.version, *self._toolchain.compiler, *arguments)

    def _run(self, arguments: Sequence[str], text: str = "") -> bool:
        return self._succeeds([*self._toolchain.compiler, *arguments], text)

    def _succeeds(self, command: Sequence[str], text: str = "") -> bool:
        """Whether a command ends well in time. Raises _StoppedError when it is killed, by ``close`` or from outside."""
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        except OSError:
            return False
        self._running.add(process)
        late = False
        try:
            if self._closed:
                process.kill()
            process.communicate(text.encode(), timeout=_BUILD_TIMEOUT)
        except subprocess.TimeoutExpired:
            late = True
            process.kill()
            process.communicate()
        finally:
            self._running.discard(process)
        if (process.returncode < 0 or (self._closed and process.returncode)) and not late:
            raise _StoppedError
        return process.returncode == 0

    def _write(self, side: Side, pch: Path, library: Path | None) -> Path:
        link: list[str] = []
        if self._toolchain.linker is not None:
            place = side.support / "linker"
            place.mkdir(exist_ok=True)
            program = place / "ld.lld"
            program.write_text(f'#!/bin/sh\nexec {shlex.join(self._toolchain.linker)} "$@"\n', encoding="utf-8")
            program.chmod(0o755)
            link = [f"-B{place}", "-fuse-ld=lld"]
        beside = [str(library), "-Wl,--gc-sections", f"-Wl,--exclude-libs,{library.name}"] if library else []
        path = side.support / "quick.json"
        settings = {
            "compiler": self._toolchain.compiler,
            "code": _CODE,
            "pch": str(pch),
            "library": beside,
            "link": link,
        }
        part = path.with_suffix(".part")  # builds may be reading the settings that it takes the place of
        part.write_text(json.dumps(settings), encoding="utf-8")
        part.replace(path)
        if library is not None:
            self._aside.add(side.name)
        return path
