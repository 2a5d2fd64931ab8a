"""Edits: declarative changes of a tree, and how they combine.

All positions are byte offsets into the file as it stands in the *base* tree, so that any subset of a pass's edits can
be applied at once, in any order, with the same outcome.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reducer.tree import SourceTree


class EditConflict(ValueError):
    """The edits cannot be applied together (partial overlap, two texts for one range, ...)."""


@dataclass(frozen=True, slots=True, order=True)
class Splice:
    """Replace bytes ``start:end`` of ``path`` by ``text`` (empty text: a cut; start == end: an insertion)."""

    path: str
    start: int
    end: int
    text: bytes = b""


@dataclass(frozen=True, slots=True, order=True)
class Drop:
    """Remove the file."""

    path: str


@dataclass(frozen=True, slots=True, order=True)
class Write:
    """Give the file this content, whether or not it exists."""

    path: str
    content: bytes


Op = Splice | Drop | Write


@dataclass(frozen=True, slots=True)
class Edit:
    """One indivisible change: all of its operations or none.

    ``label`` says to a person what goes ("function sum_rows"); ``weight`` is about how many bytes it saves.
    """

    ops: tuple[Op, ...]
    label: str = ""
    weight: int = 1


def cut(path: str, start: int, end: int, label: str = "") -> Edit:
    """The edit that removes a byte range."""
    return Edit((Splice(path, start, end),), label, max(1, end - start))


def apply(tree: SourceTree, edits: Iterable[Edit]) -> SourceTree:
    """The tree after all edits. The order of ``edits`` does not matter.

    A dropped file absorbs every other change to it. A cut absorbs the changes inside it, overlapping cuts unite, and
    equal changes count once. Raises EditConflict for what has no single meaning, and for offsets outside the file.
    """
    splices: dict[str, set[Splice]] = {}
    writes: dict[str, bytes] = {}
    dropped: set[str] = set()
    for edit in edits:
        for op in edit.ops:
            if isinstance(op, Drop):
                dropped.add(op.path)
            elif isinstance(op, Write):
                if writes.setdefault(op.path, op.content) != op.content:
                    raise EditConflict(f"two contents for {op.path}")
            else:
                splices.setdefault(op.path, set()).add(op)
    changes: dict[str, bytes | None] = {}
    for path, content in writes.items():
        if path in splices and path not in dropped:
            raise EditConflict(f"{path} is both rewritten and spliced")
        changes[path] = content
    for path, some in splices.items():
        if path in dropped:
            continue
        if path not in tree:
            raise EditConflict(f"no file {path}")
        changes[path] = _splice(tree[path], some)
    changes.update(dict.fromkeys(dropped))
    return tree.updated(changes)


def _splice(content: bytes, splices: set[Splice]) -> bytes:
    """Apply splices to one file, wide before narrow so that what a wider change absorbs is seen after it."""
    merged: list[Splice] = []
    for splice in sorted(splices, key=lambda s: (s.start, -s.end, s.text)):
        if not 0 <= splice.start <= splice.end <= len(content):
            raise EditConflict(f"range {splice.start}:{splice.end} is outside {splice.path}")
        last = merged[-1] if merged else None
        if last is None or splice.start > last.end or (splice.start == last.end and splice != last):
            merged.append(splice)
        elif splice.start == last.start and splice.end == last.end:
            if splice.text != last.text:
                raise EditConflict(f"two texts for {splice.path}:{splice.start}:{splice.end}")
        elif splice.end <= last.end:
            continue  # inside a wider change, which decides
        elif last.text == b"" and splice.text == b"":
            merged[-1] = Splice(last.path, last.start, splice.end)
        else:
            raise EditConflict(f"overlap at {splice.path}:{splice.start}")
    pieces: list[bytes] = []
    position = 0
    for splice in merged:
        pieces += (content[position : splice.start], splice.text)
        position = splice.end
    pieces.append(content[position:])
    return b"".join(pieces)
