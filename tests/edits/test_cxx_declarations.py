"""Any dependency-closed set of declaration cuts leaves code without dangling references."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from reducer.edits.cxx_declarations import CxxDeclarations
from reducer.edits.edit import apply
from reducer.slicing.cxx_dependencies import dependency_graph
from reducer.syntax.cxx import CxxParser, is_cxx_source
from reducer.tree import SourceTree

PARSER = CxxParser(["-std=c++17"], keep=2)


def program(seed: int, size: int) -> SourceTree:
    """A header and two sources with functions, classes, templates, macros and namespaces that use one another."""
    pick = random.Random(seed)
    header, first, second = [b"#pragma once"], [b'#include "h.h"'], [b'#include "h.h"']
    values: list[str] = ["1"]  # expressions of type int that any source can see
    local: dict[int, list[str]] = {0: [], 1: []}

    def use(source: int) -> str:
        return " + ".join(pick.choices(values + local[source], k=2))

    def seen() -> str:
        return pick.choice(values)

    for n in range(size):
        which = pick.randrange(2)
        body = [first, second][which]
        kind = pick.randrange(10)
        if kind == 0:
            header.append(f"// about f{n}\nint f{n}(int x = {seen()});".encode())
            body.append(f"int f{n}(int x) {{ return x + {use(which)}; }}".encode())
            values.append(f"f{n}(2)")
        elif kind == 1:
            header.append(f"namespace n{n % 2} {{ int g{n}(); }}".encode())
            body.append(f"namespace n{n % 2} {{\nint g{n}() {{ return {use(which)}; }}\n}}  // namespace".encode())
            values.append(f"n{n % 2}::g{n}()")
        elif kind == 2:
            header.append(
                f"struct S{n} {{\n  explicit S{n}(int v) : v_(v) {{}}\n  int get() const;\n"
                f"  int operator+(int o) const {{ return v_ + o + {seen()}; }}\n private:\n  int v_;\n}};".encode()
            )
            body.append(f"int S{n}::get() const {{ return v_ + {use(which)}; }}".encode())
            values += [f"S{n}(3).get()", f"(S{n}(1) + 2)"]
        elif kind == 3:
            header.append(f"template <typename T>\nT t{n}(T x) {{ return x + {seen()}; }}".encode())
            values.append(f"t{n}<int>(1)")
        elif kind == 4:
            header.append(f"#define M{n}(x) ((x) + {seen()})".encode())
            values.append(f"M{n}(5)")
        elif kind == 5:
            body.append(f"namespace {{\nint h{n}() {{ return {use(which)}; }}\n}}".encode())
            local[which].append(f"h{n}()")
        elif kind == 6:
            body.append(f"static const int k{n} = {use(which)};".encode())
            local[which].append(f"k{n}")
        elif kind == 7:
            header.append(f"enum class E{n} {{ a{n} = 1, b{n} }};\nusing U{n} = E{n};".encode())
            values.append(f"static_cast<int>(U{n}::b{n})")
        elif kind == 8:
            header.append(
                f"#ifdef ABSENT\nint c{n}() {{ return missing; }}\n"
                f"#else\ninline int c{n}() {{ return 4; }}\n#endif".encode()
            )
            values.append(f"c{n}()")
        else:
            header.append(
                f"template <class T> struct W{n} {{ static int of() {{ return {seen()}; }} }};\n"
                f"template <> struct W{n}<int> {{ static int of() {{ return 2; }} }};".encode()
            )
            values += [f"W{n}<int>::of()", f"W{n}<long>::of()"]
    return SourceTree({"h.h": b"\n\n".join(header), "a.cc": b"\n\n".join(first), "b.cc": b"\n\n".join(second) + b"\n"})


def errors(tree: SourceTree) -> list[str]:
    sources = [path for path in tree if is_cxx_source(path)]
    return [f"{d.path}:{d.line} {d.message}" for path in sources for d in PARSER.parse(tree, path).diagnostics()]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 14), st.data())
def test_closed_subsets_leave_no_dangling_reference(seed: int, size: int, data: st.DataObject) -> None:
    tree = program(seed, size)
    assert errors(tree) == []
    graph = dependency_graph(PARSER, tree)
    proposal = CxxDeclarations(PARSER).propose(tree)
    assert len(proposal.edits) == len(graph.elements)
    wanted = data.draw(st.sets(st.integers(0, max(0, len(graph.elements) - 1)), max_size=4))
    keep = graph.closure(i for i in wanted if i < len(graph.elements))
    left = apply(tree, [edit for i, edit in enumerate(proposal.edits) if i not in keep])
    assert errors(left) == []


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 14))
def test_names_alone_never_miss_what_libclang_finds_by_name(seed: int, size: int) -> None:
    """Without a parser a slice is larger, never dangling: what it keeps still parses."""
    tree = program(seed, size)
    graph = dependency_graph(None, tree)
    proposal = CxxDeclarations(None).propose(tree)
    keep = graph.closure([len(graph.elements) - 1], bring=True)
    left = apply(tree, [edit for i, edit in enumerate(proposal.edits) if i not in keep])
    assert errors(left) == []


def test_cutting_everything_leaves_includes_only() -> None:
    tree = program(7, 12)
    left = apply(tree, CxxDeclarations(None).propose(tree).edits)
    assert left["a.cc"].split() == [b"#include", b'"h.h"']
    assert b"struct" not in left["h.h"] and b"//" not in left["h.h"]


def test_links_of_a_chain_and_rows_of_a_table_go_one_by_one() -> None:
    source = b"""
PYBIND11_MODULE(_C, m) {
  py::class_<A>(m, "A")
      .def("one", &A::one)
      .def("two", &A::two);
}
static PyMethodDef methods[] = {
    {"three", three, METH_VARARGS, ""},
    {"four", four, METH_VARARGS, ""},
    {nullptr, nullptr, 0, nullptr},
};
"""
    tree = SourceTree({"a.cc": source})
    graph = dependency_graph(None, tree)
    edits = CxxDeclarations(None).propose(tree).edits
    gone = [e for i, e in enumerate(edits) if any(r.name in ("one", "three") for r in graph.elements[i].registers)]
    text = " ".join(apply(tree, gone).text("a.cc").split())
    assert 'py::class_<A>(m, "A") .def("two", &A::two);' in text
    assert '= { {"four", four, METH_VARARGS, ""}, {nullptr' in text


def test_a_file_of_garbage_proposes_without_failing() -> None:
    tree = SourceTree({"a.cc": b"}}} template < class ((( \xff #if\n#else\n int f( {", "empty.h": b""})
    proposal = CxxDeclarations(PARSER).propose(tree)
    apply(tree, proposal.edits)
