"""What runs is limited, seen, and dead afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from reducer.oracle.observation import Step
from reducer.world.jail import landlock_abi
from reducer.world.processes import Limits, Stopped, run, stop_all

ENV = {"PATH": os.defpath}
needs_landlock = pytest.mark.skipif(landlock_abi() == 0, reason="this kernel has no Landlock")


def python(code: str, directory: Path, timeout: float = 20.0, limits: Limits | None = None) -> Step:
    argv = [sys.executable, "-S", "-c", code]
    return run(argv, directory, ENV, timeout, writable=[directory], limits=limits or Limits())


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_output_and_exit_code(tmp_path: Path) -> None:
    step = run("echo out; echo err >&2; exit 3", tmp_path, ENV, 10, writable=[tmp_path])
    assert (step.exit_code, step.stdout, step.stderr, step.timed_out) == (3, "out\n", "err\n", False)


def test_environment_is_exact_and_directory_is_right(tmp_path: Path) -> None:
    step = run("X=1 env", tmp_path, {**ENV, "Y": "ä"}, 10, writable=[])
    assert sorted(step.stdout.split()) == sorted([f"PATH={os.defpath}", "X=1", "Y=ä"])
    assert run("pwd", tmp_path, ENV, 10, writable=[]).stdout == f"{tmp_path}\n"


def test_stdin_is_empty(tmp_path: Path) -> None:
    assert run("cat", tmp_path, ENV, 10, writable=[]).exit_code == 0


@pytest.mark.parametrize(("name", "code"), [("no-such-program", 127), ("/etc/passwd", 126)])
def test_cannot_start(tmp_path: Path, name: str, code: int) -> None:
    step = run([name], tmp_path, ENV, 10, writable=[])
    assert step.exit_code == code
    assert name in step.stderr


def test_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError):
        run("true", tmp_path / "gone", ENV, 10, writable=[])


def test_signal_is_reported(tmp_path: Path) -> None:
    assert python("import os; os.kill(os.getpid(), 11)", tmp_path).exit_code == -signal.SIGSEGV


def test_timeout(tmp_path: Path) -> None:
    began = time.monotonic()
    step = python("print('before', flush=True)\nwhile True: pass", tmp_path, timeout=0.5)
    assert step.timed_out
    assert step.stdout == "before\n"
    assert step.exit_code == -signal.SIGKILL
    assert time.monotonic() - began < 3


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("daemon", "w").write(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
while not os.path.exists("daemon") or not open("daemon").read(): time.sleep(0.01)
"""


@pytest.mark.parametrize("end", ["", "time.sleep(600)", "os.kill(os.getpid(), 9)"])
def test_daemon_does_not_survive(tmp_path: Path, end: str) -> None:
    step = python(DAEMON + end, tmp_path, timeout=2)
    assert step.timed_out == (end == "time.sleep(600)")
    assert not alive(int((tmp_path / "daemon").read_text()))


def test_output_is_capped_at_both_ends(tmp_path: Path) -> None:
    step = python("print('first'); print('x' * 300000); print('last')", tmp_path, limits=Limits(output=1 << 15))
    assert step.exit_code == 0
    assert step.stdout.startswith("first\nxxx")
    assert step.stdout.endswith("xxx\nlast\n")
    assert "bytes left out" in step.stdout
    assert len(step.stdout) < (1 << 15) + 100


def test_flood_is_stopped(tmp_path: Path) -> None:
    began = time.monotonic()
    step = run("yes", tmp_path, ENV, 60, writable=[], limits=Limits(output=1 << 20))
    assert step.timed_out
    assert step.stdout.startswith("y\ny\n")
    assert time.monotonic() - began < 10


def test_limits(tmp_path: Path) -> None:
    grown = python("open('f', 'wb').write(bytes(1 << 20))", tmp_path, limits=Limits(file_size=1 << 16))
    assert grown.exit_code != 0
    assert (tmp_path / "f").stat().st_size <= 1 << 16
    assert python("x = bytearray(1 << 32)", tmp_path, limits=Limits(address_space=1 << 30)).exit_code == 1
    assert python("while True: pass", tmp_path, limits=Limits(cpu_seconds=1)).exit_code == -signal.SIGXCPU


@needs_landlock
def test_writes_are_confined(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for place in (inside, outside):
        place.mkdir()
        (place / "old").write_text("old")
    code = f"""
import os
for change in (
    lambda d: open(d + "/new", "w"), lambda d: open(d + "/old", "a"), lambda d: os.truncate(d + "/old", 0),
    lambda d: os.rename(d + "/old", d + "/older"), lambda d: os.mkdir(d + "/dir"), lambda d: os.symlink("x", d + "/l"),
    lambda d: os.unlink(d + "/older" if d.endswith("/in") else d + "/old"),
):
    for directory in ({str(inside)!r}, {str(outside)!r}):
        try: change(directory); print("done", end=" ")
        except PermissionError: print("denied", end=" ")
open("/dev/null", "w").write("x"); open("/dev/shm/reduce-test", "w").close(); os.unlink("/dev/shm/reduce-test")
print(open({str(outside / "old")!r}).read())
"""
    step = python(code, inside)
    assert (step.stdout.strip(), step.stderr) == ("done denied " * 7 + "old", "")
    assert [p.name for p in outside.iterdir()] == ["old"]


@needs_landlock
def test_signals_do_not_reach_other_processes(tmp_path: Path) -> None:
    if landlock_abi() < 6:
        pytest.skip("signals are confined from Landlock ABI 6 on")
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        step = python(f"import os\nos.kill({bystander.pid}, 9)", tmp_path)
        assert "PermissionError" in step.stderr
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_network_off_leaves_loopback(tmp_path: Path) -> None:
    code = """
import socket
server = socket.create_server(("127.0.0.1", 0)); socket.create_connection(server.getsockname())
print(socket.if_nameindex())
"""
    step = python(code, tmp_path, limits=Limits(network=False))
    assert step.exit_code == 0, step.stderr
    assert step.stdout.strip() == "[(1, 'lo')]"


def test_keyboard_interrupt_kills(tmp_path: Path) -> None:
    main = """
import sys; from pathlib import Path; from reducer.world.processes import run
here = Path(sys.argv[1])
run("echo $$ > pid; sleep 600 & sleep 600", here, {"PATH": sys.argv[2]}, 600, writable=[here])
"""
    process = subprocess.Popen([sys.executable, "-c", main, tmp_path, os.defpath], stderr=subprocess.PIPE)
    pid = wait_for_number(tmp_path / "pid")
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=300)
    assert b"KeyboardInterrupt" in stderr
    assert time.monotonic() - began < 2
    assert not alive(pid)


def test_death_of_the_caller_kills(tmp_path: Path) -> None:
    main = """
import sys; from pathlib import Path; from reducer.world.processes import run
here = Path(sys.argv[1])
run("echo $$ > pid; setsid sleep 600", here, {"PATH": sys.argv[2]}, 600, writable=[here])
"""
    process = subprocess.Popen([sys.executable, "-c", main, tmp_path, os.defpath])
    pid = wait_for_number(tmp_path / "pid")
    process.kill()
    process.wait()
    deadline = time.monotonic() + 5
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(pid)


def test_stop_all_reaches_other_threads(tmp_path: Path) -> None:
    errors: list[type[BaseException]] = []

    def work() -> None:
        try:
            run("echo $$ > pid; sleep 600", tmp_path, ENV, 600, writable=[tmp_path])
        except Stopped as error:
            errors.append(type(error))

    thread = threading.Thread(target=work)
    thread.start()
    pid = wait_for_number(tmp_path / "pid")
    stop_all()
    thread.join(300)
    assert errors == [Stopped]
    assert not alive(pid)


def test_launcher_is_quick_and_leaks_no_handles(tmp_path: Path) -> None:
    run("true", tmp_path, ENV, 10, writable=[tmp_path])
    before = len(list(Path("/proc/self/fd").iterdir()))
    times = []
    for _ in range(8):
        began = time.monotonic()
        step = run("ls /proc/self/fd", tmp_path, ENV, 10, writable=[tmp_path])
        times.append(time.monotonic() - began)
        assert step.stdout.split() == ["0", "1", "2", "3"]  # 3 is the directory that ls reads
    assert min(times) < 0.2
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def wait_for_number(path: Path) -> int:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if path.exists() and (text := path.read_text().strip()):
            return int(text)
        time.sleep(0.01)
    raise AssertionError(f"{path} never appeared")
