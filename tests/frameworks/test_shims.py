"""The compiler shims with the real g++: what they record, what they change, and what they must not change."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reducer.frameworks import shims
from reducer.oracle.observation import CompilerCall

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ here")

GOOD = "int twice(int x) {\n  return 2 * x;\n}\n"
OPTIMISED = "#ifdef __OPTIMIZE__\n#error optimised\n#endif\nint x;\n"


class Bench:
    """A directory with shims first on PATH, and a tree to compile in."""

    def __init__(self, root: Path) -> None:
        self.tree, self.log, self.shims = root / "tree", root / "calls.jsonl", root / "shims"
        self.cache, self.pch = root / "cache", root / "pch"
        for folder in (self.tree, self.cache, self.pch):
            folder.mkdir()
        shims.install(self.shims)

    def env(self, **more: str) -> dict[str, str]:
        path = os.pathsep.join([str(self.shims), os.environ["PATH"]])
        return {"PATH": path, "LC_ALL": "C", "REDUCE_SHIM_LOG": str(self.log), "REDUCE_TREE": str(self.tree), **more}

    def fast(self) -> dict[str, str]:
        return self.env(REDUCE_SHIM_FAST="1", REDUCE_SHIM_CACHE=str(self.cache), REDUCE_SHIM_PCH=str(self.pch))

    def compile(self, *argv: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["g++", *argv], cwd=self.tree, env=env or self.env(), capture_output=True, text=True, check=False
        )

    def calls(self) -> tuple[CompilerCall, ...]:
        return shims.read_log(self.log)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_call_is_recorded_and_does_what_it_did(bench: Bench) -> None:
    (bench.tree / "a.cc").write_text(GOOD)
    argv = ("-O2", "-Wall", "-c", "a.cc", "-o", "a.o")
    assert bench.compile(*argv).returncode == 0
    (call,) = bench.calls()
    assert (call.argv, call.cwd, call.exit_code) == (("g++", *argv), str(bench.tree), 0)
    assert not call.links
    assert (bench.tree / "a.o").stat().st_size > 0


def test_linking_is_recorded_and_told_apart(bench: Bench) -> None:
    (bench.tree / "a.cc").write_text(GOOD)
    bench.compile("-fPIC", "-c", "a.cc", "-o", "a.o")
    assert bench.compile("-shared", "a.o", "-o", "a.so").returncode == 0
    assert [call.links for call in bench.calls()] == [False, True]


def test_errors_pass_through(bench: Bench) -> None:
    (bench.tree / "a.cc").write_text("int f() { return nothing; }\n")
    done = bench.compile("-c", "a.cc", "-o", "a.o")
    assert done.returncode == 1
    assert "'nothing' was not declared" in done.stderr
    (call,) = bench.calls()
    assert (call.exit_code, call.stderr) == (1, done.stderr)


def test_questions_to_the_compiler_are_answered_and_not_recorded(bench: Bench) -> None:
    done = bench.compile("-dumpversion")
    assert done.returncode == 0
    assert done.stdout.strip()[0].isdigit()
    assert bench.calls() == ()


def test_fast_compiles_without_optimisation_and_says_what_was_asked(bench: Bench) -> None:
    (bench.tree / "a.cc").write_text(OPTIMISED)
    argv = ("-O3", "-g", "-c", "a.cc", "-o", "a.o")
    assert "optimised" in bench.compile(*argv).stderr
    assert bench.compile(*argv, env=bench.fast()).returncode == 0
    assert [call.argv for call in bench.calls()] == [("g++", *argv)] * 2


def test_an_equal_compile_comes_from_the_cache(bench: Bench) -> None:
    (bench.tree / "a.cc").write_text('#include "a.h"\nint y = x;\n')
    (bench.tree / "a.h").write_text("static int x = 1;\n")
    argv = ("-c", "a.cc", "-o", "a.o")
    bench.compile(*argv, env=bench.fast())
    (stored,) = bench.cache.iterdir()
    stored.write_bytes(b"from the cache")
    assert bench.compile(*argv, env=bench.fast()).returncode == 0
    assert (bench.tree / "a.o").read_bytes() == b"from the cache"
    assert [call.exit_code for call in bench.calls()] == [0, 0]


@pytest.mark.parametrize(
    ("change", "flags"), [({"a.cc": "int z;\n"}, ()), ({"a.h": "static int x = 2;\n"}, ()), ({}, ("-DNEW",))]
)
def test_another_source_header_or_flag_is_compiled_anew(
    bench: Bench, change: dict[str, str], flags: tuple[str, ...]
) -> None:
    (bench.tree / "a.cc").write_text('#include "a.h"\nint y = x;\n')
    (bench.tree / "a.h").write_text("static int x = 1;\n")
    bench.compile("-c", "a.cc", "-o", "a.o", env=bench.fast())
    for stored in bench.cache.iterdir():
        stored.write_bytes(b"stale")
    for name, text in change.items():
        (bench.tree / name).write_text(text)
    assert bench.compile(*flags, "-c", "a.cc", "-o", "a.o", env=bench.fast()).returncode == 0
    assert (bench.tree / "a.o").read_bytes() != b"stale"


def test_a_failed_compile_is_never_cached(bench: Bench) -> None:
    (bench.tree / "a.cc").write_text("broken\n")
    for _ in range(2):
        assert bench.compile("-c", "a.cc", "-o", "a.o", env=bench.fast()).returncode == 1
    assert list(bench.cache.iterdir()) == []


def test_a_precompiled_header_is_made_once_and_used(bench: Bench) -> None:
    headers = bench.tree.parent / "include" / "frame"
    headers.mkdir(parents=True)
    (headers / "work.h").write_text("#pragma once\ninline int work() { return 1; }\n")
    flags = ("-I", str(headers.parent))
    for text in ("#include <frame/work.h>\nint a = work();\n", "#include <frame/work.h>\nint b = work();\n"):
        (bench.tree / "a.cc").write_text(text)
        assert bench.compile(*flags, "-c", "a.cc", "-o", "a.o", env=bench.fast()).returncode == 0
    (made,) = bench.pch.rglob("*.gch")
    assert made.stat().st_size > 0


def test_a_missing_header_fails_as_without_a_shim(bench: Bench) -> None:
    (bench.tree / "a.cc").write_text("#include <frame/nothing.h>\n")
    done = bench.compile("-c", "a.cc", "-o", "a.o", env=bench.fast())
    assert done.returncode == 1
    assert "fatal error: frame/nothing.h: No such file or directory" in done.stderr
    assert "pch.h" not in done.stderr


def test_a_killed_compiler_is_a_failed_call(bench: Bench) -> None:
    """The compiler waits for its standard input; it is killed there."""
    argv = ["g++", "-c", "-x", "c++", "-", "-o", "a.o"]
    shim = subprocess.Popen(argv, cwd=bench.tree, env=bench.env(), stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    driver = _child(shim.pid)
    cc1plus = _child(driver)
    os.kill(driver, signal.SIGKILL)
    os.kill(cc1plus, signal.SIGKILL)
    shim.communicate(timeout=300)
    assert shim.returncode == 128 + signal.SIGKILL
    (call,) = bench.calls()
    assert call.exit_code == -signal.SIGKILL


def _child(pid: int) -> int:
    """The first child of a process, once it has one."""
    for _ in range(200):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if children:
            return int(children[0])
        time.sleep(0.05)
    raise AssertionError(f"process {pid} started nothing")


def test_a_compiler_that_is_not_there(bench: Bench) -> None:
    done = bench.compile("-c", "a.cc", env={"PATH": str(bench.shims) + os.pathsep + "/bin/nowhere"} | {"LC_ALL": "C"})
    assert done.returncode == 127
    assert "g++: command not found" in done.stderr


def test_a_torn_log_line_is_dropped(bench: Bench) -> None:
    (bench.tree / "a.cc").write_text(GOOD)
    bench.compile("-c", "a.cc", "-o", "a.o")
    with open(bench.log, "ab") as stream:
        stream.write(b'{"argv": ["g++", "-c"')
    assert len(bench.calls()) == 1
    assert shims.read_log(bench.log.parent / "none") == ()


def test_the_interpreters_names(tmp_path: Path) -> None:
    shims.install_interpreter(tmp_path / "bin", Path(sys.executable))
    for name, arguments in (("python", ("-c", "import sys; print(sys.prefix)")), ("python3", ("--version",))):
        done = subprocess.run([tmp_path / "bin" / name, *arguments], capture_output=True, text=True, check=True)
        assert done.stdout.strip() in (sys.prefix, f"Python {sys.version.split()[0]}")
    done = subprocess.run([tmp_path / "bin" / "pytest", "--version"], capture_output=True, text=True, check=True)
    assert "pytest" in done.stdout + done.stderr
