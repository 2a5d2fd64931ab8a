"""Reads Python tracebacks (3.10 to 3.14, chained, grouped, indented by pip or pytest) out of any text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from reducer.oracle.failure import Frame

Link = Literal["", "cause", "context"]

_START = re.compile(
    r"^(?P<prefix>[\s|+]*(?:INTERNALERROR> )?)(?P<group>Exception Group )?Traceback \(most recent call last\):\s*$"
)
_FRAME = re.compile(r'^  File "(?P<file>.*?)", line (?P<line>\d+)(?:, in (?P<function>.*))?$')
_MARKS = re.compile(r"^\s+[\^~ ]+$")
EXCEPTION = re.compile(r"^(?P<type>[A-Za-z_]\w*(?:\.(?:<locals>|[A-Za-z_]\w*))*)(?::(?: (?P<message>.*))?)?$")
"""The line that names an exception: its printed class and the first line of its message."""
_LINKS: tuple[tuple[str, Link], ...] = (
    ("The above exception was the direct cause of the following exception:", "cause"),
    ("During handling of the above exception, another exception occurred:", "context"),
)
_END = re.compile(r"^(?:={10,}|-{10,}|_{5,} |\+-|Exception ignored |\[\w+ \w+ \d+ )|^(?:ERROR|FAIL): \w+ \(")
_MESSAGE_LINES = 60


@dataclass(frozen=True, slots=True)
class Raised:
    """One exception as printed. ``link`` says how it hangs on the one printed before it ("" for the first)."""

    type: str
    message: str
    frames: tuple[Frame, ...]
    link: Link = ""


def chains(text: str) -> list[tuple[Raised, ...]]:
    """All tracebacks in ``text``, in order; those that Python links with its two sentences form one chain.

    A chain is in the order printed: the first raised first.
    """
    lines = text.splitlines()
    found: list[list[Raised]] = []
    position = 0
    while position < len(lines):
        start = _START.match(lines[position])
        if start is None:
            position += 1
            continue
        prefix = start["prefix"].replace("+", "|") if start["group"] else start["prefix"]
        raised, end = _block(lines, position + 1, prefix)
        link = _link_before(lines, position)
        if raised is not None:
            if link and found:
                found[-1].append(replace(raised, link=link))
            else:
                found.append([raised])
        position = max(end, position + 1)
    return [tuple(chain) for chain in found]


def link_in(line: str) -> Link:
    """Which of Python's two linking sentences the line holds, if any."""
    return next((link for sentence, link in _LINKS if sentence in line), "")


def _link_before(lines: list[str], position: int) -> Link:
    """The link that stands right above a traceback's first line (blank lines between)."""
    for line in reversed(lines[max(0, position - 3) : position]):
        link = link_in(line)
        if link:
            return link
        if line.strip(" |+"):
            break
    return ""


def _stripped(lines: list[str], start: int, prefix: str) -> Iterator[tuple[int, str]]:
    """Lines from ``start`` on without the prefix that the whole block carries; ends where the block does."""
    for index in range(start, len(lines)):
        line = lines[index]
        if prefix and not line.startswith(prefix):
            if line.strip(" |"):
                return
            line = prefix
        line = line[len(prefix) :]
        if _START.match(line) or link_in(line):
            return
        yield index, line


def _block(lines: list[str], start: int, prefix: str) -> tuple[Raised | None, int]:
    """The traceback whose frames begin at ``start``, and the index of the line after it."""
    frames: list[Frame] = []
    type_ = ""
    message: list[str] = []
    end = start
    for index, line in _stripped(lines, start, prefix):
        if not type_:
            frame = _FRAME.match(line)
            if frame is not None:
                frames.append(Frame(frame["file"], int(frame["line"]), frame["function"] or "<module>"))
            elif line.startswith("    ") and frames:
                if not frames[-1].text and not _MARKS.match(line):
                    frames[-1] = replace(frames[-1], text=line.strip())
            elif line and not line.startswith(" "):
                named = EXCEPTION.match(line)
                if named is None:
                    break  # not a traceback that Python wrote
                type_ = named["type"]
                message = [named["message"] or ""]
        elif _END.match(line) or len(message) >= _MESSAGE_LINES:
            break
        else:
            message.append(line)
        end = index + 1
    if not type_:
        return None, end
    return Raised(type_, "\n".join(message).rstrip(), tuple(frames)), end
