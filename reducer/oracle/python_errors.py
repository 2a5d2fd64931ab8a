"""What a Python exception is about: its symbol and template, in names that survive reduction."""

from __future__ import annotations

import builtins
import re
import types
from collections.abc import Callable

from reducer.oracle.names import bare, demangle, last, to_torch
from reducer.oracle.normalise import decisive_line, inner, straight, strip_ansi, template, without_hints

# Classes whose name is Python's or the frameworks' own, so that reduction cannot rename them.
_KNOWN = (
    {name for name in dir(builtins) if isinstance(getattr(builtins, name), type)}
    | {value.__name__ for value in vars(types).values() if isinstance(value, type)}
    | {"Tensor", "Parameter", "EagerParamBase", "ProxyModule", "Size", "Generator", "dtype", "device", "ndarray"}
    | {"_OpNamespace", "OpOverload", "OpOverloadPacket", "Layer", "Module", "PyLayerContext", "DataType", "VarType"}
)
_JIT_KEYWORDS = re.compile(
    r"(?:cpp_|cuda_)?sources|extra_(?:c|cxx_c|cuda_c|sycl_c)flags|extra_ldflags|extra_(?:include|library)_paths"
    r"|build_directory|with_(?:cuda|sycl|pytorch_error_handling)|is_python_module|is_standalone|keep_intermediates"
    r"|functions|use_pch|verbose"
)
_EXTENSION = "torch.utils.cpp_extension"
_MODULES = ("torch", "paddle", "numpy", "functorch", "torchvision", "torchaudio")

_Found = tuple[str, str | None]  # the symbol, and the template when the message's own does not do


def _framework_module(name: str) -> bool:
    return name.partition(".")[0] in _MODULES


def _module_attribute(match: re.Match[str]) -> _Found:
    module, name = match.groups()
    if _framework_module(module):
        return f"{to_torch(module)}.{name}", None
    return name, f"module '<module>' has no attribute '{name}'"


def _object_attribute(match: re.Match[str]) -> _Found:
    owner, name = match.groups()
    if owner.rpartition(".")[2] in _KNOWN or _framework_module(owner):
        qualified = to_torch(owner) if "." in owner else owner
        return f"torch.Tensor.{name}" if qualified in ("Tensor", "torch.Tensor") else f"{qualified}.{name}", None
    return name, f"'<class>' object has no attribute '{name}'"


def _overload(match: re.Match[str]) -> _Found:
    return "torch.ops", "'<op>' has no attribute '<overload>'"


def _missing_module(match: re.Match[str]) -> _Found:
    return to_torch(match.group(1)), None


def _imported_name(match: re.Match[str]) -> _Found:
    name, module = match.groups()
    return f"{to_torch(module)}.{name}", f"cannot import name '{name}' from '{module}'"


def _keyword(match: re.Match[str]) -> _Found:
    function, keyword = match.groups()
    if function in ("load", "load_inline") and _JIT_KEYWORDS.fullmatch(keyword):
        function = f"{_EXTENSION}.{function}"
    if not _framework_module(function):  # some Python versions print the module of a method's class, others do not
        function = ".".join(function.split(".")[-2:])
    symbol = f"{to_torch(function)}({keyword}=)"
    return symbol, f"{symbol}: {'given twice' if 'multiple values' in match.group() else 'unexpected keyword'}"


def _callee(match: re.Match[str]) -> _Found:
    return to_torch(match.group(1)), None


def _known_class(match: re.Match[str]) -> _Found:
    """A message about an object's class; a class of the user's own is not named."""
    name = match.group(1)
    if name.rpartition(".")[2] in _KNOWN or _framework_module(name):
        return to_torch(name), None
    return "", template(match.string.replace(f"'{name}'", "'<class>'"))


def _undefined(match: re.Match[str]) -> _Found:
    return undefined_symbol(match.group(1))


def _conversion(match: re.Match[str]) -> _Found:
    return bare(demangle(match.group(1))), None


def _pybind(match: re.Match[str]) -> _Found:
    """pybind11 found no overload; the first C++ type in the signatures is what it has no caster for."""
    uncast = re.search(r"\w+: ((?:\w+::)+\w+)", match.string)
    return (uncast.group(1) if uncast else ""), "<function>(): incompatible function arguments"


_RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], _Found]], ...] = (
    (re.compile(r"undefined symbol: (\w+)"), _undefined),
    (re.compile(r"(?:partially initialized )?module '([\w.]+)' has no attribute '(\w+)'"), _module_attribute),
    (re.compile(r"'_OpNamespace' '\w+' object has no attribute '\w+'"), _overload),
    (re.compile(r"(?:type object )?'([\w.]+)'(?: object)? has no attribute '(\w+)'(?<=')"), _object_attribute),
    (re.compile(r"No module named '([\w.]+)'"), _missing_module),
    (re.compile(r"cannot import name '(\w+)' from (?:partially initialized module )?'([\w.]+)'"), _imported_name),
    (re.compile(r"\w+\(\): incompatible (?:function|constructor) arguments"), _pybind),
    (re.compile(r"([\w.<>]+)\(\) (?:got an? |received )unexpected keyword argument '(\w+)'"), _keyword),
    (re.compile(r"([\w.<>]+)\(\) got multiple values for (?:keyword )?argument '(\w+)'"), _keyword),
    (re.compile(r"([\w.<>]+)\(\) (?:missing \d+ required|takes |got some positional)"), _callee),
    (re.compile(r"([\w.]+)\(\): argument '?\w+'? \(position \d+\)"), _callee),
    (re.compile(r"([\w.]+)\(\): argument '\w+'"), _callee),
    (re.compile(r"Cannot convert argument \d+ from \S+ to (\w+)"), _conversion),
    (re.compile(r"for type <class '(\w+)'>"), _known_class),
    (re.compile(r"'([\w.]+)' object (?:is not|does not|cannot)"), _known_class),
    (re.compile(r"Object of type ([\w.]+) is not"), _known_class),
)
_LONGEST = 4000  # characters; what is wrong is said before the arguments are printed
_OP_ATTRIBUTE = re.compile(r"^'\w+\.\w+' has no attribute '\w+'$")


def undefined_symbol(mangled: str) -> tuple[str, str]:
    """Symbol and template of a missing linker symbol: its demangled name, and the classes it is instantiated with."""
    text = demangle(mangled)
    name = bare(text)
    arguments = re.search(rf"{re.escape(last(name))}<([^()]*)>\(", text)
    classes = re.findall(r"(?:\w+::)+\w+", arguments.group(1)) if arguments else []
    return name, f"undefined symbol: {name}" + (f"<{', '.join(classes)}>" if classes else "")


def is_undefined_symbol(message: str) -> bool:
    """Whether the dynamic linker speaks."""
    return re.search(r"undefined symbol: \w", message) is not None


def about(message: str) -> tuple[str, str]:
    """Symbol and template of an exception's message.

    The symbol is in torch's name where it has one, and holds no name of the library's own ops, modules or classes
    (reduction renames them); "" when the message names nothing that stays.
    An unexpected keyword is named with its function: ``torch.max(dim=)``.
    """
    text = straight(strip_ansi(message))[:_LONGEST]
    if _OP_ATTRIBUTE.match(decisive_line(without_hints(text))):
        return "torch.ops", "'<op>' has no attribute '<overload>'"
    searched = inner(without_hints(text))
    for pattern, found in _RULES:
        match = pattern.search(searched)
        if match is not None:
            symbol, own = found(match)
            return symbol, template(message) if own is None else own
    return "", template(message)


def is_jit_setup(symbol: str) -> bool:
    """Whether the symbol belongs to building extensions at run time (``torch.utils.cpp_extension``)."""
    return symbol.startswith(_EXTENSION)
