"""Declarations and registrations found without a compiler."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reducer.syntax.cxx_chunks import chunks
from reducer.syntax.cxx_registrations import bindings, ops
from reducer.tree import SourceTree


def outline(source: bytes) -> list[tuple[str, tuple[str, ...]]]:
    return [(chunk.kind, chunk.names) for chunk in chunks(source)]


def test_kinds_and_names() -> None:
    source = b"""
#define TWICE(x) ((x) + \\
                  (x))
namespace lib { namespace {
enum class Mode : int { kOne = 1, kTwo = f(1, 2) };
template <typename T, int N = (3 > 2)> struct Vec final : public Base<T> {
 public:
  explicit Vec(T x) : x_{x}, y_(1) {}
  ~Vec() = default;
  Vec operator+(const Vec& o) const { return {x_ + o.x_}; }
  operator bool() const { return x_; }
  void operator()() noexcept;
 private:
  T x_ = {1}, y_;
  static constexpr int kSize = 3;
};
} // namespace
using Table = std::map<std::string, int>;
typedef int (*Callback)(int, double);
struct Forward;
static const int table[] = {1, 2}, other = 3;
std::vector<int> braces{1, 2};
at::Tensor make(const at::Tensor& x, int n = {}) try { return x; } catch (...) { throw; }
template <> int Vec<int>::size() const { return 1; }
auto lambda = [](int x) { return x; };
extern "C" int c_function(struct stat* s) { return 0; }
struct PyModuleDef def = { 1, "x" };
}
"""
    assert outline(source) == [
        ("macro", ("TWICE",)),
        ("namespace", ("lib",)),
        ("namespace", ()),
        ("enum", ("Mode", "kOne", "kTwo")),
        ("class", ("Vec",)),
        ("function", ("Vec",)),
        ("function", ("~Vec",)),
        ("function", ("operator",)),
        ("function", ("operator",)),
        ("function", ("operator",)),
        ("variable", ("x_", "y_")),
        ("variable", ("kSize",)),
        ("alias", ("Table",)),
        ("alias", ("Callback",)),
        ("class", ("Forward",)),
        ("variable", ("table", "other")),
        ("variable", ("braces",)),
        ("function", ("make",)),
        ("function", ("size",)),
        ("variable", ("lambda",)),
        ("function", ("c_function",)),
        ("variable", ("def",)),
    ]
    size = next(c for c in chunks(source) if c.names == ("size",))
    assert size.scope == ("lib", "Vec") and size.specialised


def test_conditionals_inside_and_between_declarations() -> None:
    source = b"""
#ifdef A
int f(int x) {
#else
int f(double x) {
#endif
  return 1;
}
#ifdef __cplusplus
extern "C" {
#endif
int g();
#ifdef __cplusplus
}
#endif
SOME_MACRO(g)
int h() { return 2; }
"""
    assert [kind for kind, _ in outline(source)] == ["function", "linkage", "function", "call", "function"]


@given(
    st.lists(
        st.sampled_from(b"{ } ( ) < > ; : = , class int x operator template namespace # \n".split(b" ")), max_size=40
    )
)
def test_any_tokens_give_nested_chunks(words: list[bytes]) -> None:
    source = b" ".join(words)
    found = chunks(source)
    for chunk in found:
        assert 0 <= chunk.start < chunk.end <= len(source)
        if chunk.parent is not None:
            assert found[chunk.parent].start <= chunk.start and chunk.end <= found[chunk.parent].end


REGISTERING = b"""
TORCH_LIBRARY(lib, m) {
  m.def("one(Tensor x, "
        "int n=1) -> Tensor");
  m.def("lib::two(Tensor x) -> Tensor", &ns::two).def("three", [](int x) { return x; });
  m.class_<Counter>("Counter").def("bump", &Counter::bump);
}
TORCH_LIBRARY_IMPL(lib, CPU, m) {
  m.impl("one", TORCH_FN(ns::one));
  m.impl("four.out", torch::dispatch(c10::DispatchKey::CPU, &four));
}
static auto registry = torch::RegisterOperators().op("old::five", &five).op("old::six(int x) -> int", six);
void init(py::module& m) {
  m.def("seven", static_cast<int (*)(int)>(&seven), "doc, with comma", py::arg("x") = 1);
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  init(m);
  py::class_<Thing>(m, "Thing").def(py::init<>()).def("go", &Thing::go);
}
static PyMethodDef methods[] = {{"eight", (PyCFunction)eight, METH_VARARGS, ""}, {NULL, NULL, 0, NULL}};
"""


def test_registrations() -> None:
    tree = SourceTree({"a.cc": REGISTERING})
    assert [(o.namespace, o.name, o.schema is not None, o.function, o.key) for o in ops(tree)] == [
        ("lib", "one", True, None, ""),
        ("lib", "two", True, "ns::two", ""),
        ("lib", "three", False, None, ""),
        ("lib", "one", False, "ns::one", "CPU"),
        ("lib", "four.out", False, "four", "CPU"),
        ("old", "five", False, "five", ""),
        ("old", "six", True, "six", ""),
    ]
    assert ops(tree)[0].schema == "one(Tensor x, int n=1) -> Tensor"
    assert [(b.name, b.function) for b in bindings(tree)] == [
        ("bump", "Counter::bump"),
        ("seven", "seven"),
        ("go", "Thing::go"),
        ("eight", "eight"),
    ]
    two = chunks(REGISTERING)[ops(tree)[2].chunk]
    assert REGISTERING[two.start : two.end] == b'.def("three", [](int x) { return x; })'
