"""From a chain of Python exceptions to the failure: which exception decides, whose it is, and at what stage."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from reducer.oracle import python_errors
from reducer.oracle.failure import Failure, Frame, Kind, Owner, Signature, Stage
from reducer.oracle.normalise import strip_ansi, template, without_warnings
from reducer.oracle.ownership import Ownership
from reducer.oracle.tracebacks import Raised

_FALLBACK = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError"})
_OF_FRAMEWORK = re.compile(r"\b(?:torch|paddle|Tensor|ProxyModule)\b")
_ASSERTIONS = frozenset({"AssertionError", "Failed", "failureException"})
_CHECKERS = re.compile(r"/(?:torch/testing|numpy/testing|pandas/_testing|unittest|_pytest)/")
_IMPORT = re.compile(r"^(?:from\s+[\w.]+\s+import\b|import\s|__import__\(|(?:\w+\s*=\s*)?importlib\.import_module\()")
_MACHINERY = re.compile(r"importlib|^<frozen ")


# pybind11 carries a Python exception through C++ as text: its class and message, then "At:" and the frames.
_CARRIED = re.compile(
    r"^\s*(?P<type>[A-Za-z_][\w.]*): (?P<message>[^\n]*(?:\n(?!\s*At:\n)[^\n]*){0,20}?)"
    r"\s*\n\s*At:\n(?P<frames>(?:\s+\S[^\n]*\(\d+\): [^\n]*\n?)+)",
    re.MULTILINE,
)
_CARRIED_FRAME = re.compile(r"^\s+(\S[^\n]*)\((\d+)\): ([^\n]*)$", re.MULTILINE)


def uncarried(raised: Raised) -> Raised:
    """The Python exception that a C++ layer re-raised as its own (an error in a backward function), when it says so."""
    match = _CARRIED.search(raised.message)
    if match is None:
        return raised
    frames = [Frame(file, int(line), function) for file, line, function in _CARRIED_FRAME.findall(match["frames"])]
    return Raised(match["type"], match["message"].strip(), tuple(reversed(frames)), raised.link)


def with_owners(raised: Raised, owners: Ownership) -> Raised:
    """The exception with the owner of each frame filled in."""
    return replace(raised, frames=tuple(replace(frame, owner=owners.owner(frame.file)) for frame in raised.frames))


def decisive(chain: Sequence[Raised], owners: Ownership) -> Raised:
    """The exception of a chain that says what is wrong: the last, unless the case itself raised it over a deeper one.

    Case code that catches a framework's ImportError or AttributeError and then fails in its fallback, or wraps a
    framework's exception with ``raise ... from``, hides the cause; then the caught exception decides. What a framework
    raises while it handles its own exception stays as it is.
    """
    known = [with_owners(uncarried(raised), owners) for raised in chain]
    index = len(known) - 1
    while index > 0 and _hides(known[index], known[index - 1]):
        index -= 1
    return known[index]


def _hides(outer: Raised, cause: Raised) -> bool:
    if innermost_owner(outer.frames) in ("paddle", "torch"):
        return False
    if cause.type.rpartition(".")[2] in _FALLBACK and _OF_FRAMEWORK.search(cause.message):
        return True
    return outer.link == "cause" and innermost_owner(cause.frames) in ("paddle", "torch")


def innermost_owner(frames: Sequence[Frame]) -> Owner:
    """Who owns the innermost frame, the import machinery aside."""
    return next((frame.owner for frame in reversed(frames) if not _MACHINERY.search(frame.file)), "")


def failure_of(raised: Raised, owners: Ownership, stage: Stage) -> Failure:
    """The failure that an exception is. An assertion of the case is a mismatch; one inside a framework is not."""
    known = with_owners(raised, owners)
    owner = innermost_owner(known.frames)
    message = without_warnings(strip_ansi(known.message))
    type_ = known.type.replace("_pytest.outcomes.", "")
    short = type_.rpartition(".")[2]
    kind: Kind = "exception"
    symbol, text = python_errors.about(message)
    if short in _ASSERTIONS:
        inside = owner in ("paddle", "torch") and not _CHECKERS.search(known.frames[-1].file)
        if inside and not text:
            text = template(known.frames[-1].text)
        if not inside:
            kind, symbol, owner = "mismatch", "", owner if owner in ("library", "test") else "test"
    elif short in ("ImportError", "RuntimeError", "OSError") and python_errors.is_undefined_symbol(message):
        kind, type_ = "link", "undefined-symbol"
    if stage in ("import", "run") and python_errors.is_jit_setup(symbol):
        stage = "setup"
    place = next((frame for frame in reversed(known.frames) if frame.owner in ("library", "test")), None)
    return Failure(
        Signature(stage, kind, type_, symbol, text, owner),
        f"{known.type}: {message}" if message else known.type,
        owners.relative(place.file) if place is not None else "",
        place.line if place is not None else 0,
        known.frames,
    )


def at_import(raised: Raised, owners: Ownership) -> bool:
    """Whether the exception left while the case's modules were being imported.

    True when the outermost frame of the case is a module's top level that stands on an import statement, or from which
    another module's top level was entered. An import inside a function that the case calls is part of the run.
    """
    frames = [frame for frame in with_owners(raised, owners).frames if not _MACHINERY.search(frame.file)]
    ours = [frame for frame in frames if frame.owner in ("library", "test")]
    if not ours or ours[0].function != "<module>":
        return False
    return bool(_IMPORT.match(ours[0].text)) or (not ours[0].text and len(ours) > 1 and ours[1].function == "<module>")
