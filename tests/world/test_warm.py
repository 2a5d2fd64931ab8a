"""A program in a warm interpreter shows what it shows in a fresh one."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reducer.oracle.observation import Step
from reducer.world import processes
from reducer.world.jail import landlock_abi
from reducer.world.warm import WarmInterpreter, WarmStartError

PYTHON = Path(sys.executable)
ENV = {"PATH": f"{PYTHON.parent}:{os.defpath}", "HOME": "/nonexistent"}


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmInterpreter]:
    with WarmInterpreter(PYTHON, ["json", "tempfile", "pytest"], ENV) as interpreter:
        yield interpreter


def both(
    warm: WarmInterpreter, argv: list[str], directory: Path, extra: dict[str, str] | None = None
) -> tuple[Step, Step]:
    """The program in a fork and in a fresh process; the former must not have been the latter in disguise."""
    env = {**ENV, **(extra or {})}
    before = warm.cold.total()
    forked = warm.run(argv, directory, env, 20, [directory])
    assert warm.cold.total() == before, warm.cold
    return forked, processes.run([str(PYTHON), *argv], directory, env, 20, writable=[directory])


def shown(step: Step) -> tuple[int, str, str]:
    return step.exit_code, step.stdout, step.stderr


PROGRAMS = {
    "surroundings": """
import os, sys
print(__name__, __file__, __package__, __spec__, __cached__, __doc__, type(__loader__).__name__, sorted(globals()))
print(sys.argv, sys.orig_argv, sys.path, os.getcwd(), sorted(os.environ.items()), sys.executable, sys.flags)
print(sys.stdin.read(), sys.stdout.encoding, sys.stdout.line_buffering, sys.stderr.line_buffering, sys.stdout.isatty())
import __main__; print(vars(__main__) is globals())
""",
    "environment of children": "import subprocess; subprocess.run(['env'])",
    "helper next to the script": "import helper; print(helper.__file__)",
    "exception": "def f():\n    raise ValueError('x')\ndef g(): f()\ng()",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('y') from e",
    "error in a helper": "import bad_helper",
    "syntax error": "x = (\n",
    "own hook": "import sys\nsys.excepthook = lambda *a: print('hook', a[0], a[2].tb_lineno)\n1/0",
    "exit code": "import sys; print('a'); sys.exit(7)",
    "exit message": "import sys; print('a'); sys.exit('bye')",
    "exit none": "raise SystemExit",
    "exit big": "raise SystemExit(257)",
    "os exit": "import os; print('lost'); os._exit(5)",
    "exit in a thread": "import sys, threading; threading.Thread(target=sys.exit).start()",
    "error in a thread": "import threading; threading.Thread(target=lambda: 1/0, name='T').start()",
    "waits for threads": "import threading as t, time; t.Thread(target=lambda: (time.sleep(.2), print('t'))).start()",
    "exit handlers": "import atexit; atexit.register(print, 'bye'); atexit.register(print, 'first'); 1/0",
    "interrupt": "raise KeyboardInterrupt",
    "segfault": "import os; print('lost'); os.kill(os.getpid(), 11)",
    "abort": "import os; os.abort()",
    "killed": "import os; os.kill(os.getpid(), 9)",
    "pickle main": "import pickle\nclass A: x = 1\nprint(pickle.loads(pickle.dumps(A())).x)",
    "multiprocessing": """
import multiprocessing
def square(x): return x * x
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool: print(pool.map(square, [1, 2, 3]))
""",
    "source of main": "import inspect\ndef f(): pass\nprint(inspect.getsource(f))",
    "temporary files": "import tempfile; print(tempfile.gettempdir())",
    "handles": "import os; print(sorted(os.listdir('/proc/self/fd')))",
    "signals": "import signal; print([(s.name, str(signal.getsignal(s))) for s in signal.valid_signals() if s < 32])",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_script(warm: WarmInterpreter, tmp_path: Path, name: str) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "tmp").mkdir()
    (tmp_path / "sub" / "script.py").write_text(PROGRAMS[name])
    (tmp_path / "sub" / "helper.py").write_text("")
    (tmp_path / "sub" / "bad_helper.py").write_text("def f():\n    return [][1]\n\n\nf()\n")
    argv = ["sub/script.py", "-x", "two words"]
    extra = {"TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": "lib::/nowhere", "GREETING": "hé"}
    forked, fresh = both(warm, argv, tmp_path, extra)
    for mine, theirs in zip(shown(forked), shown(fresh), strict=True):
        assert mine == theirs


@pytest.mark.parametrize(
    "argv",
    [
        ["-c", "import sys; print(sys.argv, sys.path, sorted(globals()), __loader__); 1/0", "a", "-b"],
        ["-cprint(1)"],
        ["-m", "pkg.tool", "a"],
        ["-m", "pkg"],
        ["-m", "no_such_module"],
        ["-m", "unittest", "-v", "test_unit"],
        ["no_such_file.py"],
        ["folder"],
        ["link.py"],
        ["-u", "-B", "script.py"],
    ],
    ids=" ".join,
)
def test_other_ways_to_start(warm: WarmInterpreter, tmp_path: Path, argv: list[str]) -> None:
    code = "import sys\nprint(sys.argv, sys.path, __name__, __file__, __package__, sys.dont_write_bytecode)\n{}[1]\n"
    for name in ("pkg/__init__.py", "pkg/__main__.py", "pkg/tool.py", "folder/__main__.py", "script.py", "real/s.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("" if name.endswith("init__.py") else code)
    (tmp_path / "link.py").symlink_to("real/s.py")
    (tmp_path / "test_unit.py").write_text(
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(1, 2)\n"
    )
    forked, fresh = both(warm, argv, tmp_path)
    assert re.sub(r"in [\d.]+s", "", str(shown(forked))) == re.sub(r"in [\d.]+s", "", str(shown(fresh)))


def test_pytest(warm: WarmInterpreter, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("import pytest\n@pytest.fixture\ndef one(): return 1\n")
    (tmp_path / "test_a.py").write_text(
        "def test_good(one): assert one == 1\ndef test_bad(one):\n    x = [one]\n    assert x == [2], 'no'\n"
    )
    for argv in (["-m", "pytest", "-q", "-p", "no:cacheprovider"], [str(PYTHON.with_name("pytest")), "-q"]):
        forked, fresh = both(warm, argv, tmp_path)
        clean = [re.sub(r"in [\d.]+s", "", step.stdout) for step in (forked, fresh)]
        assert clean[0] == clean[1]
        assert "assert [1] == [2]" in forked.stdout
        assert (forked.exit_code, forked.stderr) == (fresh.exit_code, fresh.stderr) == (1, "")


def test_randomness_is_not_shared(warm: WarmInterpreter, tmp_path: Path) -> None:
    argv = ["-c", "import random, tempfile; print(random.random(), next(tempfile._get_candidate_names()))"]
    outputs = {warm.run(argv, tmp_path, ENV, 20, []).stdout for _ in range(3)}
    assert len(outputs) == 3


def test_timeout_and_daemon(warm: WarmInterpreter, tmp_path: Path) -> None:
    code = """
import os, time
if os.fork() == 0:
    os.setsid()
    open("daemon", "w").write(str(os.getpid())); time.sleep(600)
while not os.path.exists("daemon") or not open("daemon").read(): time.sleep(.01)
print("up", flush=True)
"""
    for end in ("", "while True: pass"):
        (tmp_path / "daemon").unlink(missing_ok=True)
        step = warm.run(["-c", code + end], tmp_path, ENV, 1, [tmp_path])
        assert (step.timed_out, step.stdout) == (bool(end), "up\n")
        assert not Path(f"/proc/{(tmp_path / 'daemon').read_text()}").exists()


def test_flood(warm: WarmInterpreter, tmp_path: Path) -> None:
    limits = processes.Limits(output=1 << 18)
    step = warm.run(["-c", "while True: print('x' * 1000)"], tmp_path, ENV, 60, [], limits)
    assert step.timed_out
    assert "left out" in step.stdout


@pytest.mark.skipif(landlock_abi() == 0, reason="this kernel has no Landlock")
def test_writes_are_confined(warm: WarmInterpreter, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    step = warm.run(["-c", "open('a', 'w'); open('../b', 'w')"], tmp_path / "in", ENV, 20, [tmp_path / "in"])
    assert "PermissionError" in step.stderr
    assert [p.name for p in tmp_path.rglob("*")] == ["in", "a"]


def test_limits(warm: WarmInterpreter, tmp_path: Path) -> None:
    step = warm.run(["-c", "while True: pass"], tmp_path, ENV, 20, [], processes.Limits(cpu_seconds=1))
    assert step.exit_code == -signal.SIGXCPU


def test_what_a_fork_cannot_do_runs_cold(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("print('mine')")
    with WarmInterpreter(PYTHON, ["json"], ENV) as warm:
        code = "import json, sys, os; print(sys.flags.optimize, os.environ.get('LC_ALL'))"
        assert warm.run(["-c", code], tmp_path, ENV, 20, []).stdout == "mine\n0 None\n"
        (tmp_path / "json.py").unlink()
        assert warm.run(["-O", "-c", code], tmp_path, ENV, 20, []).stdout == "1 None\n"
        assert warm.run(["-c", code], tmp_path, {**ENV, "LC_ALL": "C"}, 20, []).stdout == "0 C\n"
        assert sorted(warm.cold) == ["interpreter options", "module json", "variable LC_ALL"]


def test_what_does_not_survive_a_fork_runs_cold(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "with_a_thread.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), name='ticker', daemon=True).start()\n"
    )
    heard: list[str] = []
    # PYTHONPATH is no way to preload: a directory of ours on the path of the interpreter's user is.
    env = {**ENV, "PYTHONUSERBASE": str(tmp_path)}
    site = tmp_path / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    site.parent.mkdir(parents=True)
    site.symlink_to(tmp_path)
    with WarmInterpreter(
        Path(sys.base_prefix) / "bin" / "python3", ["with_a_thread"], env, on_cold=heard.append
    ) as warm:
        code = "import threading, with_a_thread; print([thread.name for thread in threading.enumerate()])"
        for _ in range(2):
            step = warm.run(["-c", code], tmp_path / "in", env, 20, [])
            assert step.stdout == "['MainThread', 'ticker']\n", step.stderr
        assert heard == ["thread ticker"]
        assert warm.cold == {"thread ticker": 2}


def test_restarts_after_its_death(tmp_path: Path) -> None:
    with WarmInterpreter(PYTHON, [], ENV) as warm:
        argv = ["-c", "import os; print(os.getppid())"]
        assert warm.run(argv, tmp_path, ENV, 20, []).exit_code == 0
        server = warm._server
        assert server is not None
        server.process.kill()
        assert warm.run(argv, tmp_path, ENV, 20, []).exit_code == 0
        assert warm._server is not server
        assert not warm.cold


def test_unusable_interpreters(tmp_path: Path) -> None:
    with (
        WarmInterpreter(PYTHON, ["no_such_module"], ENV) as warm,
        pytest.raises(WarmStartError, match="No module named 'no_such_module'"),
    ):
        warm.run(["-c", ""], tmp_path, ENV, 20, [])
    with pytest.raises(WarmStartError, match="no-such-python"):
        WarmInterpreter(tmp_path / "no-such-python", [], ENV)


def test_runs_are_concurrent(warm: WarmInterpreter, tmp_path: Path) -> None:
    steps: list[Step] = []
    argv = ["-c", "import time; time.sleep(.5); print('x')"]
    threads = [threading.Thread(target=lambda: steps.append(warm.run(argv, tmp_path, ENV, 20, []))) for _ in range(4)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [step.stdout for step in steps] == ["x\n"] * 4
    assert time.monotonic() - began < 1.9


def test_serves(warm: WarmInterpreter) -> None:
    assert warm.serves(["python", "x.py"], ENV) == ("x.py",)
    assert warm.serves([str(PYTHON), "-m", "x"], ENV) == ("-m", "x")
    pytest_script = warm.serves(["pytest", "-q"], ENV)
    assert pytest_script == (str(PYTHON.with_name("pytest")), "-q")
    assert warm.serves(["env"], ENV) is None
    assert warm.serves(["no-such"], ENV) is None
    assert warm.serves(["python"], ENV) is None
