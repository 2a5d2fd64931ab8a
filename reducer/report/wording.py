"""What a signature says in English, for titles and summaries."""

from __future__ import annotations

from reducer.oracle.failure import Signature
from reducer.report.result import Advice, Form, GapClass, Layer

LAYERS: dict[Layer, str] = {
    "cxx_api": "the C++ API (compat headers)",
    "op_registration": "operator registration (`TORCH_LIBRARY`, `torch.ops`)",
    "python_interface": "the Python API",
    "python_proxy": "the `torch` module proxy",
    "build_tooling": "build tooling (`torch.utils.cpp_extension`)",
}

CLASSES: dict[GapClass, str] = {"A": "public API of PyTorch", "B": "private or undocumented behaviour of PyTorch"}

VERDICTS: dict[Advice, str] = {
    "issue": "a gap to fix in the compat layer",
    "workaround": "best worked around in the library",
    "not_a_gap": "not a gap of the compat layer",
}

_MISSING = frozenset({"missing-header", "missing-member", "missing-name"})


def code(text: str, limit: int = 120) -> str:
    """One line of inline code in Markdown."""
    line = " ".join(text.split()).replace("`", "'")
    return f"`{line if len(line) <= limit else line[: limit - 1] + '…'}`"


def title(signature: Signature, message: str, form: Form) -> str:
    """The issue's title: one line, the API first."""
    if signature.symbol:
        return f"[torch compat] {code(signature.symbol)} {_what(signature)}"
    first = next((line.strip() for line in message.splitlines() if line.strip()), "")
    return f"[torch compat] {_subject(form)} {_what(signature)}" + (f": {code(first)}" if first else "")


def summary(signature: Signature, form: Form, paddle: str, torch: str) -> str:
    """One sentence: what fails where, and where it works."""
    subject = code(signature.symbol) if signature.symbol else _subject(form)
    where = f"Paddle {paddle}'s torch-compat layer"
    if _is_missing(signature):
        return f"{subject} is missing from the C++ headers of {where}; the same files compile with PyTorch {torch}."
    return (
        f"{subject[:1].upper()}{subject[1:]} {_what(signature)} with {where} (`paddle.enable_compat()`); "
        f"the same files work with PyTorch {torch}."
    )


def _is_missing(signature: Signature) -> bool:
    return signature.stage == "compile" and signature.type in _MISSING and bool(signature.symbol)


def _subject(form: Form) -> str:
    return "a PyTorch extension" if form == "extension" else "a PyTorch script"


def _what(signature: Signature) -> str:
    if signature.kind == "timeout":
        return "does not come to an end"
    if signature.kind == "signal":
        return f"crashes the process ({signature.type or 'signal'})"
    if signature.kind == "mismatch" or signature.type == "AssertionError":
        return "gives another result than PyTorch"
    if signature.stage == "compile":
        return "is missing from the C++ headers" if _is_missing(signature) else "does not compile"
    if signature.stage == "link":
        return "does not link"
    how = f"with {signature.type}" if signature.type else "with an error"
    if signature.stage == "setup":
        return f"fails in setup.py {how}"
    if signature.stage == "import":
        return f"fails on import {how}"
    return f"fails {how}"
