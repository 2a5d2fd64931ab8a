"""What is read from the compiler calls of a build: units, their flags, and the names of what was linked."""

from __future__ import annotations

from reducer.frameworks.flags import extension_names, includes, system_includes, units
from reducer.oracle.observation import CompilerCall, Observation, Step
from reducer.tree import SourceTree

ROOT = "/q/0/tree"
STANDARD = ("-Wno-unused-result", "-DNDEBUG", "-g", "-fwrapv", "-O3", "-Wall", "-fPIC", "-std=c++17", "-pthread")
TORCH = ("-DTORCH_API_INCLUDE_EXTENSION_H", "-DTORCH_EXTENSION_NAME=_C", "-D_GLIBCXX_USE_CXX11_ABI=1")
FRAMEWORK = ("-I/env/torch/include", "-I/env/torch/include/torch/csrc/api/include")


def build(*calls: tuple[str, ...], cwd: str = ROOT) -> Observation:
    return Observation("torch", ROOT, None, tuple(CompilerCall(("g++", *argv), cwd, 0, "") for argv in calls))


def test_a_unit_has_its_flags_without_input_and_output() -> None:
    seen = build((*STANDARD, *FRAMEWORK, "-c", "csrc/a.cc", "-o", "build/temp/a.o", *TORCH, "-MMD", "-MF", "a.o.d"))
    (unit,) = units(seen)
    assert unit.path == "csrc/a.cc"
    assert unit.flags == (*STANDARD, *FRAMEWORK, *TORCH)
    assert unit.own == ()


def test_what_the_library_chose_itself() -> None:
    seen = build((*STANDARD, "-Icsrc/include", f"-I{ROOT}/third", "-DWITH_FAST", "-c", f"{ROOT}/csrc/a.cc", *TORCH))
    (unit,) = units(seen)
    assert unit.path == "csrc/a.cc"
    assert unit.own == ("-Icsrc/include", "-Ithird", "-DWITH_FAST")
    assert includes(unit.own) == ["csrc/include", "third"]


def test_separate_values_are_joined() -> None:
    seen = build(("-I", "csrc", "-D", "A=1", "-isystem", "/opt/x", "-include", "pre.h", "-c", "a.cc"))
    (unit,) = units(seen)
    assert unit.flags == ("-Icsrc", "-DA=1", "-isystem", "/opt/x", "-include", "pre.h")


def test_each_source_once_in_order_and_none_from_outside() -> None:
    calls = [("-c", name, "-o", "x.o") for name in ("b.cc", "a.cpp", "b.cc", "/tmp/conftest.c", "../other/c.cc")]
    assert [unit.path for unit in units(build(*calls))] == ["b.cc", "a.cpp"]


def test_a_build_in_a_folder_below() -> None:
    seen = build(("-I../include", "-I.", "-c", "../csrc/a.cc"), cwd=f"{ROOT}/build")
    (unit,) = units(seen)
    assert unit.path == "csrc/a.cc"
    assert unit.flags == ("-Iinclude", "-Ibuild")


def test_a_sibling_directory_is_not_inside() -> None:
    (unit,) = units(build((f"-I{ROOT}-other/include", "-I" + ROOT, "-c", "a.cc")))
    assert unit.flags == (f"-I{ROOT}-other/include", "-I.")


def test_names_of_linked_extensions() -> None:
    lib = "build/lib.linux-x86_64-cpython-311"
    seen = build(
        ("-c", "a.cc", "-o", f"{lib}/a.o"),
        ("-shared", "a.o", "-o", f"{lib}/pkg/_C.cpython-311-x86_64-linux-gnu.so"),
        ("-shared", "b.o", "-o", f"{ROOT}/{lib}/ops.so"),
        ("-shared", "b.o", "-o", f"{lib}/pkg/sub/_stable.abi3.so"),
        ("-shared", "t.o", "-o", "/tmp/check.so"),
    )
    assert extension_names(seen) == ("pkg._C", "ops", "pkg.sub._stable")


def test_an_extension_that_is_built_into_a_directory_of_the_users_choice() -> None:
    build = Step("python setup.py build_ext --build-lib ./site", 0, "", "")
    call = CompilerCall(("g++", "-shared", "x.o", "-o", "site/pkg/_C.cpython-311-x86_64-linux-gnu.so"), "/w", 0, "")
    assert extension_names(Observation("torch", "/w", build, (call,))) == ("pkg._C",)
    assert extension_names(Observation("torch", "/w", None, (call,))) == ()


def test_framework_headers_in_order_of_appearance() -> None:
    tree = SourceTree(
        {
            "csrc/a.cc": b'#include <torch/extension.h>\n#include "local.h"\n  #  include <vector>\n',
            "csrc/b.h": b"#include <vector>\n#include <ATen/ATen.h>\n// #include <no/code.h>\n",
            "docs.md": b"#include <not/code.h>\n",
        }
    )
    assert system_includes(tree) == ("torch/extension.h", "vector", "ATen/ATen.h")
