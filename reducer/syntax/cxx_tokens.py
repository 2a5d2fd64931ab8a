"""The tokens of C++ text: with byte offsets, for any bytes at all, as a person sees them (macros are not expanded)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

TokenKind = Literal["word", "number", "string", "char", "punct", "directive", "comment"]

_TOKEN = re.compile(
    rb"""
    (?P<space>(?:[ \t\r\n\f\v]|\\\r?\n)+)
  | (?P<comment>//(?:\\\r?\n|[^\n\\]|\\)*|/\*.*?(?:\*/|\Z))
  | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")
  | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"?)
  | (?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])*'?)
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'(?=[0-9a-zA-Z_])|[0-9a-zA-Z_.])*)
  | (?P<word>(?:[A-Za-z_$]|[\x80-\xff])(?:[A-Za-z0-9_$]|[\x80-\xff])*)
  | (?P<punct>::|->\*?|\.\.\.|<<=|<=>|&&|\|\||[-+*/%^&|=!<]=|>=(?!=)|\+\+|--|<<|.)
    """,
    re.S | re.X,
)
_OPEN = {"(": ")", "[": "]", "{": "}"}
_IN_TEMPLATE_ARGUMENTS = {"::", ",", "*", "&", "&&", "...", "<", ">", "(", ")", "[", "]"}


@dataclass(frozen=True, slots=True)
class Token:
    """One token: ``text`` is bytes ``start:end``, what is no UTF-8 as lone surrogates. Keywords are words. A directive
    is a whole logical preprocessor line."""

    kind: TokenKind
    start: int
    end: int
    text: str


@lru_cache(maxsize=256)
def tokenize(content: bytes) -> tuple[Token, ...]:
    """The tokens of a file, comments included, white space left out; any bytes at all give some tokens.

    ``>>`` is two tokens, so that it closes two template lists.
    """
    tokens: list[Token] = []
    position, fresh = 0, True  # fresh: nothing but space and comments so far on this line
    while position < len(content):
        if fresh and content[position : position + 1] == b"#":
            end = _directive_end(content, position)
            tokens.append(Token("directive", position, end, _decoded(content[position:end])))
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
        else:
            fresh = fresh and kind == "comment"
            tokens.append(Token(kind, position, match.end(), _decoded(text)))  # type: ignore[arg-type]
        position = match.end()
    return tuple(tokens)


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


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


@lru_cache(maxsize=256)
def code_tokens(content: bytes) -> tuple[Token, ...]:
    """The tokens without comments."""
    return tuple(t for t in tokenize(content) if t.kind != "comment")


def comments(content: bytes) -> list[tuple[int, int]]:
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


def directive_name(text: str) -> str:
    """``"if"`` for ``"#  if X"``; "" for a lone ``#``."""
    match = re.match(r"#(?:[ \t]|\\\r?\n|/\*.*?\*/)*([A-Za-z_]+)?", text, re.S)
    return (match[1] or "") if match else ""


@dataclass(frozen=True, slots=True)
class Word:
    """An identifier or keyword at byte ``start``, with the two tokens before it ("" where there are none)."""

    start: int
    text: str
    before: str
    before_that: str


def words(content: bytes) -> Iterator[Word]:
    """All words of a file, those inside directives too (a directive's ``#`` is no token before its words)."""
    before, before_that = "", ""
    for token in code_tokens(content):
        if token.kind == "directive":
            inside = words(content[token.start + 1 : token.end])
            yield from (Word(token.start + 1 + w.start, w.text, w.before, w.before_that) for w in inside)
            continue
        if token.kind == "word":
            yield Word(token.start, token.text, before, before_that)
        before, before_that = token.text, before


class TokenFile:
    """The tokens of one file, without comments, and which bracket closes which."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.tokens = code_tokens(content)

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def match(self) -> dict[int, int]:
        """Index of each bracket's partner, both ways. Unbalanced brackets have none."""
        pairs: dict[int, int] = {}
        stack: list[int] = []
        for index, token in enumerate(self.tokens):
            if token.kind != "punct":
                continue
            if token.text in _OPEN:
                stack.append(index)
            elif token.text in (")", "]", "}"):
                depth = len(stack) - 1
                while depth >= 0 and _OPEN[self.tokens[stack[depth]].text] != token.text:
                    depth -= 1
                if depth >= 0:
                    pairs[stack[depth]] = index
                    pairs[index] = stack[depth]
                    del stack[depth:]
        return pairs

    def text(self, index: int) -> str:
        """The token's text; "" outside the file."""
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def kind(self, index: int) -> str:
        return self.tokens[index].kind if 0 <= index < len(self.tokens) else ""

    def extent(self, first: int, last: int) -> tuple[int, int]:
        """The bytes from token ``first`` to token ``last``, both included."""
        return self.tokens[first].start, self.tokens[last].end

    def source(self, first: int, last: int) -> str:
        """The text from token ``first`` to token ``last``, both included, as written."""
        if first > last:
            return ""
        return self.content[self.tokens[first].start : self.tokens[last].end].decode("utf-8", "surrogateescape")

    def within(self, start: int, end: int) -> tuple[int, int]:
        """The first and last token that begin in bytes ``start:end``; first > last without any."""
        return bisect_left(self._starts, start), bisect_left(self._starts, end) - 1

    @cached_property
    def _starts(self) -> list[int]:
        return [token.start for token in self.tokens]

    def angle_end(self, index: int) -> int | None:
        """Index of the ``>`` that closes the template arguments opened by ``<`` at ``index``; None if they are not.

        A guess by content: only what may stand in a type or a plain constant is allowed inside.
        """
        if self.text(index) != "<":
            return None
        depth = 0
        position = index
        while position < len(self.tokens):
            token = self.tokens[position]
            if token.text == "<":
                depth += 1
            elif token.text == ">":
                depth -= 1
                if depth == 0:
                    return position
            elif token.text == "(" and position in self.match:
                position = self.match[position]
            elif token.kind not in ("word", "number") and token.text not in _IN_TEMPLATE_ARGUMENTS:
                return None
            elif token.text in ("&&", "&", "*") and self._is_operand(position + 1):
                return None  # an operator: a reference or pointer mark ends its type
            position += 1
        return None

    def _is_operand(self, index: int) -> bool:
        return self.kind(index) in ("word", "number") and self.text(index) != "const"

    def semicolon(self, position: int, last: int) -> int:
        """The next ``;`` outside brackets from ``position`` on, or ``last``."""
        while position <= last:
            text = self.text(position)
            if text == ";":
                return position
            if text in ("(", "[", "{") and position in self.match:
                position = self.match[position]
            position += 1
        return last

    def split(self, first: int, last: int, separator: str = ",") -> list[tuple[int, int]]:
        """The parts (first, last token, both included) between ``separator`` at bracket depth 0 of a token range."""
        parts: list[tuple[int, int]] = []
        begin = first
        position = first
        while position <= last:
            token = self.tokens[position]
            if token.text in _OPEN and token.kind == "punct" and position in self.match:
                position = self.match[position]
            elif token.text == "<" and self.kind(position - 1) == "word":
                end = self.angle_end(position)
                position = position if end is None else min(end, last)
            elif token.text == separator and token.kind == "punct":
                parts.append((begin, position - 1))
                begin = position + 1
            position += 1
        if begin <= last or parts:
            parts.append((begin, last))
        return parts


@lru_cache(maxsize=256)
def token_file(content: bytes) -> TokenFile:
    """The tokens of a file's bytes; cached, so treat it as read-only."""
    return TokenFile(content)
