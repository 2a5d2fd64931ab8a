"""What an interpreter's framework and machine are: for reports, and to key caches."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

# Runs in the other interpreter, so it can import nothing of ours. The last line of its output is the answer.
_PROBE = r"""
import json, platform, re, subprocess, sys, sysconfig

def compiler():
    import os, shlex
    command = shlex.split(os.environ.get("CXX") or "g++")[:1]
    try:
        out = subprocess.run(command + ["--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return out.stdout.decode("utf-8", "replace").split("\n")[0].strip() or None

def system():
    try:
        with open("/etc/os-release", encoding="utf-8") as stream:
            for line in stream:
                if line.startswith("PRETTY_NAME="):
                    return line.split("=", 1)[1].strip().strip('"')
    except OSError:
        pass
    return platform.system() + " " + platform.release()

def text(value):
    return None if value is None or value is False or str(value) in ("", "False", "None") else str(value)

facts = {}
if sys.argv[1] == "paddle":
    import paddle
    facts["version"] = text(paddle.__version__)
    facts["commit"] = text(getattr(paddle.version, "commit", None))
    facts["cuda"] = text(paddle.version.cuda())
    facts["cudnn"] = text(paddle.version.cudnn())
else:
    import torch
    facts["version"] = text(torch.__version__)
    facts["commit"] = text(torch.version.git_version)
    facts["cuda"] = text(torch.version.cuda)
    facts["cudnn"] = text(torch.backends.cudnn.version())
    abi = getattr(torch, "compiled_with_cxx11_abi", None)
    facts["cxx11_abi"] = None if abi is None else str(int(abi()))
facts["python"] = platform.python_version()
facts["compiler"] = compiler()
facts["glibc"] = " ".join(platform.libc_ver()).strip() or None
facts["os"] = system()
facts["arch"] = platform.machine()
print()
print(json.dumps(facts))
"""

ENVIRONMENT = ("python", "compiler", "glibc", "os", "arch")
"""The keys of a probe that describe the machine and the interpreter, not the framework."""


class VersionError(Exception):
    """The interpreter cannot tell its versions. The message says what, why and what to do."""


def probe(
    python: Path, framework: Literal["paddle", "torch"], env: Mapping[str, str] | None = None, timeout: float = 120
) -> dict[str, str | None]:
    """Run ``python`` once and ask for ``version``, ``commit``, ``cuda``, ``cudnn``, ``cxx11_abi`` ("0" or "1") of the
    framework, and for ``python``, ``compiler``, ``glibc``, ``os`` and ``arch``. None: unknown or not there (the ABI
    is something that Paddle does not tell).

    ``env`` is the whole environment of the process (default: this one's); ``timeout`` is in seconds. Raises
    VersionError when the interpreter cannot be run or the framework cannot be imported.
    """
    wheel = "paddlepaddle" if framework == "paddle" else "torch"
    try:
        done = subprocess.run(
            [str(python.absolute() if len(python.parts) > 1 else python), *arguments(framework)],
            cwd="/",  # -c puts the working directory first on the path: no module of a library may shadow ours
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except OSError as error:
        raise VersionError(
            f"cannot run {python}: {error.strerror}. Name another one with --{framework}-python."
        ) from error
    except subprocess.TimeoutExpired:
        raise VersionError(
            f"{python} did not import {framework} within {timeout:.0f} s. Is the machine overloaded?"
        ) from None
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        why = lines[-1] if lines else f"exit code {done.returncode}"
        raise VersionError(
            f"{python} cannot import {framework}: {why}. Install it there ({python} -m pip install {wheel}), "
            f"or name another interpreter with --{framework}-python."
        )
    text = done.stdout.decode("utf-8", "replace")
    answer = parse(text)
    if answer is None:
        raise VersionError(f"{python} is no usable Python: it answered {text[-200:]!r} to a question for versions.")
    return answer


def arguments(framework: Literal["paddle", "torch"]) -> list[str]:
    """What an interpreter is started with to answer with its versions."""
    return ["-c", _PROBE, framework]


def parse(output: str) -> dict[str, str | None] | None:
    """The versions in what such a program printed; None when there are none."""
    try:
        answer: dict[str, str | None] = json.loads(output.rstrip().splitlines()[-1])
    except (ValueError, IndexError):
        return None
    return answer


def split(
    paddle: Mapping[str, str | None], torch: Mapping[str, str | None]
) -> tuple[dict[str, str | None], dict[str, str | None], dict[str, str | None]]:
    """Two probes as a report shows them: (Paddle's own, PyTorch's own, the environment).

    Where the two interpreters see different machines (another Python, say), the environment names both.
    """
    environment: dict[str, str | None] = {}
    for key in ENVIRONMENT:
        ours, theirs = paddle.get(key), torch.get(key)
        same = ours == theirs or theirs is None
        environment[key] = ours if same else f"{ours or 'unknown'} (PyTorch side: {theirs})"
    own = [{k: v for k, v in side.items() if k not in ENVIRONMENT} for side in (paddle, torch)]
    return own[0], own[1], environment
