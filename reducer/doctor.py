"""What this machine has and lacks for the job, and how to get it."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from reducer.frameworks.interpreters import Interpreters, find
from reducer.frameworks.versions import VersionError, probe
from reducer.world.jail import landlock_abi

Mark = Literal["ok", "missing", "notice"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked for. ``blocks``: the job cannot run without it. ``advice``: how to get it."""

    mark: Mark
    what: str
    seen: str
    advice: str = ""
    blocks: bool = False

    def as_dict(self) -> dict[str, object]:
        """For ``--json``."""
        return asdict(self)


def examine(paddle_python: Path | None, torch_python: Path | None) -> list[Finding]:
    """Look at the interpreters, frameworks, compilers and kernel features that a run uses."""
    interpreters = find(paddle_python, torch_python)
    return [
        *_frameworks(interpreters),
        *_compilers(),
        *_python_tools(interpreters),
        *_libraries(),
        _landlock(),
        _gpu(),
    ]


def _frameworks(interpreters: Interpreters) -> list[Finding]:
    found: list[Finding] = []
    installs = {
        "paddle": "pip install 'torch-compat-reduce[cpu]' in that interpreter's environment, or "
        "pip install paddlepaddle==3.3.1 (paddlepaddle-gpu comes from Paddle's own index); "
        "another interpreter: --paddle-python",
        "torch": "pip install torch==2.13.0 in that interpreter's environment; another interpreter: --torch-python",
    }
    for name, python in (("paddle", interpreters.paddle), ("torch", interpreters.torch)):
        try:
            seen = probe(python, name, dict(os.environ))  # type: ignore[arg-type]
        except VersionError as error:
            found.append(Finding("missing", name, f"{python}: {error}", installs[name], blocks=True))
            continue
        cuda = f", CUDA {seen['cuda']}" if seen.get("cuda") else ", CPU build"
        found.append(Finding("ok", name, f"{seen['version']}{cuda} in {python}"))
    return found


def _compilers() -> list[Finding]:
    found: list[Finding] = []
    if compiler := shutil.which("g++"):
        shown = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout
        found.append(Finding("ok", "C++ compiler", shown.splitlines()[0] if shown else compiler))
    else:
        advice = "install g++ (Debian, Ubuntu: apt-get install g++); a case without C++ does not need it"
        found.append(Finding("missing", "C++ compiler", "no g++ on PATH", advice))
    if compiler := shutil.which("nvcc"):
        found.append(Finding("ok", "CUDA compiler", compiler))
    else:
        found.append(Finding("notice", "CUDA compiler", "no nvcc on PATH", "only needed for cases with .cu sources"))
    return found


def _python_tools(interpreters: Interpreters) -> list[Finding]:
    found: list[Finding] = []
    for python in dict.fromkeys((interpreters.paddle, interpreters.torch)):
        for module, why in (("setuptools", "builds extensions"), ("pytest", "runs pytest cases")):
            done = subprocess.run([str(python), "-c", f"import {module}"], capture_output=True, check=False)
            seen = f"in {python}, {why}"
            if done.returncode == 0:
                found.append(Finding("ok", module, seen))
            else:
                found.append(Finding("missing", module, f"not {seen}", f"{python} -m pip install {module}"))
    if not shutil.which("ninja") and not (interpreters.torch.parent / "ninja").exists():
        found.append(Finding("notice", "ninja", "not found", "pip install ninja: PyTorch builds are slower without it"))
    return found


def _libraries() -> list[Finding]:
    found: list[Finding] = []
    for name in ("libclang", "clang-tidy", "clang-format", "black"):
        try:
            found.append(Finding("ok", name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            found.append(Finding("missing", name, "not installed", f"pip install {name}", blocks=name == "libclang"))
    return found


def _landlock() -> Finding:
    abi = landlock_abi()
    if abi > 0:
        return Finding("ok", "Landlock", f"ABI {abi}: candidates can write only below their own directory")
    return Finding(
        "notice",
        "Landlock",
        "this kernel has none: candidates are kept apart by directory, HOME and TMPDIR only",
        "for untrusted cases use a container, or a kernel from 5.13 on with Landlock enabled",
    )


def _gpu() -> Finding:
    if Path("/dev/nvidiactl").exists():
        return Finding("ok", "GPU", "an NVIDIA device is present")
    return Finding("notice", "GPU", "none: cases are run on the CPU; .cu files can still be compiled where nvcc is")
