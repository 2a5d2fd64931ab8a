"""Formatting of C++ by clang-format, in one fixed style."""

from __future__ import annotations

import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from reducer.syntax.cxx_tokens import code_tokens

_STYLE = (
    "{BasedOnStyle: Google, ColumnLimit: 100, AllowShortFunctionsOnASingleLine: All, AllowShortBlocksOnASingleLine: "
    "Empty, AllowShortLambdasOnASingleLine: Inline, MaxEmptyLinesToKeep: 1, SortIncludes: Never, IncludeBlocks: "
    "Preserve, DerivePointerAlignment: false, PointerAlignment: Left, SpacesInAngles: Never, FixNamespaceComments: "
    "false, InsertNewlineAtEOF: true, SeparateDefinitionBlocks: Leave, KeepEmptyLinesAtTheStartOfBlocks: false}"
)
_TIMEOUT = 20.0


def format_cxx(content: bytes) -> bytes:
    """``content`` laid out anew: the same tokens in the same order, or ``content`` itself when clang-format fails.

    Blank lines stand between what is defined at file level and after the includes, and nowhere else.
    """
    spaced = _spaced(content)
    try:
        done = subprocess.run(
            [_binary(), f"--style={_STYLE}", "--assume-filename=x.cc"],
            input=spaced,
            capture_output=True,
            timeout=_TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired):
        return content
    if done.returncode != 0 or _words(done.stdout) != _words(content):
        return content
    return done.stdout


def _words(content: bytes) -> list[str]:
    """What must not change: the tokens; string literals that were split or joined count by their text."""
    return [" ".join(t.text.split()) for t in code_tokens(content)]


def _spaced(content: bytes) -> bytes:
    """``content`` without blank lines but those between file-level pieces."""
    tokens = code_tokens(content)
    depth = 0
    pieces: list[bytes] = []
    position = 0
    for index, token in enumerate(tokens):
        gap = content[position : token.start]
        if b"\n" in gap and gap.strip() == b"":
            previous = tokens[index - 1] if index else None
            directive, after_directive = (t is not None and t.kind == "directive" for t in (token, previous))
            after_block = previous is not None and previous.text == "}" and not directive
            kept_apart = gap.count(b"\n") > 1 and not (directive and after_directive)
            wide = depth == 0 and (directive != after_directive or after_block or kept_apart)
            gap = b"" if previous is None else b"\n\n" if wide else b"\n"
        pieces += (gap, content[token.start : token.end])
        position = token.end
        if token.text == "{":
            depth += 1
        elif token.text == "}":
            depth -= 1
    tail = content[position:]
    return b"".join(pieces) + (tail if tail.strip() else b"\n")


@cache
def _binary() -> str:
    """clang-format of the wheel, or the one on PATH."""
    spec = find_spec("clang_format")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for name in ("clang-format", "clang-format.exe"):
            found = Path(place) / "data" / "bin" / name
            if found.is_file():
                return str(found)
    return "clang-format"
