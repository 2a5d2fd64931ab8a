"""The token-level outline of C++: functions, scopes, statements, expressions."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from reducer.syntax.cxx_expression import Expression, expressions_of, parse_expression
from reducer.syntax.cxx_outline import Outline
from reducer.syntax.cxx_statements import statements_in
from reducer.syntax.cxx_tokens import TokenFile, tokenize


def shape(file: TokenFile, node: Expression) -> str:
    """The tree as text: leaves as written, operators and calls with their parts."""
    if not node.parts:
        return file.source(node.first, node.last)
    mark = file.text(node.mark) if node.kind in ("binary", "assign", "prefix", "member") else ""
    return f"{node.kind}{mark}({', '.join(shape(file, p) for p in node.parts)})"


def parsed(text: str) -> str | None:
    file = TokenFile(text.encode())
    node = parse_expression(file, 0, len(file) - 1)
    return None if node is None else shape(file, node)


def test_functions_with_parameters_results_and_scopes() -> None:
    view = Outline(
        b"namespace a { template <typename T> static inline std::vector<T> "
        b"f(const T* p, int n = g(1, 2), T (&)[3]); }\n"
        b"struct S : B<S> { explicit S(int i) : a_(i), b_{i} { h(); } "
        b"bool operator==(const S& o) const { return x; } int a_; };\n"
        b'extern "C" { void k(void) {} }\n'
        b"auto r(int v) -> double { return v; }\n"
        b'TORCH_LIBRARY(ns, m) { m.def("f", &a::f); }\n'
        b"static const int table[] = {1, 2};\nenum class E { A, B };\n"
    )
    file = view.file
    seen = [
        (
            file.text(f.name),
            file.source(*f.returns) if f.returns else None,
            [(file.source(p.first, p.type_last), file.text(p.name) if p.name else "") for p in f.parameters],
            [s.name for s in f.scopes],
            f.body is not None,
        )
        for f in view.functions
    ]
    assert seen[0][:2] == ("f", "static inline std::vector<T>")
    assert seen[0][2][:2] == [("const T*", "p"), ("int", "n")]
    assert seen[0][3:] == (["a"], False)
    assert seen[1] == ("S", "explicit", [("int", "i")], ["S"], True)
    assert seen[2][3:] == (["S"], True)
    assert seen[3] == ("k", "void", [], [""], True)
    assert seen[4][:2] == ("r", "double")
    assert seen[5][:2] == ("TORCH_LIBRARY", None)
    assert [file.source(d.first, d.last) for d in view.declarations] == [
        "int a_;", "static const int table[] = {1, 2};", "enum class E { A, B };",
    ]  # fmt: skip


def test_statements_and_what_they_declare() -> None:
    view = Outline(
        b"void f() { auto [a, b] = g(); const std::map<int, T> m(a); int i = 0, *p = &i; x.y(z); a * 2; return;"
        b" if constexpr (i) k(); else if (b) { } "
        b"for (;;) { M(a, [&](int q) { r(q); }) } do w(); while (a); T t; using U = V; }"
    )
    body = view.functions[0].body
    assert body is not None
    assert [s.kind for s in body.statements] == [
        "simple", "simple", "simple", "simple", "simple", "return", "if", "for", "do", "simple", "simple",
    ]  # fmt: skip
    assert [s.declares for s in body.statements][:5] == [("a", "b"), ("m",), ("i", "p"), (), ()]
    assert [s.declares for s in body.statements][-2:] == [("t",), ("U",)]
    assert "r(q);" in [view.file.source(s.first, s.last) for s in statements_in(body)]


def test_expressions() -> None:
    assert parsed("a + b * c - d") == "binary-(binary+(a, binary*(b, c)), d)"
    assert parsed("x.size<int>(0) >= y[1]") == "binary>=(call(membersize(x), 0), index(y, 1))"
    assert parsed("a < b && c > (d)") == "binary&&(binary<(a, b), binary>(c, paren(d)))"
    assert parsed("std::vector<std::vector<int>>{{1}, {}}") == "list(std::vector<std::vector<int>>, list(1), {})"
    assert parsed("a >> 2") == "binary>(a, 2)"  # the mark is the first of the two tokens
    assert parsed("c ? x : y = 1") == "ternary(c, x, assign=(y, 1))"
    assert parsed("-static_cast<float>(x)") == "prefix-(cast(x))"
    assert (
        parsed("f([&](int a) -> int { return a; }, {1, 2,})") == "call(f, [&](int a) -> int { return a; }, list(1, 2))"
    )
    assert parsed("a b") is None
    assert parsed("f(") is None


def test_expressions_of_declarations_and_heads() -> None:
    view = Outline(b"void f() { T a = g(1), b(2); for (auto& x : h(3)) if (int k = 4) return m(5); }")
    body = view.functions[0].body
    assert body is not None
    found = [view.file.source(e.first, e.last) for s in statements_in(body) for e in expressions_of(view, s)]
    assert found == ["g(1)", "2", "h(3)", "4", "m(5)"]


@settings(max_examples=150, deadline=None)
@given(st.text("ab1(){}[]<>;:,.=&*\"'#/\\\n ", max_size=80))
def test_any_text_gives_ordered_tokens_and_an_outline(text: str) -> None:
    content = text.encode()
    tokens = tokenize(content)
    assert all(a.end <= b.start for a, b in pairwise(tokens))
    view = Outline(content)
    for function in view.functions:
        if function.body is not None:
            for statement in statements_in(function.body):
                expressions_of(view, statement)
