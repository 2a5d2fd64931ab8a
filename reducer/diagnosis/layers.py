"""Which layer of Paddle's compatibility a failure belongs to. Each rule says why."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from reducer.diagnosis.evidence import Evidence
from reducer.oracle.names import in_framework

Layer = Literal["cxx_api", "op_registration", "python_interface", "python_proxy", "build_tooling"]
_Finding = tuple[Layer, str] | None

# What TORCH_LIBRARY consists of: registration, boxing, the dispatcher and its containers.
_REGISTRATION = re.compile(
    r"^TORCH_(?:LIBRARY|FN|SELECTIVE|BOX)|^torch::(?:Library|class_|CppFunction|schema|dispatch|DispatchKey|IValue|init)\b"
    r"|^torch::(?:generic_to|jit|FunctionArgs|FunctionResult|selective_class_)\b"
    r"|^(?:c10|at)::(?:List|Dict|IValue|Dispatcher|OperatorHandle|OperatorName|FunctionSchema|DispatchKey\w*|RegisterOperators)\b"
)
_REGISTRATION_HEADER = re.compile(
    r"^torch/(?:library|custom_class\w*)\.h$|^ATen/core/(?:dispatch|op_registration|boxing)/|^ATen/core/(?:List|Dict|ivalue)\w*\.h$"
)
_CONVERSION = re.compile(
    r"Cannot convert argument|[Cc]onversion of Python object|implementation found for operator"
    r"|not found in the registry|Function expects \d+ argument|schema|has no overload"
)
_OP_ERROR = re.compile(r"Error in operator '[^']*':\s*(?:Function call failed:\s*)?(.*)", re.DOTALL)
_PADDLE_ERROR = re.compile(r"^\(\w+\)|\(at /paddle/.*\(at /paddle/", re.DOTALL)
_IDENTITY = re.compile(r"\bis (?:not )?(?:None|[a-z_]\w*)\b|isinstance\(|type\(|\bid\(|same (?:tensor )?object")
_OP_KEYWORDS = re.compile(r"torch\.ops\.\w+\.\w+\([^()\n]*\b\w+\s*=[^=]")
_LOADER = re.compile(r"pkgutil\.get_data|importlib\.resources|get_source\(|get_code\(|__loader__|__spec__")
_PROXY = re.compile(r"ProxyModule|^No module named 'torch'|ModuleNotFoundError: No module named 'torch'|enable_compat")
# torch's public modules below the top level; a missing one is the proxy's business, a missing member the API's.
_MODULES = re.compile(
    r"accelerator|amp|ao|autograd|backends|compiler|cpu|cuda(?:\.(?:amp|nvtx))?|distributed(?:\.tensor)?|distributions"
    r"|export|fft|func|futures|fx|hub|jit|library|linalg|masked|monitor|mps|mtia|multiprocessing|nested"
    r"|nn(?:\.(?:attention|functional|init|modules|parallel|utils(?:\.(?:rnn|parametrize))?))?|onnx"
    r"|optim(?:\.lr_scheduler)?|overrides|package|profiler|quantization|random|serialization|signal|sparse|special"
    r"|testing|types|utils(?:\.(?:benchmark|checkpoint|cpp_extension|data|dlpack|hooks|tensorboard))?|version|xpu"
    r"|_C|_dynamo|_inductor|_ops|_prims|_refs|_subclasses|_utils"
)


def layer_of(evidence: Evidence) -> tuple[Layer, str]:
    """The layer, and the reason in one sentence."""
    for rule in _RULES:
        found = rule(evidence)
        if found is not None:
            return found
    if evidence.cxx:
        return "cxx_api", "the case computes something else once its C++ code runs on Paddle's C++ API"
    return "python_interface", "a Python API behaves differently, with no C++ of the case involved"


def _setup(evidence: Evidence) -> _Finding:
    if evidence.failure.signature.stage != "setup":
        return None
    return "build_tooling", "it fails while the extension's build is being set up, before any compiler runs"


def _compile(evidence: Evidence) -> _Finding:
    signature = evidence.failure.signature
    if signature.kind not in ("diagnostic", "link"):
        return None
    name = evidence.symbol
    if signature.stage == "link" and signature.type != "undefined-reference":
        return "build_tooling", f"the linker is given the wrong inputs ({signature.type} {name})"
    if _REGISTRATION.search(name) or _REGISTRATION_HEADER.search(name):
        return "op_registration", f"{name} is part of registering operators and passing their arguments"
    if name.startswith("std::") and signature.type == "missing-member":
        return (
            "build_tooling",
            f"{name} belongs to a newer C++ standard than Paddle's build passes by default",
        )
    if signature.type == "undefined-symbol":
        return "cxx_api", f"{name} is declared by the compat headers and defined nowhere"
    return (
        "cxx_api",
        f"the compat headers lack {name or 'what is used'} or declare it differently ({signature.type})",
    )


def _built_nothing(evidence: Evidence) -> _Finding:
    if evidence.failure.signature.stage not in ("compile", "link"):
        return None
    return "build_tooling", "the build as such fails, and no compiler error says why"


def _lost_module(evidence: Evidence) -> _Finding:
    if "module '<module>' has no attribute" in evidence.failure.signature.template and evidence.cxx:
        return (
            "build_tooling",
            "the extension is imported empty: Paddle's generated stub stands in for it",
        )
    return None


def _op(evidence: Evidence) -> _Finding:
    if evidence.symbol == "torch.ops":
        return "op_registration", "torch.ops resolves names, overloads and namespaces differently"
    error = _OP_ERROR.search(evidence.message)
    if error is None:
        return None
    if _CONVERSION.search(error.group(1)):
        return (
            "op_registration",
            "the operator is refused before its code runs: arguments, schema or kernels do not match",
        )
    if _PADDLE_ERROR.search(error.group(1)):
        return "cxx_api", "the error is raised by Paddle's C++ API inside the operator"
    return "op_registration", "the library's own C++ exception reaches Python as another exception class"


def _pybind(evidence: Evidence) -> _Finding:
    if "incompatible function arguments" in evidence.message and "::" in evidence.symbol:
        return "cxx_api", f"pybind11 has no caster for {evidence.symbol} in the compat headers"
    return None


def _proxy(evidence: Evidence) -> _Finding:
    if _PROXY.search(evidence.message):
        return "python_proxy", "the proxy that stands in for torch is not what torch is at this place"
    if "sys.modules" in evidence.nearby:
        return "python_proxy", "the case looks at sys.modules, which the proxy fills differently"
    if _LOADER.search(evidence.nearby):
        return "python_proxy", "the case reads package data through its loader, which the proxy replaces"
    return None


def _missing_name(evidence: Evidence) -> _Finding:
    name = evidence.symbol
    if evidence.failure.signature.type not in ("ModuleNotFoundError", "ImportError", "AttributeError"):
        return None
    if not name.startswith("torch."):
        return None
    inside = name[len("torch.") :]
    if _is_module(inside, evidence.python):
        return "python_proxy", f"the module {name} does not resolve under the proxy"
    if inside.startswith("_"):
        return "python_proxy", f"{name} is reached through a private module that the proxy does not provide"
    return "python_interface", f"{name} is missing from Paddle's Python API"


def _is_module(name: str, python: str) -> bool:
    """Whether torch has a module of this name: a known one, or one that the case imports as a module."""
    if _MODULES.fullmatch(name):
        return True
    dotted = re.escape(f"torch.{name}")
    imported = rf"^\s*(?:import {dotted}\b|from {dotted}(?:\.\w+)* import\b)"
    return re.search(imported, python, re.MULTILINE) is not None


def _native(evidence: Evidence) -> _Finding:
    kind = evidence.failure.signature.kind
    if kind not in ("signal", "timeout") or not evidence.cxx:
        return None
    where = f" in {evidence.symbol}" if in_framework(evidence.symbol) else ""
    return (
        "cxx_api",
        f"the process {'crashes' if kind == 'signal' else 'never ends'}{where} in the case's C++ code",
    )


def _results(evidence: Evidence) -> _Finding:
    if not (evidence.cxx and evidence.calls_ops) or evidence.failure.signature.kind not in ("mismatch", "exception"):
        return None
    if _OP_KEYWORDS.search(evidence.python):
        return "op_registration", "the operator is called with keyword arguments, and what arrives differs"
    if _IDENTITY.search(evidence.line) or _IDENTITY.search(evidence.message):
        return "op_registration", "the operator hands back another kind of object than torch does"
    return None


def _python_api(evidence: Evidence) -> _Finding:
    signature = evidence.failure.signature
    if signature.kind == "exception" and signature.owner == "paddle":
        return "python_interface", "Paddle's Python API raises before any C++ code of the case is entered"
    return None


_RULES: tuple[Callable[[Evidence], _Finding], ...] = (
    _setup,
    _compile,
    _built_nothing,
    _lost_module,
    _op,
    _pybind,
    _proxy,
    _missing_name,
    _native,
    _results,
    _python_api,
)
