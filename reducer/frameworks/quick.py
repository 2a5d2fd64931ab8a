"""Quick objects: clang with the framework's headers precompiled, and *their code compiled once* beside them.

Where a warm query has C++ to build, most of a compiler's time goes into reading the framework's headers and into code
of their inline functions. clang puts both aside (``-fpch-codegen``: the header's functions become an object of their
own), which makes an object in 0.2 s that takes g++ with a precompiled header 2.4 s. The linker drops what is not used.

The settings go to the compiler shims as a JSON file: ``compiler`` and ``code`` (the command), ``pch``, ``library``
(arguments beside the objects of a link) and ``link`` (arguments at its end).
"""

from __future__ import annotations

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
from reducer.oracle.observation import Observation, SideName

_BUILD_TIMEOUT = 600.0  # seconds; torch/extension.h takes 25 on an idle machine
# What g++ accepts and clang rejects by default; sections, so that the linker can drop what is not used.
_CODE = (
    *("-O0", "-g0", "-w", "-fPIC", "-ffunction-sections", "-fdata-sections"),
    "-fclang-abi-compat=17",  # clang 18 mangles constrained templates as no g++ before 14 does
    *("-Wno-c++11-narrowing", "-Wno-register", "-Wno-enum-constexpr-conversion"),
)
# PyTorch's headers do not survive it: with clang 18, code that stands aside forgets that a tuple can be taken apart.
_CODE_ASIDE: tuple[SideName, ...] = ("paddle",)
_NOWHERE = "/nowhere"  # directories of the case have no part in a header that serves all candidates


class QuickObjects:
    """Prepares the settings of both sides, each when it is first asked for, and remembers what cannot be had."""

    def __init__(self, toolchain: Toolchain, seen: Iterable[Observation], directory: Path) -> None:
        self._toolchain = toolchain
        self._flags = {observation.side: found[0].common for observation in seen if (found := units(observation))}
        self._headers = PchStore(directory)  # clang goes by the suffix
        self._libraries = PchStore(directory, suffix=".a")
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
                self._known[side.name] = self._prepare(side)
            return self._known[side.name]

    def _prepare(self, side: Side) -> Path | None:
        flags = [f for f in language_flags(self._flags[side.name], _NOWHERE) if not EXTENSION_NAME.fullmatch(f)]
        arguments = for_header(["-x", "c++", *flags], _NOWHERE)
        for aside in (True, False) if side.name in _CODE_ASIDE else (False,):
            pch = self._precompiled(arguments, BASE_HEADERS[side.name], aside)
            library = self._library(pch) if pch is not None and aside else None
            if pch is not None and (library is not None or not aside):
                return self._write(side, pch, library)
        return None

    def _precompiled(self, arguments: Sequence[str], headers: Sequence[str], aside: bool) -> Path | None:
        """``aside``: the functions' code will come from a library."""
        code = (*_CODE, *arguments, *(("-fpch-codegen",) if aside else ()), "-fpch-instantiate-templates")
        text = "".join(f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n" for name in headers)

        def build(out: Path) -> bool:
            return self._run([*code, "-", "-o", str(out)], text) and out.stat().st_size > 0

        return self._headers.obtain((self._toolchain.version, *self._toolchain.compiler, *code), headers, build)

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

        return self._libraries.obtain((self._toolchain.version,), (str(pch),), build)

    def _run(self, arguments: Sequence[str], text: str = "") -> bool:
        return self._succeeds([*self._toolchain.compiler, *arguments], text)

    def _succeeds(self, command: Sequence[str], text: str = "") -> bool:
        """Whether a command ends well in time; what is killed by ``close`` does not."""
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        except OSError:
            return False
        self._running.add(process)
        try:
            if self._closed:
                process.kill()
            process.communicate(text.encode(), timeout=_BUILD_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        finally:
            self._running.discard(process)
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
        path.write_text(json.dumps(settings), encoding="utf-8")
        return path
