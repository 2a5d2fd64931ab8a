"""Warm interpreters: a program starts in a fork of a process that has imported the framework already."""

from __future__ import annotations

import array
import contextlib
import json
import os
import re
import select
import shlex
import shutil
import socket
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from reducer.oracle.observation import Step
from reducer.world import processes
from reducer.world.processes import DEFAULT_LIMITS
from reducer.world.supervision import Limits, Supervised, SupervisorLost

_SERVER = Path(__file__).with_name("warm_server.py")
_START_TIMEOUT = 180.0  # seconds; importing a framework takes one or two on an idle machine
# Variables that an interpreter, the C library or a framework reads once, when it starts or is imported.
_START_VARIABLES = re.compile(
    r"(PYTHON(?!PATH$|DONTWRITEBYTECODE$|UNBUFFERED$)|LD_|LC_|LANG|MALLOC_|GLIBC_|OMP_|MKL_|KMP_|OPENBLAS_|GOTO_|FLAGS_|"
    r"GLOG_|CUDA_|NVIDIA_|NCCL_|TORCH_(?!EXTENSIONS_DIR$)|PYTORCH_|PADDLE_(?!EXTENSION_DIR$))"
)
_MODULE_FILE = re.compile(r"([A-Za-z_]\w*)(?:\.py|\.pyc|(?:\.[\w-]+)?\.so)$")
_OWN_FLAGS = ("-u", "-B")


class WarmStartError(RuntimeError):
    """The interpreter could not be started or could not import what it was asked to; the text says why."""


class WarmInterpreter:
    """Runs programs of one Python interpreter in forks of a process that has imported ``preload``.

    A program sees what it would see in a fresh interpreter: arguments, paths, exactly its environment, tracebacks,
    exit handlers and exit codes. What a fork cannot imitate runs in a fresh interpreter by itself: other interpreter
    options than ``-u`` and ``-B``, environment variables that are read only at the start and differ from ``env``, and
    trees with a module of the same name as one already imported. The same holds for every run when the preloading left
    something that does not survive a fork: an opened accelerator (CUDA cannot be used in a child once its parent has
    initialised it) or a running Python thread. ``cold`` counts those runs by reason; ``on_cold`` hears each reason
    once.

    Left out on purpose: the interpreter's teardown after exit handlers (destructors of what is still alive).

    ``pytest`` among ``preload`` is more than an import: an empty suite is run, so that a real one starts in 0.1 s, not
    in one second; it is passed over where pytest is not installed.

    ``env`` is the environment of the preloading; its PYTHONPATH is ignored there, so that nothing of a case (and no
    stand-in for a framework) is ever imported. Its HOME should be a place of ours: frameworks write there when they
    are imported. Starts at once, is waited for at the first ``run``, and starts again
    by itself after its death. Safe to share between threads; runs are concurrent.
    """

    def __init__(
        self,
        python: Path,
        preload: Sequence[str],
        env: Mapping[str, str],
        cwd: Path | None = None,
        limits: Limits = DEFAULT_LIMITS,
        on_cold: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self._python = python
        self._preload = tuple(preload)
        self._env = {name: value for name, value in env.items() if name != "PYTHONPATH"}
        self._cwd = cwd or Path("/")
        self._limits = limits
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self._closed = False
        self._on_cold = on_cold
        self.cold: Counter[str] = Counter()
        self._start()

    def __enter__(self) -> WarmInterpreter:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the server; programs that still run in other threads go on."""
        with self._lock:
            self._closed = True
            if self._server is not None:
                self._server.close()
                self._server = None

    def _start(self) -> _Server:
        with self._lock:
            if self._closed:
                raise RuntimeError("this interpreter is closed")
            if self._server is not None and self._server.process.poll() is not None:
                self._server.close()
                self._server = None
            if self._server is None:
                self._server = _Server(self._python, self._preload, self._env, self._cwd)
            return self._server

    def serves(self, argv: Sequence[str], env: Mapping[str, str]) -> tuple[str, ...] | None:
        """What to give to ``run`` for this command line, or None when it is not a program of this interpreter.

        The program is looked up on ``env``'s PATH. It is ours if it is this interpreter under whatever name, or a
        script that names it in its first line (``pytest`` of the same environment).
        """
        found = shutil.which(argv[0], path=env.get("PATH", os.defpath)) if argv else None
        if found is None:
            return None
        if _same_interpreter(Path(found), self._python):
            return tuple(argv[1:]) if len(argv) > 1 else None
        with contextlib.suppress(OSError), Path(found).open("rb") as stream:
            first = stream.readline(1024)
            if first.startswith(b"#!") and _same_interpreter(Path(os.fsdecode(first[2:].strip())), self._python):
                return (found, *argv[1:])
        return None

    def run(
        self,
        argv: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        timeout: float,
        writable: Sequence[Path],
        limits: Limits | None = None,
    ) -> Step:
        """Run ``python ARGV...`` as ``processes.run`` would, with the same limits, Step and errors.

        Raises WarmStartError when the preloading fails.
        """
        limits = limits or self._limits
        if not cwd.is_dir():
            raise NotADirectoryError(f"not a directory to run in: {cwd}")
        server = self._start()
        ready = server.ready()
        reason = ready.unforkable or self._unfit(argv, cwd, env, ready.modules)
        if reason:
            self._count(reason)
            return processes.run([str(self._python), *argv], cwd, env, timeout, writable=writable, limits=limits)
        request = {
            "argv": list(argv),
            "cwd": str(cwd),
            "env": dict(env),
            "write": [str(path) for path in writable],
            "limits": limits.for_jail(),
            "network": limits.network,
        }
        shown = shlex.join([str(self._python), *argv])
        try:
            return server.run(request, shown, timeout, limits)
        except (OSError, SupervisorLost):
            if server.alive():
                raise
        return self._start().run(request, shown, timeout, limits)

    def _count(self, reason: str) -> None:
        with self._lock:
            self.cold[reason] += 1
            first = self.cold[reason] == 1
        if first:
            self._on_cold(reason)

    def _unfit(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], modules: frozenset[str]) -> str:
        """Why a fork would not do; empty when it does."""
        rest = list(argv)
        while rest and rest[0] in _OWN_FLAGS:
            rest.pop(0)
        if not rest or rest[0] == "-" or (rest[0].startswith("-") and rest[0][:2] not in ("-m", "-c")):
            return "interpreter options"
        if rest[0] in ("-m", "-c") and len(rest) == 1:
            return "interpreter options"
        for name in sorted({*env, *self._env}):
            if _START_VARIABLES.match(name) and env.get(name) != self._env.get(name):
                return f"variable {name}"
        own = cwd if rest[0].startswith("-") else Path(os.path.realpath(cwd / rest[0])).parent
        wanted = env.get("PYTHONPATH", "")
        for directory in [own, *(cwd / entry for entry in wanted.split(os.pathsep) if wanted)]:
            for name in sorted(_modules_in(directory) & modules):
                return f"module {name}"
        return ""


@dataclass(frozen=True, slots=True)
class _Ready:
    """What a server says when it has preloaded. ``unforkable``: why no fork of it is safe, or empty."""

    modules: frozenset[str]
    unforkable: str


class _Server:
    """One server process and the connection to it."""

    def __init__(self, python: Path, preload: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
        self._socket, theirs = socket.socketpair()
        self._lock = threading.Lock()
        self._ready: _Ready | None = None
        # The server outlives __init__; its messages are wanted only when it fails.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self.process = subprocess.Popen(
                [python, _SERVER, str(theirs.fileno()), *preload],
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except OSError as error:
            self._socket.close()
            self._errors.close()
            raise WarmStartError(f"cannot start {python}: {error}") from error
        finally:
            theirs.close()

    def alive(self) -> bool:
        """False once the server has ended (waits a moment for one that is just ending)."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(0.2)
        return self.process.poll() is None

    def ready(self) -> _Ready:
        """Waits until the server has preloaded. Raises WarmStartError."""
        with self._lock:
            if self._ready is None:
                line = b""
                while not line.endswith(b"\n"):
                    ready = select.select([self._socket], [], [], _START_TIMEOUT)[0]
                    part = self._socket.recv(1 << 16) if ready else b""
                    if not part:
                        raise WarmStartError(self._failure())
                    line += part
                said = json.loads(line)
                self._ready = _Ready(frozenset(said["modules"]), said["unforkable"])
            return self._ready

    def _failure(self) -> str:
        self.process.kill()
        self.process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()
        return f"{shlex.join(map(str, self.process.args))} did not get ready: {said[-4000:]}"  # type: ignore[arg-type]

    def run(self, request: object, shown: str, timeout: float, limits: Limits) -> Step:
        self.ready()
        body = json.dumps(request).encode()
        with Supervised(limits) as supervised:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", supervised.child_ends))]
            with self._lock:
                self._socket.sendmsg([len(body).to_bytes(8, "little")], rights)
                self._socket.sendall(body)
            supervised.handed_over()
            return supervised.wait(shown, timeout)

    def close(self) -> None:
        self._socket.close()
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._errors.close()


def _same_interpreter(found: Path, python: Path) -> bool:
    """True for the same file in the same environment (``python``, ``python3`` and ``python3.11`` of one directory)."""
    return found.parent.resolve() == python.parent.resolve() and found.resolve() == python.resolve()


def _modules_in(directory: Path) -> set[str]:
    """Names of the modules and packages that ``import`` would find in this directory."""
    names: set[str] = set()
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if match := _MODULE_FILE.match(entry.name):
                names.add(match[1])
            elif entry.name.isidentifier() and os.path.exists(os.path.join(entry.path, "__init__.py")):
                names.add(entry.name)
    return names
