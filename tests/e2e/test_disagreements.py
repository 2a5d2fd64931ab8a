"""Cases about which the cheap tiers are wrong: the run must notice, say so, and end with what the real builds show."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.mre import decisive_words, metadata, rerun, sources
from tests.e2e.jobs import PYTHON, contents

pytestmark = [pytest.mark.real, pytest.mark.slow]

IN_PLACE = "python setup.py build_ext --inplace"
PIP = "python -m pip install . --no-build-isolation --no-deps"

SWITCH = """\
try:
    import paddle
    paddle.enable_compat()
except ImportError:
    pass
"""
SETUP = (
    SWITCH
    + """\
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="@NAME@",
    version="0.1",
    ext_modules=[CppExtension(name="@NAME@_C", sources=["csrc/ops.cc"])],
    cmdclass={"build_ext": BuildExtension},
)
"""
)
MODULE = """\
#include <Python.h>

extern "C" PyObject* PyInit_@NAME@_C(void) {
  static PyModuleDef def = {PyModuleDef_HEAD_INIT, "@NAME@_C", nullptr, -1, nullptr};
  return PyModule_Create(&def);
}

"""

# The compiler that a library is built with, and the compiler that answers for it, see other code: clang takes the type
# that g++ does not know. Paddle has no Tensor::item.
CLANG_ONLY = {
    "setup.py": SETUP,
    "csrc/words.h": """\
#pragma once
#include <cstdint>

// An integer of exactly as many bits as are counted.
#ifdef __clang__
typedef _BitInt(32) word_t;
#else
typedef std::int32_t word_t;
#endif
""",
    "csrc/ops.cc": MODULE
    + """\
#include <ATen/ATen.h>
#include <torch/library.h>

#include "words.h"

static at::Tensor flat(const at::Tensor& x) { return x.contiguous().view({-1}); }

int64_t first(const at::Tensor& x) {
  at::Tensor y = flat(x);
  return y[0].item<word_t>();
}

at::Tensor twice(const at::Tensor& x) { return x + x; }

TORCH_LIBRARY(counts, m) {
  m.def("first(Tensor x) -> int");
  m.def("twice(Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(counts, CPU, m) {
  m.impl("first", &first);
  m.impl("twice", &twice);
}
""",
    "check.py": SWITCH
    + """\
import torch
import counts_C

x = torch.tensor([3, 4], dtype=torch.int32)
assert torch.ops.counts.twice(x).tolist() == [6, 8]
assert torch.ops.counts.first(x) == 3
print("ok")
""",
}

# Only optimised builds take the path that fails: Paddle's Tensor::to refuses options that carry a device.
OPTIMISED_ONLY = {
    "setup.py": SETUP,
    "csrc/ops.cc": MODULE
    + """\
#include <ATen/ATen.h>
#include <torch/library.h>

at::Tensor like(const at::Tensor& x, const at::Tensor& other) {
#ifdef __OPTIMIZE__
  return x.to(other.options());
#else
  at::Tensor out = at::empty(x.sizes(), other.options());
  out.copy_(x);
  return out;
#endif
}

TORCH_LIBRARY(casts, m) { m.def("like(Tensor x, Tensor other) -> Tensor"); }
TORCH_LIBRARY_IMPL(casts, CPU, m) { m.impl("like", &like); }
""",
    "check.py": SWITCH
    + """\
import torch
import casts_C


def votes(scores):
    return torch.ops.casts.like(scores, torch.zeros(2))


assert votes(torch.tensor([1, 2])).tolist() == [1.0, 2.0]
print("ok")
""",
}

# An installed module is loaded by Python itself, which refuses the undefined symbol at once; one that was built in
# place is loaded by Paddle's stub, lazily, and dies when the function is called.
INSTALLED_ONLY = {
    "setup.py": SWITCH
    + """\
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="peek",
    version="0.1",
    packages=["peek"],
    package_dir={"": "src"},
    ext_modules=[CppExtension(name="peek._C", sources=["csrc/ops.cc"])],
    cmdclass={"build_ext": BuildExtension},
)
""",
    "csrc/ops.cc": MODULE.replace("@NAME@_C", "_C")
    + """\
#include <ATen/ATen.h>
#include <torch/library.h>

double first(const at::Tensor& x) { return x.const_data_ptr<float>()[0]; }

TORCH_LIBRARY(peek, m) { m.def("first(Tensor x) -> float"); }
TORCH_LIBRARY_IMPL(peek, CPU, m) { m.impl("first", &first); }
""",
    "src/peek/__init__.py": """\
from importlib.metadata import version

import torch

from . import _C

__version__ = version("peek")
first = torch.ops.peek.first
""",
    "check.py": SWITCH
    + """\
import torch
import peek

assert peek.__version__ == "0.1"
assert peek.first(torch.tensor([4.0])) == 4.0
print("ok")
""",
}


@dataclass(frozen=True, slots=True)
class Job:
    """A finished run on a planted library."""

    done: subprocess.CompletedProcess[str]
    out: Path
    untouched: bool

    @property
    def story(self) -> str:
        return f"exit code {self.done.returncode}\n{self.done.stderr[-6000:]}\n{self.done.stdout[-3000:]}"


def reduced(name: str, library: dict[str, str], place: Path, build: str, failing: str = "python check.py") -> Job:
    """Run the real command on a library that is written for it."""
    checkout, out = place / name, place / "result"
    for path, text in library.items():
        target = checkout / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text.replace("@NAME@", name), encoding="utf-8")
    if shutil.which("git"):
        subprocess.run(["git", "init", "-q"], cwd=checkout, check=True)
        subprocess.run(["git", "add", "-A"], cwd=checkout, check=True)
    before = contents(checkout)
    command = [str(PYTHON), "-m", "reducer", "--repo", str(checkout), "--out", str(out)]
    command += ["--fresh", "--failing-cmd", failing, "--build-cmd", build]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    return Job(done, out, contents(checkout) == before)


def assert_confirmed(job: Job, place: Path) -> None:
    """Whatever was believed on the way, what is written shows the failure to anybody; the checkout is as it was."""
    assert job.done.returncode == 0, job.story
    assert job.untouched
    data = metadata(job.out)
    assert data["confirmed"] == {"paddle": {"runs": 3, "same": 3}, "torch": {"runs": 1, "passed": 1}}
    seen = rerun(job.out, "paddle", PYTHON, place / "paddle")
    words = decisive_words(data["signature"]["message"])
    assert not seen.passed and words and [word for word in words if word not in seen.output] == [], seen.output
    control = rerun(job.out, "torch", PYTHON, place / "torch")
    assert control.passed, control.output


def test_gcc_rejects_what_clang_accepts(tmp_path: Path) -> None:
    job = reduced("counts", CLANG_ONLY, tmp_path, IN_PLACE)
    assert_confirmed(job, tmp_path)
    data = metadata(job.out)
    assert (data["signature"]["stage"], data["signature"]["symbol"]) == ("compile", "at::Tensor::item")
    assert data["search"]["disagreements"] == 1
    assert "without clang's answers" in job.done.stderr
    assert "_BitInt" not in "\n".join(sources(job.out).values()), "g++ has no such type"


def test_only_an_optimised_build_shows_it(tmp_path: Path) -> None:
    job = reduced("casts", OPTIMISED_ONLY, tmp_path, IN_PLACE)
    assert_confirmed(job, tmp_path)
    assert metadata(job.out)["signature"]["stage"] == "run"
    assert "on with the library's own optimisation" in job.done.stderr


def test_only_an_installed_package_shows_it(tmp_path: Path) -> None:
    job = reduced("peek", INSTALLED_ONLY, tmp_path, PIP)
    assert_confirmed(job, tmp_path)
    data = metadata(job.out)
    assert data["signature"]["stage"] == "import" and "const_data_ptr" in data["signature"]["message"]
    assert "pip install" in data["commands"]["build"], "built in place, the module is loaded another way"
