"""Signatures coupled over C++, schemas and Python; scopes; registrations; names; layout."""

from __future__ import annotations

from reducer.edits.cxx_format import format_cxx
from reducer.edits.cxx_module import CxxModule
from reducer.edits.cxx_naming import canonical_names
from reducer.edits.cxx_scopes import CxxScopes
from reducer.edits.cxx_signatures import CxxSignatures
from reducer.edits.edit import apply
from reducer.edits.op_schemas import registrations, schema_without
from reducer.edits.passes import Pass
from reducer.syntax.cxx_schemas import parse_schema
from reducer.syntax.cxx_tokens import tokenize
from reducer.tree import SourceTree


def by_label(tree: SourceTree, source_pass: Pass) -> dict[str, SourceTree]:
    return {e.label: apply(tree, [e]) for e in source_pass.propose(tree).edits}


def test_unused_parameter_goes_everywhere_at_once() -> None:
    tree = SourceTree(
        {
            "a.cc": b"T f(T x, int64_t k, T y) { return x.add(y); }\nT g(T x) { return f(x, 1, x); }\n"
            b'TORCH_LIBRARY(n, m) { m.def("f(Tensor x, int k, *, Tensor y) -> Tensor", &f); }\n',
            "r.py": b"a = torch.ops.n.f(x, 3, y=x)\nb = torch.ops.n.f(x, k=3, y=x)\n",
        }
    )
    after = by_label(tree, CxxSignatures())["parameters 2 of f"]
    assert after["a.cc"] == (
        b"T f(T x, T y) { return x.add(y); }\nT g(T x) { return f(x, x); }\n"
        b'TORCH_LIBRARY(n, m) { m.def("f(Tensor x, *, Tensor y) -> Tensor", &f); }\n'
    )
    assert after["r.py"] == b"a = torch.ops.n.f(x, y=x)\nb = torch.ops.n.f(x, y=x)\n"


def test_call_that_cannot_be_followed_stops_the_edit() -> None:
    tree = SourceTree(
        {"a.cc": b'T f(T x, int k) { return x; }\nTORCH_LIBRARY(n, m) { m.def("f(Tensor x, int k) -> Tensor", &f); }',
         "r.py": b"torch.ops.n.f(*args)\n"}
    )  # fmt: skip
    assert "parameters 2 of f" not in by_label(tree, CxxSignatures())


def test_members_with_bases_keep_their_signature() -> None:
    tree = SourceTree({"a.cc": b"struct A : B<A> { static T forward(C* ctx, T x) { return x; } };"})
    assert not CxxSignatures().propose(tree).edits


def test_unused_result_becomes_void() -> None:
    tree = SourceTree(
        {"a.cc": b'T f(T x) { x.foo(); return x; }\nTORCH_LIBRARY(n, m) { m.def("f(Tensor x) -> Tensor", &f); }'}
    )
    after = by_label(tree, CxxSignatures())["f to void"]["a.cc"]
    assert after == b'void f(T x) { x.foo();  }\nTORCH_LIBRARY(n, m) { m.def("f(Tensor x) -> ()", &f); }'


def test_optional_becomes_plain() -> None:
    tree = SourceTree(
        {"a.cc": b'int64_t f(c10::optional<int64_t> k) { return k.has_value() ? *k : k.value_or(2); }\n'
                 b'TORCH_LIBRARY(n, m) { m.def("f(int? k=None) -> int", &f); }'}
    )  # fmt: skip
    assert by_label(tree, CxxSignatures())["plain parameter 1 of f"]["a.cc"] == (
        b'int64_t f(int64_t k) { return true ? k : k; }\nTORCH_LIBRARY(n, m) { m.def("f(int k) -> int", &f); }'
    )


def test_schema_reading() -> None:
    text = '"f.out(Tensor(a!) x, int[2] size=[1, 2], *, Dict(str, int) d) -> (Tensor, Tensor)"'
    schema = parse_schema(text)
    assert schema is not None
    assert schema.names == ["x", "size", "d"]
    assert schema_without(schema, {1, 2}) == '"f.out(Tensor(a!) x) -> (Tensor, Tensor)"'
    assert text[schema.result[0] : schema.result[1]] == " (Tensor, Tensor)"
    assert parse_schema('"f"') is None


def test_a_registration_line_names_its_function_through_casts_and_wrappers() -> None:
    source = (
        b'PYBIND11_MODULE(m, m) {\n  m.def("a", static_cast<int (*)(int, T)>(&n::f), "doc");\n'
        b'  m.def("b", torch::wrap_pybind_function(g)); m.def("c", [](int x) { return x; }); }\n'
        b'TORCH_LIBRARY_IMPL(n, CPU, m) { m.impl("d.out", TORCH_BOX(&h<float>)); m.impl(R"(e)", &e); }\n'
    )
    lines = registrations(SourceTree({"a.cc": source}))
    assert [(r.namespace, r.kind, r.op, r.function, len(r.arguments)) for r in lines] == [
        ("", "def", "a", "f", 3),
        ("", "def", "b", "g", 2),
        ("", "def", "c", "", 2),
        ("n", "impl", "d", "h", 2),
    ]


def test_namespaces_unwrap_with_their_references() -> None:
    tree = SourceTree(
        {
            "a.cc": b"namespace a::b {\nint f();\n}\nnamespace c { using namespace a::b; "
            b"int g() { return a::b::f() + b::f(); } }\n"
        }
    )
    after = by_label(tree, CxxScopes())["namespace a::b"]["a.cc"]
    assert b" ".join(after.split()) == b"int f(); namespace c { int g() { return f() + f(); } }"


def test_template_is_instantiated_with_the_type_in_use() -> None:
    tree = SourceTree(
        {"a.cc": b"template <typename T>\nT f(const T* p) { return T(*p); }\nint g(int* p) { return f<int>(p); }"}
    )
    after = by_label(tree, CxxScopes())["f for int"]["a.cc"]
    assert after == b"int f(const int* p) { return int(*p); }\nint g(int* p) { return f(p); }"


def test_registrations_merge_and_initialiser_shrinks() -> None:
    source = (
        b"#include <Python.h>\n#include <ATen/ATen.h>\n#include <torch/library.h>\n"
        b'extern "C" {\nPyObject* PyInit_x(void) { return 0; }\n}\n'
        b'TORCH_LIBRARY(n, m) { m.def("f(Tensor x) -> Tensor"); }\n'
        b"at::Tensor f(at::Tensor x) { return x; }\n"
        b'TORCH_LIBRARY_IMPL(n, CPU, m) { m.impl("f", &f); }\n'
    )
    tree = SourceTree({"a.cc": source})
    edits = {e.label: e for e in CxxModule().propose(tree).edits}
    chosen = [edits["registrations of f in one"], edits["initialiser to an empty pybind11 module"]]
    assert apply(tree, chosen)["a.cc"] == (
        b"#include <torch/extension.h>\n#include <torch/library.h>\n"
        b"at::Tensor f(at::Tensor x) { return x; }\n"
        b'TORCH_LIBRARY(n, m) { m.def("f(Tensor x) -> Tensor", &f); }\n'
        b"\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n"
    )
    assert "module initialiser" not in edits
    assert "module initialiser" in by_label(tree, CxxModule(importable=False))


def test_names_change_on_both_sides_of_the_binding() -> None:
    tree = SourceTree(
        {
            "a.cc": b"at::Tensor scatter_rows(at::Tensor feat, at::Tensor index, int64_t dim_size) { return feat; }\n"
            b'TORCH_LIBRARY(pointgraph, m) { m.def("scatter_rows(Tensor feat, Tensor index, int dim_size) -> Tensor", '
            b"&scatter_rows); }\n",
            "r.py": b"import pg_C\ntorch.ops.pointgraph.scatter_rows(x, i, dim_size=2)\n",
            "setup.py": b'CppExtension(name="pg_C", sources=["a.cc"])\n',
        }
    )
    after = tree
    while edits := canonical_names(after, "pg_C" if b"pg_C" in after["r.py"] else ""):
        after = apply(after, edits[:1])
    assert after["a.cc"] == (
        b"at::Tensor f(at::Tensor x, at::Tensor index, int64_t n) { return x; }\n"
        b'TORCH_LIBRARY(mre, m) { m.def("f(Tensor x, Tensor index, int n) -> Tensor", &f); }\n'
    )
    assert after["r.py"] == b"import mre_ext\ntorch.ops.mre.f(x, i, n=2)\n"
    assert after["setup.py"] == b'CppExtension(name="mre_ext", sources=["a.cc"])\n'


def test_layout_keeps_the_tokens_and_settles() -> None:
    source = (
        b"#include <a.h>\n\n#include <b.h>\nint f(int  a){return a;}\nint g(){\n\n\nreturn f( 1 );}\n"
        b'M(x, m) { m.def("f", &f); }'
    )
    laid_out = format_cxx(source)
    assert laid_out == (
        b"#include <a.h>\n#include <b.h>\n\nint f(int a) { return a; }\n\nint g() { return f(1); }\n\n"
        b'M(x, m) { m.def("f", &f); }\n'
    )
    assert format_cxx(laid_out) == laid_out
    assert [t.text for t in tokenize(laid_out)] == [t.text for t in tokenize(source)]


def test_layout_survives_broken_code() -> None:
    assert b"".join(format_cxx(b"int f( { ) \xff }}").split()) == b"intf({)\xff}}"
