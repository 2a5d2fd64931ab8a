"""Preparing a library for the benchmark, with a tiny archive in place of the package index; and, slow, the real thing:
every library of the registry is fetched, reduced and compared with what its entry expects."""

from __future__ import annotations

import io
import json
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from benchmarks.libraries.__main__ import run_library
from benchmarks.libraries.library import Change, Expected, Library
from benchmarks.libraries.prepare import PrepareError, checkout, environment, unpack
from benchmarks.libraries.registry import LIBRARIES

MEMBERS = {"tiny/__init__.py": "GAP = 1\n", "tiny-1.0.dist-info/METADATA": "Name: tiny\n"}


def wheel(place: Path) -> Path:
    path = place / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in MEMBERS.items():
            archive.writestr(name, text)
    return path


def sdist(place: Path, members: dict[str, str]) -> Path:
    path = place / "tiny-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return path


def library(*changes: Change) -> Library:
    files = {"tests/test_tiny.py": "import tiny\n"}
    return Library("tiny", "tiny", "1.0", "pytest tests", Expected("run", "gap"), files=files, changes=changes)


def test_a_wheel_with_a_migration_is_a_case(tmp_path: Path) -> None:
    checkout(library(Change("tiny/__init__.py", "1", "2")), wheel(tmp_path), tmp_path / "case")
    assert (tmp_path / "case/tiny/__init__.py").read_text() == "GAP = 2\n"
    assert (tmp_path / "case/tests/test_tiny.py").read_text() == "import tiny\n"
    stated = json.loads((tmp_path / "case/case.json").read_text())
    assert stated == {"stage": "run", "symbol": "gap", "failing_cmd": "pytest tests"}


def test_a_source_distribution_loses_its_outer_folder(tmp_path: Path) -> None:
    unpack(sdist(tmp_path, {f"tiny-1.0/{name}": text for name, text in MEMBERS.items()}), tmp_path / "case")
    assert (tmp_path / "case/tiny/__init__.py").read_text() == "GAP = 1\n"


@pytest.mark.parametrize("name", ["a/../../outside.py", "/outside.py"])
def test_members_stay_inside(tmp_path: Path, name: str) -> None:
    with pytest.raises(PrepareError, match="outside of itself"):
        unpack(sdist(tmp_path, {"a/b.py": "", name: ""}), tmp_path / "case")
    assert not (tmp_path / "outside.py").exists()


@pytest.mark.parametrize("change", [Change("tiny/__init__.py", "3", "2"), Change("gone.py", "1", "2")])
def test_a_change_that_does_not_fit_is_an_error(tmp_path: Path, change: Change) -> None:
    with pytest.raises(PrepareError, match="0 times instead of 1"):
        checkout(library(change), wheel(tmp_path), tmp_path / "case")


def test_an_archive_of_another_kind_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "tiny.exe").write_bytes(b"")
    with pytest.raises(PrepareError, match="neither a wheel nor"):
        unpack(tmp_path / "tiny.exe", tmp_path / "case")


def test_no_needs_no_environment(tmp_path: Path) -> None:
    assert environment(library(), Path(sys.executable), tmp_path) == Path(sys.executable)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", LIBRARIES)
def test_library(name: str, tmp_path: Path) -> None:
    result = run_library(LIBRARIES[name], tmp_path, Path(sys.executable), tmp_path / "cache", 900.0, None)
    assert result.good, result.markdown() + result.row.log[-5000:]
