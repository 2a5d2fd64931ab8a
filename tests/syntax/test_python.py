"""Positions, statement spans and the prelude of Python files as the passes see them."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reducer.syntax.python import PyModule, parse_source, parses, pinned_nodes, prelude_nodes

PROGRAM = "x = 'é' + f(1)  # note\nif x:\n    y = (x)\n    z = [1, 2]; w = 3\n"


def module(source: bytes) -> PyModule:
    parsed = parse_source("a.py", source)
    assert parsed is not None
    return parsed


@pytest.mark.parametrize(
    "source",
    [
        PROGRAM.encode(),
        b"\xef\xbb\xbf" + PROGRAM.encode(),
        PROGRAM.replace("\n", "\r\n").encode(),
        PROGRAM.replace("\n", "\r").encode(),
        ("# -*- coding: latin-1 -*-\n" + PROGRAM).encode("latin-1"),
        ("# coding: cp1252\r\n" + PROGRAM.replace("\n", "\r\n")).encode("cp1252"),
    ],
)
def test_every_node_slices_to_its_own_code(source: bytes) -> None:
    parsed = module(source)
    names = [n for n in ast.walk(parsed.tree) if isinstance(n, ast.Name)]
    assert len(names) == 7
    for name in names:
        start, end = parsed.span(name)
        assert source[start:end] == name.id.encode()
    text = next(n for n in ast.walk(parsed.tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    assert parsed.code(text) == "'é'"


@given(st.lists(st.sampled_from(["a = 1", "b(2)", "# c", "", "d; e", "s = '''x\n  y'''"]), max_size=6), st.booleans())
def test_tokens_slice_to_their_text(lines: list[str], dos: bool) -> None:
    source = "\n".join(lines).replace("\n", "\r\n" if dos else "\n").encode()
    parsed = module(source)
    for token in parsed.tokens:
        assert source[token.start : token.end].replace(b"\r\n", b"\n") == token.text.encode()


@pytest.mark.parametrize("source", [b"def f(:\n", b"\0", b"x = '\xff'\n", b"# coding: no-such\nx\n", b"(" * 500])
def test_what_does_not_parse_is_none(source: bytes) -> None:
    assert parse_source("a.py", source) is None
    assert not parses(source)


def test_statement_spans_take_lines_and_split_semicolons() -> None:
    source = b"a = 1  # one\nb = 2; c = 3; d = 4;  # rest\n@wrap\ndef f(): pass\n"
    parsed = module(source)
    body = parsed.tree.body
    spans = [
        parsed.statement_span(s, body[i - 1] if i else None, body[i + 1] if i + 1 < len(body) else None)
        for i, s in enumerate(body)
    ]
    cut = [source[a:b] for a, b in spans]
    assert cut == [b"a = 1  # one\n", b"b = 2; ", b"c = 3; ", b"; d = 4;", b"@wrap\ndef f(): pass\n"]


def test_outer_span_stays_inside_its_limits() -> None:
    source = b"f(((a)), b)\n"
    parsed = module(source)
    call = parsed.tree.body[0].value  # type: ignore[attr-defined]
    assert parsed.outer_span(call.args[0], 2, 10) == (2, 7)
    assert parsed.outer_span(call.args[1], 2, 10) == (9, 10)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('import os\nif os.getenv("USE_TORCH") is None: import paddle; paddle.enable_compat()\nimport torch\n', 2),
        ("import paddle\npaddle.enable_compat(scope={'lib'})\nimport torch\n", 2),
        ("try:\n    import paddle\n    paddle.enable_compat()\nexcept ImportError:\n    pass\nimport torch\n", 1),
        ("try:\n    import paddle\nexcept ImportError:\n    pass\nelse:\n    paddle.enable_compat()\nx = 1\n", 1),
        ("import torch\nx = 1\n", 0),
        ("import paddle\nx = 1\n", 0),
        ("def f():\n    paddle.enable_compat()\n", 0),
    ],
)
def test_prelude(source: str, count: int) -> None:
    parsed = module(source.encode())
    nodes = prelude_nodes(parsed)
    assert nodes == parsed.tree.body[:count]
    assert all(node in pinned_nodes(parsed) for node in nodes)
