"""Names that several sources use inside themselves, made distinct before the sources become one file."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reducer.edits.edit import Edit, Splice, apply
from reducer.syntax.cxx import is_cxx
from reducer.syntax.cxx_chunks import Chunk, chunks
from reducer.syntax.cxx_text import whole_lines
from reducer.syntax.cxx_tokens import code_tokens, words
from reducer.tree import SourceTree

_WORD = re.compile(rb"[A-Za-z_]\w*")
_INTERNAL = frozenset({"static", "inline", "constexpr", "const", "template"})
_BEFORE_GLOBAL = {
    "return", "throw", "case", "else", "new", "delete", "do", "co_return", "co_yield", "co_await", "and", "or", "not",
}  # fmt: skip
_ROUNDS = 8  # a renaming can make two equal definitions differ, which asks for another; chains are short


@dataclass(frozen=True, slots=True)
class _Name:
    """One name that a file declares at namespace level. ``key`` is equal for names that would meet in one file."""

    path: str
    chunk: Chunk
    name: str
    key: tuple[str, ...]
    text: str  # the declaration's tokens
    internal: bool


def without_clashes(tree: SourceTree, sources: Sequence[str]) -> SourceTree:
    """The tree with what is internal to a source (unnamed namespaces, ``static``, macros, types) under its own name.

    A definition equal to one of an earlier source is cut. External functions keep their names.
    """
    for _ in range(_ROUNDS):
        renames = _renames(tree, sources)
        if not renames:
            break
        for path, names in renames.items():
            tree = tree.updated({path: rename_words(tree, path, names)})
    return _without_repeats(tree, sources)


def _names(tree: SourceTree, path: str) -> Iterator[_Name]:
    content = tree[path]
    pieces = chunks(content)
    for chunk in pieces:
        if chunk.kind not in ("function", "variable", "class", "enum", "alias", "macro") or chunk.specialised:
            continue
        if not chunk.defines or any(pieces[p].kind not in ("namespace", "linkage") for p in _parents(pieces, chunk)):
            continue
        tokens = [t.text for t in code_tokens(content[chunk.start : chunk.end])]
        text = " ".join(tokens)
        scope = tuple(s for s in chunk.scope if s)
        internal = chunk.kind != "function" or "" in chunk.scope or bool(_INTERNAL & set(tokens[:4]))
        if chunk.kind == "variable":
            internal = "" in chunk.scope or bool(_INTERNAL & set(tokens[:4]))
        for name in chunk.names:
            key = ("#", name) if chunk.kind == "macro" else (*scope, name)
            yield _Name(path, chunk, name, key, text, internal)


def _parents(pieces: Sequence[Chunk], chunk: Chunk) -> Iterator[int]:
    parent = chunk.parent
    while parent is not None:
        yield parent
        parent = pieces[parent].parent


def _renames(tree: SourceTree, sources: Sequence[str]) -> dict[str, dict[_Name, bytes]]:
    """What to rename, by source."""
    by_key: dict[tuple[str, ...], list[_Name]] = {}
    for path in sources:
        for name in _names(tree, path):
            by_key.setdefault(name.key, []).append(name)
    taken = {word for path in tree if is_cxx(path) for word in _WORD.findall(tree[path])}
    spoken = {path: set(_WORD.findall(tree[path])) for path in sources}
    found: dict[str, dict[_Name, bytes]] = {}
    for some in by_key.values():
        for index, name in enumerate(some):
            others = [o for i, o in enumerate(some) if o.path != name.path and (i < index or not o.internal)]
            clashes = name.internal and any(o.text != name.text for o in others)
            if name.chunk.kind == "macro" and not clashes:
                raw = _raw(name.name)
                definers = {o.path for o in some}
                clashes = any(raw in spoken[p] for p in sources if p not in definers)
            if clashes:
                found.setdefault(name.path, {})[name] = _fresh(name, taken)
    return found


def _fresh(name: _Name, taken: set[bytes]) -> bytes:
    """A name that nothing in the tree uses: with the source's own name behind it."""
    stem = re.sub(r"\W", "_", posixpath.splitext(posixpath.basename(name.path))[0])
    upper = name.name.isupper()
    base = f"{name.name}_{stem.upper() if upper else stem}"
    candidate, count = base, 2
    while _raw(candidate) in taken:
        candidate, count = f"{base}{count}", count + 1
    taken.add(_raw(candidate))
    return _raw(candidate)


def _raw(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def rename_words(tree: SourceTree, path: str, names: dict[_Name, bytes]) -> bytes:
    """The file with names replaced, macros' bodies included.

    Members stay, and all words of a class that has a member of the name; so do names qualified by something else.
    """
    table = {name.name: (name, text) for name, text in names.items()}
    content = tree[path]
    members = _members(content)
    pieces: list[bytes] = []
    position = 0
    for word in words(content):
        if word.text not in table:
            continue
        name, text = table[word.text]
        if word.before in (".", "->") or any(a <= word.start < b for a, b in members.get(word.text, ())):
            continue
        qualifier = word.before_that if _WORD.fullmatch(word.before_that.encode("utf-8", "surrogateescape")) else ""
        qualified = qualifier and qualifier not in _BEFORE_GLOBAL
        if word.before == "::" and qualified and qualifier not in name.chunk.scope:
            continue
        pieces += (content[position : word.start], text)
        position = word.start + len(_raw(word.text))
    return b"".join((*pieces, content[position:]))


def _members(content: bytes) -> dict[str, list[tuple[int, int]]]:
    """For each member's name, the bodies of the classes that have one."""
    found: dict[str, list[tuple[int, int]]] = {}
    pieces = chunks(content)
    for chunk in pieces:
        owner = pieces[chunk.parent] if chunk.parent is not None else None
        if owner is not None and owner.kind == "class" and owner.body is not None:
            for name in chunk.names:
                found.setdefault(name, []).append(owner.body)
    # A class that is itself renamed has constructors of its name: those are no members in this sense.
    for chunk in pieces:
        if chunk.kind == "class" and chunk.names:
            found.pop(chunk.names[0], None)
    return found


def _without_repeats(tree: SourceTree, sources: Sequence[str]) -> SourceTree:
    """Cut what an earlier source has already defined in the same words, using-declarations included."""
    seen: dict[tuple[object, ...], str] = {}
    edits: list[Edit] = []
    for path in sources:
        content = tree[path]
        for key, chunk in _repeatable(tree, path):
            if seen.setdefault(key, path) != path:
                edits.append(Edit((Splice(path, *whole_lines(content, chunk.start, chunk.end)),)))
    return apply(tree, edits)


def _repeatable(tree: SourceTree, path: str) -> Iterator[tuple[tuple[object, ...], Chunk]]:
    for name in _names(tree, path):
        if name.internal and name.name == name.chunk.names[0]:
            yield (name.key, name.text), name.chunk
    content = tree[path]
    for chunk in chunks(content):
        if chunk.kind in ("using", "using-namespace") and chunk.parent is None:
            yield (chunk.kind, content[chunk.start : chunk.end]), chunk
