"""What another reducer asks about: its candidate as a tree, and which shortcuts are fair for it."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Literal

from reducer.syntax.cxx import is_cxx
from reducer.syntax.cxx_tokens import Token, code_tokens, directive_name
from reducer.tree import SourceTree
from reducer.world.freeze import LARGE, FreezeError, freeze

Headers = Literal["all", "own", "astray"]
_OPENS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


class CandidateError(Exception):
    """The question cannot be understood. The message says what, why and what to do."""


def read_candidate(
    frozen: SourceTree, directory: Path, target: str = "", base: str = "", files: tuple[str, ...] = ()
) -> SourceTree:
    """The candidate's tree. ``directory``: where relative paths start.

    A directory (``target``, or ``directory`` itself) is the whole tree, less build products, as a checkout is frozen;
    with ``files`` only those are taken from it, by their path or by their bare name, and with ``base`` what it lacks
    comes from there. A file stands for the one of ``files``, else for the one of the tree with that name. What is not
    taken is as in ``base``, else as in ``frozen``. Raises CandidateError.
    """
    place = directory / target
    rest = _tree(directory / base) if base else frozen
    for name in files:
        if name not in rest:
            raise CandidateError(f"--file {name}: the tree has no such file. Give its path in the checkout.")
    if place.is_file():
        if len(files) > 1:
            raise CandidateError(f"{target} is one file, but --file is given {len(files)} times.")
        return rest.updated({files[0] if files else _only(rest, place.name): _content(place)})
    if not place.is_dir():
        raise CandidateError(f"{place} does not exist. Give the candidate's directory or file.")
    if files:
        return rest.updated({name: _content(_found(place, name)) for name in files})
    whole = _tree(place)
    return rest.updated(dict(whole.items())) if base else whole


def _tree(directory: Path) -> SourceTree:
    try:
        return freeze(directory).tree
    except FreezeError as error:
        raise CandidateError(str(error)) from None


def _only(tree: SourceTree, name: str) -> str:
    found = [path for path in tree if posixpath.basename(path) == name]
    if len(found) != 1:
        raise CandidateError(f"{len(found)} files of the tree are named {name}. Say which it stands for: --file PATH.")
    return found[0]


def _found(place: Path, name: str) -> Path:
    for candidate in (place / name, place / posixpath.basename(name)):
        if candidate.is_file():
            return candidate
    raise CandidateError(f"{place} has neither {name} nor {posixpath.basename(name)}. Run it where the candidate lies.")


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGE:
            raise CandidateError(f"{path} is larger than {LARGE >> 20} MiB.")
        return path.read_bytes()
    except OSError as error:
        raise CandidateError(f"{path} cannot be read ({error.strerror}).") from None


def headers(frozen: SourceTree, candidate: SourceTree) -> Headers:
    """How far a candidate may be judged with precompiled headers, which forgive an ``#include`` that is missing or
    stands where its text would be nonsense.

    "all": every file includes what it did, where it did; "own": other includes, all of them outside of any code, so
    that headers may be precompiled that each source includes itself; "astray": an include in the middle of something,
    which no reader wants even where a compiler takes it.
    """
    found: Headers = "all"
    for path, content in candidate.items():
        if not is_cxx(path) or content == frozen.get(path):
            continue
        tokens = code_tokens(content)
        if _head(tokens) == _head(code_tokens(frozen.get(path, b""))):
            continue
        if not _outside(tokens):
            return "astray"
        found = "own"
    return found


def _is_include(token: Token) -> bool:
    return token.kind == "directive" and directive_name(token.text).startswith("include")


def _head(tokens: tuple[Token, ...]) -> list[str]:
    """A file's tokens up to its last include."""
    last = max((i for i, token in enumerate(tokens) if _is_include(token)), default=-1)
    return [token.text.strip() for token in tokens[: last + 1]]


def _outside(tokens: tuple[Token, ...]) -> bool:
    """Whether every include stands between declarations at the outermost level."""
    depth, before = 0, ";"
    for token in tokens:
        if token.kind == "directive":
            if _is_include(token) and (depth or before not in (";", "}")):
                return False
            continue
        depth += _OPENS.get(token.text, 0) if token.kind == "punct" else 0
        before = token.text
    return True
