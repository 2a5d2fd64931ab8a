"""What libclang knows about references: resolved words, references without a word, pieces of one thing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import clang.cindex as cindex

from reducer.syntax.cxx import CxxParser, CxxUnit, children_of, kind_of
from reducer.tree import SourceTree

Place = tuple[str, int]
"""(path in the tree, byte offset)."""


@dataclass(slots=True)
class References:
    """``words``: where a name is written → the places of what it means, empty for something outside the tree.

    ``implicit``: (place, target) of references that no name spells (constructors, operators, what macros expand to).
    ``pieces``: places of the declarations of one thing, by its identity. ``overrides``: (method, overridden method).
    ``parsed``: the files that some unit read without errors in them.
    """

    words: dict[Place, set[Place]] = field(default_factory=dict)
    implicit: set[tuple[Place, Place]] = field(default_factory=set)
    pieces: dict[str, set[Place]] = field(default_factory=dict)
    overrides: set[tuple[Place, Place]] = field(default_factory=set)
    foreign_bases: set[Place] = field(default_factory=set)
    parsed: set[str] = field(default_factory=set)


def references(parser: CxxParser, tree: SourceTree, sources: Iterable[str]) -> References:
    """Read the references of all sources; what does not parse adds what it can."""
    found = References()
    seen: set[tuple[str, int, str]] = set()
    for path in sources:
        unit = parser.parse(tree, path)
        if unit.tu is None:
            continue
        broken = {d.path for d in unit.diagnostics()}
        found.parsed |= set(unit.files()) - broken
        for top in unit.top_level():
            place = unit.place(top.location)
            if place is None:
                continue
            key = (*place, str(kind_of(top)))
            if place[0] != path and key in seen and place[0] not in broken:
                continue  # a header that an earlier unit has read
            seen.add(key)
            _read(unit, top, found)
    return found


def _read(unit: CxxUnit, top: Any, found: References) -> None:
    stack = [top]
    while stack:
        cursor = stack.pop()
        kind = kind_of(cursor)
        if kind is not None:
            _note(unit, cursor, kind, found)
        stack.extend(children_of(cursor))


def _note(unit: CxxUnit, cursor: Any, kind: Any, found: References) -> None:
    spelled = unit.written(cursor.location)
    if spelled is None:
        return
    if kind.is_declaration():
        own = unit.place(cursor.location)
        if own is None or kind in (cindex.CursorKind.USING_DECLARATION, cindex.CursorKind.FRIEND_DECL):
            return
        found.words.setdefault(spelled, set()).add(own)
        if kind in _PIECES:
            found.pieces.setdefault(_identity(unit, cursor, kind), set()).add(own)
        if kind == cindex.CursorKind.CXX_METHOD:
            for base in cursor.get_overridden_cursors() if cursor.is_virtual_method() else ():
                target = unit.place(base.location)
                if target is not None:
                    found.overrides.add((own, target))
        return
    if kind == cindex.CursorKind.OVERLOADED_DECL_REF or kind == cindex.CursorKind.INCLUSION_DIRECTIVE:
        return
    referenced = cursor.referenced
    if referenced is None:
        return
    if kind == cindex.CursorKind.CXX_BASE_SPECIFIER:
        if unit.place(referenced.location) is None:
            found.foreign_bases.add(spelled)
        return
    target = unit.place(referenced.location)
    if _spells(unit, spelled, referenced.spelling):
        found.words.setdefault(spelled, set()).update(() if target is None else (target,))
    if target is not None:
        found.implicit.add((spelled, target))


_PIECES = frozenset(
    {
        cindex.CursorKind.FUNCTION_DECL,
        cindex.CursorKind.FUNCTION_TEMPLATE,
        cindex.CursorKind.CXX_METHOD,
        cindex.CursorKind.CONSTRUCTOR,
        cindex.CursorKind.DESTRUCTOR,
        cindex.CursorKind.CONVERSION_FUNCTION,
        cindex.CursorKind.CLASS_DECL,
        cindex.CursorKind.STRUCT_DECL,
        cindex.CursorKind.UNION_DECL,
        cindex.CursorKind.CLASS_TEMPLATE,
        cindex.CursorKind.ENUM_DECL,
        cindex.CursorKind.VAR_DECL,
    }
)
_TYPES = frozenset(
    {
        cindex.CursorKind.CLASS_DECL,
        cindex.CursorKind.STRUCT_DECL,
        cindex.CursorKind.UNION_DECL,
        cindex.CursorKind.CLASS_TEMPLATE,
        cindex.CursorKind.ENUM_DECL,
    }
)


def _identity(unit: CxxUnit, cursor: Any, kind: Any) -> str:
    """Equal for all pieces of one thing: across files by its USR, for types and internal names by its first piece."""
    if kind not in _TYPES and cursor.linkage == cindex.LinkageKind.EXTERNAL:
        return f"usr {cursor.get_usr()}"
    return f"at {unit.place(cursor.canonical.location)}"


def _spells(unit: CxxUnit, place: Place, name: str) -> bool:
    raw = name.encode("utf-8", "surrogateescape")
    return bool(raw) and unit.tree[place[0]][place[1] : place[1] + len(raw)] == raw
