"""The process that ``warm.py`` starts in a framework's interpreter: imports once, forks for every request.

A stand-alone script for Python 3.9 or newer: ``python warm_server.py SOCKET_FD MODULE...``. It first sends one line of
JSON (``modules``: top-level names that the preloading brought in; ``unforkable``: what does not survive a fork, or an
empty text), then serves requests: eight bytes of length together
with four descriptors (stdout, stderr, control, status), then JSON with ``argv``, ``cwd``, ``env``, ``write``,
``limits`` and ``network``. The descriptors speak the protocol of ``jail.py``. It ends when the socket closes.
"""

from __future__ import annotations

import sys

BASE_MODULES = frozenset(sys.modules)
sys.path.pop(0)  # this script's own directory is nobody else's business

import array  # noqa: E402
import gc  # noqa: E402
import importlib  # noqa: E402
import importlib.util  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import socket  # noqa: E402
import types  # noqa: E402

# Device files that a driver opens when a process initialises it: NVIDIA, AMD, and others through the kernel's DRM.
ACCELERATORS = ("/dev/nvidia", "/dev/kfd", "/dev/dri/", "/dev/accel/")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, NoReturn


def main(handle: int, preload: Sequence[str]) -> None:
    """Serve until the other end of ``handle`` closes."""
    connection = socket.socket(fileno=handle)
    connection.set_inheritable(False)
    jail = _load_jail()
    path = list(sys.path)
    before = dict(os.environ)
    sys.dont_write_bytecode = True  # the environment is somebody's; every child sets this for itself
    for name in preload:
        if name == "pytest":
            _rehearse_pytest()
        else:
            importlib.import_module(name)
    # What a program's environment gains: by importing the same modules, and by the interpreter's own start (PEP 538).
    changed = {name: value for name, value in os.environ.items() if before.get(name) != value or name == "LC_CTYPE"}
    names = sorted({name.partition(".")[0] for name in sys.modules} - BASE_MODULES)
    connection.sendall(json.dumps({"modules": names, "unforkable": _unforkable()}).encode() + b"\n")
    gc.collect()
    gc.freeze()  # what is here now stays; a collection in a child must not touch (and so copy) its pages
    while True:
        request, handles = _receive(connection)
        if request is None:
            return
        _reap()
        if os.fork() == 0:
            try:
                connection.close()
                _supervise(jail, request, handles, path, changed)
            finally:
                os._exit(0)
        for one in handles:
            os.close(one)


def _unforkable() -> str:
    """What of this process a child would miss; empty when there is nothing."""
    import threading

    threads = sorted(thread.name for thread in threading.enumerate() if thread is not threading.main_thread())
    if threads:
        return "thread " + threads[0]
    for handle in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink("/proc/self/fd/" + handle)
        except OSError:  # the listing's own descriptor
            continue
        if target.startswith(ACCELERATORS):
            return "open device " + target
    return ""


def _rehearse_pytest() -> None:
    """Let pytest run an empty suite, if there is a pytest, so that its plugins are loaded as it loads them itself.

    It rewrites the assertions of its plugins when it imports them. Plain preloading would evade that (with warnings
    later), and a program that may not write into its environment cannot cache the result: hypothesis alone costs 0.8 s
    in every run.
    """
    if importlib.util.find_spec("pytest") is None:
        return
    import contextlib
    import io
    import shutil
    import tempfile

    saved = dict(os.environ)
    path = list(sys.path)
    for name in [name for name in os.environ if name.startswith("PYTEST_")]:
        del os.environ[name]
    directory = tempfile.mkdtemp()
    try:
        with open(os.path.join(directory, "test_reduce_rehearsal.py"), "w") as stream:
            stream.write("def test():\n    assert [1]\n")
        with open(os.path.join(directory, "pytest.ini"), "w") as stream:
            stream.write("[pytest]\n")
        import pytest

        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", directory])
    finally:
        shutil.rmtree(directory)
        sys.modules.pop("test_reduce_rehearsal", None)
        sys.path_importer_cache.pop(directory, None)
        sys.path[:] = path
        os.environ.clear()
        os.environ.update(saved)


def _load_jail() -> Any:
    location = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jail.py")
    spec = importlib.util.spec_from_file_location("_reduce_jail", location)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _receive(connection: socket.socket) -> tuple[Any, list[int]]:
    """The next request and its descriptors; (None, []) at the end."""
    handles = array.array("i")
    size = 4 * handles.itemsize
    head, ancillary, _, _ = connection.recvmsg(8, socket.CMSG_SPACE(size), socket.MSG_CMSG_CLOEXEC)
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            handles.frombytes(data[:size])
    while 0 < len(head) < 8:
        head += connection.recv(8 - len(head))
    length = int.from_bytes(head, "little")
    body = bytearray()
    while len(body) < length:
        part = connection.recv(length - len(body))
        if not part:
            return None, []
        body += part
    return (json.loads(body), list(handles)) if head else (None, [])


def _reap() -> None:
    """Collect supervisors that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return


def _supervise(jail: Any, request: Any, handles: list[int], path: list[str], changed: Mapping[str, str]) -> None:
    stdout, stderr, control, status = handles
    os.setsid()
    for source, target in ((stdout, 1), (stderr, 2)):
        os.dup2(source, target)
        os.close(source)

    def prepare() -> None:
        os.chdir(request["cwd"])
        gained = {name: changed[name] for name in changed.keys() - request["env"].keys()}
        jail.replace_environment({**request["env"], **gained})
        jail.enter(request["write"], request["limits"], request["network"])

    def command() -> NoReturn:
        _finish(_prepare_interpreter(request["argv"], path))

    jail.supervise(prepare, command, control, status)


def _prepare_interpreter(argv: list[str], path: list[str]) -> Callable[[], object]:
    """Make this process look like a fresh interpreter that was given ``argv``; return what runs the program."""
    sys.orig_argv = [sys.executable, *argv]
    argv = list(argv)
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    while argv[0] in ("-u", "-B"):
        unbuffered |= argv[0] == "-u"
        sys.dont_write_bytecode |= argv.pop(0) == "-B"
    if unbuffered:
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(write_through=True)  # type: ignore[union-attr]
    main = types.ModuleType("__main__")
    main.__builtins__ = sys.modules["builtins"]  # type: ignore[attr-defined]
    main.__annotations__ = {}
    for name in ("__main__", "__mp_main__"):
        if name in sys.modules:
            sys.modules[name] = main
    _set_path(path)
    _forget_process_state()
    if argv[0][:2] in ("-m", "-c"):
        name, rest = (argv[0][2:], argv[1:]) if argv[0][2:] else (argv[1], argv[2:])
        sys.argv = [argv[0][:2], *rest]
        if argv[0].startswith("-c"):
            main.__loader__ = importlib.machinery.BuiltinImporter
            sys.path.insert(0, "")
            return lambda: exec(compile(name + "\n", "<string>", "exec", dont_inherit=True), main.__dict__)
        sys.path.insert(0, os.getcwd())
        return lambda: _run_module(name)
    sys.argv = argv
    script = os.path.join(os.getcwd(), argv[0])
    if os.path.isdir(script):
        sys.path.insert(0, script)
        return lambda: _run_module("__main__", alter_argv=False)
    sys.path.insert(0, os.path.dirname(os.path.realpath(script)))
    return lambda: _run_script(main, script)


def _set_path(base: list[str]) -> None:
    """``sys.path`` of a fresh start, still without the program's own directory."""
    wanted = os.environ.get("PYTHONPATH", "")
    entries = [os.path.abspath(entry) for entry in wanted.split(os.pathsep)] if wanted else []
    sys.path[:] = dict.fromkeys([*entries, *base])
    importlib.invalidate_caches()


def _forget_process_state() -> None:
    """What modules keep for one process and would be wrong, or the same in every child."""
    tempfile: Any = sys.modules.get("tempfile")
    if tempfile is not None:
        tempfile.tempdir = None
    random: Any = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()  # the standard library's random does so by itself after a fork


def _run_module(name: str, alter_argv: bool = True) -> None:
    import runpy

    runpy._run_module_as_main(name, alter_argv)  # type: ignore[attr-defined]


def _run_script(main: types.ModuleType, script: str) -> None:
    try:
        with open(script, "rb") as stream:
            source = stream.read()
    except OSError as error:
        message = f"{sys.executable}: can't open file {script!r}: [Errno {error.errno}] {error.strerror}"
        print(message, file=sys.stderr)
        raise SystemExit(2) from None
    main.__file__ = script
    main.__cached__ = None  # type: ignore[attr-defined]
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", script)
    exec(compile(source, script, "exec", dont_inherit=True), main.__dict__)


def _finish(program: Callable[[], object]) -> NoReturn:
    """Run the program and end as an interpreter does: report, wait for threads, exit handlers, flush."""
    code = 0
    interrupted = False
    try:
        program()
    except SystemExit as error:
        code = _exit_code(error)
    except BaseException as error:
        code = 1
        interrupted = isinstance(error, KeyboardInterrupt)
        _report(error)
    import atexit
    import threading

    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except (OSError, ValueError):
            code = code or 120  # as the interpreter does
    if interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(code)


def _exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    if sys.stdout is not None:
        sys.stdout.flush()
    print(error.code, file=sys.stderr)
    return 1


def _report(error: BaseException) -> None:
    """Print the traceback without this file's frames, through whatever hook the program has set."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    error = error.with_traceback(trace)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    if sys.stdout is not None:
        sys.stdout.flush()
    sys.excepthook(type(error), error, trace)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
