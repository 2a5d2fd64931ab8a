"""A tolerant C++ tokenizer: byte offsets, bracket matching, no preprocessing.

It sees the text as a person does (macro arguments are plain tokens), so it serves for files that no compiler accepts
and for code inside macro calls, where libclang's cursors lose their places.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Kind = Literal["id", "num", "str", "char", "punct", "pp"]

_TOKEN = re.compile(
    rb"""
    (?P<space>\s+|\\\r?\n|//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
  | (?P<raw>(?:u8|[uUL])?R"(?P<delim>[^\s()\\]{0,16})\(.*?\)(?P=delim)")
  | (?P<str>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
  | (?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
  | (?P<num>\.?\d(?:[eEpP][+-]|'?[\w.])*)
  | (?P<id>(?:[A-Za-z_$]|[^\x00-\x7f])(?:\w|\$|[^\x00-\x7f])*)
  | (?P<punct>\.\.\.|<<=|->\*|<=>|::|->|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|\.\*|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(rb"#(?:\\\r?\n|/\*.*?\*/|[^\n])*", re.DOTALL)
_OPEN = {"(": ")", "[": "]", "{": "}"}
_IN_TEMPLATE_ARGUMENTS = {"::", ",", "*", "&", "&&", "...", "<", ">", "(", ")", "[", "]"}


@dataclass(frozen=True, slots=True)
class Token:
    """One token; ``start:end`` are byte offsets. A whole preprocessor directive is one token of kind ``pp``."""

    kind: Kind
    text: str
    start: int
    end: int


class TokenFile:
    """The tokens of one file, without comments, and which bracket closes which."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.tokens = tokenize(content)

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

    def source(self, first: int, last: int) -> str:
        """The text from token ``first`` to token ``last``, both included, as written."""
        if first > last:
            return ""
        return self.content[self.tokens[first].start : self.tokens[last].end].decode("utf-8", "surrogateescape")

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
            elif token.kind not in ("id", "num") and token.text not in _IN_TEMPLATE_ARGUMENTS:
                return None
            position += 1
        return None

    def split(self, first: int, last: int, separator: str = ",") -> list[tuple[int, int]]:
        """The parts (first, last token, both included) between ``separator`` at bracket depth 0 of a token range."""
        parts: list[tuple[int, int]] = []
        begin = first
        position = first
        while position <= last:
            token = self.tokens[position]
            if token.text in _OPEN and token.kind == "punct" and position in self.match:
                position = self.match[position]
            elif (
                token.text == "<" and self.kind(position - 1) == "id" and (end := self.angle_end(position)) is not None
            ):
                position = min(end, last)
            elif token.text == separator and token.kind == "punct":
                parts.append((begin, position - 1))
                begin = position + 1
            position += 1
        if begin <= last or parts:
            parts.append((begin, last))
        return parts


def tokenize(content: bytes) -> list[Token]:
    """All tokens of ``content``; bytes that start no token become one-byte ``punct`` tokens."""
    tokens: list[Token] = []
    position = 0
    fresh_line = True
    while position < len(content):
        if fresh_line and content[position : position + 1] == b"#":
            found = _DIRECTIVE.match(content, position)
            assert found is not None
            tokens.append(_token("pp", content, position, found.end()))
            position = found.end()
            continue
        found = _TOKEN.match(content, position)
        assert found is not None  # the last alternative takes any byte
        group = found.lastgroup or "punct"
        if group == "delim":
            group = "raw"
        if found.group("space") is not None:
            fresh_line = fresh_line or b"\n" in found.group()
        else:
            fresh_line = False
            kind: Kind = "str" if found.group("raw") is not None else _KINDS[group]
            tokens.append(_token(kind, content, position, found.end()))
        position = found.end()
    return tokens


_KINDS: dict[str, Kind] = {"str": "str", "raw": "str", "char": "char", "num": "num", "id": "id", "punct": "punct"}


def _token(kind: Kind, content: bytes, start: int, end: int) -> Token:
    return Token(kind, content[start:end].decode("utf-8", "surrogateescape"), start, end)
