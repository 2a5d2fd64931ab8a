"""Launcher and supervisor of one command: limits, write restriction, and a clean death for all that it started.

A stand-alone script for any Python 3.9 or newer on Linux: ``python -I -S jail.py [options] -- argv...``. It imports
nothing of this package, because other interpreters load it too (see ``warm_server.py``).

    --write PATH      allow writes below this directory (or to this file); repeatable. Without one, writes are free
    --limit NAME=N    address_space, file_size (bytes), processes, cpu_seconds
    --no-network      a network namespace of its own, with only the loopback device
    --unset NAME      remove a variable before the command starts
    --control FD      the command is killed when this pipe becomes readable or its writer is gone
    --status FD       "pid N", then "exit CODE SECONDS" (CODE negative for a signal) are written here; "broken WHY"
                      when the jail could not be built

With ``--status`` the script stays as the command's supervisor: it is the subreaper of every descendant, so that a
process which left the group or the session cannot outlive the command. Without it, the script becomes the command.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import resource
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # the typing module would cost a fifth of the start-up time
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 36, 38
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SYS_CREATE_RULESET, _SYS_ADD_RULE, _SYS_RESTRICT_SELF = 444, 445, 446  # the same on every architecture but alpha
_RULE_PATH_BENEATH = 1
_SCOPE_SIGNAL = 1 << 1
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
# REMOVE_DIR, REMOVE_FILE and MAKE_{CHAR,DIR,REG,SOCK,FIFO,BLOCK,SYM}; REFER is rename and link between directories.
_CHANGE_ENTRIES, _REFER = sum(1 << bit for bit in range(4, 13)), 1 << 13

_LIMITS = {
    "address_space": resource.RLIMIT_AS,
    "file_size": resource.RLIMIT_FSIZE,
    "processes": resource.RLIMIT_NPROC,
    "cpu_seconds": resource.RLIMIT_CPU,
}
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "dri")

_libc = ctypes.CDLL(None, use_errno=True)


class _RulesetAttr(ctypes.Structure):
    _fields_ = [
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    ]


class _PathBeneathAttr(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


def landlock_abi() -> int:
    """The kernel's Landlock ABI level, 0 when it has none or it is switched off."""
    return max(0, int(_libc.syscall(_SYS_CREATE_RULESET, None, ctypes.c_size_t(0), 1)))


def restrict_writes(paths: Sequence[str]) -> bool:
    """Forbid this process and its descendants every write outside ``paths`` and the harmless devices.

    Reading and executing stay free. From ABI 6 on, signals to processes outside are forbidden too (a mutated
    ``os.kill(-1, ...)`` must not reach the user's other processes). Returns False, changing nothing, on a kernel
    without Landlock. Paths that do not exist are passed over. Raises OSError when the kernel refuses the rules.
    """
    abi = landlock_abi()
    if abi == 0:
        return False
    handled = _WRITE_FILE | _CHANGE_ENTRIES | (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0)
    attr = _RulesetAttr(handled, 0, _SCOPE_SIGNAL if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = _checked(_libc.syscall(_SYS_CREATE_RULESET, ctypes.byref(attr), ctypes.c_size_t(size), 0))
    devices = [f"/dev/{name}" for name in _DEVICES]
    devices += [f"/dev/{name}" for name in os.listdir("/dev") if name.startswith("nvidia")]
    for path in [*paths, *devices]:
        _allow(ruleset, path, handled)
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(_libc.syscall(_SYS_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)
    return True


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        if not os.path.isdir(path):
            access &= _WRITE_FILE | _TRUNCATE
        rule = _PathBeneathAttr(access, handle)
        _checked(_libc.syscall(_SYS_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(handle)


def isolate_network() -> bool:
    """Leave this process nothing but a loopback device. False when the kernel does not let us (no root, no user
    namespaces); the network is then as before."""
    uid, gid = os.geteuid(), os.getegid()
    if _libc.unshare(_CLONE_NEWNET) != 0:
        if _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
            return False
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as stream:
                stream.write(text)
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = b"lo".ljust(16, b"\0") + (0x49).to_bytes(2, sys.byteorder) + bytes(22)  # IFF_UP | LOOPBACK | RUNNING
        fcntl.ioctl(control, 0x8914, request)  # SIOCSIFFLAGS
    return True


def apply_limits(limits: Mapping[str, int]) -> None:
    """Set resource limits by the names of ``--limit``; never above what is allowed. Core files are always off."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name, value in limits.items():
        present = resource.getrlimit(_LIMITS[name])[1]
        # SIGXCPU comes at the soft limit, SIGKILL at the hard one: leave a second between them.
        wanted = value + 1 if name == "cpu_seconds" else value
        hard = wanted if present == resource.RLIM_INFINITY else min(wanted, present)
        resource.setrlimit(_LIMITS[name], (min(value, hard), hard))


def replace_environment(wanted: Mapping[str, str]) -> None:
    """Make the environment exactly this, including what C code has put there behind ``os.environ``'s back."""
    os.environ.clear()
    _libc.clearenv()
    os.environ.update(wanted)


def enter(write: Sequence[str] | None, limits: Mapping[str, int], network: bool) -> None:
    """Put the calling process into its jail: limits, network, then writes (None: free)."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as stream:
        stream.write("500")  # when memory runs out, a candidate goes before the user's programs (where we may say so)
    apply_limits(limits)
    if not network:
        isolate_network()
    if write is not None:
        restrict_writes(write)


def supervise(prepare: Callable[[], None], command: Callable[[], NoReturn], control: int, status: int) -> None:
    """Fork a child in a new session that runs ``prepare``, then ``command``; return when all of it is gone.

    Protocol of ``control`` and ``status`` as in the module's docstring; when ``prepare`` raises, "broken MESSAGE" is
    written and the command never runs. To be called by a process that has no other children and no further use.
    """
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake, waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker)
    for handle in (control, status):
        os.set_inheritable(handle, False)
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for handle in (wake, waker, control):
                os.close(handle)
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            os.setsid()
            try:
                prepare()
            except Exception as error:
                _say(status, f"broken {type(error).__name__}: {error}\n")
                os._exit(127)
            os.close(status)
            command()
        finally:
            os._exit(127)
    _say(status, f"pid {child}\n")
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):  # the pipes must close with the command's last process
        os.dup2(quiet, stream)
    poller = select.poll()
    poller.register(control, select.POLLIN)
    poller.register(wake, select.POLLIN)
    result = None
    while result is None:
        ready = dict(poller.poll())
        if control in ready:
            break
        os.read(wake, 4096)
        done, code = os.waitpid(child, os.WNOHANG)
        if done:
            result = os.waitstatus_to_exitcode(code)
    ended = time.monotonic()
    killed = _kill_descendants(child)
    _say(status, f"exit {result if result is not None else killed} {ended - began:.6f}\n")


def _kill_descendants(first: int) -> int:
    """Kill and reap everything below this process; the exit code of ``first`` if it was among them."""
    code = -signal.SIGKILL.value
    flags = os.WNOHANG
    while True:
        try:
            done, status = os.waitpid(-1, flags)
        except ChildProcessError:
            return code
        if done == first:
            code = os.waitstatus_to_exitcode(status)
        # Whoever escaped this listing descends from one that is in it, whose death makes the next waitpid return.
        for process in _descendants(os.getpid()):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        flags = 0


def _descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stream:
                    parent = int(stream.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue  # gone meanwhile
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _say(handle: int, message: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # whoever asked may be gone; the killing goes on all the same
        os.write(handle, message.encode())


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _execute(argv: Sequence[str]) -> NoReturn:
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores these; an ignored signal would be inherited
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvpe(argv[0], list(argv), os.environ)
    except OSError as error:
        os.write(2, f"cannot run {argv[0]!r}: {error.strerror}\n".encode(errors="surrogateescape"))
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def main(arguments: Sequence[str]) -> None:
    """See the module's docstring. Raises ValueError or IndexError for unusable options."""
    split = arguments.index("--")
    options, argv = list(arguments[:split]), arguments[split + 1 :]
    write: list[str] | None = None
    limits: dict[str, int] = {}
    network = True
    handles = {"--control": -1, "--status": -1}
    while options:
        option = options.pop(0)
        if option == "--no-network":
            network = False
            continue
        value = options.pop(0)
        if option == "--write":
            write = [*(write or []), value]
        elif option == "--limit":
            name, _, number = value.partition("=")
            limits[name] = int(number)
        elif option == "--unset":
            os.environ.pop(value, None)
        elif option in handles:
            handles[option] = int(value)
        else:
            raise ValueError(f"unknown option {option}")

    def prepare() -> None:
        enter(write, limits, network)

    def command() -> NoReturn:
        _execute(argv)

    if handles["--status"] < 0:
        prepare()
        command()
    supervise(prepare, command, handles["--control"], handles["--status"])


if __name__ == "__main__":
    main(sys.argv[1:])
