"""Any subset of what the cutting passes offer leaves files that parse, on generated programs."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from reducer.edits.edit import EditConflict, apply
from reducer.edits.passes import Pass, Proposal
from reducer.edits.py_definitions import PyDefinitions
from reducer.edits.py_format import format_python
from reducer.edits.py_imports import PyImports, PySplitImports, PyUnusedImports
from reducer.edits.py_statements import PyComments, PyStatements
from reducer.edits.py_unwrap import PyUnwrap
from reducer.syntax.python import parses
from reducer.tree import SourceTree

SIMPLE = [
    "x = 1",
    "y = x  # note",
    "f(x, [1, 2], k=3)",
    "pass",
    "import torch, os, sys as s",
    "from torch import (nn,\n    optim,  # why\n    cuda as c,\n)",
    "from . import a, b",
    "import os; import sys",
    "x = 1; y = 2;",
    '"""text"""',
    "s = '''one\n  two\n'''",
    "__all__ = ['f', 'g', 'A']",
    "assert x == (1), 'no'",
    "# only a comment",
    "",
]


def _indented(lines: list[str], indent: str) -> list[str]:
    """Indent whole statements; the inner lines of a multi-line one stay as they are (brackets and strings only)."""
    return [indent + line if line else line for line in lines]


@st.composite
def _block(draw: st.DrawFn, depth: int) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        lines += draw(_statement(depth))
    if not any(line.strip() and not line.lstrip().startswith("#") for line in lines):
        lines.append("z = 0")
    return lines


@st.composite
def _statement(draw: st.DrawFn, depth: int) -> list[str]:
    if depth == 0 or draw(st.booleans()):
        return [draw(st.sampled_from(SIMPLE))]
    indent = draw(st.sampled_from(["    ", "  ", "\t"]))
    body = _indented(draw(_block(depth - 1)), indent)
    other = _indented(draw(_block(depth - 1)), indent)
    return draw(
        st.sampled_from(
            [
                ["if x:", *body],
                ["if x:", *body, "else:", *other],
                ["if x:", *body, "elif y:", *other, "else:  # last", *body],
                ["if x: y = 1; z = 2"],
                ["for i in [1, 2]:", *body],
                ["for i, j in zip(range(3), [4, 5]):", *body, "else:", *other],
                ["while x:", *body],
                ["with open(f) as g, h:", *body],
                ["try:", *body, "except E as e:", *other, "except F:", *body, "else:", *other, "finally:", *body],
                ["try:", *body, "finally:", *other],
                ["def f(x, y=1):", *body],
                ["@wrap", "@torch.no_grad()", "def g(a, *, b=2) -> int:", f'{indent}"""Doc."""', *body],
                ["class A(B):", *body],
                ["def h(): return 1"],
            ]
        )
    )


@st.composite
def programs(draw: st.DrawFn) -> bytes:
    lines = draw(_block(3))
    source = "\n".join(lines) + draw(st.sampled_from(["", "\n"]))
    if draw(st.booleans()):
        source = "import paddle\npaddle.enable_compat()\n" + source
    if draw(st.booleans()):
        source = source.replace("\n", "\r\n")
    return source.encode()


def _check(tree: SourceTree, proposal: Proposal, chosen: list[bool]) -> None:
    edits = [e for e, on in zip(proposal.edits, chosen * (len(proposal.edits) + 1), strict=False) if on]
    try:
        result = apply(tree, edits)
    except EditConflict:
        return
    for path in result:
        assert parses(result[path]), (tree[path], [e.label for e in edits], result[path])


CUTTING: list[Pass] = [
    PyDefinitions(),
    PyStatements(),
    PyStatements(dependencies=True),
    PyComments(),
    PyImports(),
    PyUnusedImports(),
    PySplitImports(),
]


@settings(max_examples=100, deadline=None)
@given(programs(), st.lists(st.booleans(), min_size=1, max_size=24), st.sampled_from(CUTTING))
def test_any_subset_of_cuts_parses(source: bytes, chosen: list[bool], cutting: Pass) -> None:
    assert parses(source)
    tree = SourceTree({"a.py": source, "b/__init__.py": b"from .c import *\n", "b/c.py": b"__all__ = ['d']\nd = 1\n"})
    _check(tree, cutting.propose(tree), chosen)
    _check(tree, cutting.propose(tree), [True])


@settings(max_examples=40, deadline=None)
@given(programs())
def test_each_unwrapping_parses(source: bytes) -> None:
    tree = SourceTree({"a.py": source})
    for edit in PyUnwrap().propose(tree).edits:
        assert parses(apply(tree, [edit])["a.py"]), (source, edit.label)


@settings(max_examples=25, deadline=None)
@given(programs())
def test_the_prelude_is_never_touched(source: bytes) -> None:
    newline = b"\r\n" if b"\r\n" in source else b"\n"
    prelude = newline.join(
        [b"import os", b'if os.getenv("USE_TORCH") is None: import paddle; paddle.enable_compat()', b""]
    )
    tree = SourceTree({"a.py": prelude + source})
    for cutting in CUTTING:
        for edit in cutting.propose(tree).edits:
            assert apply(tree, [edit])["a.py"].startswith(prelude), edit.label


@settings(max_examples=25, deadline=None)
@given(programs())
def test_formatting_keeps_parsing_and_is_stable(source: bytes) -> None:
    once = format_python(source)
    assert parses(once)
    assert format_python(once) == once


def test_formatting_settles_where_black_needs_a_second_look() -> None:
    source = (
        b"if x:\n    if x:\n        if x:\n            x = 1\n    assert x == (1), 'no'\n"
        b"    from torch import (nn,\n    optim,  # why\n    cuda as c,\n)"
    )
    once = format_python(source)
    assert format_python(once) == once
