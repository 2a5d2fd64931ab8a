"""The same fault in g++'s, clang's and nvcc's words, taken from the compilers themselves."""

from __future__ import annotations

import importlib.resources
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import clang.cindex
import pytest

from reducer.oracle.failure import Failure, Signature
from reducer.oracle.observation import Diagnostic, Observation
from reducer.oracle.signature import derive, same
from reducer.oracle.wording import classify
from tests.oracle.observations import DATA, compiled
from tests.oracle.snippets import SNIPPETS, Snippet

_BUILTIN_HEADERS = Path(str(importlib.resources.files("clang_tidy"))) / "data/lib/clang"
# Faults that one compiler does not tell apart from another fault: no wording can make these equal.
_CLANG_DIFFERS = {
    "single-func-class": ("no-matching-call", "f"),  # g++ names only the conversion
    "not-template": ("syntax", ""),
    "using-ns": ("syntax", ""),
    "brace-init": ("no-matching-call", "f"),  # g++ names the constructor inside
}
_NVCC_DIFFERS = {
    "unknown-ns-type": ("missing-member", "c11::Foo"),  # does not say which of the two is missing
    "single-func-conv": ("no-matching-conversion", "int"),
    "not-scope": ("missing-name", "a"),
    "bind-rvalue": ("no-matching-conversion", ""),
    "new-unknown": ("syntax", ""),
}
needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def _by_clang(source: str) -> Failure | None:
    headers = max(_BUILTIN_HEADERS.glob("*/include"))
    unit = clang.cindex.Index.create().parse(
        "a.cc", args=["-std=c++17", "-isystem", str(headers)], unsaved_files=[("a.cc", source)]
    )
    found: list[Diagnostic] = []
    for item in unit.diagnostics:
        if item.severity >= clang.cindex.Diagnostic.Error:
            fatal = item.severity == clang.cindex.Diagnostic.Fatal
            found.append(
                Diagnostic(
                    "fatal" if fatal else "error", item.spelling, "a.cc", item.location.line, item.location.column
                )
            )
            found += [Diagnostic("note", child.spelling, "a.cc", child.location.line) for child in item.children]
    return derive(Observation("paddle", "/case", diagnostics=tuple(found)))


def _known(failure: Failure | None) -> Failure:
    assert failure is not None
    return failure


@needs_gxx
@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.name)
def test_gxx_and_clang_agree(snippet: Snippet, tmp_path: Path) -> None:
    (tmp_path / "a.cc").write_text(snippet.source)
    run = subprocess.run(
        ["g++", "-std=c++17", "-fsyntax-only", "a.cc"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert run.returncode != 0
    by_gxx = _known(derive(compiled(run.stderr)))
    assert (by_gxx.signature.type, by_gxx.signature.symbol) == (snippet.type, snippet.symbol)
    by_clang = _known(_by_clang(snippet.source))
    if snippet.name in _CLANG_DIFFERS:
        assert (by_clang.signature.type, by_clang.signature.symbol) == _CLANG_DIFFERS[snippet.name]
        assert not same(by_gxx.signature, by_clang)
    else:
        assert same(by_gxx.signature, by_clang), by_clang.signature
        assert same(by_clang.signature, by_gxx), by_clang.signature
        assert by_gxx.line == by_clang.line


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.name)
def test_nvcc_says_the_same(snippet: Snippet) -> None:
    """Texts printed by nvcc 13.0 for the same snippets."""
    text = json.loads((DATA / "nvcc.json").read_text())[snippet.name]
    by_nvcc = _known(derive(compiled(text, "s.cu")))
    if snippet.name in _NVCC_DIFFERS:
        assert (by_nvcc.signature.type, by_nvcc.signature.symbol) == _NVCC_DIFFERS[snippet.name]
    else:
        told = Signature("compile", "diagnostic", snippet.type, snippet.symbol, by_nvcc.signature.template)
        assert same(told, by_nvcc), by_nvcc.signature


def test_different_names_stay_different() -> None:
    failures = [_known(_by_clang(snippet.source)) for snippet in SNIPPETS if snippet.symbol]
    for first in failures:
        for second in failures:
            a, b = first.signature, second.signature
            if a.symbol and b.symbol and a.symbol.rpartition("::")[2] != b.symbol.rpartition("::")[2]:
                alone = replace(second, also=())
                assert not same(a, alone), (a, b)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "‘matmul’ is not a member of ‘at’; did you mean ‘paddle::experimental::matmul’?",
            ("missing-member", "at::matmul"),
        ),
        (
            "‘Meta’ is not a member of ‘c10::DeviceType’ {aka ‘phi::AllocationType’}",
            ("missing-member", "c10::DeviceType::Meta"),
        ),
        ("\x1b[1mno member named 'matmul' in namespace 'at'\x1b[0m", ("missing-member", "at::matmul")),
        ("a sentence that no compiler says", ("other", "")),
    ],
)
def test_suggestions_aliases_and_colours_do_not_count(message: str, expected: tuple[str, str]) -> None:
    assert classify(message) == expected


def test_every_snippet_has_its_own_name() -> None:
    assert len({snippet.name for snippet in SNIPPETS}) == len(SNIPPETS) >= 40
    assert all(re.fullmatch(r"[a-z0-9-]+", snippet.name) for snippet in SNIPPETS)
