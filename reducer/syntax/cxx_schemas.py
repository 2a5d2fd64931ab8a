"""The schema strings of operators, ``ns::op.overload(Tensor x, *, int k=1) -> Tensor``, read by position."""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEAD = re.compile(r"\s*(?:([A-Za-z_]\w*)::)?([A-Za-z_]\w*(?:\.\w+)?)\s*(\(.*)?\Z", re.S)


@dataclass(frozen=True, slots=True)
class OpName:
    """What a registration's string says before its arguments: ``namespace`` is "" where none is written, ``name``
    includes an overload name; ``declares``: arguments follow, so the string is a whole schema."""

    namespace: str
    name: str
    declares: bool


def op_name(text: str) -> OpName | None:
    """The head of a schema or of a bare op name; None when it is neither."""
    match = _HEAD.match(text)
    return OpName(match[1] or "", match[2], match[3] is not None) if match is not None else None


@dataclass(frozen=True, slots=True)
class Schema:
    """Positions in ``text``: ``items`` are what the commas separate, a lone ``*`` included; ``result`` is all behind
    the arrow."""

    text: str
    items: list[tuple[int, int]]
    result: tuple[int, int]

    @property
    def arguments(self) -> list[tuple[int, int]]:
        """The items that name an argument."""
        return [(a, b) for a, b in self.items if self.text[a:b].split("=")[0].strip() not in ("", "*")]

    @property
    def names(self) -> list[str]:
        """The argument names, in order."""
        return [self.text[begin:end].split("=")[0].split()[-1] for begin, end in self.arguments]


def parse_schema(text: str) -> Schema | None:
    """The schema in ``text`` (a literal with its quotes, or any text that holds one schema); None when unreadable."""
    start = text.find("(")
    arrow = text.rfind("->")
    if start < 0 or arrow < start:
        return None
    depth = 0
    items: list[tuple[int, int]] = []
    begin = start + 1
    for position in range(start, len(text)):
        char = text[position]
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        if (char == "," and depth == 1) or depth == 0:
            if text[begin:position].strip():
                items.append((begin, position))
            begin = position + 1
            if depth == 0:
                break
    end = len(text) - 1 if text.endswith('"') else len(text)
    return Schema(text, items, (arrow + 2, end))
