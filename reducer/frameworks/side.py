"""One framework as the tool uses it: interpreter, environment, neutral compat switches on the control."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reducer.frameworks import shims
from reducer.oracle.observation import SideName
from reducer.world.workspace import QueryDirectory

# What a case may see of the user's environment. Everything else (tokens, keys, proxies with passwords) stays out.
ALLOWED = re.compile(
    r"LANG|LC_\w+|TZ|TERM|CUDA_\w+|NVIDIA_\w+|LD_LIBRARY_PATH|LIBRARY_PATH|CPATH|CPLUS_INCLUDE_PATH|C_INCLUDE_PATH"
    r"|OMP_\w+|MKL_\w+|OPENBLAS_\w+|FLAGS_\w+|TORCH_CUDA_ARCH_LIST|PADDLE_CUDA_ARCH_LIST|NO_PROXY"
)

# Other Paddle API than the compat switches cannot be neutral under PyTorch: the module says so by name.
STAND_IN = '''"""Stand-in for paddle on the control run: only the compat switches, which do nothing here."""


def enable_compat(*args, **kwargs):
    pass


def disable_compat(*args, **kwargs):
    pass


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise RuntimeError("paddle.%s is used by this case, but the control run has PyTorch only" % name)
'''
STAND_IN_USED = re.compile(r"paddle\.(\w+) is used by this case, but the control run has PyTorch only")

# Sets up the side's own site directory: what the case's build installed, with .pth files honoured.
SITE = """import os, site
site.addsitedir(os.environ["REDUCE_SITE"])
"""


def call_log(places: QueryDirectory) -> Path:
    """Where the compiler shims of a query record their calls."""
    return places.tmp / "compiler-calls.jsonl"


def site_of(places: QueryDirectory) -> Path:
    """What a query's build installs, instead of the environment's site-packages."""
    return places.home / "site"


@dataclass(frozen=True, slots=True)
class Side:
    """A framework's interpreter and how processes of a case are started with it.

    ``support`` is a directory of the run that holds the side's shims, stand-in and object cache.
    """

    name: SideName
    python: Path
    support: Path
    jobs: int = 2
    extra: Mapping[str, str] = field(default_factory=dict)

    def prepare(self) -> None:
        """Create the support files. Raises OSError."""
        shims.install(self.support / "shims")
        shims.install_interpreter(self.support / "bin", self.python)
        (self.support / "site").mkdir(parents=True, exist_ok=True)
        (self.support / "site" / "sitecustomize.py").write_text(SITE, encoding="utf-8")
        (self.support / "objects").mkdir(exist_ok=True)
        (self.support / "pch").mkdir(exist_ok=True)
        if self.name == "torch":
            package = self.support / "stand_in" / "paddle"
            package.mkdir(parents=True, exist_ok=True)
            (package / "__init__.py").write_text(STAND_IN, encoding="utf-8")

    @property
    def writable(self) -> tuple[Path, ...]:
        """Directories of the run that a query may write to besides its own."""
        return (self.support / "objects", self.support / "pch")

    @property
    def path(self) -> str:
        """The user's PATH with the side's interpreter first."""
        system = os.environ.get("PATH", os.defpath)
        return os.pathsep.join([str(self.support / "bin"), str(self.python.parent), system])

    def reader_environment(self, places: QueryDirectory) -> dict[str, str]:
        """What somebody has who runs the written commands: the interpreter on PATH, and nothing of this tool."""
        kept = {k: v for k, v in os.environ.items() if ALLOWED.fullmatch(k)}
        env = {**kept, **places.environment(), "PATH": self.path, "PYTHONDONTWRITEBYTECODE": "1"}
        env.setdefault("LC_ALL", "C.UTF-8")
        return env

    def environment(self, places: QueryDirectory, *, fast: bool) -> dict[str, str]:
        """The whole environment of a process of the case.

        ``fast`` compiles at -O0 with precompiled headers and cached objects; without it builds are what a user runs.
        """
        kept = {k: v for k, v in os.environ.items() if ALLOWED.fullmatch(k)}
        paths = [self.support / "site", site_of(places), places.tree]
        if (places.tree / "src").is_dir():
            paths.append(places.tree / "src")
        env = {
            **kept,
            **places.environment(),
            "PATH": os.pathsep.join([str(self.support / "shims"), self.path]),
            "PIP_TARGET": str(site_of(places)),
            "PIP_NO_INDEX": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "REDUCE_SITE": str(site_of(places)),
            "REDUCE_TREE": str(places.tree),
            "REDUCE_SHIM_LOG": str(call_log(places)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONUNBUFFERED": "1",
            "FLAGS_call_stack_level": "1",
            "MAX_JOBS": str(self.jobs),
            "PYTEST_ADDOPTS": "--tb=native --color=no -p no:cacheprovider",
            "NO_COLOR": "1",
        }
        env.setdefault("LC_ALL", "C.UTF-8")
        env.setdefault("OMP_NUM_THREADS", "1")
        if self.name == "torch":
            env["USE_TORCH"] = "1"
            paths.insert(0, self.support / "stand_in")
        if fast:
            env["REDUCE_SHIM_FAST"] = "1"
            env["REDUCE_SHIM_CACHE"] = str(self.support / "objects")
            env["REDUCE_SHIM_PCH"] = str(self.support / "pch")
        env["PYTHONPATH"] = env["REDUCE_PATHS"] = os.pathsep.join(map(str, paths))
        return {**env, **self.extra}
