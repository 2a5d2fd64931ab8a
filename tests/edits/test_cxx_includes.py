"""Preprocessor lines and conditionals."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reducer.edits.cxx_includes import CxxConditionals, CxxIncludes
from reducer.edits.edit import apply
from reducer.syntax.cxx_conditionals import balanced_conditionals
from reducer.tree import SourceTree

SOURCE = b"""#pragma once
#include <a.h>
# include "b.h"  // needed
#define USED 1
#define UNUSED(x) \\
  (x)
using namespace std;
int x = USED;
#if A
int y;
#elif B
int z;
  #ifdef C
int c;
  #endif
#else
int w;
#endif
"""
TREE = SourceTree({"a.cc": SOURCE, "note.txt": b"#include <x>\n"})


def test_each_line_is_offered_and_used_macros_are_not() -> None:
    proposal = CxxIncludes().propose(TREE)
    assert [e.label for e in proposal.edits] == [
        "#pragma once",
        "#include <a.h>",
        '# include "b.h"',
        "#define UNUSED(x) \\ (x)",
        "using namespace std;",
    ]
    assert apply(TREE, proposal.edits)["a.cc"].startswith(b"#define USED 1\nint x = USED;\n#if A\n")


def test_a_conditional_can_go_whole_or_leave_one_branch() -> None:
    edits = {e.label: e for e in CxxConditionals().propose(TREE).edits}

    def tail(label: str) -> list[bytes]:
        return apply(TREE, [edits[label]])["a.cc"].split(b"int x = USED;\n")[1].split()

    assert tail("#if A, whole") == []
    assert tail("#if A, branch 1") == [b"int", b"y;"]
    assert tail("#if A, branch 2") == b"int z; #ifdef C int c; #endif".split()
    assert tail("#if A, branch 3") == [b"int", b"w;"]
    assert b"int c;" not in tail("#ifdef C, whole")


LINES = st.sampled_from([b"#if A", b"#ifdef B", b"#else", b"#elif C", b"#endif", b"int x;", b"// #if", b"#include <v>"])


@given(st.lists(LINES, max_size=16), st.data())
def test_resolving_a_conditional_never_breaks_the_balance_of_others(lines: list[bytes], data: st.DataObject) -> None:
    source = b"\n".join(lines)
    tree = SourceTree({"a.cc": source})
    edits = CxxConditionals().propose(tree).edits
    if edits and balanced_conditionals(source):
        edit = data.draw(st.sampled_from(edits))
        assert balanced_conditionals(apply(tree, [edit])["a.cc"])
