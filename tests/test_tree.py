"""Source trees: reading, writing, identity, and paths that would leave them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reducer.tree import SourceTree, check_relative, write_atomic

names = st.text(st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda name: name not in (".", "..")
)
trees = st.dictionaries(st.lists(names, min_size=1, max_size=3).map("/".join), st.binary(max_size=40), max_size=5)


def test_written_and_read_again_it_is_the_same_tree(tmp_path: Path) -> None:
    tree = SourceTree({"a.py": b"x = 1\n", "pkg/deep/b.bin": bytes(range(256)), "run.sh": b"#!/bin/sh\n"}, ["run.sh"])
    tree.write(tmp_path / "new" / "place")
    again = SourceTree.read(tmp_path / "new" / "place", list(tree))
    assert again == tree
    assert again.digest == tree.digest
    assert os.access(tmp_path / "new/place/run.sh", os.X_OK)
    assert not os.access(tmp_path / "new/place/a.py", os.X_OK)


def test_a_name_that_is_not_utf8_survives(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.py")
    SourceTree({name: b"1"}).write(tmp_path)
    assert os.listdir(os.fsencode(tmp_path)) == [b"caf\xe9.py"]
    assert SourceTree.read(tmp_path, [name])[name] == b"1"


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "..", "../x", "a/../../x", "a/..", "./a", "a//b", "a/", ".", "a\0b"]
)
def test_a_path_that_leaves_the_tree_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="not a path inside a tree"):
        check_relative(path)
    with pytest.raises(ValueError, match="not a path inside a tree"):
        SourceTree({path: b""})
    with pytest.raises(ValueError, match="not a path inside a tree"):
        SourceTree({}).updated({path: b""})


@given(trees, trees)
def test_equal_digests_mean_equal_trees(first: dict[str, bytes], second: dict[str, bytes]) -> None:
    assert (SourceTree(first).digest == SourceTree(second).digest) == (first == second)


@given(trees)
def test_the_order_of_the_files_does_not_matter(files: dict[str, bytes]) -> None:
    backwards = dict(reversed(list(files.items())))
    assert SourceTree(files) == SourceTree(backwards)
    assert hash(SourceTree(files)) == hash(SourceTree(backwards))


def test_where_one_file_ends_and_the_next_begins_counts() -> None:
    assert SourceTree({"a": b"1b", "c": b""}).digest != SourceTree({"a": b"", "1b": b"c"}).digest
    assert SourceTree({"a": b""}, ["a"]) != SourceTree({"a": b""})


def test_update_leaves_the_old_tree_alone() -> None:
    old = SourceTree({"a": b"1", "b": b"2"}, ["a"])
    new = old.updated({"a": None, "c": b"3", "b": b"4", "not there": None})
    assert dict(new) == {"b": b"4", "c": b"3"}
    assert not new.executable
    assert dict(old) == {"a": b"1", "b": b"2"}


def test_text_keeps_bytes_that_are_not_utf8() -> None:
    text = SourceTree({"a": b"\xff\xfe caf\xc3\xa9"}).text("a")
    assert text.encode("utf-8", "surrogateescape") == b"\xff\xfe caf\xc3\xa9"


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    target = tmp_path / "directory"
    target.mkdir()
    (target / "kept").write_text("")
    with pytest.raises(OSError):
        write_atomic(target, b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["directory"]
