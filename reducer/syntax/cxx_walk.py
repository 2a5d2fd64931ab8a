"""Steps over the tokens of a C++ file: by brackets, of which only the first branch of each ``#if`` counts."""

from __future__ import annotations

from reducer.syntax.cxx_conditionals import matching
from reducer.syntax.cxx_tokens import code_tokens


class Walk:
    """The tokens of one file by index. ``end`` is always the index behind the last token that may be looked at."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.tokens = code_tokens(content)

    def text(self, index: int) -> str:
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def word(self, index: int) -> bool:
        return 0 <= index < len(self.tokens) and self.tokens[index].kind == "word"

    def closing(self, index: int, end: int) -> int:
        return matching(self.tokens, index, end)

    def semicolon(self, at: int, end: int) -> int:
        """The index of the next ``;`` outside brackets, or the last token before a closing brace."""
        position = at
        while position < end:
            text = self.text(position)
            if text == ";":
                return position
            if text in ("(", "[", "{"):
                position = self.closing(position, end)
            elif text == "}":
                return max(at, position - 1)
            position += 1
        return max(at, end - 1)

    def angle(self, opening: int, end: int) -> int | None:
        """The index of the ``>`` that closes the ``<`` at ``opening``; None when it is a comparison."""
        depth = 0
        position = opening
        while position < end:
            text = self.text(position)
            if text == "<":
                depth += 1
            elif text == ">":
                depth -= 1
                if depth == 0:
                    return position
            elif text in ("(", "[", "{"):
                position = self.closing(position, end)
            elif text in (";", "}", ")", "||"):
                return None
            position += 1
        return None

    def angle_back(self, closing: int) -> int | None:
        """The index of the ``<`` that the ``>`` at ``closing`` closes."""
        depth = 0
        for position in range(closing, -1, -1):
            text = self.text(position)
            depth += (text == ">") - (text == "<")
            if depth == 0:
                return position
            if text in (";", "{", "}"):
                return None
        return None
