"""The extension form: setup.py from the template, the module's initialiser, the script's imports."""

from __future__ import annotations

import ast

import pytest

from reducer.edits.extension import has_prelude, loader_script, module_imports, module_source, setup_script
from reducer.resources import template


def call_in(script: bytes, name: str) -> ast.Call:
    calls = [n for n in ast.walk(ast.parse(script)) if isinstance(n, ast.Call)]
    (found,) = [c for c in calls if getattr(c.func, "id", "") == name]
    return found


@pytest.mark.parametrize("flags", [(), ('-DNAME="a b"', "-Icsrc"), ("-DX='y'",)])
def test_setup_script_is_short_and_carries_the_flags(flags: tuple[str, ...]) -> None:
    script = setup_script(template("setup.py.in"), flags)
    assert len(script.splitlines()) <= 10
    assert has_prelude(script)
    assert b"@" not in script
    extension = call_in(script, "CppExtension")
    given = {k.arg: ast.literal_eval(k.value) for k in extension.keywords}
    assert given["sources"] == ["csrc/mre.cc"]
    assert tuple(given.get("extra_compile_args", ())) == flags


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (b"PYBIND11_MODULE(_C, m) {}\n", b"PYBIND11_MODULE(mre_ext, m) {}\n"),
        (b"PYBIND11_MODULE ( _C , m) {}\n", b"PYBIND11_MODULE ( mre_ext , m) {}\n"),
        (b"PyMODINIT_FUNC PyInit__C(void) {}\n", b"PyMODINIT_FUNC PyInit_mre_ext(void) {}\n"),
        (b"PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n", b"PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n"),
    ],
)
def test_the_initialiser_takes_the_new_name(source: bytes, expected: bytes) -> None:
    assert module_source(source, "_C") == expected


def test_a_source_without_initialiser_gets_one() -> None:
    source = module_source(b"TORCH_LIBRARY(a, m) {}\n", "_C")
    assert b"#include <torch/extension.h>" in source
    assert b"PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}" in source
    again = module_source(b"#include <torch/extension.h>\n", "_C")
    assert again.count(b"#include") == 1


def test_a_name_that_only_starts_alike_stays() -> None:
    assert module_source(b"void PyInit__Core(); PYBIND11_MODULE(_Core, m) {}", "_C") == (
        b"void PyInit__Core(); PYBIND11_MODULE(_Core, m) {}"
    )


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("import lib._C", "import mre_ext"),
        ("import lib._C as ops", "import mre_ext as ops"),
        ("from lib import _C", "import mre_ext as _C"),
        ("from lib import _C as ops", "import mre_ext as ops"),
        ("from lib._C import f, g as h", "from mre_ext import f, g as h"),
        ("from . import _C", "import mre_ext as _C"),
        ("from ._C import f", "from mre_ext import f"),
        ("torch.ops.load_library(path)", "import mre_ext"),
        ("importlib.import_module('lib._C')", "import mre_ext"),
        ("y = lib._C.f(x)", "y = mre_ext.f(x)"),
        ("if True:\n    import lib._C", "if True:\n    import mre_ext"),
        ("import lib.other", "import lib.other"),
        ("from lib import helper", "from lib import helper"),
        ("x = 'lib._C'", "x = 'lib._C'"),
        ("not python (", "not python ("),
    ],
)
def test_every_way_of_loading_the_extension(script: str, expected: str) -> None:
    assert module_imports(script.encode(), ["lib._C"]).decode() == expected


def test_mixed_imports_keep_the_others() -> None:
    new = module_imports(b"from lib import helper, _C\nimport os, lib._C\n", ["lib._C"]).decode()
    assert ast.dump(ast.parse(new)) == ast.dump(
        ast.parse("from lib import helper\nimport mre_ext as _C\nimport os\nimport mre_ext\n")
    )


def test_the_loader_script_parses_and_has_the_prelude() -> None:
    script = loader_script()
    ast.parse(script)
    assert has_prelude(script)
    assert not has_prelude(b"import paddle\npaddle.enable_compat()\n")
