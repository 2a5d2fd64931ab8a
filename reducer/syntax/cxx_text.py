"""C++ as text: tokens with byte offsets and balanced brackets, for code that libclang cannot or need not see."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

TokenKind = Literal["word", "number", "string", "punct", "directive", "comment"]

_TOKEN = re.compile(
    rb"""
    (?P<space>(?:[ \t\r\n\f\v]|\\\r?\n)+)
  | (?P<comment>//(?:\\\r?\n|[^\n\\]|\\)*|/\*.*?(?:\*/|\Z))
  | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")
  | (?P<string>(?:u8|[uUL])?(?:"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'(?=[0-9a-zA-Z_])|[0-9a-zA-Z_.])*)
  | (?P<word>(?:[A-Za-z_$]|[\x80-\xff])(?:[A-Za-z0-9_$]|[\x80-\xff])*)
  | (?P<punct>::|->\*?|\.\.\.|<<=|<=>|&&|\|\||[-+*/%^&|=!<]=|\+\+|--|<<|.)
    """,
    re.S | re.X,
)
_LOOK_BACK = 400  # tokens; a template header or a block of comments above a declaration is shorter than that
_OPEN = {b"(": b")", b"[": b"]", b"{": b"}"}
_CLOSE = frozenset(_OPEN.values())


@dataclass(frozen=True, slots=True)
class Token:
    """One token: ``text`` is bytes ``start:end``. A directive is a whole logical preprocessor line."""

    kind: TokenKind
    start: int
    end: int
    text: bytes


@lru_cache(maxsize=256)
def tokenize(content: bytes) -> tuple[Token, ...]:
    """The tokens of a file, comments included, white space left out; any bytes at all give some tokens.

    ``>`` is always a token of its own, so that ``>>`` closes two template lists.
    """
    tokens: list[Token] = []
    position, fresh = 0, True  # fresh: nothing but space and comments so far on this line
    while position < len(content):
        if fresh and content[position : position + 1] == b"#":
            end = _directive_end(content, position)
            tokens.append(Token("directive", position, end, content[position:end]))
            position = end
            continue
        match = _TOKEN.match(content, position)
        if match is None:  # the pattern's last branch takes any byte
            break
        kind, text = match.lastgroup, match[0]
        if match["raw"] is not None:
            kind = "string"
        if kind == "space":
            fresh = fresh or b"\n" in text.replace(b"\\\r\n", b"").replace(b"\\\n", b"")
        elif kind == "comment":
            tokens.append(Token("comment", position, match.end(), text))
        else:
            fresh = False
            tokens.append(Token(kind, position, match.end(), text))  # type: ignore[arg-type]
        position = match.end()
    return tuple(tokens)


def _directive_end(content: bytes, start: int) -> int:
    """The end of the logical line (without its newline), with continuations, and with comments that cross lines."""
    position = start
    while position < len(content):
        match = _TOKEN.match(content, position)
        if match is None:
            return len(content)
        if match["space"] is not None:
            plain = re.sub(rb"\\\r?\n", lambda m: b" " * len(m[0]), match[0])
            newline = plain.find(b"\n")
            if newline >= 0:
                end = position + newline
                return end - 1 if content[end - 1 : end] == b"\r" else end
        elif match["comment"] is not None and match[0].startswith(b"//"):
            return match.start()
        position = match.end()
    return len(content)


def code_tokens(content: bytes) -> list[Token]:
    """The tokens without comments."""
    return [t for t in tokenize(content) if t.kind != "comment"]


def strip_comments(content: bytes) -> bytes:
    """The file without comments; the token stream stays the same.

    A comment that separates two tokens becomes a blank; a line that held nothing else goes with it.
    """
    pieces: list[bytes] = []
    position = 0
    comments = list(_comments(content))
    for start, end in comments:
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


def _comments(content: bytes) -> list[tuple[int, int]]:
    """The ranges of all comments, those inside preprocessor lines included."""
    found: list[tuple[int, int]] = []
    for token in tokenize(content):
        if token.kind == "comment":
            found.append((token.start, token.end))
        elif token.kind == "directive":
            position = token.start
            while position < token.end:
                match = _TOKEN.match(content, position)
                if match is None:
                    break
                if match["comment"] is not None:
                    found.append((match.start(), match.end()))
                position = match.end()
    return sorted(found)


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
    if after is not None and after.text == b";" and b"\n\n" not in content[end : after.start]:
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
        find = {b">": _template_opening, b"]": _attribute_opening}.get(last.text)
        opening = find(before) if find else None
        if opening is None:
            break
        start = before[opening].start
        del before[opening:]
    return start


def whole_lines(content: bytes, start: int, end: int) -> tuple[int, int]:
    """Grow a range that shares its lines with nothing but blanks to those whole lines, the newline included."""
    line = content.rfind(b"\n", 0, start) + 1
    newline = content.find(b"\n", end)
    stop = newline if newline >= 0 else len(content)
    rest = content[end:stop].strip()
    if content[line:start].strip() or (rest and not rest.startswith(b"//")):
        return start, end
    return line, stop + 1 if newline >= 0 else stop


def _follows_code(content: bytes, start: int) -> bool:
    return bool(content[content.rfind(b"\n", 0, start) + 1 : start].strip())


def _template_opening(tokens: list[Token]) -> int | None:
    """The index of ``template`` in a header that ends at the last token (a ``>``)."""
    depth = 0
    for index in range(len(tokens) - 1, -1, -1):
        text = tokens[index].text
        if text == b">":
            depth += 1
        elif text == b"<":
            depth -= 1
            if depth == 0:
                return index - 1 if index and tokens[index - 1].text == b"template" else None
        elif text in (b";", b"{", b"}"):
            return None
    return None


def _attribute_opening(tokens: list[Token]) -> int | None:
    """The index of ``[[`` of an attribute that ends at the last token (a ``]``)."""
    depth = 0
    for index in range(len(tokens) - 1, -1, -1):
        text = tokens[index].text
        depth += (text == b"]") - (text == b"[")
        if depth == 0:
            return index if tokens[index + 1].text == b"[" else None
    return None


def matching(tokens: list[Token], index: int, end: int | None = None) -> int:
    """The index of the bracket that closes the one at ``index``; the last index where it is never closed.

    Only the first branch of a conditional inside the brackets counts, so that ``#else`` does not open twice.
    """
    stop = len(tokens) if end is None else end
    stack = [_OPEN[tokens[index].text]]
    position = index + 1
    skip = Conditionals()
    while position < stop:
        token = tokens[position]
        if token.kind == "directive":
            skip.see(token)
        elif not skip.skipping and token.kind == "punct":
            if token.text in _OPEN:
                stack.append(_OPEN[token.text])
            elif token.text in _CLOSE:
                while stack and stack[-1] != token.text and token.text == b"}":
                    stack.pop()  # a stray ( or [ never reaches over a block's end
                if stack and stack[-1] == token.text:
                    stack.pop()
                if not stack:
                    return position
        position += 1
    return stop - 1


class Conditionals:
    """Follows #if ... #endif and says whether a token stands in an #else or #elif branch."""

    __slots__ = ("_states",)

    def __init__(self) -> None:
        self._states: list[bool] = []

    @property
    def skipping(self) -> bool:
        return any(self._states)

    @property
    def depth(self) -> int:
        return len(self._states)

    def see(self, token: Token) -> None:
        name = directive_name(token.text)
        if name in (b"if", b"ifdef", b"ifndef"):
            self._states.append(False)
        elif name in (b"else", b"elif", b"elifdef", b"elifndef"):
            self._states[-1:] = [True]  # with none open the walk began in the branch before
        elif name == b"endif" and self._states:
            self._states.pop()


def directive_name(text: bytes) -> bytes:
    """``b"if"`` for ``b"#  if X"``; b"" for a lone ``#``."""
    match = re.match(rb"#(?:[ \t]|\\\r?\n|/\*.*?\*/)*([A-Za-z_]+)?", text, re.S)
    return (match[1] or b"") if match else b""


def balanced_conditionals(content: bytes) -> bool:
    """True when every #if of a piece of a file ends in it and no #else or #endif belongs to one outside."""
    depth = 0
    for token in tokenize(content):
        if token.kind == "directive":
            name = directive_name(token.text)
            if name in (b"if", b"ifdef", b"ifndef"):
                depth += 1
            elif name == b"endif":
                depth -= 1
            if depth < 0 or (depth == 0 and name in (b"else", b"elif", b"elifdef", b"elifndef")):
                return False
    return depth == 0
