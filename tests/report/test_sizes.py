"""Sizes: what counts as a token, and that nothing makes the counting fail."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reducer.report.sizes import cxx_tokens, measure, python_tokens
from reducer.tree import SourceTree


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("int x = 1;", 5),
        ("// a comment\n/* another\n one */ int x;", 3),
        ("// goes on \\\nhere\nint", 1),
        ('"a // b \\" c" x', 2),
        ("'\\'' 'a'", 2),
        ('R"(raw " // text)" R"x()")x"', 2),
        ("a->b::c <<= 1'000.5e-3f;", 8),
        ("a <=> b...", 4),
        ("#define A(x) #x ## x", 10),
        ("/* never closed", 0),
        ('"never closed\nx', 2),
    ],
)
def test_cxx_tokens(text: str, tokens: int) -> None:
    assert cxx_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("# only a comment\n", 0),
        ("def f(x):\n    return x + 1  # why\n", 10),
        ('x = """a\nb"""\n', 3),
        ("x = (1,\n", 5),
        ("if x:\n        a\n    b\n", 5),
    ],
)
def test_python_tokens(text: str, tokens: int) -> None:
    assert python_tokens(text) == tokens


def test_only_sources_count() -> None:
    tree = SourceTree(
        {"a.py": b"x = 1\n\n\ny = 2\n", "b/c.CU": b"int x;\n", "README.md": b"much text\n", "d.json": b"{}"}
    )
    assert measure(tree) == {"files": 2, "lines": 3, "tokens": 9}


@given(st.binary(max_size=200))
def test_any_bytes_can_be_measured(content: bytes) -> None:
    size = measure(SourceTree({"a.py": content, "a.cc": content}))
    assert size["files"] == 2
    assert 0 <= size["tokens"] <= 4 * len(content) + 4


@given(st.lists(st.sampled_from(["x", "1", "+", "(", ";", "->", "::", '"s"', "'c'"]), max_size=20))
def test_spacing_and_comments_do_not_count(tokens: list[str]) -> None:
    assert cxx_tokens(" /* c */ ".join(tokens)) == cxx_tokens("\n\n".join(tokens)) == len(tokens)
