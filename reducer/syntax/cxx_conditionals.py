"""``#if ... #endif`` of C++ text: which branch a token stands in, what is complete, and brackets across branches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from reducer.syntax.cxx_tokens import Token, code_tokens, directive_name

OPENING = ("if", "ifdef", "ifndef")
BRANCH = ("else", "elif", "elifdef", "elifndef")
_OPEN = {"(": ")", "[": "]", "{": "}"}
_CLOSE = frozenset(_OPEN.values())


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
        if name in OPENING:
            self._states.append(False)
        elif name in BRANCH:
            self._states[-1:] = [True]  # with none open the walk began in the branch before
        elif name == "endif" and self._states:
            self._states.pop()


def balanced_conditionals(content: bytes) -> bool:
    """True when every #if of a piece of a file ends in it and no #else or #endif belongs to one outside."""
    depth = 0
    for token in code_tokens(content):
        if token.kind == "directive":
            name = directive_name(token.text)
            if name in OPENING:
                depth += 1
            elif name == "endif":
                depth -= 1
            if depth < 0 or (depth == 0 and name in BRANCH):
                return False
    return depth == 0


@dataclass(slots=True)
class Conditional:
    """``#if ... #endif``: the ranges of its directive lines, first to last."""

    lines: list[Token] = field(default_factory=list)


def conditionals(content: bytes) -> list[Conditional]:
    """The complete conditionals of a file, outer ones first."""
    found: list[Conditional] = []
    stack: list[Conditional] = []
    for token in code_tokens(content):
        if token.kind != "directive":
            continue
        name = directive_name(token.text)
        if name in OPENING:
            stack.append(Conditional([token]))
            found.append(stack[-1])
        elif name in BRANCH and stack:
            stack[-1].lines.append(token)
        elif name == "endif" and stack:
            stack.pop().lines.append(token)
    return [c for c in found if directive_name(c.lines[-1].text) == "endif"]


def matching(tokens: Sequence[Token], index: int, end: int | None = None) -> int:
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
                while stack and stack[-1] != token.text and token.text == "}":
                    stack.pop()  # a stray ( or [ never reaches over a block's end
                if stack and stack[-1] == token.text:
                    stack.pop()
                if not stack:
                    return position
        position += 1
    return stop - 1
