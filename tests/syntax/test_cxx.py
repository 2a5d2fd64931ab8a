"""libclang over in-memory trees: offsets, includes, tolerance."""

from __future__ import annotations

import pytest

from reducer.syntax.cxx import CxxParser, resolve_include
from reducer.tree import SourceTree

PARSER = CxxParser(["-std=c++17", "-Iinclude"])


def test_places_are_bytes_even_behind_invalid_utf8() -> None:
    source = (
        "/* é */\n".encode() + b"// \xff\xfe\nint first();\n// about it\ntemplate <class T>\nstruct S { T x; };\nint z;"
    )
    unit = PARSER.parse(SourceTree({"a.cc": source}), "a.cc")
    places = {c.spelling: (unit.place(c.extent.start), unit.place(c.extent.end)) for c in unit.top_level()}
    texts = {name: source[start[1] : end[1]] for name, (start, end) in places.items() if start and end}
    assert texts == {"first": b"int first()", "S": b"template <class T>\nstruct S { T x; }", "z": b"int z"}


def test_headers_reached_by_several_relative_paths_are_read_once() -> None:
    tree = SourceTree(
        {
            "csrc/a.cc": b'#include "../other/d.h"\n'
            b'#include "deep/e.h"\n#include "c.h"\nint f() { return d() + e(); }\n',
            "csrc/deep/e.h": b'#pragma once\n#include "../../other/d.h"\ninline int e() { return d(); }\n',
            "other/d.h": b"#pragma once\ninline int d() { return 1; }\n",
            "include/c.h": b"int c();\n",
        }
    )
    unit = PARSER.parse(tree, "csrc/a.cc")
    assert unit.diagnostics() == []
    assert sorted(unit.files()) == sorted(tree)


def test_a_broken_file_still_gives_what_is_known() -> None:
    tree = SourceTree({"a.cc": b'#include "missing.h"\nint good();\nint bad( { return unknown; }\n'})
    unit = PARSER.parse(tree, "a.cc")
    assert unit.diagnostics()[0].line == 1
    assert "good" in {c.spelling for c in unit.top_level()}
    assert PARSER.parse(tree, "absent.cc").top_level() == []


def test_builtin_and_standard_headers_are_found() -> None:
    tree = SourceTree({"a.cc": b"#include <stddef.h>\n#include <vector>\nstd::vector<size_t> v;\n"})
    assert PARSER.parse(tree, "a.cc").diagnostics() == []


def test_equal_files_are_parsed_once() -> None:
    parser = CxxParser()
    one = SourceTree({"a.cc": b"int a;\n", "x.py": b"1"})
    unit = parser.parse(one, "a.cc")
    again = parser.parse(one.updated({"x.py": b"2"}), "a.cc")
    assert again.tu is unit.tu
    assert parser.parse(one.updated({"a.cc": b"int b;\n"}), "a.cc").tu is not unit.tu


@pytest.mark.parametrize("root", ["/somewhere/case", "/somewhere/case/"])
def test_directories_of_the_case_mean_places_in_the_tree(root: str) -> None:
    tree = SourceTree({"a.cc": b'#include "h.h"\nint f() { return h; }\n', "inc/h.h": b"extern int h;\n"})
    assert CxxParser(["-I/somewhere/case/inc"], root=root).parse(tree, "a.cc").diagnostics() == []
    assert CxxParser(["-I", "inc"]).parse(tree, "a.cc").diagnostics() == []


def test_an_include_resolves_beside_in_directories_or_by_its_unique_ending() -> None:
    tree = SourceTree({"a/x.cc": b"", "a/h.h": b"", "b/k.h": b"", "c/deep/m.h": b"", "d/n.h": b"", "e/n.h": b""})
    assert resolve_include(tree, "a/x.cc", "h.h") == "a/h.h"
    assert resolve_include(tree, "a/x.cc", "../b/k.h") == "b/k.h"
    assert resolve_include(tree, "a/x.cc", "k.h", ["b"]) == "b/k.h"
    assert resolve_include(tree, "a/x.cc", "deep/m.h") == "c/deep/m.h"
    assert resolve_include(tree, "a/x.cc", "n.h") is None
    assert resolve_include(tree, "a/x.cc", "vector") is None
