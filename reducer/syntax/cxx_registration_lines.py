"""What can go by itself in code that registers: statements of a block, links of a chained call, rows of a table."""

from __future__ import annotations

import re

from reducer.syntax.cxx_walk import Walk

_BLOCK_WORDS = {"if", "for", "while", "do", "switch", "try"}
_LINK = re.compile(r"def\w*|impl|op|value|export_values")
_TABLES = frozenset({"PyMethodDef", "PyGetSetDef", "PyMemberDef"})


def statement_end(walk: Walk, index: int, end: int) -> int:
    """The last token of the statement that starts at ``index``."""
    block = walk.text(index) in _BLOCK_WORDS or walk.text(index) == "{"
    position = index
    while position < end:
        text = walk.text(position)
        if text == ";":
            return position
        if text in ("(", "["):
            position = walk.closing(position, end)
        elif text == "{":
            position = walk.closing(position, end)
            following = walk.text(position + 1)
            if block and following not in ("else", "catch", "while"):
                return position
        position += 1
    return end - 1


def locals_of(walk: Walk, index: int, last: int) -> list[int]:
    """The variable that a statement declares, if any."""
    position = index
    while position <= last:
        text = walk.text(position)
        if text == "<" and walk.word(position - 1):
            position = walk.angle(position, last) or position
        elif text in ("=", "(", "{", ";"):
            typed = walk.word(position - 2) or walk.text(position - 2) in ("*", "&", ">")
            known = walk.text(position - 2) not in ("return", "throw", "else", "new")
            return [position - 1] if walk.word(position - 1) and position - 1 > index and typed and known else []
        elif text in (".", "->"):
            return []
        position += 1
    return []


def links(walk: Walk, index: int, last: int) -> list[tuple[int, int]]:
    """The calls of ``x.def(..).def(..)``, where there are several and all of them can go by themselves."""
    spans: list[tuple[int, int]] = []
    position = index
    while position <= last:
        text = walk.text(position)
        if text == "." and walk.word(position + 1):
            opening = position + 2
            if walk.text(opening) == "<":
                opening = (walk.angle(opening, last) or opening) + 1
            if walk.text(opening) != "(" or not _LINK.fullmatch(walk.text(position + 1)):
                return []
            close = walk.closing(opening, last + 1)
            spans.append((position, close))
            position = close
        elif text in ("(", "[", "{"):
            position = walk.closing(position, last + 1)
        elif spans and text != ";":
            return []
        position += 1
    return [] if len(spans) == 1 and spans[0][0] == index + 1 else spans


def rows(walk: Walk, at: int, last: int) -> list[tuple[int, int]]:
    """The rows of a PyMethodDef array and its like with their commas, the sentinel excepted."""
    opening = next((i for i in range(at, last) if walk.text(i) == "{"), None)
    if opening is None or _TABLES.isdisjoint(walk.text(i) for i in range(at, last)):
        return []
    found: list[tuple[int, int]] = []
    position, end = opening + 1, walk.closing(opening, last + 1)
    while position < end:
        if walk.text(position) == "{":
            close = walk.closing(position, end)
            final = close + 1 if walk.text(close + 1) == "," else close
            if walk.tokens[position + 1].kind == "string":
                found.append((position, final))
            position = final
        position += 1
    return found
