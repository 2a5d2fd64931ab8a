"""The types of expressions and variables of one parsed source, by the bytes that they are written in."""

from __future__ import annotations

import clang.cindex as cindex

from reducer.syntax.cxx import CxxUnit, kind_of

TypesByPlace = dict[tuple[str, int, int], str]
"""(path, start, end) in bytes → canonical type without const and reference. Variables stand at their name."""


def types_of(unit: CxxUnit) -> TypesByPlace:
    """The types that libclang found in the tree's own code, also inside macro arguments.

    Implicit conversions are looked through; what stays dependent on a template parameter is left out, except where an
    instantiation shows a type (the last one counts).
    """
    found: TypesByPlace = {}
    for cursor, _ in unit.walk():
        kind = kind_of(cursor)
        if kind is None or kind == cindex.CursorKind.UNEXPOSED_EXPR:
            continue
        variable = kind in (cindex.CursorKind.VAR_DECL, cindex.CursorKind.PARM_DECL)
        if not variable and not kind.is_expression():
            continue
        spelling = plain_spelling(cursor.type.get_canonical().spelling)
        if not spelling or spelling.startswith("<") or "type-parameter-" in spelling:
            continue
        if variable:
            place = unit.written(cursor.location)
            if place is not None and cursor.spelling:
                found[(place[0], place[1], place[1] + len(cursor.spelling.encode()))] = spelling
            continue
        start, end = unit.written(cursor.extent.start), unit.written(cursor.extent.end)
        if start is not None and end is not None and start[0] == end[0] and start[1] < end[1]:
            found[(start[0], start[1], end[1])] = spelling
    return found


def plain_spelling(spelling: str) -> str:
    """A type's spelling without its outer ``const`` and reference."""
    spelling = spelling.rstrip("& ").strip()
    if not spelling.endswith("*"):
        spelling = spelling.removeprefix("const ").removesuffix(" const")
    return spelling
