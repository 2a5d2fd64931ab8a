"""Query directories are fresh, and nothing of them is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reducer.world.workspace import Workspace, remove


def test_fresh_and_gone(tmp_path: Path) -> None:
    with Workspace(tmp_path / "run") as workspace:
        with workspace.fresh() as first:
            assert [p.name for p in sorted(first.root.iterdir())] == ["home", "tmp", "tree"]
            (first.tree / "a").write_text("x")
            with workspace.fresh() as second:
                assert second.root != first.root
        with workspace.fresh() as third:
            assert third.root == first.root
            assert not list(third.tree.iterdir())
    assert not list((tmp_path / "run").iterdir())


def test_gone_after_an_error_and_read_only(tmp_path: Path) -> None:
    with Workspace(tmp_path) as workspace:
        with pytest.raises(KeyboardInterrupt), workspace.fresh() as directory:
            locked = directory.tree / "a" / "b"
            locked.mkdir(parents=True)
            (locked / "f").write_text("x")
            locked.chmod(0)
            locked.parent.chmod(0o500)
            raise KeyboardInterrupt
        assert not directory.root.exists()


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(0o500)
    with Workspace(tmp_path / "run") as workspace, workspace.fresh() as directory:
        (directory.tree / "link").symlink_to(outside)
        (directory.tree / "locked").mkdir(0)
    assert outside.stat().st_mode & 0o777 == 0o500


def test_absurd_depth(tmp_path: Path) -> None:
    top = tmp_path / "deep"
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d" * 20, dir_fd=here)
        below = os.open("d" * 20, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    remove(top)
    assert not top.exists()


def test_keep(tmp_path: Path) -> None:
    with Workspace(tmp_path) as workspace:
        for text in ("one", "two"):
            with workspace.fresh() as directory:
                (directory.tree / "f").write_text(text)
                kept = workspace.keep(directory, "best")
    assert (kept / "tree" / "f").read_text() == "two"
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]


def test_a_killed_run_is_cleaned_up_by_the_next(tmp_path: Path) -> None:
    code = """
import sys, time; from pathlib import Path; from reducer.world.workspace import Workspace
with Workspace(Path(sys.argv[1])) as w, w.fresh() as d:
    (d.tree / "made").write_text("x"); time.sleep(600)
"""
    process = subprocess.Popen([sys.executable, "-c", code, tmp_path])
    deadline = time.monotonic() + 10
    while not list(tmp_path.glob("*/0/tree/made")) and time.monotonic() < deadline:
        time.sleep(0.01)
    Workspace(tmp_path).close()
    assert list(tmp_path.glob("*/0/tree/made")), "a living run must be left alone"
    process.send_signal(signal.SIGKILL)
    process.wait()
    Workspace(tmp_path).close()
    assert not list(tmp_path.iterdir())
