"""The C++ dependency graph and slice."""

from __future__ import annotations

from pathlib import Path

import pytest

from reducer.edits.cxx_declarations import proposal_of
from reducer.edits.edit import apply
from reducer.slicing.cxx_dependencies import dependency_graph
from reducer.slicing.cxx_graph import CxxGraph
from reducer.slicing.cxx_slice import cxx_slice
from reducer.syntax.cxx import CxxParser
from reducer.tree import SourceTree

FIXTURES = Path(__file__).parents[2] / "fixtures"
PARSER = CxxParser(["-std=c++17"])

LIBRARY = SourceTree(
    {
        "csrc/common.h": b"""#pragma once
namespace lib {
// Checks.
#define LIB_CHECK(x) do { if (!(x)) throw lib::fail(#x); } while (0)
int fail(const char* what);
template <typename T> struct Traits { static constexpr int size = 0; };
template <> struct Traits<float> { static constexpr int size = 4; };
template <> struct Traits<Unrelated> { static constexpr int size = 4; };
struct View {
  explicit View(const int* p) : data(p) {}
  int first() const;
  int last() const { return data[9]; }
  const int* data;
};
int unused_helper(int x);
}
""".replace(b"template <> struct Traits<Unrelated> { static constexpr int size = 4; };\n", b""),
        "csrc/common.cc": b"""#include "common.h"
namespace lib {
int fail(const char* what) { return what[0]; }
int View::first() const { return data[0]; }
int unused_helper(int x) { return x; }
}
""",
        "csrc/ops.cc": b"""#include "common.h"
using lib::View;
namespace {
constexpr int kScale = 2;
constexpr int kOther = 3;
int scaled(int x) { return x * kScale; }
int other(int x) { return x * kOther; }
}
int wanted(const int* p) {
  LIB_CHECK(p);
  View view(p);
  return scaled(view.first()) + lib::Traits<float>::size;
}
int neighbour(const int* p) { return other(View(p).last()); }
""",
        "csrc/register.cc": b"""#include "m.h"
int wanted(const int* p);
int neighbour(const int* p);
void init(Module& m) {
  m.def("wanted", &wanted);
  m.def("neighbour", &neighbour);
}
TORCH_LIBRARY(lib, m) { m.def("wanted(Tensor x) -> int"); m.def("neighbour(Tensor x) -> int"); }
TORCH_LIBRARY_IMPL(lib, CPU, m) { m.impl("wanted", &wanted); m.impl("neighbour", &neighbour); }
PYBIND11_MODULE(_C, m) { init_all(m); }
""",
    }
)


def labels(graph: CxxGraph, keep: frozenset[int]) -> set[str]:
    return {graph.elements[i].label for i in keep}


def kept(graph: CxxGraph, keep: frozenset[int]) -> SourceTree:
    edits = proposal_of(graph).edits
    return apply(graph.tree, [e for i, e in enumerate(edits) if i not in keep])


@pytest.mark.parametrize("parser", [PARSER, None], ids=["libclang", "text"])
def test_the_slice_of_a_failing_line(parser: CxxParser | None) -> None:
    graph = dependency_graph(parser, LIBRARY)
    line = LIBRARY["csrc/ops.cc"].split(b"\n").index(b"  return scaled(view.first()) + lib::Traits<float>::size;") + 1
    found = labels(graph, cxx_slice(graph, [("csrc/ops.cc", line)]))
    assert {"function wanted", "function scaled", "variable kScale", "macro lib::LIB_CHECK"} <= found
    assert "function lib::fail" in found
    assert {"class lib::Traits", "function lib::View::first", "function lib::View::View", "using View"} <= found
    assert {'statement m.impl("wanted", &wanted);', 'statement m.def("wanted(Tensor x) -> int");'} <= found
    assert "module PYBIND11_MODULE(_C, m)" in found
    for gone in ("neighbour", "kOther", "function other", "unused_helper", "View::last"):
        assert not any(gone in label for label in found), gone


def test_the_pieces_of_one_thing_are_one_element() -> None:
    graph = dependency_graph(PARSER, LIBRARY)
    pieces = {e.label: sorted({s.path for s in e.spans}) for e in graph.elements}
    assert pieces["function lib::View::first"] == ["csrc/common.cc", "csrc/common.h"]
    assert pieces["function wanted"] == ["csrc/ops.cc", "csrc/register.cc"]


def test_a_slice_by_the_name_of_an_op() -> None:
    graph = dependency_graph(None, LIBRARY)
    by_op = labels(graph, cxx_slice(graph, ["lib::neighbour"]))
    assert {"function neighbour", "function other", 'statement m.impl("neighbour", &neighbour);'} <= by_op
    assert "function wanted" not in by_op
    assert cxx_slice(graph, ["lib::absent", ("csrc/absent.cc", 3)]) == frozenset()


def test_what_a_slice_leaves_parses() -> None:
    graph = dependency_graph(PARSER, LIBRARY)
    tree = kept(graph, cxx_slice(graph, ["wanted"]))
    assert PARSER.parse(tree, "csrc/ops.cc").diagnostics() == []
    assert PARSER.parse(tree, "csrc/common.cc").diagnostics() == []
    assert b"neighbour" not in b"".join(tree.values())


def test_the_line_of_a_macro_or_a_comment_finds_its_declaration() -> None:
    graph = dependency_graph(None, LIBRARY)
    assert labels(graph, graph.on_line("csrc/common.h", 3)) == {"macro lib::LIB_CHECK"}
    assert labels(graph, graph.on_line("csrc/register.cc", 9)) == {
        "registration TORCH_LIBRARY_IMPL(lib, CPU, m)",
        'statement m.impl("wanted", &wanted);',
        'statement m.impl("neighbour", &neighbour);',
    }


def test_a_failing_macro_brings_a_use_of_it_and_a_failing_include_brings_the_module() -> None:
    graph = dependency_graph(None, LIBRARY)
    by_macro = labels(graph, cxx_slice(graph, [("csrc/common.h", 4)]))
    assert {"macro lib::LIB_CHECK", "function wanted"} <= by_macro and "function neighbour" not in by_macro
    by_include = labels(graph, cxx_slice(graph, [("csrc/register.cc", 1)]))
    assert by_include == {"module PYBIND11_MODULE(_C, m)"}


def test_registration_through_a_function_keeps_its_call() -> None:
    tree = SourceTree(
        {
            "a.cc": b"""
int f() { return 1; }
int g() { return 2; }
void init_f(py::module& m) { m.def("f", &f); m.def("g", &g); }
void init_h(py::module& m) { m.def("h", [] { return 3; }); }
PYBIND11_MODULE(_C, m) {
  init_f(m);
  init_h(m);
}
"""
        }
    )
    graph = dependency_graph(None, tree)
    text = kept(graph, cxx_slice(graph, ["f"]))["a.cc"].decode()
    assert " ".join(text.split()) == (
        'int f() { return 1; } void init_f(py::module& m) { m.def("f", &f); } PYBIND11_MODULE(_C, m) { init_f(m); }'
    )


def test_the_fixture_slices_to_a_few_declarations() -> None:
    root = FIXTURES / "cxx_build" / "library"
    tree = SourceTree.read(root, [str(p.relative_to(root)) for p in root.glob("csrc/*")])
    graph = dependency_graph(None, tree)
    keep = cxx_slice(graph, ["wavekit::fir"])
    text = b"".join(kept(graph, keep).values())
    assert b"at::Tensor fir(" in text and b'm.impl("fir"' in text and b"PyInit__C" in text
    assert b"median_of" not in text and b"biquad" not in text
    assert len(keep) < len(graph.elements) / 3
