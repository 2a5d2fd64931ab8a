"""What may change without changing a signature, and what may not."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reducer.oracle.failure import Failure
from reducer.oracle.names import bare, same_symbol
from reducer.oracle.normalise import template
from reducer.oracle.observation import Observation, Step
from reducer.oracle.signature import derive, same
from tests.oracle.observations import compiled

_name = st.from_regex(r"[a-z][a-z]{2,8}", fullmatch=True).filter(lambda name: name not in ("const", "enum", "operator"))
_directory = st.lists(_name, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))
_line = st.integers(1, 5000)
_address = st.integers(1, 2**47).map(hex)
_colour = st.sampled_from(["", "\x1b[31m", "\x1b[1;31m"])
_temporary = st.from_regex(r"tmp[a-z0-9]{8}", fullmatch=True)


def _known(failure: Failure | None) -> Failure:
    assert failure is not None
    return failure


def _raised(root: str, line: int, colour: str, message: str) -> Failure:
    text = f"""Traceback (most recent call last):
  File "{root}/test.py", line {line}, in <module>
    run()
  File "{root}/lib/core.py", line {line + 7}, in run
    return go()
{colour}RuntimeError: {message}{chr(27) + "[0m" if colour else ""}
"""
    return _known(derive(Observation("paddle", root, run=Step("python test.py", 1, "", text))))


@given(st.data(), _name)
def test_exceptions_do_not_depend_on_place_or_run(data: st.DataObject, name: str) -> None:
    def once() -> Failure:
        root, temporary = data.draw(_directory), data.draw(_temporary)
        message = (
            f"cannot {name} generated_tensor_{data.draw(_line)} of {data.draw(_line)} bytes at {data.draw(_address)}"
            f" in {root}/{temporary}/x.cc:{data.draw(_line)} (at /paddle/phi/core/x.cc:{data.draw(_line)})"
        )
        return _raised(root, data.draw(_line), data.draw(_colour), message)

    first, second = once(), once()
    assert first.signature == second.signature
    assert name in first.signature.template


@given(_directory, _line, _name, _name)
def test_other_names_are_other_failures(root: str, line: int, first: str, second: str) -> None:
    one = _raised(root, line, "", f"module 'paddle.nn' has no attribute '{first}'")
    other = _raised(root, line, "", f"module 'paddle.nn' has no attribute '{second}'")
    assert one.signature.symbol == f"torch.nn.{first}"
    assert same(one.signature, other) == (first == second)


@given(_directory, _directory, _line, _line, st.integers(1, 200), _name, st.sampled_from(["''", "‘’"]))
def test_diagnostics_do_not_depend_on_place(
    here: str, there: str, line: int, other: int, column: int, name: str, quotes: str
) -> None:
    opened, closed = quotes[0], quotes[1]
    message = f"{opened}{name}{closed} is not a member of {opened}at{closed}"
    first = _known(derive(compiled(f"{here}/a.cc:{line}:{column}: error: {message}")))
    second = _known(derive(compiled(f"{there}/b.cc:{other}:1: error: {message}; did you mean {opened}x{closed}?")))
    assert first.signature == second.signature
    assert first.signature.symbol == f"at::{name}"


@given(st.lists(st.tuples(_line, _name), min_size=1, max_size=8, unique_by=lambda pair: pair[0]), st.randoms())
def test_the_order_of_printing_does_not_matter(errors: list[tuple[int, str]], random: object) -> None:
    def text(pairs: list[tuple[int, str]]) -> str:
        return "".join(f"/case/a.cc:{n}:3: error: '{name}' was not declared in this scope\n" for n, name in pairs)

    shuffled = list(errors)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, second = _known(derive(compiled(text(errors)))), _known(derive(compiled(text(shuffled))))
    assert first.signature == second.signature
    assert first.line == second.line == min(errors)[0]
    for _, name in errors:  # any error of the run counts as seen
        assert same(replace(first.signature, symbol=name), first)


@given(st.lists(_name, min_size=1, max_size=4), st.lists(_name, min_size=1, max_size=4))
def test_symbols(first: list[str], second: list[str]) -> None:
    a, b = "::".join(first), "::".join(second)
    assert same_symbol(a, a)
    assert same_symbol(a, b) == same_symbol(b, a)
    if first[-1] != second[-1]:
        assert not same_symbol(a, b)
    assert same_symbol(f"at::{a}", f"torch::{a}")


@given(st.lists(_name, min_size=1, max_size=4), _name, st.booleans())
def test_bare_names(parts: list[str], argument: str, member: bool) -> None:
    name = "::".join(parts)
    printed = f"std::vector<{argument}> {name}<{argument}<int>, 3>(const {argument}&, int*)" + (
        " const" if member else ""
    )
    assert bare(printed) == name
    assert bare(f"const class {name}<{argument}> &") == name


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    failure = derive(Observation("paddle", "/case", run=Step("python test.py", 1, text, text)))
    assert failure is not None and same(failure.signature, failure)
    assert derive(Observation("paddle", "/case", build=Step("build", 1, text, text))) is not None
    assert "\n" not in template(text)


@pytest.mark.parametrize("unit", ["x", "a b ", "[1, 2, ", "a/b.c-d/", "'", "-", "E   x: y\n", "k: v\n"])
def test_huge_output_takes_no_more_than_seconds(unit: str) -> None:
    text = 'Traceback (most recent call last):\n  File "/case/a.py", line 1, in <module>\nValueError: ' + unit * 50_000
    start = time.monotonic()
    assert derive(Observation("paddle", "/case", run=Step("python a.py", 1, text, text))) is not None
    assert time.monotonic() - start < 10
