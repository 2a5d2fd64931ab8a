"""Canonical content: candidates that differ in layout only are one question."""

from __future__ import annotations

import ast
import contextlib
import hashlib
from functools import lru_cache

from reducer.oracle.candidate import Candidate
from reducer.syntax.cxx import is_cxx
from reducer.syntax.cxx_tokens import code_tokens


def canonical_key(candidate: Candidate) -> str:
    """Hex SHA-256 of the commands and of what compilers and interpreters make of each file: layout and comments
    of C++ and Python do not count."""
    state = hashlib.sha256()
    recipe = candidate.recipe
    state.update(repr((recipe.build, recipe.run, recipe.control_run, sorted(candidate.tree.executable))).encode())
    for path, content in candidate.tree.items():
        state.update(path.encode("utf-8", "surrogateescape") + b"\0" + _digest(path.rsplit("/", 1)[-1], content))
    return state.hexdigest()


@lru_cache(maxsize=8192)
def _digest(name: str, content: bytes) -> bytes:
    if name.endswith(".py"):
        with contextlib.suppress(SyntaxError, ValueError):
            content = ast.dump(ast.parse(content)).encode("utf-8", "surrogatepass")
    elif is_cxx(name):
        content = b"\0".join(content[token.start : token.end].strip() for token in code_tokens(content))
    return hashlib.sha256(content).digest()
