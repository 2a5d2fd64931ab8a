"""C++ snippets that do not compile, with the type and symbol that every compiler's wording must come to."""

from __future__ import annotations

from typing import NamedTuple


class Snippet(NamedTuple):
    """``type`` and ``symbol`` as g++ tells them; the symbols that other compilers print may be less qualified."""

    name: str
    source: str
    type: str
    symbol: str


SNIPPETS = (
    Snippet("undeclared", "void g(){ foo(1); }", "missing-name", "foo"),
    Snippet("undeclared-var", "int g(){ return bar + 1; }", "missing-name", "bar"),
    Snippet("ns-func", "namespace at { int sun(); } int g(){ return at::matmul(1); }", "missing-member", "at::matmul"),
    Snippet("ns-type-decl", "namespace c10 { struct A{}; } c10::List<int> g();", "missing-member", "c10::List"),
    Snippet(
        "ns-type-param", "namespace c10 { struct A{}; } void g(const c10::List<int>& x);", "missing-member", "c10::List"
    ),
    Snippet("ns-type-plain", "namespace c10 { struct A{}; } void g(c10::Foo x);", "missing-member", "c10::Foo"),
    Snippet("ns-type-ret", "namespace c10 { struct A{}; } c10::Foo g();", "missing-member", "c10::Foo"),
    Snippet(
        "ns-type-targ",
        "template<class T> struct V{}; namespace c10 { struct A{}; } V<c10::Foo> v;",
        "missing-member",
        "c10::Foo",
    ),
    Snippet(
        "ns-nested",
        "namespace torch { struct A{}; } struct F : torch::autograd::Function<F> {};",
        "missing-member",
        "torch::autograd",
    ),
    Snippet(
        "ns-nested-call",
        "namespace torch { struct A{}; } int g(){ return torch::autograd::run(); }",
        "missing-member",
        "torch::autograd",
    ),
    Snippet("unknown-ns", "int g(){ return c11::run(); }", "missing-name", "c11"),
    Snippet("unknown-ns-type", "c11::Foo g();", "missing-name", "c11"),
    Snippet(
        "member",
        "namespace at { struct Tensor { int n() const; }; } int g(const at::Tensor& t){ return t.item(); }",
        "missing-member",
        "at::Tensor::item",
    ),
    Snippet(
        "member-ptr",
        "namespace at { struct Tensor { int n() const; }; } int g(const at::Tensor* t){ return t->item(); }",
        "missing-member",
        "at::Tensor::item",
    ),
    Snippet(
        "member-tmpl",
        "namespace at { struct Tensor { int n() const; }; } int g(const at::Tensor& t){ return t.item<int>(); }",
        "missing-member",
        "at::Tensor::item",
    ),
    Snippet(
        "member-typedef",
        "namespace paddle { struct Tensor { int n() const; }; } namespace at { using Tensor = "
        "paddle::Tensor; } int g(const at::Tensor& t){ return t.item(); }",
        "missing-member",
        "at::Tensor::item",
    ),
    Snippet(
        "static-member",
        "namespace at { struct Tensor {}; } int g(){ return at::Tensor::make(); }",
        "missing-member",
        "at::Tensor::make",
    ),
    Snippet(
        "enum",
        "namespace phi { enum class AllocationType { CPU }; } namespace c10 { using DeviceType = "
        "phi::AllocationType; } auto x = c10::DeviceType::Meta;",
        "missing-member",
        "c10::DeviceType::Meta",
    ),
    Snippet(
        "overload",
        "namespace at { struct D{}; struct Tensor { Tensor to(int, int, int) const; Tensor to(D) "
        "const; }; } void g(const at::Tensor& t){ t.to(1, 2); }",
        "no-matching-call",
        "at::Tensor::to",
    ),
    Snippet(
        "single-member-few",
        "namespace at { struct Tensor { Tensor squeeze(int) const; }; } void g(const at::Tensor& t){ t.squeeze(); }",
        "no-matching-call",
        "at::Tensor::squeeze",
    ),
    Snippet("single-func-few", "int f(int); int g(){ return f(); }", "no-matching-call", "f"),
    Snippet("single-func-many", "int f(int); int g(){ return f(1,2); }", "no-matching-call", "f"),
    Snippet("single-func-conv", 'int f(int); int g(){ return f("x"); }', "no-matching-call", "f"),
    Snippet("single-func-class", "struct A{}; int f(A); int g(){ return f(1); }", "no-matching-conversion", "A"),
    Snippet(
        "overload-func", "int f(int); int f(double*); struct A{}; int g(){ return f(A{}); }", "no-matching-call", "f"
    ),
    Snippet("tmpl-func", "template<class T> int f(T*); int g(){ return f(1); }", "no-matching-call", "f"),
    Snippet("ctor", "struct A{ A(int,int); }; A a(1);", "no-matching-call", "A"),
    Snippet("ctor-tmpl", "template<class T> struct A{ A(int,int); }; A<int> a(1);", "no-matching-call", "A"),
    Snippet("conv-init", "struct A{}; struct B{}; B b = A{};", "no-matching-conversion", "B"),
    Snippet("conv-init2", "struct B{}; int b = B{};", "no-matching-conversion", "int"),
    Snippet("conv-ptr", "int* p = 5.0;", "no-matching-conversion", "int"),
    Snippet("conv-charptr", 'int b = "x";', "no-matching-conversion", "int"),
    Snippet("conv-ret", "struct A{}; struct B{}; B g(){ return A{}; }", "no-matching-conversion", "B"),
    Snippet("conv-ret-int", "struct A{}; int g(){ return A{}; }", "no-matching-conversion", "int"),
    Snippet("binop", "struct A{}; int g(A a){ return a + 1; }", "no-matching-operator", "operator(A)"),
    Snippet("subscript", "struct A{}; int g(A a){ return a[1]; }", "no-matching-operator", "operator(A)"),
    Snippet("assign", "struct A{}; void g(A a){ a = 1; }", "no-matching-operator", "operator(A)"),
    Snippet(
        "shift",
        "namespace c10 { struct T{}; } struct S{}; void g(S& s, const c10::T& t){ s << t; }",
        "no-matching-operator",
        "operator(S)",
    ),
    Snippet("incomplete", "struct X; X x;", "incomplete-type", "X"),
    Snippet("incomplete-use", "struct X; int g(X* p){ return p->a; }", "incomplete-type", "X"),
    Snippet("incomplete-tmpl", "template<class T> struct X; X<int> x;", "incomplete-type", "X"),
    Snippet("not-template", "struct X{}; X<int> x;", "not-a-template", "X"),
    Snippet("unknown-type", "Foo g();", "missing-name", "Foo"),
    Snippet("unknown-type-param", "void g(Foo x);", "missing-name", "Foo"),
    Snippet("unknown-type-local", "void g(){ Foo x; }", "missing-name", "Foo"),
    Snippet("unknown-template", "Foo<int> g();", "missing-name", "Foo"),
    Snippet("unknown-template-local", "void g(){ Foo<int> x; }", "missing-name", "Foo"),
    Snippet("redef", "int f(){return 1;} int f(){return 2;}", "redefinition", "f"),
    Snippet("redef-class", "struct A{}; struct A{};", "redefinition", "A"),
    Snippet("ambig", "int f(long); int f(double); int g(){ return f(1); }", "ambiguous", "f"),
    Snippet(
        "ambig-ref",
        "namespace a{int x;} namespace b{int x;} using namespace a; using namespace b; int g(){ return x; }",
        "ambiguous",
        "x",
    ),
    Snippet("static-assert", 'static_assert(sizeof(int)==3, "no good");', "static-assert", ""),
    Snippet("private", "class A{ int x; }; int g(A a){ return a.x; }", "private", "A::x"),
    Snippet("private-fn", "class A{ int f(); }; int g(A a){ return a.f(); }", "private", "A::f"),
    Snippet("deleted", "int f() = delete; int g(){ return f(); }", "deleted", "f"),
    Snippet("deleted-copy", "struct A{ A(); A(const A&) = delete; }; A g(A& a){ return a; }", "deleted", "A"),
    Snippet("header", "#include <torch/nothere.h>", "missing-header", "torch/nothere.h"),
    Snippet("macro-stmt", 'void g(){ AT_ERROR("x"); }', "missing-name", "AT_ERROR"),
    Snippet(
        "macro-dispatch",
        'void h(int); void g(int t){\n  AT_DISPATCH(t, "n", [&] {\n    scalar_t v = 1; h(v);\n  });\n}',
        "missing-name",
        "AT_DISPATCH",
    ),
    Snippet("macro-top", "TORCH_LIB(a, m) { m.def(1); }", "missing-name", "TORCH_LIB"),
    Snippet("macro-top-semi", "REGISTER(a);", "missing-name", "REGISTER"),
    Snippet("macro-decl", "MY_API int f();", "missing-name", "MY_API"),
    Snippet("this-const", "struct A{ void f(); }; void g(const A& a){ a.f(); }", "discards-const", "A::f"),
    Snippet("targs", "template<class T> struct V{}; V<int,int> v;", "template-arguments", ""),
    Snippet("abstract", "struct A{ virtual void f()=0; }; A a;", "abstract", "A"),
    Snippet("override", "struct A{}; struct B:A{ void f() override; };", "override", ""),
    Snippet("adl", "template<class T> int f(T t){ return h(t); } int x = f(1);", "missing-name", "h"),
    Snippet("nodep", "template<class T> int f(T t){ return h(); }", "missing-name", "h"),
    Snippet(
        "in-tmpl-member",
        "namespace at{struct Tensor{};} template<class T> int f(T t){ return t.item(); } int x = f(at::Tensor{});",
        "missing-member",
        "at::Tensor::item",
    ),
    Snippet("not-scope", "int a; int g(){ return a::b(); }", "not-a-scope", "a"),
    Snippet("using-missing", "namespace at{} using at::foo;", "missing-member", "at::foo"),
    Snippet("using-ns", "using namespace nothere;", "missing-name", "nothere"),
    Snippet("call-noncallable", "struct A{}; int g(A a){ return a(1); }", "no-matching-operator", "operator(A)"),
    Snippet("class-targ-missing", "template<class T> struct V{}; V<Foo> v;", "missing-name", "Foo"),
    Snippet("bind-rvalue", "struct A{}; void f(A&); void g(){ f(A{}); }", "no-matching-call", "f"),
    Snippet("brace-init", 'struct A{ A(int); }; void f(A); void g(){ f({"x"}); }', "no-matching-call", "A"),
    Snippet("nested-type", "struct A{}; A::type g();", "missing-member", "A::type"),
    Snippet("nested-type-local", "struct A{}; void g(){ A::type x; }", "missing-member", "A::type"),
    Snippet(
        "dep-type",
        "template<class T> void f(){ typename T::type x; } struct A{}; void g(){ f<A>(); }",
        "missing-member",
        "A::type",
    ),
    Snippet("new-unknown", "void* g(){ return new Foo(); }", "missing-name", "Foo"),
    Snippet("default-missing-arg-ctor", "struct A{ A(int); }; A a;", "no-matching-call", "A"),
    Snippet("readonly", "void g(const int& x){ x = 1; }", "read-only", ""),
    Snippet(
        "string-member",
        "#include <string>\nint g(std::string s){ return s.nope(); }",
        "missing-member",
        "std::string::nope",
    ),
    Snippet(
        "vector-conv",
        "#include <vector>\n#include <string>\nstd::vector<int> g(std::string s){ return s; }",
        "no-matching-conversion",
        "std::vector",
    ),
    Snippet("span", "#include <vector>\nvoid g(std::spam<int> s);", "missing-member", "std::spam"),
    Snippet(
        "opt",
        "#include <optional>\nint g(std::optional<int> o){ return o.nope(); }",
        "missing-member",
        "std::optional::nope",
    ),
)
