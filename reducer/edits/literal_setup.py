"""A ``setup.py`` of a few lines that makes the calls which a real one was seen to make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reducer.edits.extension import NAME, SOURCE
from reducer.edits.prelude import PRELUDE
from reducer.tree import SourceTree

_EMPTY = b"// Nothing here is needed to see the failure.\n"
_FIELDS = ("name", "sources")


def literal_setups(calls: Sequence[Mapping[str, Any]]) -> Iterator[SourceTree]:
    """Trees of a ``setup.py`` and one empty source for the recorded ``calls`` (see ``world/setup_recorder.py``): for
    each call alone, then for all. Arguments keep their way of being given, by position or by name."""
    alone = [[call] for call in calls]
    for chosen in [*alone, list(calls)] if len(calls) > 1 else alone:
        names = list(dict.fromkeys(call["function"] for call in chosen))
        made = [_call(call, NAME if len(chosen) == 1 else f"{NAME}_{i}") for i, call in enumerate(chosen, 1)]
        text = (
            f"{PRELUDE}from setuptools import setup\n"
            f"from torch.utils.cpp_extension import {', '.join(['BuildExtension', *names])}\n\n"
            f'setup(\n    name="mre",\n    ext_modules=[{", ".join(made)}],\n'
            '    cmdclass={"build_ext": BuildExtension},\n)\n'
        )
        yield SourceTree({"setup.py": text.encode(), SOURCE: _EMPTY})


def builds_source(tree: SourceTree) -> bool:
    """Whether ``setup.py`` still builds the source as an extension: it must be of use once the gap is closed."""
    text = tree.get("setup.py", b"")
    return all(word in text for word in (SOURCE.encode(), NAME.encode(), b'cmdclass={"build_ext": BuildExtension}'))


def _call(call: Mapping[str, Any], name: str) -> str:
    values = {"name": name, "sources": [SOURCE]}
    args = [values[_FIELDS[i]] if i < len(_FIELDS) else value for i, value in enumerate(call["args"])]
    kwargs = {key: values.get(key, value) for key, value in call["kwargs"].items()}
    written = [repr(value) for value in args] + [f"{key}={value!r}" for key, value in kwargs.items()]
    return f"{call['function']}({', '.join(written)})"
