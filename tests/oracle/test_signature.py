"""Failures derived from what real builds and runs of failing libraries printed (Paddle 3.3.1, GCC 12, pytest 9)."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from reducer.oracle.failure import Failure, Signature
from reducer.oracle.observation import CompilerCall, Diagnostic, Observation, Step
from reducer.oracle.signature import derive, describe, same
from tests.oracle.observations import DATA, ROOT, compiled, observed, ran

# name, stage, kind, type, symbol, place in the library
_EXPECTED: list[list[str]] = json.loads((DATA / "expected.json").read_text())


def _derive(observation: Observation) -> Failure:
    failure = derive(observation)
    assert failure is not None
    return failure


@pytest.mark.parametrize(("name", "stage", "kind", "type_", "symbol", "place"), _EXPECTED, ids=lambda v: v)
def test_recorded_failures(name: str, stage: str, kind: str, type_: str, symbol: str, place: str) -> None:
    failure = _derive(observed(name))
    signature = failure.signature
    assert (signature.stage, signature.kind, signature.type, signature.symbol) == (stage, kind, type_, symbol)
    assert (f"{failure.file}:{failure.line}" if failure.file else "") == place
    assert same(signature, failure)


def test_every_recording_is_expected() -> None:
    assert {row[0] for row in _EXPECTED} == {path.stem for path in (DATA / "observed").glob("*.json")}


def test_recorded_failures_differ_from_one_another() -> None:
    """No two recordings are the same failure, but for those that record one fault in several ways."""
    failures = {row[0]: _derive(observed(row[0])) for row in _EXPECTED}
    twins = {frozenset({"extra-link-args-none", "pip-setup"})}
    for first, one in failures.items():
        for second, other in failures.items():
            if first < second and one.signature.kind != "mismatch":
                assert same(one.signature, other) == (frozenset({first, second}) in twins), (first, second)


@pytest.mark.parametrize("style", ["auto", "long", "short", "native", "line", "no"])
def test_pytest_styles_tell_the_same_failure(style: str) -> None:
    failure = _derive(ran((DATA / "reports" / f"{style}.txt").read_text()))
    expected = Signature(
        "run",
        "exception",
        "AttributeError",
        "torch.Tensor.no_such_method",
        "'Tensor' object has no attribute 'no_such_method'",
        "library",
    )
    assert same(expected, failure)
    assert [signature.type for signature in failure.also][-2:] == ["AssertionError", "Failed"]
    if style != "no":
        assert failure.signature.symbol == expected.symbol
        assert (failure.file, failure.line) == ("lib/__init__.py", 3)
        assert failure.also[0].symbol == "torch.no_such_function"  # the cause, not the fallback's KeyError


@pytest.mark.parametrize(
    ("report", "code", "expected"),
    [
        ("conf", 4, ("import", "exception", "ModuleNotFoundError", "torch.nope")),
        ("unitimp", 1, ("import", "exception", "ModuleNotFoundError", "torch.nope")),
        ("unit", 1, ("run", "exception", "AttributeError", "torch.Tensor.no_such_method")),
        ("child", 1, ("run", "exception", "ModuleNotFoundError", "torch.nope")),
        ("childline", 1, ("run", "exception", "ModuleNotFoundError", "torch.nope")),
        ("plainchild", 1, ("run", "exception", "ModuleNotFoundError", "torch.nope")),
        ("wrap", 1, ("run", "exception", "ValueError", "multiply")),
        ("group", 1, ("run", "exception", "ExceptionGroup", "")),
        ("none", 5, ("run", "exit", "exit 5", "")),
        ("usage", 4, ("run", "exit", "exit 4", "")),
        ("nofile", 2, ("run", "exit", "exit 2", "")),
    ],
)
def test_other_reports(report: str, code: int, expected: tuple[str, ...]) -> None:
    signature = _derive(ran((DATA / "reports" / f"{report}.txt").read_text(), code)).signature
    assert (signature.stage, signature.kind, signature.type, signature.symbol) == expected


def test_passing_sides() -> None:
    fine = Step("python test.py", 0, "ok", "")
    assert derive(Observation("paddle", ROOT, build=fine, run=fine)) is None
    assert derive(Observation("torch", ROOT, run=fine)) is None
    assert derive(Observation("paddle", ROOT, diagnostics=())) is None


def test_a_build_that_swallowed_a_compile_error_has_failed() -> None:
    call = CompilerCall(
        ("g++", "-c", "csrc/a.cc"), ROOT, 1, "csrc/a.cc:3:5: error: 'foo' was not declared in this scope"
    )
    fine = Step("build", 0, "", "")
    failure = _derive(Observation("paddle", ROOT, build=fine, calls=(call,), run=fine))
    assert (failure.signature.stage, failure.signature.symbol) == ("compile", "foo")
    again = replace(call, exit_code=0, stderr="")
    assert derive(Observation("paddle", ROOT, build=fine, calls=(call, again), run=fine)) is None
    probe = CompilerCall(("g++", "-c", "/t/flagcheck.cpp"), ROOT, 1, "g++: error: unrecognized option '-fx'")
    assert derive(Observation("paddle", ROOT, build=fine, calls=(probe,), run=fine)) is None


def test_a_build_that_leaves_nothing_has_failed() -> None:
    signature = _derive(Observation("paddle", ROOT, build=Step("build", 0, "", ""), built=False)).signature
    assert (signature.stage, signature.kind, signature.type) == ("link", "exit", "built-nothing")


@pytest.mark.parametrize(("code", "name"), [(-11, "SIGSEGV"), (139, "SIGSEGV"), (-6, "SIGABRT"), (134, "SIGABRT")])
def test_signals(code: int, name: str) -> None:
    signature = _derive(ran("", code)).signature
    assert (signature.kind, signature.type) == ("signal", name)


def test_the_first_error_by_position_that_names_its_cause_is_the_failure() -> None:
    text = """a.cc:9:3: error: 'scalar_t' was not declared in this scope
a.cc:2:1: error: expected ';' before 'x'
a.cc:8:3: error: 'AT_DISPATCH_ALL' was not declared in this scope
"""
    failure = _derive(compiled(text))
    assert failure.signature.symbol == "AT_DISPATCH_ALL"
    assert [signature.symbol for signature in failure.also] == ["scalar_t", ""]
    assert same(replace(failure.signature, symbol="scalar_t"), failure)
    assert not same(replace(failure.signature, symbol="other_t"), failure)


def test_the_users_regex_decides_in_place_of_the_symbol() -> None:
    failure = _derive(compiled("a.cc:1:1: error: 'foo' was not declared in this scope"))
    other = replace(failure.signature, symbol="bar")
    assert not same(other, failure)
    assert same(other, failure, re.compile("foo.*declared"))
    assert not same(other, failure, re.compile("nowhere"))
    assert same(other, failure, re.compile("nowhere"), output="but nowhere here")
    assert not same(replace(other, stage="run"), failure, re.compile("foo"))


def test_diagnostics_without_text_are_read_structurally() -> None:
    found = (
        Diagnostic("warning", "unused variable 'x'", "a.cc", 1, 1),
        Diagnostic("error", "no member named 'item' in 'paddle::Tensor'", "a.cc", 4, 2),
    )
    failure = _derive(Observation("paddle", ROOT, diagnostics=found))
    assert same(Signature("compile", "diagnostic", "missing-member", "at::Tensor::item", "missing-member"), failure)
    assert derive(Observation("paddle", ROOT, diagnostics=found[:1])) is None


def test_an_assertion_inside_a_framework_is_no_mismatch() -> None:
    text = """Traceback (most recent call last):
  File "/case/setup.py", line 3, in <module>
    setup()
  File "/venv/lib/python3.11/site-packages/paddle/utils/cpp_extension/cpp_extension.py", line 9, in run
    assert len(outputs) == 1
AssertionError
"""
    failure = _derive(Observation("paddle", ROOT, build=Step("build", 1, "", text)))
    assert (failure.signature.kind, failure.signature.template) == ("exception", "assert len(outputs) == <n>")


def test_descriptions_are_one_line() -> None:
    for row in _EXPECTED:
        text = describe(_derive(observed(row[0])).signature)
        assert "\n" not in text and row[1] in text and row[4] in text


def _checked(message: str) -> Failure:
    text = f'Traceback (most recent call last):\n  File "{ROOT}/test_a.py", line 3, in test_a\n    assert x\n'
    return _derive(Observation("paddle", ROOT, run=Step("pytest", 1, "", f"{text}AssertionError: {message}\n")))


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("assert 0.69 == 1.38 ± 1.4e-06", "assert 1.0 == 2.0 ± 1e-3", True),
        ("assert 0.69 == 1.38 ± 1.4e-06", "assert Tensor(shape=...ue,\n       1.) == 1.38 ± 1.4e-06", False),
        ("assert Tensor(shape=...ue,\n       1.) == 1.0", "assert Tensor(shape=[2], dtype=int64) == 2", True),
        ("assert 2 == 3", "assert 2 == tensor(3)", False),
        ("assert [1.0] == [2.0]", "assert 1.0 == 2.0", True),
        ("assert False", "", True),
    ],
)
def test_a_check_of_a_number_is_none_of_a_tensor(one: str, other: str, alike: bool) -> None:
    assert same(_checked(one).signature, _checked(other)) is alike
    assert same(_checked(other).signature, _checked(one)) is alike


def test_warnings_of_a_child_process_are_no_part_of_a_message() -> None:
    warning = "/v/site-packages/paddle/x.py:712: UserWarning: No ccache found.\n  warnings.warn(warning_message)\n"
    failure = _checked(f"{warning}Traceback (most recent call last):\nValueError: no")
    assert "ccache" not in failure.message and "warn(" not in failure.message
    assert "ValueError: no" in failure.message
