"""Command lines: which of them need a shell, and what the others say."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

PYTHONS = frozenset({"python", "python3"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_ACTIVE = frozenset("|&;<>()$`\n#~{}")
_GLOB = frozenset("*?[")
# Words that mean something else to a shell than the program of that name (or have no program).
_WORDS = """
! . : [ [[ alias bg break builtin case cd command continue coproc declare dirs disown do done elif else enable
esac eval exec exit export fc fg fi for function getopts hash help history if jobs let local logout mapfile
popd pushd read readarray readonly return select set shift shopt source suspend test then time times trap type
typeset ulimit umask unalias unset until wait while
"""
_SHELL_WORDS = frozenset(_WORDS.split())


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A command that needs no shell: run ``argv`` with ``env`` added to the environment."""

    env: Mapping[str, str]
    argv: tuple[str, ...]


@dataclass(slots=True)
class _Word:
    text: str
    bare: int | None = None  # length of the prefix that is free of quotes; None: all of it

    def assigns(self) -> bool:
        """True for NAME=value as a shell understands it: the name and the sign unquoted."""
        match = _NAME.match(self.text)
        return match is not None and (self.bare is None or self.bare >= match.end())


def join_simple(env: Mapping[str, str], argv: Iterable[str]) -> str:
    """The command line that ``parse_simple`` splits into these two: a shell takes ``A='b c'`` for an assignment, and
    ``'A=b c'`` for a program."""
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in env.items()), *map(shlex.quote, argv)])


def parse_simple(command: str) -> SimpleCommand | None:
    """Split a command line that uses no shell syntax beyond quotes; None when it needs a shell.

    Leading ``VAR=value`` words and ``env VAR=value`` are taken as changes of the environment. A pytest node id
    (``file::test[x]``) is taken as written although a shell would look for a file of that name first.
    """
    words = _split(command)
    if words is None:
        return None
    env: dict[str, str] = {}
    while words and words[0].assigns():
        name, _, value = words.pop(0).text.partition("=")
        env[name] = value
    argv = [word.text for word in words]
    if not argv or (words[0].bare is None and argv[0] in _SHELL_WORDS):
        return None
    if argv[0] == "env" and len(argv) > 1:
        rest = argv[1:]
        while rest and _NAME.match(rest[0]):
            name, _, value = rest.pop(0).partition("=")
            env[name] = value
        if rest and not rest[0].startswith("-") and "=" not in rest[0]:
            argv = rest
        else:
            return SimpleCommand(MappingProxyType(env), tuple(argv))
    return SimpleCommand(MappingProxyType(env), tuple(argv))


def _split(command: str) -> list[_Word] | None:
    """Words after quote removal; None at anything that a shell would act on, and for unbalanced quotes."""
    words: list[_Word] = []
    word: _Word | None = None
    active_glob = False
    position = 0
    while position < len(command):
        char = command[position]
        if char in " \t":
            if active_glob and word is not None and "::" not in word.text:
                return None
            word, active_glob = None, False
            position += 1
            continue
        if command.startswith("\\\n", position):  # an escaped line end joins two lines
            position += 2
            continue
        if word is None:
            word = _Word("")
            words.append(word)
        if char in "'\"\\" and word.bare is None:
            word.bare = len(word.text)
        if char == "'":
            end = command.find("'", position + 1)
            if end < 0:
                return None
            word.text += command[position + 1 : end]
            position = end + 1
        elif char == '"':
            quoted = _double_quoted(command, position + 1)
            if quoted is None:
                return None
            word.text += quoted[0]
            position = quoted[1]
        elif char == "\\":
            if position + 1 >= len(command):
                return None
            word.text += command[position + 1]
            position += 2
        elif char in _GLOB:
            active_glob = True
            word.text += char
            position += 1
        elif char in _ACTIVE and not (char == "#" and word.text):
            return None
        else:
            word.text += char
            position += 1
    if active_glob and word is not None and "::" not in word.text:
        return None
    return words


def _double_quoted(command: str, start: int) -> tuple[str, int] | None:
    """The text from ``start`` to the closing quote, and the position after it."""
    text = ""
    position = start
    while position < len(command):
        char = command[position]
        if char == '"':
            return text, position + 1
        if char in "$`":
            return None
        if char == "\\" and command[position + 1 : position + 2] in ("\\", '"', "\n"):
            text += command[position + 1].replace("\n", "")
            position += 2
            continue
        text += char
        position += 1
    return None
