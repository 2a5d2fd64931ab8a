"""One declaration of a C++ file: what kind of thing it declares, under which names, and where its body is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from reducer.syntax.cxx_conditionals import Conditionals
from reducer.syntax.cxx_tokens import directive_name
from reducer.syntax.cxx_walk import Walk

_CLASS_KEYS = frozenset({"class", "struct", "union", "enum"})
NOT_A_NAME = {
    "__attribute__", "__declspec", "alignas", "decltype", "noexcept", "explicit", "requires", "throw",
    "__launch_bounds__", "sizeof", "typeof", "__typeof__", "alignof", "asm", "_Pragma", "__pragma", "if", "while",
    "for", "switch", "return",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Declaration:
    """``last`` is the index of its last token, ``names`` are the tokens of what it declares, ``qualifiers`` the
    ``("A", "B")`` of ``A::B::f``; ``parameters`` is the opening bracket of a function's, ``body`` both braces;
    ``inner`` is what a class adds to the scope of its members, () for an unnamed one.
    ``specialised``: the name has template arguments. ``operator``: the name is ``operator…``."""

    kind: Literal["class", "enum", "function", "variable", "other"]
    last: int
    names: list[int]
    qualifiers: tuple[str, ...] = ()
    body: tuple[int, int] | None = None
    parameters: int | None = None
    inner: tuple[str, ...] = ()
    specialised: bool = False
    operator: bool = False


def read_declaration(walk: Walk, at: int, end: int) -> Declaration:
    """The declaration that starts at token ``at``, behind its template header and attributes."""
    seen = _Seen()
    last = _scan(walk, at, end, seen)
    body, names = seen.body, seen.names
    if seen.key and (body is not None or _forward(walk, seen, last)) and seen.parameters is None:
        named = _class_name(walk, seen, last)
        names = [*([named] if named >= 0 else []), *(names if body else [])]
        if seen.key == "enum" and body:
            names += _enumerators(walk, body)
        qualifiers, special = _name_around(walk, named)
        inner = (walk.text(named),) if named >= 0 else ()
        kind: Literal["enum", "class"] = "enum" if seen.key == "enum" else "class"
        return Declaration(kind, last, names, qualifiers, body, None, inner, special)
    if seen.parameters is not None:
        named = _function_name(walk, seen)
        qualifiers, special = _name_around(walk, named)
        names = [named] if named >= 0 else []
        is_operator = seen.operator_at is not None
        return Declaration("function", last, names, qualifiers, body, seen.parameters, (), special, is_operator)
    return Declaration("variable" if names else "other", last, names, (), body)


@dataclass(slots=True)
class _Seen:
    """What the scan of one declaration has seen so far."""

    key: str = ""  # class, struct, union or enum
    key_at: int = -1
    parameters: int | None = None
    operator_at: int | None = None
    assigned: bool = False
    body: tuple[int, int] | None = None
    names: list[int] = field(default_factory=list)


def _scan(walk: Walk, at: int, end: int, seen: _Seen) -> int:
    """Walk one declaration from token ``at``; the index of its last token."""
    skip = Conditionals()
    position = at
    while position < end:
        token = walk.tokens[position]
        text = token.text
        if token.kind == "directive":
            if directive_name(text) in ("include", "define", "pragma", "undef") and skip.depth == 0:
                return max(at, position - 1)
            skip.see(token)
        elif skip.skipping:
            pass
        elif text == "operator" and not seen.assigned:
            seen.operator_at = position
            position = _operator(walk, position, end)
            if walk.text(position) == "(":
                seen.parameters = seen.parameters if seen.parameters is not None else position
            continue
        elif text == "(":
            before = walk.text(position - 1)
            named = (walk.word(position - 1) and before not in NOT_A_NAME) or (
                before == ">" and walk.angle_back(position - 1) is not None
            )
            if seen.parameters is None and not seen.assigned and named and position > at:
                seen.parameters = position
            position = walk.closing(position, end)
        elif text == "[":
            _declarator(walk, position, seen)
            position = walk.closing(position, end)
        elif text == "<" and walk.word(position - 1) and not seen.assigned:
            position = walk.angle(position, end) or position
        elif text == "{":
            stop = _braces(walk, position, end, seen)
            if stop is not None:
                return stop
            position = walk.closing(position, end)
        elif text == ";":
            _declarator(walk, position, seen)
            return position
        elif text == "}":
            return max(at, position - 1)
        elif text in ("=", ",", ":"):
            _declarator(walk, position, seen)
            seen.assigned = text == "=" or (seen.assigned and text != ",")
        elif text in _CLASS_KEYS and not seen.key and seen.parameters is None and not seen.assigned:
            seen.key, seen.key_at = text, position
        position += 1
    return max(at, end - 1)


def _braces(walk: Walk, position: int, end: int, seen: _Seen) -> int | None:
    """Judge the ``{`` at ``position``: the last token of the declaration, or None when it goes on behind ``}``."""
    close = walk.closing(position, end)
    following = walk.text(close + 1) if close + 1 < end else ""
    if seen.key and seen.body is None and seen.parameters is None and not seen.assigned:
        seen.body = (position, close)
        seen.names.clear()
        goes_on = following in (";", "*", "&", "=") or (walk.word(close + 1) and following not in _CLASS_KEYS)
        return None if goes_on and close + 1 < end else close
    if seen.parameters is None:
        _declarator(walk, position, seen)
    is_body = seen.parameters is not None and not seen.assigned and following not in (",", "{")
    if is_body:
        seen.body = (position, close)
    if following == ";":
        return close + 1
    if following == "catch" or not is_body:
        return None if following else close
    return close


def _declarator(walk: Walk, delimiter: int, seen: _Seen) -> None:
    """Note the variable whose name stands before a delimiter."""
    if walk.word(delimiter - 1) and seen.parameters is None and not seen.assigned:
        seen.names.append(delimiter - 1)


def _operator(walk: Walk, position: int, end: int) -> int:
    """The index of the ``(`` of the parameters of ``operator...``."""
    position += 1
    if walk.text(position) == "(" and walk.text(position + 1) == ")":
        position += 2
    while position < end and walk.text(position) not in ("(", ";", "{"):
        position += 1
    return position


def _function_name(walk: Walk, seen: _Seen) -> int:
    assert seen.parameters is not None
    if seen.operator_at is not None:
        return seen.operator_at
    index = seen.parameters - 1
    if walk.text(index) == ">":
        opening = walk.angle_back(index)
        index = index if opening is None else opening - 1
    return index if walk.word(index) else -1


def _forward(walk: Walk, seen: _Seen, last: int) -> bool:
    """True for ``class A;`` and ``enum class E : int;``: no declarator stands behind the name."""
    if walk.text(last) != ";" or seen.assigned:
        return False
    words = [i for i in range(seen.key_at + 1, last) if walk.word(i) and walk.text(i) not in _CLASS_KEYS]
    plain = all(walk.text(i) not in ("*", "&", "[") for i in range(seen.key_at, last))
    shouting = sum(walk.text(i).isupper() or walk.text(i + 1) == "(" for i in words[:-1])
    colon = any(walk.text(i) == ":" for i in range(seen.key_at, last))
    qualified = any(walk.text(i) == "::" for i in range(seen.key_at, last))
    return plain and (len(words) - shouting == 1 or (colon and seen.key == "enum") or qualified)


def _class_name(walk: Walk, seen: _Seen, last: int) -> int:
    """The index of the class's name, or -1 for an unnamed one."""
    stop = seen.body[0] if seen.body else last
    named = -1
    position = seen.key_at + 1
    while position < stop:
        text = walk.text(position)
        if text == ":":
            break
        if text in ("(", "["):
            position = walk.closing(position, stop)
        elif text == "<":
            position = walk.angle(position, stop) or position
        elif walk.word(position) and text not in _CLASS_KEYS and text != "final":
            named = position if text not in NOT_A_NAME else named
        position += 1
    return named


def _name_around(walk: Walk, named: int) -> tuple[tuple[str, ...], bool]:
    """The qualifiers of the name at ``named``, and whether template arguments follow it; -1 for no name."""
    return (_qualifiers(walk, named), walk.text(named + 1) == "<") if named >= 0 else ((), False)


def _qualifiers(walk: Walk, named: int) -> tuple[str, ...]:
    """``("A", "B")`` for the name in ``A::B<T>::f``."""
    found: list[str] = []
    position = named - 1
    if walk.text(position) == "~":
        position -= 1
    while walk.text(position) == "::":
        position -= 1
        if walk.text(position) == ">":
            position = (walk.angle_back(position) or position) - 1
        if not walk.word(position):
            break
        found.insert(0, walk.text(position))
        position -= 1
    return tuple(found)


def _enumerators(walk: Walk, body: tuple[int, int]) -> list[int]:
    found: list[int] = []
    expected = True
    position = body[0] + 1
    while position < body[1]:
        text = walk.text(position)
        if expected and walk.word(position):
            found.append(position)
            expected = False
        elif text == ",":
            expected = True
        elif text in ("(", "{", "["):
            position = walk.closing(position, body[1])
        position += 1
    return found
