"""Runs a ``setup.py`` as far as its call of ``setup()`` and records the extensions that it describes.

A stand-alone script for the interpreter of a side: ``python setup_recorder.py OUT SETUP_PY ARG...`` in the directory of
SETUP_PY. OUT gets a JSON list with an object for each call: ``function`` (its name in ``torch.utils.cpp_extension``),
``args`` and ``kwargs`` (plain values; paths below the directory are made relative). An argument that is no plain value
is left out when it is named; a call with a positional one is left out.
"""

import contextlib
import importlib
import json
import os
import runpy
import sys
from typing import Any

FUNCTIONS = ("CppExtension", "CUDAExtension")


class NotPlain(Exception):
    """A value that cannot be written as a literal."""


def plain(value: Any) -> Any:
    """``value`` in types that JSON has. Raises NotPlain."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        return os.path.relpath(value) if value.startswith(os.getcwd() + os.sep) else value
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, bytes) or not hasattr(value, "__iter__"):
        raise NotPlain
    return [plain(one) for one in value]


def named(kwargs: "dict[str, Any]") -> "dict[str, Any]":
    """The arguments that are plain values."""
    kept = {}
    for name, value in kwargs.items():
        with contextlib.suppress(NotPlain):
            kept[name] = plain(value)
    return kept


def main(out: str, script: str, rest: "list[str]") -> None:
    """Run ``script`` with the functions of torch's cpp_extension watched."""
    setuptools: Any = importlib.import_module("setuptools")
    cpp_extension: Any = importlib.import_module("torch.utils.cpp_extension")
    calls: list[dict[str, Any]] = []

    def watched(name: str) -> Any:
        function = getattr(cpp_extension, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            args = tuple(list(a) if hasattr(a, "__next__") else a for a in args)
            kwargs = {k: list(v) if hasattr(v, "__next__") else v for k, v in kwargs.items()}
            with contextlib.suppress(NotPlain):
                calls.append({"function": name, "args": [plain(a) for a in args], "kwargs": named(kwargs)})
            return function(*args, **kwargs)

        return call

    for name in FUNCTIONS:
        setattr(cpp_extension, name, watched(name))

    def setup(**_: Any) -> None:
        raise SystemExit(0)

    setuptools.setup = setup
    sys.argv = [script, *rest]
    sys.path[0] = os.getcwd()
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        with open(out, "w", encoding="utf-8") as stream:
            json.dump(calls, stream)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
