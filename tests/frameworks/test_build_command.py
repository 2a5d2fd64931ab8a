"""Which command builds a checkout, for the ways in which libraries are set up."""

from __future__ import annotations

import pytest

from reducer.frameworks.build_command import IN_PLACE, PIP, find, is_build_input
from reducer.tree import SourceTree

TORCH_SETUP = b"""
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="blend",
    packages=["blend"],
    ext_modules=[CppExtension("blend._C", ["csrc/ops.cc"])],
    cmdclass={"build_ext": BuildExtension},
)
"""
PADDLE_SETUP = b"""
import paddle
paddle.enable_compat()
from paddle.utils.cpp_extension import CppExtension, setup
setup(name="ops", ext_modules=CppExtension(sources=["a.cc"]))
"""
PURE_SETUP = b"from setuptools import setup, find_packages\nsetup(name='gain', packages=find_packages())\n"
HELPED_SETUP = b"from setuptools import setup\nfrom extensions import get_extensions\nsetup(**get_extensions())\n"
HELPER = b"from torch.utils.cpp_extension import CppExtension\ndef get_extensions():\n    return {}\n"
PYPROJECT = b'[build-system]\nrequires = ["setuptools", "torch"]\nbuild-backend = "setuptools.build_meta"\n'
CMAKE = b'[build-system]\nrequires = ["scikit-build-core"]\nbuild-backend = "scikit_build_core.build"\n'
SETTINGS_ONLY = b"[tool.pytest.ini_options]\naddopts = '-q'\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"setup.py": TORCH_SETUP, "csrc/ops.cc": b""}, IN_PLACE),
        ({"setup.py": PADDLE_SETUP, "a.cc": b""}, IN_PLACE),
        ({"setup.py": TORCH_SETUP, "csrc/ops.cc": b"", "pyproject.toml": PYPROJECT}, IN_PLACE),
        ({"setup.py": HELPED_SETUP, "extensions.py": HELPER, "csrc/ops.cc": b""}, IN_PLACE),
        ({"setup.py": PURE_SETUP, "gain/__init__.py": b""}, None),
        ({"setup.py": PURE_SETUP, "extensions.py": HELPER, "gain/__init__.py": b""}, None),
        ({"pyproject.toml": CMAKE, "csrc/ops.cc": b""}, PIP),
        ({"pyproject.toml": PYPROJECT, "gain/__init__.py": b""}, None),
        ({"pyproject.toml": SETTINGS_ONLY, "jit.py": b"load('x', ['a.cc'])", "a.cc": b""}, None),
        ({"test.py": b"", "gain/__init__.py": b""}, None),
        ({"test.py": b"from torch.utils.cpp_extension import load\n", "csrc/a.cc": b""}, None),
        ({"sub/setup.py": TORCH_SETUP, "test.py": b""}, None),
    ],
)
def test_find(files: dict[str, bytes], expected: str | None) -> None:
    assert find(SourceTree(files)) == expected


def test_what_a_build_in_place_reads() -> None:
    tree = SourceTree(
        {"setup.py": b"from version import v\nopen('README.md')\n", "version.py": b"", "lib/a.py": b"", "c/a.cc": b""}
    )
    for path, expected in (("setup.py", True), ("version.py", True), ("c/a.cc", True), ("lib/a.py", False)):
        assert is_build_input(path, tree, IN_PLACE) is expected, path
    assert is_build_input("lib/a.py", tree, PIP)
