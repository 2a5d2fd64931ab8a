"""Several sources and headers in one file that means the same."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from reducer.edits.cxx_flatten import host_sources, merge_sources
from reducer.syntax.cxx import CxxParser
from reducer.tree import SourceTree

FIXTURES = Path(__file__).parents[2] / "fixtures"
PARSER = CxxParser(["-std=c++17"])

PROGRAM = SourceTree(
    {
        "csrc/main.cc": b"""#include "util/all.h"
#include <cstdio>
#include "util/all.h"
namespace { int scale(int x) { return x * kFactor; } const char* text() { return "scale // kept"; } }
#define STEP 3
static int same() { return 5; }
int second(int);
int main() {
  std::printf("%d %d %s %d\\n", scale(STEP), second(1), text(), same());
}
""",
        "csrc/second.cc": b"""#define STEP 40
#include <cstdio>
#include <algorithm>
#include "util/../util/all.h"  // again
namespace {
/* another scale */
int scale(int x) { return std::max(x, STEP) + kFactor; }
struct Box { int scale; };
}
static int same() { return 5; }
static int kOnlyHere = 2;
int second(int x) { Box box{7}; return ::scale(x) + box.scale + same() + kOnlyHere; }
""",
        "csrc/util/all.h": b"""#ifndef ALL_H
#define ALL_H
#include <string>
#include "more.inl"
#endif  // ALL_H
""",
        "csrc/util/more.inl": b"#pragma once\nconstexpr int kFactor = 10;\n",
        "setup.py": b'sources = ["csrc/main.cc", "csrc/second.cc"]\n',
    }
)


def run(tree: SourceTree, place: Path) -> str:
    tree.write(place)
    sources = [p for p in tree if p.endswith(".cc")]
    subprocess.run(["g++", "-std=c++17", *sources, "-o", "program"], cwd=place, check=True, timeout=120)
    return subprocess.run([place / "program"], capture_output=True, text=True, check=True, timeout=300).stdout


@pytest.mark.parametrize("comments", [True, False])
def test_the_merged_program_does_the_same(tmp_path: Path, comments: bool) -> None:
    merged = merge_sources(PROGRAM, None, comments=comments)
    assert sorted(merged) == ["csrc/mre.cc", "setup.py"]
    assert run(merged, tmp_path / "one") == run(PROGRAM, tmp_path / "several")
    text = merged.text("csrc/mre.cc")
    assert text.count("<cstdio>") == 1 and "ALL_H" not in text and "pragma once" not in text
    assert text.count("int same()") == 1 and text.count("kFactor = 10") == 1
    assert ("another scale" in text) is comments and "scale // kept" in text
    assert merged["setup.py"] == b'sources = ["csrc/mre.cc", ]\n'


def test_python_h_comes_first_and_macros_stay_before_what_they_steer() -> None:
    tree = SourceTree(
        {
            "a.cc": b"#include <vector>\nint a;\n",
            "b.cc": b"#define PY_SSIZE_T_CLEAN\n#include <Python.h>\nPyObject* PyInit_b(void) { return 0; }\n",
        }
    )
    text = merge_sources(tree, None, "mre.cc").text("mre.cc")
    order = [text.index(s) for s in ("<Python.h>", "<vector>", "int a", "PyInit_b")]
    assert order == sorted(order)


def test_blocks_of_one_library_and_key_become_one() -> None:
    tree = SourceTree(
        {
            "a.cc": b'int a();\nTORCH_LIBRARY_IMPL(lib, CPU, m) {\n  m.impl("a", &a);\n}\n',
            "b.cc": b'int b();\nTORCH_LIBRARY_IMPL(lib, CPU, m) {\n  m.impl("b", &b);\n}\n',
            "c.cc": b'TORCH_LIBRARY_IMPL(lib, CUDA, m) {\n  m.impl("c", &c);\n}\n',
        }
    )
    text = " ".join(merge_sources(tree, None, "mre.cc").text("mre.cc").split())
    assert 'TORCH_LIBRARY_IMPL(lib, CPU, m) { m.impl("a", &a); m.impl("b", &b); }' in text
    assert text.count("TORCH_LIBRARY_IMPL") == 2


def test_a_header_under_a_condition_stays_under_it() -> None:
    tree = SourceTree(
        {
            "a.cc": b'#ifdef ABSENT\n#include "h.h"\n#endif\n#include "h.h"\nint a = h;\n',
            "h.h": b"#ifndef H\n#define H\nstatic int h = 1;\n#endif\n",
        }
    )
    merged = merge_sources(tree, None, "mre.cc")
    assert PARSER.parse(merged, "mre.cc").diagnostics() == []


def test_includes_stay_in_place_when_only_that_parses() -> None:
    tree = SourceTree(
        {"a.cc": b"typedef int my_int;\nint before = sizeof(my_int);\n#include <vector>\nstd::vector<int> v;\n"}
    )
    assert merge_sources(tree, PARSER, "mre.cc").text("mre.cc").startswith("#include <vector>")
    picky = SourceTree({"a.cc": b"static int EOF = 3;\n#include <cstdio>\nint x = EOF;\n"})
    assert merge_sources(picky, PARSER, "mre.cc")["mre.cc"] == picky["a.cc"]


def test_cuda_sources_and_their_headers_stay() -> None:
    tree = SourceTree({"a.cc": b'#include "h.h"\n', "k.cu": b'#include "h.h"\n', "h.h": b"#pragma once\nint h();\n"})
    assert sorted(merge_sources(tree, None, "mre.cc")) == ["h.h", "k.cu", "mre.cc"]
    assert merge_sources(SourceTree({"k.cu": b""}), None) == SourceTree({"k.cu": b""})


def test_a_source_included_by_another_is_part_of_it() -> None:
    tree = SourceTree({"a.cc": b'#include "b.cc"\nint a = b();\n', "b.cc": b"int b() { return 1; }\n"})
    assert host_sources(tree) == ["a.cc"]
    merged = merge_sources(tree, None, "mre.cc")
    assert sorted(merged) == ["mre.cc"] and PARSER.parse(merged, "mre.cc").diagnostics() == []


def test_the_fixture_merges_into_one_source_with_everything() -> None:
    root = FIXTURES / "cxx_build" / "library"
    tree = SourceTree.read(root, [str(p.relative_to(root)) for p in root.glob("csrc/*")])
    text = merge_sources(tree, None, include_dirs=["csrc"]).text("csrc/mre.cc")
    assert '#include "' not in text and text.count("TORCH_LIBRARY_IMPL(wavekit, CPU, m)") == 1
    assert text.count("#include <algorithm>") == 1
