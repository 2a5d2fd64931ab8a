"""The output directory: whole or not at all, and never over somebody's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from reducer.report.metadata import load
from reducer.report.scrub import Private
from reducer.report.write import OutputError, check_output, reserved, write_mre
from reducer.tree import SourceTree
from tests.report.samples import SETUP, SOURCE, extension, script

PRIVATE = Private(
    secrets=("hunter2-hunter2",), names=("alice",), directories={"/home/alice": "~", "/home/alice/mre": "."}
)


def listing(root: Path) -> list[str]:
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())


def test_everything_is_there_and_sources_are_untouched(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "mre"
    write_mre(out, extension(), PRIVATE)
    assert listing(out) == [
        "README.md",
        "csrc/ops.cc",
        "logs/paddle.log",
        "logs/torch.log",
        "metadata.json",
        "setup.py",
    ]
    assert (out / "setup.py").read_bytes() == SETUP
    assert (out / "csrc/ops.cc").read_bytes() == SOURCE
    assert load(out).form == "extension"
    assert listing(out.parent) == [f"mre/{name}" for name in listing(out)], "a temporary directory is left"


def test_odd_bytes_in_sources_survive(tmp_path: Path) -> None:
    odd = b"\xff\xfe\r\n\t\x00 no newline at the end"
    write_mre(tmp_path / "mre", extension(files=SourceTree({"setup.py": SETUP, "csrc/ops.cc": odd})), PRIVATE)
    assert (tmp_path / "mre/csrc/ops.cc").read_bytes() == odd


def test_an_earlier_result_is_replaced_whole(tmp_path: Path) -> None:
    out = tmp_path / "mre"
    write_mre(out, extension(), PRIVATE)
    (out / "build").mkdir()
    (out / "build" / "stale.o").write_text("x")
    write_mre(out, script(), PRIVATE)
    assert listing(tmp_path) == [
        f"mre/{n}" for n in ["README.md", "logs/paddle.log", "logs/torch.log", "metadata.json", "repro.py"]
    ]


def test_an_empty_directory_is_filled(tmp_path: Path) -> None:
    write_mre(tmp_path, script(), PRIVATE)
    assert load(tmp_path).form == "script"


@pytest.mark.parametrize("name", ["notes.txt", "metadata.json"])
def test_a_directory_that_is_not_ours_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"schema": 1, "by": "somebody else"}')
    with pytest.raises(OutputError, match="--out"):
        write_mre(tmp_path, script(), PRIVATE)
    assert listing(tmp_path) == [name]


def test_a_checkout_is_left_alone_even_if_it_looks_like_ours(tmp_path: Path) -> None:
    write_mre(tmp_path / "mre", script(), PRIVATE)
    (tmp_path / "mre/.git").mkdir()
    with pytest.raises(OutputError):
        check_output(tmp_path / "mre")


def test_a_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mre").write_text("mine")
    with pytest.raises(OutputError, match="is a file"):
        write_mre(tmp_path / "mre", script(), PRIVATE)
    assert (tmp_path / "mre").read_text() == "mine"


def test_the_place_behind_a_link_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_mre(tmp_path / "link", script(), PRIVATE)
    assert (tmp_path / "link").is_symlink()
    assert load(tmp_path / "real").form == "script"


def test_the_report_wins_over_sources_of_its_names(tmp_path: Path) -> None:
    files = SourceTree({"README.md": b"the library's", "logs/x.txt": b"", "repro.py": b""})
    assert reserved(files) == ["README.md", "logs/x.txt"]
    write_mre(tmp_path / "mre", script(files=files), PRIVATE)
    assert (tmp_path / "mre" / "README.md").read_text().startswith("# [torch compat]")


def test_a_failed_write_leaves_the_earlier_result(tmp_path: Path) -> None:
    out = tmp_path / "mre"
    write_mre(out, extension(), PRIVATE)
    before = listing(tmp_path)
    clash = SourceTree({"csrc": b"a file", "csrc/ops.cc": b"below a file"})
    with pytest.raises(OSError):
        write_mre(out, extension(files=clash), PRIVATE)
    assert listing(tmp_path) == before
    assert (out / "csrc/ops.cc").read_bytes() == SOURCE


def test_nothing_private_is_written(tmp_path: Path) -> None:
    result = extension(
        message="cannot read /home/alice/mre/x, token hunter2-hunter2",
        evidence=("mail bob@example.org",),
        original_command="pytest /home/alice/lib/tests",
        torch_log="-I/home/alice/include on alice's machine\nAWS_SECRET_ACCESS_KEY=abcdef\n",
    )
    write_mre(tmp_path / "mre", result, PRIVATE)
    for name in listing(tmp_path):
        text = (tmp_path / name).read_text()
        for private in ("alice", "hunter2", "bob@", "abcdef"):
            assert private not in text, (name, private)
