"""A clang and an lld for quick objects: from the ``ziglang`` wheel, or what the machine has."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from reducer.frameworks.pch import gcc_directory

OLDEST = 16  # knows --gcc-install-dir: the case's own standard library, also where several are installed
_PROBE_TIMEOUT = 20.0  # seconds


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Commands that compile C++ for this machine's g++ standard library. ``linker`` None: g++'s own linker."""

    compiler: tuple[str, ...]
    linker: tuple[str, ...] | None
    version: str


@cache
def find_toolchain() -> Toolchain | None:
    """The quickest toolchain that is there, or None: then g++ makes the objects."""
    return _of_wheel() or _of_machine()


def _of_wheel() -> Toolchain | None:
    """The ``zig`` program is a clang and an lld too, when its first argument says so."""
    found = importlib.util.find_spec("ziglang")
    if found is None or not found.origin:
        return None
    home = Path(found.origin).parent
    zig = home / "zig"
    if not zig.exists():
        return None
    # The program takes its own name for an installation prefix; the headers of the compiler lie in lib/include.
    compiler = (str(zig), "clang", "-resource-dir", str(home / "lib"), *_target())
    return _checked(compiler, (str(zig), "ld.lld"))


def _of_machine() -> Toolchain | None:
    names = ["clang++", *(f"clang++-{number}" for number in range(30, OLDEST - 1, -1))]
    linkers = ["ld.lld", *(f"ld.lld-{number}" for number in range(30, OLDEST - 1, -1)), "ld.mold"]
    linker = next((found for name in linkers if (found := shutil.which(name))), None)
    for name in names:
        program = shutil.which(name)
        toolchain = _checked((program, *_target()), (linker,) if linker else None) if program else None
        if toolchain is not None:
            return toolchain
    return None


def _target() -> tuple[str, ...]:
    directory = gcc_directory()
    machine = os.path.basename(os.path.dirname(directory))
    return ("-target", machine, f"--gcc-install-dir={directory}") if directory else ()


def _checked(compiler: tuple[str, ...], linker: tuple[str, ...] | None) -> Toolchain | None:
    """The toolchain if its compiler starts and is new enough."""
    try:
        seen = subprocess.run(
            [*compiler, "--version"], capture_output=True, text=True, timeout=_PROBE_TIMEOUT, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r"clang version (\d+)\S*", seen)
    if version is None or int(version.group(1)) < OLDEST:
        return None
    return Toolchain(compiler, linker, version.group(0))
