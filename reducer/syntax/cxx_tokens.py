"""The tokens of a C++ file for parsing: decoded, without comments, with bracket matching and template arguments.

It sees the text as a person does (macro arguments are plain tokens), so it serves for files that no compiler accepts
and for code inside macro calls, where libclang's cursors lose their places.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from reducer.syntax.cxx_text import TokenKind, code_tokens

Kind = Literal["id", "num", "str", "char", "punct", "pp"]

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
            elif token.text in ("&&", "&", "*") and self._is_operand(position + 1):
                return None  # an operator: a reference or pointer mark ends its type
            position += 1
        return None

    def _is_operand(self, index: int) -> bool:
        return self.kind(index) in ("id", "num") and self.text(index) != "const"

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
    """All tokens of ``content`` but comments; ``>=`` is one token, ``>>`` two, so that it closes two template lists."""
    tokens: list[Token] = []
    for found in code_tokens(content):
        text = found.text.decode("utf-8", "surrogateescape")
        last = tokens[-1] if tokens else None
        if text == "=" and last is not None and last.text == ">" and last.end == found.start:
            tokens[-1] = Token("punct", ">=", last.start, found.end)
        else:
            kind = "char" if found.kind == "string" and text.endswith("'") else _KINDS[found.kind]
            tokens.append(Token(kind, text, found.start, found.end))
    return tokens


_KINDS: dict[TokenKind, Kind] = {
    "word": "id", "number": "num", "string": "str", "punct": "punct", "directive": "pp", "comment": "punct",
}  # fmt: skip
