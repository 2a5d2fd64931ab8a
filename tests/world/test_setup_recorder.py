"""What a setup.py describes is recorded by running it, with the real torch, up to setup()."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reducer.world import setup_recorder

pytestmark = pytest.mark.real

SETUP = """
import glob, os, sys
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

class Odd:
    pass

here = os.path.dirname(os.path.abspath(__file__))
assert sys.argv[1:] == ["build_ext", "--inplace"]
extensions = [
    CppExtension("a", sorted(glob.glob("csrc/*.cc")), include_dirs=[os.path.join(here, "inc")], py_limited_api=False),
    CppExtension(name="b", sources=(s for s in ["csrc/b.cc"]), extra_compile_args={"cxx": ("-O2",)}, depends=[Odd()]),
]
setup(name="x", ext_modules=extensions, cmdclass={"build_ext": BuildExtension})
raise AssertionError("setup() was run")
"""


def test_calls_are_recorded_with_plain_values(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text(SETUP)
    (tmp_path / "csrc").mkdir()
    for name in ("a.cc", "b.cc"):
        (tmp_path / "csrc" / name).write_text("")
    command = [sys.executable, setup_recorder.__file__, "calls.json", "setup.py", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    first, second = json.loads((tmp_path / "calls.json").read_text())
    assert first == {
        "function": "CppExtension",
        "args": ["a", ["csrc/a.cc", "csrc/b.cc"]],
        "kwargs": {"include_dirs": ["inc"], "py_limited_api": False},
    }
    assert second["kwargs"] == {"name": "b", "sources": ["csrc/b.cc"], "extra_compile_args": {"cxx": ["-O2"]}}
