"""Texts on disk: kept between runs, bounded, and never a reason to fail."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from reducer.world.text_store import TextStore


def test_a_text_outlives_the_process_that_kept_it(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "texts.sqlite"
    with TextStore(path, "a", 10) as store:
        store.put("k", "one")
        store.put("k", "two")
    with TextStore(path, "a", 10) as store, TextStore(path, "b", 10) as other:
        assert store.get("k") == "two"
        assert other.get("k") is None, "sections do not see one another"
        other.put("k", "three")
        store.clear()
        assert store.get("k") is None and other.get("k") == "three"


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=50), max_size=8))
@settings(max_examples=25, deadline=None)
def test_any_text_comes_back_as_it_was(texts: dict[str, str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as place, TextStore(Path(place) / "t", "a", 100) as store:
        for key, text in texts.items():
            store.put(key, text)
        assert {key: store.get(key) for key in texts} == texts


def test_the_oldest_go_and_what_was_used_stays(tmp_path: Path) -> None:
    path = tmp_path / "t"
    with TextStore(path, "a", 20) as store:
        for number in range(30):
            store.put(str(number), "x")
        assert store.get("0") == "x"
    with TextStore(path, "a", 20) as store:
        left = [number for number in range(30) if store.get(str(number)) is not None]
    assert len(left) == 18 and 0 in left and 29 in left and 1 not in left


def test_what_is_no_database_is_an_empty_store(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"something else, longer than a header of sqlite would be" * 50)
    with TextStore(path, "a", 10) as store:
        store.put("k", "text")
        assert store.get("k") is None
    with TextStore(tmp_path / "t" / "below a file", "a", 10) as store:
        assert store.get("k") is None


def test_two_runs_at_once_see_each_other(tmp_path: Path) -> None:
    with TextStore(tmp_path / "t", "a", 10) as one, TextStore(tmp_path / "t", "a", 10) as two:
        one.put("k", "text")
        assert two.get("k") == "text"


def test_a_store_that_breaks_while_it_is_open_is_empty_from_then_on(tmp_path: Path) -> None:
    with TextStore(tmp_path / "t", "a", 10) as store:
        store.put("k", "text")
        with sqlite3.connect(tmp_path / "t") as other:
            other.execute("DROP TABLE texts")
        assert store.get("k") is None
        store.put("k", "text")
        assert store.get("k") is None
