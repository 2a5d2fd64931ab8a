"""The warm interpreters with the real frameworks: both sides, builds, crashes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reducer.world import processes
from reducer.world.warm import WarmInterpreter

PYTHON = Path(sys.executable)
ENV = {"PATH": f"{PYTHON.parent}:{os.defpath}", "HOME": "/nonexistent", "LC_ALL": "C"}
PRELUDE = """
try:
    import paddle
    paddle.enable_compat()
except ImportError:
    pass
import torch
"""

pytestmark = pytest.mark.real


def has(module: str) -> bool:
    return subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module", params=["paddle", "torch"])
def side(request: pytest.FixtureRequest) -> Iterator[tuple[str, WarmInterpreter]]:
    if not has(request.param):
        pytest.skip(f"no {request.param} here")
    with WarmInterpreter(PYTHON, [request.param, "pytest"], ENV) as interpreter:
        yield request.param, interpreter


@pytest.fixture
def env(side: tuple[str, WarmInterpreter], tmp_path: Path) -> dict[str, str]:
    """The control finds a stand-in for paddle, which must win over the real one of the same environment."""
    if side[0] == "paddle":
        return ENV
    (tmp_path / "stand-in").mkdir()
    (tmp_path / "stand-in" / "paddle.py").write_text("def enable_compat(**_): print('stand-in')\n")
    return {**ENV, "PYTHONPATH": str(tmp_path / "stand-in")}


def test_same_as_fresh_and_much_faster(side: tuple[str, WarmInterpreter], env: dict[str, str], tmp_path: Path) -> None:
    name, warm = side
    (tmp_path / "t.py").write_text(
        PRELUDE + "print(torch.ones(2).tolist(), paddle.__name__)\ntorch.ones(2).no_such_method()\n"
    )
    warm.run(["-c", ""], tmp_path, env, 60, [tmp_path])
    began = time.monotonic()
    forked = warm.run(["t.py"], tmp_path, env, 60, [tmp_path])
    took = time.monotonic() - began
    fresh = processes.run([str(PYTHON), "t.py"], tmp_path, env, 60, writable=[tmp_path])
    assert (forked.exit_code, forked.stdout) == (fresh.exit_code, fresh.stdout)
    assert forked.stderr.splitlines()[-4:] == fresh.stderr.splitlines()[-4:]
    assert ("stand-in" in forked.stdout) == (name == "torch")
    assert "no_such_method" in forked.stderr
    assert took < fresh.seconds / 3
    assert not warm.cold


def test_compat_is_not_enabled_beforehand(tmp_path: Path) -> None:
    if not has("paddle"):
        pytest.skip("no paddle here")
    code = "import paddle, sys; print([getattr(f, '__name__', type(f).__name__) for f in sys.meta_path]); import torch"
    argv = ["-c", code + "; print(torch.__version__)"]
    with WarmInterpreter(PYTHON, ["paddle"], ENV) as warm:
        forked = warm.run(argv, tmp_path, ENV, 60, [tmp_path])
    fresh = processes.run([str(PYTHON), *argv], tmp_path, ENV, 60, writable=[tmp_path])
    assert (forked.exit_code, forked.stdout) == (fresh.exit_code, fresh.stdout)


def test_suite(side: tuple[str, WarmInterpreter], env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(PRELUDE)
    (tmp_path / "test_a.py").write_text("import torch\ndef test_a():\n    assert torch.ones(2).sum().item() == 3\n")
    step = side[1].run(["-m", "pytest", "-q", "-p", "no:cacheprovider"], tmp_path, env, 60, [tmp_path])
    assert step.exit_code == 1
    assert "assert 2.0 == 3" in step.stdout
    assert step.seconds < 1


def test_crash(side: tuple[str, WarmInterpreter], env: dict[str, str], tmp_path: Path) -> None:
    step = side[1].run(["-c", PRELUDE + "import ctypes; ctypes.string_at(0)"], tmp_path, env, 60, [tmp_path])
    assert step.exit_code == -signal.SIGSEGV
    assert ("SIGSEGV" in step.stdout) == (side[0] == "paddle")


def test_hang(side: tuple[str, WarmInterpreter], env: dict[str, str], tmp_path: Path) -> None:
    step = side[1].run(["-c", PRELUDE + "while True: torch.ones(3) + 1"], tmp_path, env, 1, [tmp_path])
    assert step.timed_out


SETUP = """
import paddle
paddle.enable_compat()
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension
setup(name="x", ext_modules=[CppExtension(name="x_C", sources=["x.cc"])], cmdclass={"build_ext": BuildExtension})
"""
SOURCE = """
#include <Python.h>
static PyModuleDef def = {PyModuleDef_HEAD_INIT, "x_C", nullptr, -1, nullptr};
extern "C" PyObject* PyInit_x_C(void) { return PyModule_Create(&def); }
"""


def test_build(side: tuple[str, WarmInterpreter], env: dict[str, str], tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "setup.py").write_text(SETUP)
    (tree / "x.cc").write_text(SOURCE)
    (tmp_path / "tmp").mkdir()
    environment = {**env, "TMPDIR": str(tmp_path / "tmp"), "HOME": str(tmp_path)}
    argv = ["setup.py", "build_ext", "--inplace"]
    step = side[1].run(argv, tree, environment, 200, [tmp_path])
    assert step.exit_code == 0, step.output
    assert list(tree.glob("x_C*.so")) or list(tree.glob("x_C_pd_*.so"))
    used = side[1].run(["-c", PRELUDE + "import x_C; print(x_C.__name__)"], tree, environment, 60, [tmp_path])
    assert used.stdout.splitlines()[-1] == "x_C", used.output
    assert not side[1].cold
