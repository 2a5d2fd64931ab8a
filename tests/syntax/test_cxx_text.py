"""Tokens, comments and declaration ranges of C++ text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reducer.syntax.cxx_text import declaration_span, strip_comments, whole_lines
from reducer.syntax.cxx_tokens import code_tokens, tokenize

PIECES = st.sampled_from(
    [
        b"int", b"x1", b"+", b"/", b"*", b"-", b">", b"<", b"::", b"->", b"(", b")", b"{", b"}", b";", b"1'000",
        b"0x1F", b"1.5e-3", b".5", b'"a // b"', b'"/* no */"', b"'\"'", b"'/'",
        b'R"(// raw "x" /* )"', b'R"d()" // )d"',
        b'u8"\\"//"', b"// line", b"/* block */", b"/* two\nlines */", b"//", b"/**/", b"// continued \\\n still",
        b"\n", b"\n\n", b" ", b"\t", b"\r\n", b"\n#define M(x) x // why\n", b"\n#include <v> /* c */\n",
        b"\n#define L(a) \\\n  a /* in */ + 1\n", b"\n#if 1 // one\n", b"\n#endif\n", b"\xc3\xa9",
    ]
)  # fmt: skip


def stream(content: bytes) -> list[tuple[str, str]]:
    """What a compiler sees: token kinds and texts, directives by their own tokens."""
    found: list[tuple[str, str]] = []
    for token in code_tokens(content):
        if token.kind == "directive":
            found.append(("#", ""))
            found += [(t.kind, t.text) for t in code_tokens(content[token.start + 1 : token.end].replace(b"\\\n", b""))]
            found.append(("end", ""))
        else:
            found.append((token.kind, token.text))
    return found


@given(st.lists(PIECES, max_size=30))
def test_stripping_comments_keeps_the_token_stream(pieces: list[bytes]) -> None:
    content = b" ".join(pieces) + b"\n"
    stripped = strip_comments(content)
    assert stream(stripped) == stream(content)
    assert not any(t.kind == "comment" for t in tokenize(stripped))


@given(st.lists(PIECES, max_size=20))
def test_stripping_comments_between_touching_tokens(pieces: list[bytes]) -> None:
    content = b"".join(pieces) + b"\n"
    assert stream(strip_comments(content)) == stream(content)


@given(st.binary(max_size=200))
def test_any_bytes_have_tokens_in_order_and_nothing_between_them_but_space(content: bytes) -> None:
    position = 0
    for token in tokenize(content):
        assert position <= token.start < token.end
        assert content[token.start : token.end] == token.text.encode("utf-8", "surrogateescape")
        assert not content[position : token.start].replace(b"\\\n", b"").replace(b"\\\r\n", b"").strip(b" \t\r\n\f\v")
        position = token.end


def test_strip_comments_reads_well() -> None:
    before = b'// header\n\nint a;  // why\n/* block */ int b;\n  // alone\nint /* mid */ c; const char* s = "// no";\n'
    assert strip_comments(before) == b'\nint a;\nint b;\nint c; const char* s = "// no";\n'


def test_a_declaration_takes_its_comments_template_header_and_semicolon() -> None:
    source = (
        b"int before; // trailing\n\n// far\n\n// near\n/// nearer\n"
        b"template <class T, class = X<T>>\n[[nodiscard]] void f(T);\nint after;\n"
    )
    start = source.index(b"void")
    begin, end = declaration_span(source, start, source.index(b"(T);") + 3)
    assert source[begin:end] == source[source.index(b"// near") : source.index(b"int after")]


def test_what_fills_its_lines_goes_with_them_and_with_the_comment_behind_it() -> None:
    source = b"int a;  // why\n  int b;\nint c; int d;\nint e;  // goes on \\\n here\nint f;"
    found = [whole_lines(source, at, at + 6) for at in range(len(source)) if source.startswith(b"int ", at)]
    assert [source[start:end] for start, end in found] == [
        b"int a;  // why\n",
        b"  int b;\n",
        b"int c;",
        b"int d;",
        b"int e;",
        b"int f;",
    ]
