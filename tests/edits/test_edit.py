"""Edits: any set of them means one thing, whatever their order, and touches nothing outside its ranges."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reducer.edits.edit import Drop, Edit, EditConflict, Splice, Write, apply, cut
from reducer.tree import SourceTree

# Content in lower case and new text in upper case: in a result one can tell which byte came from where.
CONTENT = b"abcdefghijklmnopqrstuvwxyz"
TREE = SourceTree({"f": CONTENT, "other": b"untouched"})


@st.composite
def splices(draw: st.DrawFn) -> Splice:
    start = draw(st.integers(0, len(CONTENT)))
    end = draw(st.integers(start, min(len(CONTENT), start + 8)))
    return Splice("f", start, end, draw(st.sampled_from([b"", b"", b"X", b"YZ"])))


edits = st.lists(st.lists(splices(), min_size=1, max_size=3).map(lambda ops: Edit(tuple(ops))), max_size=6)


def outcome(tree: SourceTree, some: list[Edit]) -> SourceTree | None:
    try:
        return apply(tree, some)
    except EditConflict:
        return None


@given(edits, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(some: list[Edit], chance: random.Random) -> None:
    shuffled = list(some)
    chance.shuffle(shuffled)
    assert outcome(TREE, some) == outcome(TREE, shuffled)


@given(edits)
def test_equal_edits_count_once(some: list[Edit]) -> None:
    assert outcome(TREE, some) == outcome(TREE, some + some)


@given(edits)
def test_bytes_outside_the_ranges_stay_and_those_inside_go(some: list[Edit]) -> None:
    result = outcome(TREE, some)
    if result is None:
        return
    covered = {i for edit in some for op in edit.ops if isinstance(op, Splice) for i in range(op.start, op.end)}
    expected = bytes(byte for i, byte in enumerate(CONTENT) if i not in covered)
    assert bytes(byte for byte in result["f"] if byte in CONTENT) == expected
    assert result["other"] == b"untouched"


@given(st.lists(st.tuples(st.integers(0, 26), st.integers(0, 26)).map(lambda p: cut("f", min(p), max(p))), max_size=8))
def test_cuts_never_conflict(some: list[Edit]) -> None:
    gone = {i for edit in some for op in edit.ops if isinstance(op, Splice) for i in range(op.start, op.end)}
    assert apply(TREE, some)["f"] == bytes(b for i, b in enumerate(CONTENT) if i not in gone)


@given(edits, st.integers(0, 5))
def test_separate_edits_commute_one_by_one(some: list[Edit], first: int) -> None:
    """Edits of disjoint places: one after the other, from the back (so that offsets hold), is all at once."""
    places = sorted({op for edit in some for op in edit.ops if isinstance(op, Splice)}, key=lambda op: op.start)
    apart: list[Splice] = []
    for place in places:
        if not apart or place.start > apart[-1].end:
            apart.append(place)
    tree = TREE
    for place in reversed(apart):
        tree = apply(tree, [Edit((place,))])
    assert tree == apply(TREE, [Edit((place,)) for place in apart])


def test_a_cut_absorbs_what_lies_inside() -> None:
    inside = Edit((Splice("f", 5, 7, b"NEW"),))
    assert apply(TREE, [inside, cut("f", 3, 9)]) == apply(TREE, [cut("f", 3, 9)])


def test_overlapping_cuts_unite() -> None:
    assert apply(TREE, [cut("f", 2, 6), cut("f", 4, 10)])["f"] == CONTENT[:2] + CONTENT[10:]


@pytest.mark.parametrize(
    "some",
    [
        [Splice("f", 2, 6, b"A"), Splice("f", 2, 6, b"B")],
        [Splice("f", 2, 6, b"A"), Splice("f", 4, 9)],
        [Splice("f", 2, 6, b"A"), Splice("f", 4, 9, b"B")],
        [Splice("f", 20, 27)],
        [Splice("f", -1, 3)],
        [Splice("f", 9, 3)],
        [Splice("no such file", 0, 0, b"A")],
        [Write("f", b"1"), Write("f", b"2")],
        [Write("f", b"1"), Splice("f", 0, 1)],
    ],
)
def test_what_has_no_single_meaning_is_refused(some: list[Splice | Write]) -> None:
    for order in itertools.permutations(some):
        with pytest.raises(EditConflict):
            apply(TREE, [Edit((op,)) for op in order])


@given(edits)
def test_a_dropped_file_absorbs_everything(some: list[Edit]) -> None:
    dropped = apply(TREE, [*some, Edit((Drop("f"), Write("f", b"new")))])
    assert dict(dropped) == {"other": b"untouched"}


def test_an_edit_is_all_or_nothing() -> None:
    """One bad operation refuses the edit with its good ones; the tree stays what it was."""
    with pytest.raises(EditConflict):
        apply(TREE, [Edit((Drop("other"), Splice("f", 99, 100)))])
    assert dict(TREE) == {"f": CONTENT, "other": b"untouched"}


def test_a_write_creates_and_replaces() -> None:
    result = apply(TREE, [Edit((Write("f", b"1"), Write("sub/new", b"2")))])
    assert dict(result) == {"f": b"1", "sub/new": b"2", "other": b"untouched"}
