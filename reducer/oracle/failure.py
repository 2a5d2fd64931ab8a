"""Signatures and failures: what makes two failures the same one (DESIGN.md §5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Stage = Literal["setup", "compile", "link", "import", "run"]
Kind = Literal["diagnostic", "link", "exception", "signal", "timeout", "mismatch", "exit"]
Owner = Literal["paddle", "torch", "library", "test", "stdlib", "other", ""]


@dataclass(frozen=True, slots=True)
class Signature:
    """What two equal failures share.

    ``type``: the exception class, the compiler error kind (``missing-member``), or the signal's name.
    ``symbol``: the missing or misbehaving thing, in torch's name where it has one, demangled; "" when unknown.
    ``template``: the message without paths, numbers, addresses, temporary names and wording that differs between
    compilers. ``owner``: who owns the innermost frame of an exception.
    """

    stage: Stage
    kind: Kind
    type: str
    symbol: str = ""
    template: str = ""
    owner: Owner = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """One traceback frame: ``file`` as printed, ``text`` the source line when it was printed."""

    file: str
    line: int
    function: str
    text: str = ""
    owner: Owner = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure of one side: its signature, the message as printed, and where it stands.

    ``file``/``line``: the innermost place in the library's own sources (relative to the candidate's directory), or
    "" / 0. ``also``: the signatures of the other failures seen in the same run, in order.
    """

    signature: Signature
    message: str
    file: str = ""
    line: int = 0
    frames: tuple[Frame, ...] = ()
    also: tuple[Signature, ...] = ()
