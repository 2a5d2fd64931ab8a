"""Whether a failure is about a public PyTorch API (class A) or about private behaviour (class B)."""

from __future__ import annotations

import re

from reducer.diagnosis.evidence import Evidence

_PRIVATE_PART = re.compile(r"(?:^|\.|::)_(?!_)\w+|(?:^|::)(?:detail|details|impl|internal|native)(?:::|$)")
_SPECIAL = re.compile(r"__\w+__")
_PRIVATE_IMPORT = re.compile(r"^\s*from\s+(torch[\w.]*)\s+import\s+\(?\s*(_[a-z]\w*)", re.MULTILINE)
_PRIVATE_USE = re.compile(r"\btorch(?:\.\w+)*\._[a-zA-Z]\w*")
_HOOK = re.compile(r"def (__torch_(?:function|dispatch)__)\b")
_GOT = re.compile(r"must be \w+, but got (\w+)")


def private_names(evidence: Evidence) -> list[tuple[str, str]]:
    """The private names that the failure touches, each with the reason; empty for a public API."""
    found: list[tuple[str, str]] = []
    symbol = evidence.symbol
    if symbol.startswith(("torch", "at::", "c10::")) and _PRIVATE_PART.search(_without_special(symbol)):
        found.append((symbol, "the failing name is private"))
    for name in _PRIVATE_USE.findall(evidence.line):
        found.append((name, "the failing line uses it"))
    for match in _PRIVATE_IMPORT.finditer(evidence.line):
        found.append((f"{match.group(1)}.{match.group(2)}", "the failing line imports it"))
    if "sys.modules" in evidence.nearby:
        found.append(("sys.modules", "what an import leaves in it is a side effect, not an API"))
    hook = _HOOK.search(evidence.python)
    got = _GOT.search(evidence.message)
    if hook is not None and got is not None and re.search(rf"class {re.escape(got.group(1))}\b", evidence.python):
        found.append((hook.group(1), f"the class {got.group(1)} relies on torch's override protocol"))
    return list(dict.fromkeys(found))


def _without_special(symbol: str) -> str:
    """``torch.ops.__x__``-like names are Python's, not private ones."""
    return _SPECIAL.sub("", symbol)
