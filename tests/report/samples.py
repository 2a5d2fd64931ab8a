"""A complete result, as a finished reduction hands it over."""

from __future__ import annotations

from reducer.oracle.failure import Signature
from reducer.report.result import Commands, Confirmed, MreResult, SearchStats
from reducer.tree import SourceTree

PRELUDE = b'import os\nif os.getenv("USE_TORCH") is None: import paddle; paddle.enable_compat()\n'

SETUP = PRELUDE + (
    b"from setuptools import setup\n"
    b"from torch.utils.cpp_extension import BuildExtension, CppExtension\n\n\n\n"
    b'setup(name="ops", ext_modules=[CppExtension(name="ops", sources=["csrc/ops.cc"])],\n'
    b'      cmdclass={"build_ext": BuildExtension})\n'
)

SOURCE = (
    b"#include <ATen/ATen.h>\n#include <torch/library.h>\n\n"
    b"at::Tensor scatter(at::Tensor x, const at::Tensor& index, const at::Tensor& source) {\n"
    b"  return x.index_add_(0, index, source);\n}\n"
    b'TORCH_LIBRARY(ops, m) { m.def("scatter", &scatter); }  // costs $5 ${title}\n'
)

PADDLE_LOG = """\
/opt/env/lib/python3.11/site-packages/paddle/utils/cpp_extension/extension_utils.py:712: UserWarning: No ccache found. Please be aware that recompiling all source files may be required.
  warnings.warn(warning_message)
running build_ext
Compiling user custom op, it will cost a few seconds.....


/home/alice/mre/csrc/ops.cc: In function 'at::Tensor scatter(at::Tensor, const at::Tensor&, const at::Tensor&)':
/home/alice/mre/csrc/ops.cc:5:12: error: 'class at::Tensor' has no member named 'index_add_'; did you mean 'index'?
    5 |   return x.index_add_(0, index, source);
      |            ^~~~~~~~~~
      |            index
/home/alice/mre/csrc/ops.cc compile failed, command '/usr/bin/gcc' failed with exit code 1
error: command '/usr/bin/g++' failed with exit code 1
"""  # noqa: E501 (as printed)

SCRIPT_LOG = """\
Traceback (most recent call last):
  File "/home/alice/mre/repro.py", line 5, in <module>
    torch.zeros(2).index_copy_(0, torch.tensor([0]), torch.ones(1))
    ^^^^^^^^^^^^^^^^^^^^^^^^^^
AttributeError: 'Tensor' object has no attribute 'index_copy_'
"""

ENVIRONMENT: dict[str, str | None] = {"python": "3.11.7", "compiler": "g++ 12.2.0", "os": "Debian 12", "arch": "x86_64"}


def extension(**changes: object) -> MreResult:
    values: dict[str, object] = {
        "form": "extension",
        "signature": Signature(
            "compile",
            "diagnostic",
            "missing-member",
            "at::Tensor::index_add_",
            "'T' has no member 'index_add_'",
            "library",
        ),
        "message": "'class at::Tensor' has no member named 'index_add_'",
        "layer": "cxx_api",
        "gap_class": "A",
        "verdict": "issue",
        "evidence": ("`index_add_` is documented API of `at::Tensor`.",),
        "advice": ("Add `index_add_` to the compat `Tensor`.",),
        "paddle": {"version": "3.3.1", "commit": "7688495", "cuda": None},
        "torch": {"version": "2.13.0+cpu", "commit": "cf30153", "cuda": None},
        "environment": ENVIRONMENT,
        "commands": Commands(
            "python setup.py build_ext --inplace", None, "env USE_TORCH=1 python setup.py build_ext --inplace", None
        ),
        "confirmed": Confirmed(3, 3, 1, 1),
        "before": {"files": 12, "lines": 702, "tokens": 7189},
        "after": {"files": 2, "lines": 14, "tokens": 91},
        "search": SearchStats(120, 14, 61.04, {"syntax": 100, "real": 20}),
        "original_command": "pytest tests/test_ops.py",
        "also_found": ("c10::str is missing",),
        "files": SourceTree({"setup.py": SETUP, "csrc/ops.cc": SOURCE}),
        "paddle_log": PADDLE_LOG,
        "torch_log": "running build_ext\ncopying build/lib/ops.so -> \n",
    }
    return MreResult(**{**values, **changes})  # type: ignore[arg-type]


def script(**changes: object) -> MreResult:
    return extension(
        **{
            "form": "script",
            "signature": Signature(
                "run", "exception", "AttributeError", "torch.Tensor.index_copy_", "no attribute", "test"
            ),
            "message": "AttributeError: 'Tensor' object has no attribute 'index_copy_'",
            "layer": "python_interface",
            "commands": Commands(None, "python repro.py", None, "env USE_TORCH=1 python repro.py"),
            "after": {"files": 1, "lines": 4, "tokens": 30},
            "files": SourceTree(
                {
                    "repro.py": PRELUDE
                    + b"import torch\ntorch.zeros(2).index_copy_(0, torch.tensor([0]), torch.ones(1))\n"
                }
            ),
            "paddle_log": SCRIPT_LOG,
            "torch_log": "",
            **changes,
        }
    )
