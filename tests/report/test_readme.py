"""README.md: an issue body that needs no editing."""

from __future__ import annotations

import re

import pytest

from reducer.oracle.failure import Signature
from reducer.report.readme import decisive_lines, fenced, readme
from reducer.report.result import Commands, Confirmed, MreResult
from reducer.report.scrub import Private
from reducer.report.wording import title
from tests.report.samples import PADDLE_LOG, SCRIPT_LOG, extension, script

PRIVATE = Private(names=("alice",), directories={"/home/alice/mre": "."})


@pytest.mark.parametrize("result", [extension(), script()], ids=["extension", "script"])
def test_the_whole_issue(result: MreResult) -> None:
    text = readme(result, PRIVATE)
    lines = text.splitlines()
    assert lines[0].startswith("# [torch compat] `")
    assert result.signature.symbol in lines[0]
    assert "PyTorch 2.13.0+cpu" in lines[2] and "Paddle 3.3.1" in lines[2] and result.signature.symbol in lines[2]
    for path, content in result.files.items():
        assert f"`{path}`\n\n```" in text
        assert content.decode() in text, "a source is not there in full"
    for command in (result.commands.build, result.commands.run, result.commands.control_run):
        assert command is None or f"\n{command}\n" in text
    assert "`USE_TORCH=1`" in text
    assert "| version | 3.3.1 | 2.13.0+cpu |" in text
    assert "pytest tests/test_ops.py" in text
    assert "3 of 3 runs" in text
    prose = text
    for content in result.files.values():
        prose = prose.replace(content.decode(), "")
    assert not re.search(r"\$\w|None|\n\n\n", prose)
    assert not re.search(r"(?i)todo|fill in", text)


def test_the_compiler_complaint_is_shown_with_its_echo_and_no_more() -> None:
    message = "'class at::Tensor' has no member named 'index_add_'"
    assert decisive_lines(PADDLE_LOG, message).splitlines()[0].endswith("did you mean 'index'?")
    assert "return x.index_add_" in decisive_lines(PADDLE_LOG, message)
    assert "compile failed" not in decisive_lines(PADDLE_LOG, message)


def test_a_traceback_is_shown_whole() -> None:
    shown = decisive_lines(
        "warming up\n" + SCRIPT_LOG + "bye\n", "AttributeError: 'Tensor' object has no attribute 'index_copy_'"
    )
    assert shown == SCRIPT_LOG.rstrip("\n")


def test_the_second_of_two_tracebacks_is_shown_alone() -> None:
    first = SCRIPT_LOG.replace("index_copy_", "other")
    shown = decisive_lines(first + "\nbetween\n" + SCRIPT_LOG, "'Tensor' object has no attribute 'index_copy_'")
    assert "other" not in shown
    assert shown.startswith("Traceback")


def test_a_long_traceback_keeps_its_ends() -> None:
    frames = "".join(f'  File "f{i}.py", line 1, in f\n    g()\n' for i in range(40))
    shown = decisive_lines(f"Traceback (most recent call last):\n{frames}ValueError: no\n", "ValueError: no")
    assert len(shown.splitlines()) == 14
    assert shown.splitlines()[-1] == "ValueError: no"
    assert "..." in shown


def test_without_the_message_the_end_is_shown() -> None:
    assert decisive_lines("a\nb\n", "never printed") == "a\nb"
    assert decisive_lines("", "never printed") == ""


@pytest.mark.parametrize("text", ["plain", "``` inside", "````` longer"])
def test_a_fence_is_longer_than_what_it_holds(text: str) -> None:
    block = fenced(text, "text").splitlines()
    fence = block[-1]
    assert block[0] == f"{fence}text"
    assert not any(line.startswith(fence) for line in block[1:-1])


@pytest.mark.parametrize(
    ("signature", "words"),
    [
        (
            Signature("setup", "exception", "TypeError", "torch.utils.cpp_extension.CppExtension"),
            "in setup.py with TypeError",
        ),
        (Signature("compile", "diagnostic", "missing-header", "torch/script.h"), "missing from the C++ headers"),
        (Signature("compile", "diagnostic", "no-matching-call", "c10::str"), "does not compile"),
        (Signature("link", "link", "undefined", "at::foo"), "does not link"),
        (Signature("import", "exception", "ImportError", "torch.library.Library"), "on import with ImportError"),
        (Signature("run", "signal", "SIGSEGV", "torch.ops.x.y"), "crashes the process (SIGSEGV)"),
        (Signature("run", "timeout", "", "torch.Tensor.slice"), "does not come to an end"),
        (Signature("run", "exception", "AssertionError", "torch.arange"), "gives another result"),
        (Signature("run", "mismatch", "", "torch.arange"), "gives another result"),
        (Signature("run", "exit", "", "torch.arange"), "with an error"),
    ],
)
def test_titles(signature: Signature, words: str) -> None:
    line = title(signature, "some message", "script")
    assert words in line and f"`{signature.symbol}`" in line


def test_a_title_without_a_symbol_quotes_the_message() -> None:
    line = title(Signature("run", "exception", "ValueError"), "\nbad `x`\nmore", "script")
    assert line == "[torch compat] a PyTorch script fails with ValueError: `bad 'x'`"


def test_a_script_needs_no_compiler_and_no_second_copy() -> None:
    text = readme(script(), PRIVATE)
    assert "compiler." not in text.split("## How to run")[1].split("## What happens")[0]
    assert "fresh copy" not in text
    assert "fresh copy" in readme(extension(), PRIVATE)


def test_no_control_no_claim() -> None:
    text = readme(script(commands=Commands(None, "python repro.py", None, None)), PRIVATE)
    assert "# PyTorch" not in text.split("## How to run")[1].split("## What happens")[0]


@pytest.mark.parametrize(
    ("confirmed", "words"),
    [
        (Confirmed(3, 3, 2, 2), "with Paddle 3 of 3 runs failed in this way, with PyTorch 2 of 2 runs passed"),
        (Confirmed(3, 2, 0, 0), "with Paddle 2 of 3 runs failed in this way, PyTorch was not run"),
        (Confirmed(0, 0, 0, 0), "stopped before the files above were run"),
    ],
)
def test_nothing_is_called_confirmed_that_did_not_run(confirmed: Confirmed, words: str) -> None:
    assert words in readme(script(confirmed=confirmed), PRIVATE)
