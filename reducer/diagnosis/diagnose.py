"""Where a failure belongs, whether it is a public API's, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from reducer.diagnosis.evidence import Evidence
from reducer.diagnosis.layers import Layer, layer_of
from reducer.diagnosis.privacy import private_names
from reducer.oracle.failure import Failure

Class = Literal["A", "B"]
Verdict = Literal["issue", "workaround"]

_ANCHORS: dict[Layer, str] = {
    "cxx_api": "paddle/phi/api/include/compat/",
    "op_registration": "compat/torch/library.h, library.cpp and paddle/fluid/pybind/torch_compat.h",
    "python_interface": "the Python file of that API",
    "python_proxy": "python/paddle/compat/proxy.py",
    "build_tooling": "python/paddle/utils/cpp_extension/",
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """``klass``: A is a public PyTorch API, B private behaviour. ``evidence``: sentences, each a reason."""

    layer: Layer
    klass: Class
    verdict: Verdict
    evidence: tuple[str, ...]
    advice: str


def diagnose(failure: Failure, sources: Mapping[str, bytes]) -> Diagnosis:
    """Judge a failure with the case's sources at hand; the reduced case gives the surest answer.

    Nothing is run. A failure that no rule knows gets the layer that the presence of C++ suggests.
    """
    evidence = Evidence(failure, sources)
    layer, reason = layer_of(evidence)
    private = private_names(evidence)
    klass: Class = "B" if private else "A"
    scope = _outside_scope(failure)
    verdict: Verdict = "workaround" if private or scope else "issue"
    reasons = [f"{failure.signature.stage} stage: {reason}."]
    if failure.file:
        reasons.append(f"It stands at {failure.file}:{failure.line}" + (f": {evidence.line}" if evidence.line else "."))
    reasons += [f"Private: {name} ({why})." for name, why in private]
    if not private:
        reasons.append("No private name of torch is touched where it fails.")
    if scope:
        reasons.append("torch itself is not found: the code that imports it is outside the compat scope.")
    return Diagnosis(layer, klass, verdict, tuple(reasons), _advice(layer, klass, scope, failure))


def _outside_scope(failure: Failure) -> bool:
    return re.search(r"No module named 'torch'", failure.message) is not None


def _advice(layer: Layer, klass: Class, scope: bool, failure: Failure) -> str:
    if scope:
        return "Name the importing module in enable_compat(scope=...), or enable compat globally; write no workaround."
    name = failure.signature.symbol or "this behaviour"
    if klass == "B":
        return f"Do not report {name} as an API gap: keep a small shim in the library, and note the boundary."
    if failure.signature.type == "missing-member" and name.startswith("std::"):
        return "Pass the C++ standard explicitly in extra_compile_args; report that the default differs."
    return f"Report {name} to Paddle; the place to look is {_ANCHORS[layer]}."
