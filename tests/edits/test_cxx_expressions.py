"""Passes over expressions and local variables, with and without libclang's types."""

from __future__ import annotations

from reducer.edits.cxx_expressions import CxxExpressions, CxxQualifiers
from reducer.edits.cxx_variables import CxxVariables
from reducer.edits.edit import apply
from reducer.edits.passes import Pass
from reducer.syntax.cxx import CxxParser
from reducer.tree import SourceTree

SNIPPET = b"""struct Text { Text trim() const; long size() const; Text add(const Text&) const; };
Text join(const Text& a, const Text& b);
"""


def results(source: bytes, source_pass: Pass) -> list[str]:
    tree = SourceTree({"x.cc": source})
    start = len(" ".join(SNIPPET.decode().split())) + 1 if source.startswith(SNIPPET) else 0
    return [" ".join(apply(tree, [e]).text("x.cc").split())[start:] for e in source_pass.propose(tree).edits]


def test_chained_calls_and_prefixes_go() -> None:
    found = results(b"void f(T a, T b) { a.add(b).index_add_(0, b, a.mul(b)); }", CxxExpressions())
    assert "void f(T a, T b) { a.index_add_(0, b, a.mul(b)); }" in found
    assert "void f(T a, T b) { a.add(b).index_add_(0, b, a); }" in found
    assert "void f(T a, T b) { a.add(b).index_add_(0, b); }" in found


def test_types_rule_out_what_cannot_stand_there() -> None:
    source = SNIPPET + b"Text f(Text a) { return join(a.trim(), a); }\nlong g(Text a) { return a.trim().size(); }"
    typed = results(source, CxxExpressions(CxxParser()))
    assert "Text f(Text a) { return a.trim(); } long g(Text a) { return a.trim().size(); }" in typed
    assert "Text f(Text a) { return join(a.trim(), a); } long g(Text a) { return a.size(); }" in typed
    wrong = "Text f(Text a) { return join(a.trim(), a); } long g(Text a) { return a.trim(); }"
    assert wrong not in typed
    assert wrong in results(source, CxxExpressions())  # unknown types: offered, the compiler decides


def test_types_are_known_inside_macro_arguments() -> None:
    source = SNIPPET + b"#define RUN(x) (x)\nlong g(Text a) { return RUN(a.trim().size()); }"
    typed = results(source, CxxExpressions(CxxParser()))
    assert any(t.endswith("return RUN(a.size()); }") for t in typed)
    assert not any(t.endswith("return RUN(a.trim()); }") for t in typed)


def test_parentheses_stay_where_they_are_needed() -> None:
    found = results(b"int f(int a) { return (a + 1) * 2; }", CxxExpressions())
    assert "int f(int a) { return a + 1 * 2; }" not in found
    assert "int f(int a) { return (a + 1); }" in found


def test_words_do_not_run_together() -> None:
    assert "int f(int a) { return a; }" in results(b"int f(int a) { return(a); }", CxxExpressions())


def test_comparison_is_no_template() -> None:
    found = results(b"bool f(int a, int b, int c) { return a < b || b > c; }", CxxExpressions())
    assert "bool f(int a, int b, int c) { return b > c; }" in found


def test_variable_by_parameter_of_its_type() -> None:
    source = b"at::Tensor f(const at::Tensor& x) { auto out = at::zeros({2}); out.index_add_(0, x, x); return out; }"
    assert "at::Tensor f(const at::Tensor& x) { x.index_add_(0, x, x); return x; }" in results(source, CxxVariables())


def test_variables_are_inlined_with_parentheses_where_needed() -> None:
    assert "int f(int a) { return 2 * (a + 1); }" in results(
        b"int f(int a) { int b = a + 1; return 2 * b; }", CxxVariables()
    )
    assert "int f(int a) { return g(a + 1); }" in results(
        b"int f(int a) { int b = a + 1; return g(b); }", CxxVariables()
    )


def test_statement_merges_into_the_return() -> None:
    tree = SourceTree({"x.cc": b"T f(T x) { x.squeeze(); return x; }"})
    edits = CxxVariables().propose(tree).edits
    assert [apply(tree, [e])["x.cc"] for e in edits] == [b"T f(T x) { return x.squeeze(); }"]


def test_qualifiers_go_together_where_they_belong_together() -> None:
    found = results(b"static int f(const T& a, const T& b) { const int n = a.n(b); return n; }", CxxQualifiers())
    assert "static int f(T a, T b) { const int n = a.n(b); return n; }" in found
    assert "int f(const T& a, const T& b) { const int n = a.n(b); return n; }" in found
    assert "static int f(const T& a, const T& b) { int n = a.n(b); return n; }" in found
