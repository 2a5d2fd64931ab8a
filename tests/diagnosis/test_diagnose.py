"""The diagnosis of real failures (recorded by the oracle's tests), with sources in the style of such libraries."""

from __future__ import annotations

import pytest

from reducer.diagnosis.diagnose import Diagnosis, diagnose
from reducer.oracle.failure import Failure, Frame, Signature
from reducer.oracle.signature import derive
from tests.oracle.observations import observed

_CXX = {"csrc/ops.cc": b"#include <torch/library.h>\nTORCH_LIBRARY(demo, m) { m.def(...); }\n"}
_OPS = {**_CXX, "test.py": b"import torch\nassert torch.ops.demo.f(torch.ones(2)) == 3\n"}


def _recorded(name: str, sources: dict[str, bytes]) -> Diagnosis:
    failure = derive(observed(name))
    assert failure is not None
    return diagnose(failure, sources)


@pytest.mark.parametrize(
    ("name", "sources", "layer"),
    [
        ("at-matmul-missing", _CXX, "cxx_api"),
        ("header-c10-irange", _CXX, "cxx_api"),
        ("torch-fn-macro", _CXX, "op_registration"),
        ("library-def-lambda", _CXX, "op_registration"),
        ("list-of-optional-tensors", _CXX, "op_registration"),
        ("default-cxx-standard", _CXX, "build_tooling"),
        ("cppextension-positional-name", _CXX, "build_tooling"),
        ("link-missing", _CXX, "build_tooling"),
        ("load-inline-missing", {}, "build_tooling"),
        ("extension-name-macro-before-aten", _CXX, "build_tooling"),
        ("undef-mutable-data-ptr", _OPS, "cxx_api"),
        ("undef-scalar-argument", _OPS, "op_registration"),
        ("undefined-tensor-numel-segv", _OPS, "cxx_api"),
        ("slice-step-infinite-loop", _OPS, "cxx_api"),
        ("int-list-size-broadcast", _OPS, "op_registration"),
        ("no-backend-exception-type", _OPS, "op_registration"),
        ("overload-names", _OPS, "op_registration"),
        ("exception-type-index-error", _OPS, "op_registration"),
        ("subtensor-assign-cast", _OPS, "cxx_api"),
        ("pybind-tensor-caster-cpu-wheel", _CXX, "cxx_api"),
        ("call-torch-device", {}, "python_proxy"),
        ("import-testing-assert-close", {}, "python_proxy"),
        ("decorator-amp-custom-fwd", {}, "python_interface"),
        ("import-library-Library", {}, "python_interface"),
        ("mul-scalar", {}, "python_interface"),
        ("equal-elementwise", {}, "python_interface"),
    ],
)
def test_layers(name: str, sources: dict[str, bytes], layer: str) -> None:
    diagnosis = _recorded(name, sources)
    assert diagnosis.layer == layer, diagnosis.evidence
    assert (diagnosis.klass, diagnosis.verdict) == ("A", "issue")
    assert diagnosis.evidence and diagnosis.advice.endswith(".")


def test_private_names_make_class_b() -> None:
    diagnosis = _recorded("private-log-api-usage", {})
    assert (diagnosis.klass, diagnosis.verdict, diagnosis.layer) == ("B", "workaround", "python_proxy")
    assert any("torch._C._log_api_usage_once" in reason for reason in diagnosis.evidence)


def _failing(line: str, template: str = "", kind: str = "mismatch") -> Failure:
    signature = Signature("run", kind, "AssertionError", "", template, "test")  # type: ignore[arg-type]
    return Failure(signature, "AssertionError", "test.py", 2, (Frame("test.py", 2, "<module>", line, "test"),))


@pytest.mark.parametrize(
    ("line", "layer"),
    [
        ("assert torch.ops.demo.add_(x) is x", "op_registration"),
        ("assert torch.ops.demo.f(x, scale=2.0).tolist() == [2.0]", "op_registration"),
        ("assert torch.ops.demo.f(x).tolist() == [2.0]", "cxx_api"),
    ],
)
def test_wrong_results_of_ops(line: str, layer: str) -> None:
    assert diagnose(_failing(line), {**_CXX, "test.py": f"import torch\n{line}\n".encode()}).layer == layer


def test_module_side_effects_are_found_in_the_function_that_the_failing_line_calls() -> None:
    sources = {
        "lib.py": b"import sys\nimport torch\n\n\ndef loaded():\n    return [m for m in sys.modules if 'torch' in m]\n",
        "test.py": b"import lib\nassert lib.loaded()\n",
    }
    diagnosis = diagnose(_failing("assert lib.loaded()"), sources)
    assert (diagnosis.layer, diagnosis.klass) == ("python_proxy", "B")
    sources["lib.py"] = b"def loaded():\n    return []\n"
    assert (diagnose(_failing("assert lib.loaded()"), sources).klass) == "A"


def test_code_outside_the_scope_needs_no_workaround() -> None:
    signature = Signature("run", "exception", "ModuleNotFoundError", "torch", "No module named 'torch'", "library")
    diagnosis = diagnose(Failure(signature, "ModuleNotFoundError: No module named 'torch'"), {})
    assert (diagnosis.layer, diagnosis.verdict) == ("python_proxy", "workaround")
    assert "enable_compat" in diagnosis.advice


def test_sources_that_do_not_parse_are_tolerated() -> None:
    broken = {"test.py": b"def f(:\n \xff", "csrc/a.cc": b"\xff\xfe"}
    assert diagnose(_failing("assert f()"), broken).layer == "cxx_api"
