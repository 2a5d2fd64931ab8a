"""Class templates of a precompiled header whose virtual members every unit would instantiate anew.

clang defines the virtual tables that a header uses at the end of each *unit*, never in the precompiled header itself,
and with them it instantiates their virtual members: 140 functions for ``torch/extension.h``, two seconds of each
object, even of an empty one. A class template that the header instantiates explicitly has them once for all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def instantiations(trace: str) -> str:
    """Explicit instantiations, one a line, of the class templates whose members an empty unit instantiated.

    ``trace`` is what clang's ``-ftime-trace`` wrote for it. Raises ValueError when it is no such thing.
    """
    try:
        events = [event for event in json.loads(trace)["traceEvents"] if event.get("name") == "InstantiateFunction"]
        names = [str(event["args"]["detail"]) for event in _outermost(events)]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a trace of clang's: {error}") from error
    owners = dict.fromkeys(owner for name in names if (owner := _owner(name)))
    return "".join(f"template class {owner};\n" for owner in owners)


def _outermost(events: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Those that did not happen in the course of another one: what that one needs comes with it."""
    end = float("-inf")
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        if event["ts"] >= end:
            yield event
            end = event["ts"] + event["dur"]


def _owner(function: str) -> str | None:
    """The class template's name before the last ``::`` of a member's name; None for what has no name to write."""
    depth = 0
    last = -1
    for position, sign in enumerate(function):
        if sign in "<(":
            depth += 1
        elif sign in ">)":
            depth -= 1
        elif depth == 0 and function.startswith("::", position):
            last = position
    owner = function[: max(last, 0)]
    nameless = "(" in owner or "'" in owner or "<unnamed" in owner
    return owner if owner.endswith(">") and not nameless else None
