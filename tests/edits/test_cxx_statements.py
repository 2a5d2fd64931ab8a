"""Statement passes: what they offer, and that any subset of it leaves the rest of the file alone."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from reducer.edits.cxx_expressions import CxxExpressions, CxxQualifiers
from reducer.edits.cxx_module import CxxModule
from reducer.edits.cxx_naming import CxxNames
from reducer.edits.cxx_scopes import CxxScopes
from reducer.edits.cxx_signatures import CxxSignatures
from reducer.edits.cxx_statements import CxxBodies, CxxStatements, CxxUnwrap
from reducer.edits.cxx_variables import CxxVariables
from reducer.edits.edit import EditConflict, Splice, apply
from reducer.edits.passes import Pass
from reducer.syntax.cxx_tokens import tokenize
from reducer.tree import SourceTree

LIBRARY = rb"""#include <torch/extension.h>
#include <torch/library.h>

namespace lib {
namespace {
template <typename scalar_t>
void scale_kernel(const scalar_t* in, scalar_t* out, int64_t n, scalar_t k = scalar_t(2)) {
  for (int64_t i = 0; i < n; ++i) {
    if (in[i] > scalar_t(0)) out[i] = in[i] * k;
    else { out[i] = -in[i]; }
  }
}
}  // namespace

// Scales x.
at::Tensor scale_rows(const at::Tensor& x, const c10::optional<int64_t>& dim, double factor) {
  TORCH_CHECK(x.dim() == 2, "expected a matrix, got ", x.dim());
  auto c = x.contiguous();
  const int64_t rows = c.size(0), width = dim.value_or(1);
  auto out = at::empty({rows, c.size(1)}, c.options());
  try {
    AT_DISPATCH_FLOATING_TYPES(c.scalar_type(), "scale_rows", [&] {
      scale_kernel<scalar_t>(c.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), c.numel());
    });
  } catch (const std::exception& e) {
    throw;
  }
  while (rows < 0) { break; }
  out.index_add_(0, x, c.add(out).mul(factor));
  return out;
}
}  // namespace lib

TORCH_LIBRARY(lib, m) { m.def("scale_rows(Tensor x, int? dim=None, float factor=1.0) -> Tensor"); }
TORCH_LIBRARY_IMPL(lib, CPU, m) { m.impl("scale_rows", &lib::scale_rows); }
"""
PASSES: list[Pass] = [
    CxxBodies(), CxxStatements(), CxxUnwrap(), CxxVariables(), CxxExpressions(), CxxQualifiers(), CxxSignatures(),
    CxxScopes(), CxxModule(), CxxNames("lib_C"),
]  # fmt: skip


def one(source: bytes) -> SourceTree:
    return SourceTree({"csrc/x.cc": source})


def results(source: bytes, source_pass: Pass) -> list[str]:
    """The file after each single edit, with white space evened out."""
    tree = one(source)
    return [" ".join(apply(tree, [e]).text("csrc/x.cc").split()) for e in source_pass.propose(tree).edits]


def test_body_becomes_the_parameter_of_the_result_type() -> None:
    found = results(b"at::Tensor f(int64_t n, const at::Tensor& x) { g(n); return x.add(n); }", CxxBodies())
    assert found[0] == "at::Tensor f(int64_t n, const at::Tensor& x) { return x; }"
    assert "at::Tensor f(int64_t n, const at::Tensor& x) { g(n); return x; }" in found


def test_statements_need_their_declarations_and_surroundings() -> None:
    proposal = CxxStatements().propose(one(b"void f(int n) { int a = n; if (n) { g(a); } h(n); }"))
    labels = [e.label for e in proposal.edits]
    needs = {labels[i]: {labels[j] for j in wanted} for i, wanted in enumerate(proposal.requires)}
    assert needs["int a = n;"] == set()
    assert needs["g(a);"] == {"int a = n;", "if (n) { g(a); }"}
    assert needs["h(n);"] == set()


def test_what_the_return_needs_is_not_offered() -> None:
    proposal = CxxStatements().propose(one(b"int f(int n) { int a = n; int b = a; g(); return b; }"))
    assert [e.label for e in proposal.edits] == ["g();"]


def test_case_labels_go_one_by_one() -> None:
    source = b"int f(int n) { switch (n) { case 1: case 2: g(); default: return 0; } }"
    labels = [e.label for e in CxxStatements().propose(one(source)).edits]
    assert labels[1:] == ["case 1:", "case 2:", "g();", "default:"]


def test_registrations_are_not_statements() -> None:
    source = b'TORCH_LIBRARY(a, m) { m.def("f(int n) -> int", [](int64_t n) -> int64_t { g(); return n; }); }'
    assert [e.label for e in CxxStatements().propose(one(source)).edits] == ["g();"]


def test_unwrapping() -> None:
    assert "void f() { a(); }" in results(b"void f() { if (c) { a(); } else { b(); } }", CxxUnwrap())
    assert "void f() { b(); }" in results(b"void f() { if (c) { a(); } else { b(); } }", CxxUnwrap())
    assert "void f() { int i = 0;a(i); }" in results(b"void f() { for (int i = 0; i < 3; ++i) { a(i); } }", CxxUnwrap())
    assert "void f() { auto& p = ps[0]; a(p); }" in results(b"void f() { for (auto& p : ps) a(p); }", CxxUnwrap())
    assert "void f() { a(); }" in results(b"void f() { try { a(); } catch (...) { b(); } }", CxxUnwrap())
    assert "int f() { return 1; }" in results(b"int f() { return 1; a(); b(); }", CxxUnwrap())
    assert "int f() { g(); return 1; }" in results(b"int f() { return [&] { g(); return 1; }(); }", CxxUnwrap())


def test_every_edit_applies_alone_and_touches_only_its_own_bytes() -> None:
    tree = one(LIBRARY)
    for source_pass in PASSES:
        edits = source_pass.propose(tree).edits
        assert edits, source_pass.name
        for edit in edits:
            changed = apply(tree, [edit])["csrc/x.cc"]
            spans = [(o.start, o.end) for o in edit.ops if isinstance(o, Splice)]
            first, last = min(a for a, _ in spans), max(b for _, b in spans)
            assert changed[:first] == LIBRARY[:first]
            assert changed.endswith(LIBRARY[last:])
            assert changed != LIBRARY, (source_pass.name, edit.label)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(PASSES) - 1), st.randoms(use_true_random=False))
def test_any_subset_has_one_meaning_and_balanced_brackets(which: int, source: random.Random) -> None:
    tree = one(LIBRARY)
    edits = [e for e in PASSES[which].propose(tree).edits if source.random() < 0.5]
    try:
        forward = apply(tree, edits)
    except EditConflict:
        return
    source.shuffle(edits)
    assert apply(tree, edits) == forward
    texts = [t.text for t in tokenize(forward["csrc/x.cc"]) if t.kind == "punct"]
    for opening, closing in ("()", "[]", "{}"):
        assert texts.count(opening) == texts.count(closing)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, len(PASSES) - 1), st.lists(st.integers(0, len(LIBRARY)), max_size=8))
def test_broken_input_never_raises(which: int, holes: list[int]) -> None:
    broken = bytes(b for i, b in enumerate(LIBRARY) if not any(h <= i < h + 3 for h in holes))
    tree = one(broken)
    for edit in PASSES[which].propose(tree).edits[:40]:
        apply(tree, [edit])
