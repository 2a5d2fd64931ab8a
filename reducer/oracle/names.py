"""Names of C++ and Python things: demangling, bare forms, and when two spellings name the same thing."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable
from typing import cast

_OPERATOR = re.compile(
    r"\boperator\s*(?:\(\)|\[\]|<=>|<<=|>>=|->\*|<<|>>|<=|>=|->|&&|\|\||\+\+|--|[-+*/%^&|=!<>]=?|~|,)"
)
_AKA = re.compile(r"\s*(?:\{aka [^{}]*(?:\{[^{}]*\}[^{}]*)*\}|\(aka '[^']*'\))")
_NOISE = re.compile(r"\b(?:const|volatile|class|struct|enum|union|typename|constexpr|static|virtual|inline)\b")
_ANONYMOUS = re.compile(r"(?:\(anonymous namespace\)|\{anonymous\}|\(anonymous\)|<unnamed>)::")
_BUILTIN = frozenset(
    {
        "signed",
        "unsigned",
        "char",
        "short",
        "int",
        "long",
        "float",
        "double",
        "bool",
        "void",
        "auto",
        "wchar_t",
        "size_t",
    }
)
# Namespaces that torch's and Paddle's headers use for one another's names.
_FRAMEWORK = frozenset({"at", "c10", "torch", "paddle", "phi", "experimental", "caffe2"})
# Classes that Paddle's compat headers make an alias of another class (and libstdc++'s own alias).
_ALIASES = {
    "AllocationType": "DeviceType",
    "DataType": "ScalarType",
    "DataLayout": "Layout",
    "Place": "Device",
    "ScalarBase": "Scalar",
    "IntArrayRef": "ArrayRef",
    "basic_string": "string",
    "basic_string_view": "string_view",
    "basic_ostream": "ostream",
    "basic_istream": "istream",
}


@functools.cache
def _cxa_demangle() -> Callable[..., int | None] | None:
    for library in ("libstdc++.so.6", "libc++abi.so.1", "libc++.1.dylib"):
        try:
            function = ctypes.CDLL(library).__cxa_demangle
        except (OSError, AttributeError):
            continue
        function.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
        function.restype = ctypes.c_void_p
        return cast("Callable[..., int | None]", function)
    return None


def demangle(symbol: str) -> str:
    """The Itanium-mangled name or type in readable form; ``symbol`` itself when it is not one.

    Uses the C++ runtime's own ``__cxa_demangle``, which also understands bare types (``N3c108ArrayRefIlEE``, ``l``).
    """
    function = _cxa_demangle()
    if function is None or not symbol:
        return symbol
    status = ctypes.c_int(-1)
    address = function(symbol.encode("utf-8", "replace"), None, None, ctypes.byref(status))
    if not address:
        return symbol
    try:
        return ctypes.string_at(address).decode("utf-8", "replace") if status.value == 0 else symbol
    finally:
        libc_free = ctypes.CDLL(None).free
        libc_free.argtypes = (ctypes.c_void_p,)
        libc_free(address)


def without_aka(text: str) -> str:
    """``text`` without the ``{aka ...}`` (g++) and ``(aka '...')`` (clang) remarks."""
    return _AKA.sub("", text)


def without_arguments(text: str) -> str:
    """``text`` without template argument lists and without all that follows the parameter list's ``(``."""
    out: list[str] = []
    depth = 0
    position = 0
    while position < len(text):
        operator = _OPERATOR.match(text, position)
        if operator is not None:
            if depth == 0:
                out.append(re.sub(r"\s+", "", operator.group()))
            position = operator.end()
            continue
        letter = text[position]
        if letter == "<":
            depth += 1
        elif letter == ">" and text[position - 1 : position] != "-":
            depth = max(0, depth - 1)
        elif letter == "(" and depth == 0:
            break
        elif depth == 0:
            out.append(letter)
        position += 1
    return "".join(out)


def bare(text: str) -> str:
    """The qualified name alone of a function signature or type as a compiler or demangler prints it.

    Drops the return type, parameters, template arguments, cv- and reference qualifiers, elaborated-type keywords,
    inline ABI namespaces, anonymous namespaces and alias remarks. ``float* at::Tensor::data<float>() const`` becomes
    ``at::Tensor::data``; ``T<int>::T(int)`` becomes ``T::T``.
    """
    text = without_aka(text).split("[with ")[0]
    text = _ANONYMOUS.sub("", text).replace("std::__cxx11::", "std::").replace("std::__1::", "std::")
    text = _NOISE.sub(" ", without_arguments(text))
    text = re.sub(r"\[\d*\]", "", text)
    conversion = re.search(r"([\w:]*\boperator\b.*)$", text)
    if conversion is not None:
        return conversion.group(1).strip().lstrip(":")
    words = text.replace("&", " ").replace("*", " ").split()
    if words and all(word in _BUILTIN for word in words):
        return _builtin(words)
    return words[-1].lstrip(":").rstrip(":") if words else ""


def _builtin(words: list[str]) -> str:
    """One spelling for ``long unsigned int`` (g++) and ``unsigned long`` (clang)."""
    sign = ["unsigned"] if "unsigned" in words else []
    rest = [word for word in words if word not in ("signed", "unsigned")]
    if len(rest) > 1:
        rest = [word for word in rest if word != "int"]
    return " ".join(sign + rest) or "int"


def last(symbol: str) -> str:
    """The last component of a C++ or Python name; a path or header is one component."""
    return _components(symbol)[-1]


def _components(symbol: str) -> list[str]:
    if "/" in symbol or symbol.endswith((".h", ".hpp", ".cuh")):
        return [symbol]
    parts = [part for part in re.split(r"::|\.", symbol) if part]
    return [_ALIASES.get(part, part) for part in parts] or [symbol]


def same_symbol(first: str, second: str) -> bool:
    """Whether two spellings can name the same thing.

    Different last components are always different. Otherwise an unqualified name equals any qualified one, and of
    two qualified names the framework's namespaces (which alias one another in Paddle's compat headers) do not count;
    what is left must be equal, or one the tail of the other when both still name a class.
    """
    if first == second:
        return True
    a, b = _components(first), _components(second)
    if a[-1] != b[-1]:
        return False
    if len(a) == 1 or len(b) == 1:
        return True
    a, b = _own(a), _own(b)
    if a == b:
        return True
    shorter, longer = sorted((a, b), key=len)
    return len(shorter) > 1 and longer[-len(shorter) :] == shorter


def _own(parts: list[str]) -> list[str]:
    while len(parts) > 1 and parts[0] in _FRAMEWORK:
        parts = parts[1:]
    return parts


def in_framework(symbol: str) -> bool:
    """Whether the name stands in a namespace or module of one of the two frameworks."""
    parts = _components(symbol)
    return len(parts) > 1 and parts[0] in _FRAMEWORK


def to_torch(name: str) -> str:
    """A Python name that Paddle's proxy reports, in torch's name (``paddle.nn.X`` is ``torch.nn.X``)."""
    for prefix in ("paddle.compat.", "paddle."):
        if name.startswith(prefix):
            return "torch." + name[len(prefix) :]
    return "torch" if name in ("paddle", "paddle.compat") else name
