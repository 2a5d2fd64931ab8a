"""Ranges of C++ text: without its comments, whole lines, a declaration with what belongs to it."""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache

from reducer.syntax.cxx_tokens import Token, comments, tokenize

_LOOK_BACK = 400  # tokens; a template header or a block of comments above a declaration is shorter than that


def strip_comments(content: bytes) -> bytes:
    """The file without comments; the token stream stays the same.

    A comment that separates two tokens becomes a blank; a line that held nothing else goes with it.
    """
    pieces: list[bytes] = []
    position = 0
    for start, end in comments(content):
        line_start = content.rfind(b"\n", 0, start) + 1
        before = content[line_start:start]
        newline = content.find(b"\n", end)
        after = content[end : newline if newline >= 0 else len(content)]
        alone = not before.strip() and not after.strip() and line_start >= position
        if alone and not content[:line_start].rstrip(b"\r\n").endswith(b"\\"):
            pieces.append(content[position:line_start])
            position = newline + 1 if newline >= 0 else len(content)
            continue
        pieces.append(content[position:start])
        position = end
        if after.strip():
            if not before or before[-1:] in b" \t":
                position += len(after) - len(after.lstrip(b" \t"))
            elif after[:1] not in b" \t":
                pieces.append(b" ")
        else:
            while pieces and not pieces[-1].rstrip(b" \t"):
                pieces.pop()
            if pieces:
                pieces[-1] = pieces[-1].rstrip(b" \t")
    pieces.append(content[position:])
    return b"".join(pieces)


def declaration_span(content: bytes, start: int, end: int) -> tuple[int, int]:
    """Widen a declaration's range by its trailing ``;``, template header, attributes and the comments above it.

    A range that then fills whole lines takes the last line's newline with it.
    """
    tokens = tokenize(content)
    starts = _starts(content)
    following = bisect_left(starts, end)
    while following < len(tokens) and tokens[following].kind == "comment":
        following += 1
    after = tokens[following] if following < len(tokens) else None
    if after is not None and after.text == ";" and b"\n\n" not in content[end : after.start]:
        end = after.end
    first = bisect_left(starts, start)
    if first and tokens[first - 1].end > start:
        first -= 1
    return whole_lines(content, _lead_start(content, tokens, first, start), end)


@lru_cache(maxsize=256)
def _starts(content: bytes) -> tuple[int, ...]:
    return tuple(token.start for token in tokenize(content))


def _lead_start(content: bytes, tokens: tuple[Token, ...], first: int, start: int) -> int:
    """Where what leads into the declaration at ``start`` begins; ``first`` is the index of its own first token."""
    before = list(tokens[max(0, first - _LOOK_BACK) : first])
    while before:
        last = before[-1]
        if last.kind == "comment":
            if content[last.end : start].count(b"\n") > 1 or _follows_code(content, last.start):
                break
            start = last.start
            before.pop()
            continue
        find = {">": _template_opening, "]": _attribute_opening}.get(last.text)
        opening = find(before) if find else None
        if opening is None:
            break
        start = before[opening].start
        del before[opening:]
    return start


def whole_lines(content: bytes, start: int, end: int) -> tuple[int, int]:
    """Grow a range to its whole lines, the newline included, when nothing shares them but blanks and a ``//`` comment
    behind it that ends there."""
    line = content.rfind(b"\n", 0, start) + 1
    newline = content.find(b"\n", end)
    stop = newline if newline >= 0 else len(content)
    rest = content[end:stop].strip()
    if content[line:start].strip() or (rest and (not rest.startswith(b"//") or rest.endswith(b"\\"))):
        return start, end
    return line, stop + 1 if newline >= 0 else stop


def _follows_code(content: bytes, start: int) -> bool:
    return bool(content[content.rfind(b"\n", 0, start) + 1 : start].strip())


def _template_opening(tokens: list[Token]) -> int | None:
    """The index of ``template`` in a header that ends at the last token (a ``>``)."""
    depth = 0
    for index in range(len(tokens) - 1, -1, -1):
        text = tokens[index].text
        if text == ">":
            depth += 1
        elif text == "<":
            depth -= 1
            if depth == 0:
                return index - 1 if index and tokens[index - 1].text == "template" else None
        elif text in (";", "{", "}"):
            return None
    return None


def _attribute_opening(tokens: list[Token]) -> int | None:
    """The index of ``[[`` of an attribute that ends at the last token (a ``]``)."""
    depth = 0
    for index in range(len(tokens) - 1, -1, -1):
        text = tokens[index].text
        depth += (text == "]") - (text == "[")
        if depth == 0:
            return index if tokens[index + 1].text == "[" else None
    return None
