"""The full name of the API that an MRE is about, where the failure's message gives a part of it or nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from reducer.diagnosis.evidence import Evidence
from reducer.oracle.failure import Failure

# What scripts make their operands with: these are rarely the point when anything else is called.
_MAKERS = frozenset({
    "tensor", "zeros", "ones", "empty", "full", "arange", "rand", "randn", "randint", "eye", "linspace", "Tensor",
    "manual_seed", "no_grad", "zeros_like", "ones_like", "from_numpy", "tolist", "item", "shape", "size", "dim",
    "numel",
    "sum", "all", "any", "float", "int", "bool", "long", "double", "detach", "clone",
})  # fmt: skip
_METHOD = re.compile(r"(?:\.|->)\s*(?:template\s+)?(\w+)\s*(?:<[^<>;()]*>)?\s*\(")
_FUNCTION = re.compile(r"\b(?:at|torch|c10)::(?:\w+::)*(\w+)\s*(?:<[^<>;()]*>)?\s*\(")
_REGISTRATION = re.compile(r"\b(?:TORCH_LIBRARY|PYBIND11_MODULE)\w*\s*\([^)]*\)\s*\{.*?\}", re.DOTALL)
_PLAIN = frozenset({
    "def", "impl", "sizes", "size", "dim", "numel", "data_ptr", "scalar_type", "options", "device", "contiguous",
    "is_cpu",
    "defined",
})  # fmt: skip


def api_name(failure: Failure, sources: Mapping[str, bytes]) -> str:
    """The signature's symbol when it is a full name; else what the reduced sources say: the one framework call whose
    last part the symbol names, or the only one that is left. "" when nothing singles one out."""
    evidence = Evidence(failure, sources)
    symbol = failure.signature.symbol
    if "::" in symbol or symbol.startswith("torch."):
        return symbol
    base = re.split(r"[(.]", symbol)[0]
    if "Error in operator" in failure.message or not evidence.python:
        return _cxx_name(evidence, base) or symbol
    calls = list(dict.fromkeys(_python_calls(evidence.python)))
    if base:
        full = [name for name in calls if name.rsplit(".", 1)[-1] == base]
        return full[0] + symbol[len(base) :] if full else symbol
    telling = [name for name in calls if name.rsplit(".", 1)[-1] not in _MAKERS and not name.startswith("torch.ops.")]
    if len(telling) == 1:
        return telling[0]
    return (_cxx_name(evidence, "") if evidence.cxx and not telling else "") or symbol


def _python_calls(text: str) -> Iterator[str]:
    """Dotted names of the framework's functions, and ``torch.Tensor.x`` for methods, that the code calls."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    names = dict(_aliases(module))
    for node in ast.walk(module):
        if not isinstance(node, ast.Call):
            continue
        parts = _parts(node.func)
        if parts and parts[0] in names:
            yield ".".join([names[parts[0]], *parts[1:]])
        elif isinstance(node.func, ast.Attribute):
            yield f"torch.Tensor.{node.func.attr}"


def _aliases(module: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "torch":
                    yield (alias.asname, alias.name) if alias.asname else ("torch", "torch")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch" and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _parts(node: ast.expr) -> list[str]:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else []


def _cxx_name(evidence: Evidence, base: str) -> str:
    """``at::f`` or ``at::Tensor::f`` for the one call that the C++ code makes besides plain look-ups."""
    code = _REGISTRATION.sub("", re.sub(r"^\s*#.*$", "", evidence.cxx, flags=re.MULTILINE))
    named = set(re.findall(r"`(\w+)`", evidence.message)) | ({base} if base else set())
    found = [f"at::{name}" for name in _FUNCTION.findall(code)]
    found += [f"at::Tensor::{name}" for name in _METHOD.findall(code)]
    found = list(dict.fromkeys(found))
    by_message = [name for name in found if name.rsplit("::", 1)[-1] in named]
    if by_message:
        return by_message[0]
    telling = [name for name in found if name.rsplit("::", 1)[-1] not in _PLAIN]
    return telling[0] if len(telling) == 1 else ""
