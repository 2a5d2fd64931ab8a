"""The syntax tier finds the errors that a real build finds, and where in the library they come from."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from reducer.frameworks.clang_check import ClangChecker, ClangFailed, Precompiled
from reducer.frameworks.pch import PchStore, clang_arguments, for_header
from reducer.oracle.observation import Diagnostic


@pytest.fixture
def checker(tmp_path: Path) -> Iterator[ClangChecker]:
    flags = ["-Wall", "-O3", "-g", "-fPIC", "-Icsrc/include", "-DLIMIT=3", "-std=c++17"]
    with ClangChecker(flags, ["vector", "no/such/header.h"], tmp_path / "cache") as made:
        yield made


def local(diagnostic: Diagnostic) -> tuple[str, int]:
    """The innermost place in the library's own sources."""
    places = [(diagnostic.file, diagnostic.line), *diagnostic.expansion]
    return next((file, line) for file, line in places if not file.startswith("/"))


def test_local_headers_and_subdirectories(checker: ClangChecker) -> None:
    files = {
        "csrc/a.cc": b'#include "util/b.h"\n#include "c.h"\n#include <vector>\nint f() { return b() + c() + LIMIT; }\n',
        "csrc/util/b.h": b'#pragma once\n#include "../d.h"\ninline int b() { return d(); }\n',
        "csrc/d.h": b"#pragma once\ninline int d() { return 1; }\n",
        "csrc/include/c.h": b"inline int c() { return 2; }\n",
    }
    assert checker.check(files, "csrc/a.cc") == ()
    broken = {**files, "csrc/d.h": b"#pragma once\ninline int d() { return e; }\n"}
    (found,) = checker.check(broken, "csrc/a.cc")
    assert (found.severity, found.file, found.line, found.column) == ("error", "csrc/d.h", 2, 25)
    missing = {path: content for path, content in files.items() if path != "csrc/include/c.h"}
    (found,) = checker.check(missing, "csrc/a.cc")
    assert (found.severity, found.file, found.line) == ("fatal", "csrc/a.cc", 2)
    assert "'c.h' file not found" in found.message
    assert checker.check(files, "csrc/a.cc") == ()


def test_nothing_is_read_from_an_earlier_tree(checker: ClangChecker) -> None:
    unit = {"a.cc": b'#include "b.h"\nint x = B;\n'}
    assert checker.check({**unit, "b.h": b"#define B 1\n"}, "a.cc") == ()
    assert len(checker.check(unit, "a.cc")) == 1


@pytest.mark.parametrize("precompiled", ["all", "none"])
def test_expansion_of_macros(checker: ClangChecker, precompiled: Precompiled) -> None:
    source = b"""#include "m.h"
int f() {
  return OUTER(
      1,
      wrong_argument);
}
int g() { return BODY; }
"""
    header = b"#define INNER wrong_body\n#define BODY INNER\n#define OUTER(a, b) ((a) + (b))\n"
    argument, body = checker.check({"a.cc": source, "m.h": header}, "a.cc", precompiled=precompiled)
    assert (argument.file, argument.line, argument.column) == ("a.cc", 5, 7)
    assert argument.expansion == (("a.cc", 3),)
    assert (body.file, body.line) == ("m.h", 1)
    assert body.expansion == (("m.h", 2), ("a.cc", 7))


@pytest.mark.parametrize("precompiled", ["all", "none"])
def test_expansion_of_templates(checker: ClangChecker, precompiled: Precompiled) -> None:
    source = b"""#include <vector>
struct NoCopy { NoCopy() = default; NoCopy(const NoCopy&) = delete; };
template <class T> void fill(std::vector<T>& v) {
  v.push_back(T());
}
void f(std::vector<NoCopy>& v) {
  fill(v);
}
"""
    found = checker.check({"a.cc": source}, "a.cc", precompiled=precompiled)
    assert found
    assert found[0].file.startswith("/")
    chain = [place for place in found[0].expansion if not place[0].startswith("/")]
    assert chain == [("a.cc", 4), ("a.cc", 7)]
    assert local(found[0]) == ("a.cc", 4)


def test_a_file_becomes_a_directory_and_back(checker: ClangChecker) -> None:
    unit = {"a.cc": b'#include "x"\n'}
    assert checker.check({**unit, "x": b""}, "a.cc") == ()
    assert checker.check({"a.cc": b'#include "x/y.h"\n', "x/y.h": b""}, "a.cc") == ()
    assert checker.check({**unit, "x": b""}, "a.cc") == ()
    with pytest.raises(ValueError, match="not a path"):
        checker.check({**unit, "../x": b""}, "a.cc")


def test_all_errors_and_no_warnings(checker: ClangChecker) -> None:
    source = b"#warning x\nint f() { int unused; }\n" + b"".join(b"int v%d = u%d;\n" % (n, n) for n in range(60))
    assert len(checker.check({"a.cc": source}, "a.cc")) == 60


def test_virtual_members_of_templates_are_checked(checker: ClangChecker) -> None:
    source = b"template <class T> struct S { virtual int f() { return T::no; } };\nS<int> s;\n"
    assert [d.line for d in checker.check({"a.cc": source}, "a.cc")] == [1]


def test_templates_are_instantiated(checker: ClangChecker) -> None:
    source = b"template <class T> int f(T t) { return t.no; }\nint g() { return f(1); }\n"
    (found,) = checker.check({"a.cc": source}, "a.cc")
    assert (found.line, found.expansion) == (1, (("a.cc", 2),))


def test_with_the_precompiled_header_its_headers_are_visible(checker: ClangChecker) -> None:
    files = {"a.cc": b"std::vector<int> v;\n"}
    assert checker.check(files, "a.cc") == ()
    assert checker.check(files, "a.cc", precompiled="none")


def test_headers_that_do_not_compile_are_left_out(tmp_path: Path) -> None:
    system = tmp_path / "system"
    system.mkdir()
    (system / "good.h").write_text("#pragma once\nint good();\n")
    (system / "inner.h").write_text("#error no\n")
    (system / "bad.h").write_text("#include <inner.h>\n")
    with ClangChecker([f"-I{system}"], ["good.h", "bad.h", "absent.h"], tmp_path / "cache") as checker:
        assert checker.prepare()
        assert checker.left_out == ("bad.h",)
        assert checker.check({"a.cc": b"int x = good();\n"}, "a.cc") == ()
        # The header changes on disk: the precompiled one is made anew by itself.
        (system / "good.h").write_text("#pragma once\nint renamed_function();\n")
        assert checker.check({"a.cc": b"int x = renamed_function();\n"}, "a.cc") == ()


def test_the_header_is_built_once_and_shared(tmp_path: Path) -> None:
    for name in ("one", "two"):
        flags = [f"-DTORCH_EXTENSION_NAME={name}", "-Icsrc", "-O2"]
        with ClangChecker(flags, ["vector"], tmp_path) as checker:
            assert checker.check({"a.cc": b"#include <vector>\nstd::vector<int> v;\n"}, "a.cc") == ()
    assert len(list(tmp_path.glob("*.pch"))) == 1
    assert sorted(p.suffix for p in tmp_path.iterdir()) == ["", ".pch"], "the workers' directories are gone"


def write_zeros(size: int, out: Path) -> bool:
    return out.write_bytes(bytes(size)) == size


def test_headers_in_two_sets(tmp_path: Path) -> None:
    """The base forgives only what it holds; the other set stands on top of it."""
    system = tmp_path / "system"
    system.mkdir()
    (system / "base.h").write_text("#pragma once\ninline int base() { return 1; }\n")
    (system / "extra.h").write_text("#pragma once\n#include <base.h>\ninline int extra() { return base(); }\n")
    flags = [f"-I{system}", "-DOWN=1"]
    with ClangChecker(flags, ["extra.h"], tmp_path / "cache", ["base.h"], flags[:1]) as checker:
        source = {"a.cc": b"int x = base(), y = extra() + OWN;\n"}
        assert checker.check(source, "a.cc") == ()
        assert ["extra" in d.message for d in checker.check(source, "a.cc", precompiled="base")] == [True]
        assert "base" in checker.check(source, "a.cc", precompiled="none")[0].message
    with ClangChecker(["-DOTHER", *flags], [], tmp_path / "cache", ["base.h"], flags[:1]) as checker:
        assert checker.check({"a.cc": b"int x = base() + OWN;\n"}, "a.cc") == ()
    assert len(list((tmp_path / "cache").glob("*.pch"))) == 2, "the base is shared"


def test_store_is_bounded(tmp_path: Path) -> None:
    store = PchStore(tmp_path, max_files=2, max_bytes=1000)
    paths = []
    for number, size in enumerate((400, 400, 400, 900)):
        paths.append(store.obtain(["-x", str(number)], [], partial(write_zeros, size)))
        time.sleep(0.01)
    assert [path is not None and path.exists() for path in paths] == [False, False, False, True]


def test_a_failed_build_is_remembered(tmp_path: Path) -> None:
    calls: list[Path] = []

    def build(out: Path) -> bool:
        calls.append(out)
        return False

    store = PchStore(tmp_path)
    assert store.obtain(["-x"], [], build) is None
    assert store.obtain(["-x"], [], build) is None
    assert len(calls) == 1


def test_worker_is_replaced_after_its_death(checker: ClangChecker) -> None:
    good = {"a.cc": b"int x;\n"}
    assert checker.check(good, "a.cc") == ()
    worker = checker._process._process
    assert worker is not None
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    assert checker.check(good, "a.cc") == ()


def test_endless_source_is_given_up(checker: ClangChecker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reducer.frameworks.clang_check._CHECK_TIMEOUT", 1.5)
    source = (
        b"constexpr long f(long n) { long s = 0; for (long i = 0; i < n; ++i) for (long j = 0; j < n; ++j) s += j;\n"
    )
    source += b"return s; }\n" + b"".join(b"constexpr long v%d = f(%d);\n" % (n, 900 + n) for n in range(400))
    with pytest.raises(ClangFailed, match="no answer"):
        checker.check({"a.cc": source}, "a.cc")
    assert checker.check({"a.cc": b"int x;\n"}, "a.cc") == ()


def test_any_bytes(checker: ClangChecker) -> None:
    files = {"a.cc": b'const char* s = "\xff\xe9"; // \x80\n', "data.bin": bytes(range(256))}
    assert checker.check(files, "a.cc") == ()
    with pytest.raises(KeyError):
        checker.check(files, "b.cc")


def test_flags_of_gcc() -> None:
    flags = [
        "-O3",
        "-g",
        "-Wall",
        "-pipe",
        "-fPIC",
        "-fno-strict-overflow",
        "-march=native",
        "-flto",
        "-DA=1",
        "-D",
        "B",
    ]
    flags += ["-UC", "-Isub", "-I", "/abs", "-isystem", "/sys", "-include", "x.h", "-fno-rtti", "-std=c++20", "-mavx2"]
    made = clang_arguments([*flags, "-DTORCH_EXTENSION_NAME=z"], "/candidate")
    wanted = ["-DA=1", "-DB", "-UC", "-I/candidate/sub", "-I/abs", "-isystem", "/sys", "-include", "x.h", "-fno-rtti"]
    assert list(made[2:15]) == [*wanted, "-std=c++20", "-mavx2", "-DTORCH_EXTENSION_NAME=reduced_extension"]
    header = for_header(made, "/candidate")
    assert "-I/candidate/sub" not in header
    assert "x.h" not in header
    assert "-I/abs" in header
    assert header[:2] == ("-x", "c++-header")


HEADERS = ["Python.h", "torch/extension.h", "torch/library.h", "ATen/ATen.h"]
SHOW_FLAGS = {
    "paddle": "import paddle, os; print(os.path.join(os.path.dirname(paddle.__file__), 'include'))",
    "torch": "import torch, os; print(os.path.join(os.path.dirname(torch.__file__), 'include'))",
}
IRANGE = {
    "csrc/ops.cc": b'#include <torch/library.h>\n#include "loops.h"\nlong f() { return sum(3); }\n',
    "csrc/loops.h": b"""#pragma once

#include <c10/util/irange.h>
inline long sum(long n) { long s = 0; for (auto i : c10::irange(n)) s += i; return s; }
""",
}
ITEM = {
    "csrc/ops.cc": b"""#include <torch/library.h>
#include <ATen/ATen.h>
double first(const at::Tensor& x) {
  return x.item<double>();
}
"""
}
DISPATCH = {
    "csrc/ops.cc": b"""#include <torch/extension.h>
void scale(const at::Tensor& x) {
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scale", [&] {
    auto* p = x.data_ptr<scalar_t>();
    p[0] *= 2;
  });
}
"""
}
LAMBDA = {
    "csrc/ops.cc": b"""#include <torch/library.h>
#include <ATen/ATen.h>

TORCH_LIBRARY(lam, m) {
  m.def("twice(Tensor x) -> Tensor", [](const at::Tensor& x) { return x + x; });
}
"""
}


def framework_flags(side: str) -> list[str]:
    """What a real build passes (captured from the compiler calls of both frameworks' BuildExtension)."""
    shown = subprocess.run([sys.executable, "-c", SHOW_FLAGS[side]], capture_output=True, text=True, check=False)
    if shown.returncode:
        pytest.skip(f"no {side} here")
    include = shown.stdout.split()[-1]
    below = {
        "paddle": [
            "",
            "/third_party",
            "/paddle/phi/api/include/compat",
            "/paddle/phi/api/include/compat/torch/csrc/api/include",
        ],
        "torch": ["", "/torch/csrc/api/include"],
    }[side]
    own = {
        "paddle": [
            "-w",
            "-DPADDLE_WITH_CUSTOM_KERNEL",
            "-DPADDLE_EXTENSION_NAME=x",
            "-D_GLIBCXX_USE_CXX11_ABI=1",
            "-std=c++17",
        ],
        "torch": ["-DTORCH_API_INCLUDE_EXTENSION_H", "-DTORCH_EXTENSION_NAME=x", "-std=c++20"],
    }[side]
    python = sysconfig.get_paths()["include"]
    common = ["-Wsign-compare", "-DNDEBUG", "-g", "-fwrapv", "-O3", "-Wall", "-fPIC"]
    return [*common, *(f"-I{include}{part}" for part in below), f"-I{python}", *own]


@pytest.fixture(scope="module", params=["paddle", "torch"])
def framework(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, ClangChecker]]:
    flags = framework_flags(request.param)
    with ClangChecker(flags, HEADERS, tmp_path_factory.mktemp(request.param)) as made:
        assert made.prepare()
        yield request.param, made


@pytest.mark.real
@pytest.mark.parametrize(
    ("files", "message", "place"),
    [
        (IRANGE, "'c10/util/irange.h' file not found", ("csrc/loops.h", 3)),
        (ITEM, "no member named 'item' in 'at::Tensor'", ("csrc/ops.cc", 4)),
        (DISPATCH, "use of undeclared identifier 'AT_DISPATCH_FLOATING_TYPES'", ("csrc/ops.cc", 3)),
        (LAMBDA, "no matching conversion", ("csrc/ops.cc", 5)),
    ],
    ids=["irange", "item", "dispatch", "lambda"],
)
def test_gaps(
    framework: tuple[str, ClangChecker], files: dict[str, bytes], message: str, place: tuple[str, int]
) -> None:
    side, checker = framework
    checker.check(files, "csrc/ops.cc")
    began = time.monotonic()
    found = checker.check(files, "csrc/ops.cc")
    took = time.monotonic() - began
    if side == "torch":
        assert found == ()
    else:
        (error,) = [d for d in found if message in d.message]
        assert local(error) == place
        assert (error.file.startswith("/")) == (files is LAMBDA)
    assert took < 5
