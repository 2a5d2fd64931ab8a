"""Freezing real checkouts: with git, without, and with everything that people leave lying about."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from reducer.world.freeze import LARGE, FreezeError, freeze

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="no git here")


def put(root: Path, path: str, content: bytes = b"x") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(content)


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True)


@needs_git
def test_git_tracked_and_new_files_but_not_ignored_ones(tmp_path: Path) -> None:
    for path in ("lib/a.py", "lib/new.py", "secret.txt", "out/log.txt"):
        put(tmp_path, path)
    put(tmp_path, ".gitignore", b"secret.txt\nout/\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "lib/a.py", ".gitignore")
    assert set(freeze(tmp_path).tree) == {".gitignore", "lib/a.py", "lib/new.py"}


@needs_git
def test_a_subfolder_of_a_git_work_tree(tmp_path: Path) -> None:
    put(tmp_path, "top.py")
    put(tmp_path, "packages/lib/a.py", b"a")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    assert dict(freeze(tmp_path / "packages" / "lib").tree) == {"a.py": b"a"}


@needs_git
def test_a_deleted_file_and_a_changed_one(tmp_path: Path) -> None:
    put(tmp_path, "gone.py")
    put(tmp_path, "a.py", b"old")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    (tmp_path / "gone.py").unlink()
    put(tmp_path, "a.py", b"new")
    assert dict(freeze(tmp_path).tree) == {"a.py": b"new"}


@needs_git
def test_a_tracked_binary_is_left_out(tmp_path: Path) -> None:
    """It would be loaded in place of the candidate's own build."""
    for path in ("lib/_C.so", "lib/_C_pd_.so", "lib/_C.cpython-311-x86_64-linux-gnu.so", "lib/a.py", "lib/a.pyc"):
        put(tmp_path, path)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-Af")
    assert set(freeze(tmp_path).tree) == {"lib/a.py"}


@needs_git
def test_git_is_not_written_to(tmp_path: Path) -> None:
    put(tmp_path, "a.py")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    os.utime(tmp_path / "a.py", (1, 1))  # a stale index is what `git status` would refresh and write
    before = {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in sorted(tmp_path.rglob("*"))}
    freeze(tmp_path)
    assert {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in sorted(tmp_path.rglob("*"))} == before


def test_without_git_all_but_build_products(tmp_path: Path) -> None:
    kept = ("setup.py", "lib/a.py", "csrc/a.cc", "data/x.json", ".hidden/cfg", "lib/dist/a.py", "lib/build/b.py")
    left = (
        "build/temp/a.o",
        "lib/__pycache__/a.pyc",
        ".venv/lib/x.py",
        "lib.egg-info/PKG-INFO",
        "dist/lib.whl",
        "lib/_C.so",
        ".pytest_cache/x",
    )
    for path in (*kept, *left):
        put(tmp_path, path)
    assert set(freeze(tmp_path).tree) == set(kept)


@pytest.mark.parametrize("versioned", [False, pytest.param(True, marks=needs_git)])
def test_an_earlier_result_is_left_out(tmp_path: Path, versioned: bool) -> None:
    put(tmp_path, "a.py")
    put(tmp_path, "found/repro.py")
    if versioned:
        git(tmp_path, "init", "-q")
    assert set(freeze(tmp_path, tmp_path / "found").tree) == {"a.py"}
    assert set(freeze(tmp_path, tmp_path / "elsewhere").tree) == {"a.py", "found/repro.py"}


@pytest.mark.parametrize("versioned", [False, pytest.param(True, marks=needs_git)])
def test_links(tmp_path: Path, versioned: bool) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("private")
    repo = tmp_path / "repo"
    put(repo, "real.py", b"content")
    (repo / "link.py").symlink_to("real.py")
    (repo / "leaves.txt").symlink_to(outside)
    (repo / "loop").symlink_to("loop")
    (repo / "broken").symlink_to("nowhere")
    (repo / "pkg").mkdir()
    (repo / "pkg" / "up").symlink_to("..")
    if versioned:
        git(repo, "init", "-q")
        git(repo, "add", "-A")
    frozen = freeze(repo)
    assert dict(frozen.tree) == {"real.py": b"content", "link.py": b"content"}
    assert any("leaves.txt" in note and "outside the checkout" in note for note in frozen.notes)
    assert any(note.startswith("broken is a broken link") for note in frozen.notes)


@pytest.mark.parametrize("versioned", [False, pytest.param(True, marks=needs_git)])
def test_a_link_to_a_folder_stands_for_its_files(tmp_path: Path, versioned: bool) -> None:
    repo = tmp_path / "repo"
    put(repo, "real/warp/__init__.py", b"one")
    put(repo, "real/warp/deep/two.py", b"two")
    (repo / "warp").symlink_to("real/warp")
    (repo / "real" / "outside").symlink_to(tmp_path)
    if versioned:
        git(repo, "init", "-q")
        git(repo, "add", "-A")
    inner = {"warp/__init__.py": b"one", "warp/deep/two.py": b"two"}
    frozen = freeze(repo)
    assert dict(frozen.tree) == {**inner, **{f"real/{path}": content for path, content in inner.items()}}
    assert [note.split()[0] for note in frozen.notes] == ["real/outside"]


@pytest.mark.parametrize("versioned", [False, pytest.param(True, marks=needs_git)])
def test_a_name_that_is_not_utf8(tmp_path: Path, versioned: bool) -> None:
    name = os.fsdecode(b"caf\xe9.py")
    put(tmp_path, name, b"1")
    if versioned:
        git(tmp_path, "init", "-q")
    assert dict(freeze(tmp_path).tree) == {name: b"1"}


def test_executables_stay_executable(tmp_path: Path) -> None:
    put(tmp_path, "run.sh")
    put(tmp_path, "a.py")
    (tmp_path / "run.sh").chmod(0o755)
    assert freeze(tmp_path).tree.executable == {"run.sh"}


def test_a_huge_file_is_left_out_with_a_note(tmp_path: Path) -> None:
    put(tmp_path, "a.py")
    with open(tmp_path / "weights.bin", "wb") as stream:
        stream.truncate(LARGE + 1)
    frozen = freeze(tmp_path)
    assert set(frozen.tree) == {"a.py"}
    assert any("weights.bin" in note for note in frozen.notes)


def test_places_that_are_no_checkout(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    for place, words in (("nowhere", "does not exist"), ("file", "is a file"), ("empty", "holds no files")):
        with pytest.raises(FreezeError, match=words) as error:
            freeze(tmp_path / place)
        assert "--repo" in str(error.value)
