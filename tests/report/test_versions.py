"""The version probe, with the real interpreters where they are."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Literal

import pytest

from reducer.frameworks.versions import ENVIRONMENT, VersionError, probe, split

PYTHON = Path(sys.executable)


@pytest.mark.real
@pytest.mark.parametrize("framework", ["paddle", "torch"])
def test_a_real_framework_tells_its_versions(framework: Literal["paddle", "torch"]) -> None:
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed beside the tests")
    facts = probe(PYTHON, framework)
    assert facts["version"] and facts["version"][0].isdigit()
    assert facts["commit"] and len(facts["commit"]) == 40
    assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert facts["arch"] == os.uname().machine
    assert set(ENVIRONMENT) <= set(facts)
    assert os.uname().nodename not in facts.values()


def test_a_missing_framework_says_how_to_get_it(tmp_path: Path) -> None:
    """-S would hide an installed one; an interpreter started with an empty home of its own does so too."""
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{PYTHON}" -I -S "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(VersionError, match=r"No module named 'paddle'.*pip install paddlepaddle.*--paddle-python"):
        probe(bare, "paddle")


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(VersionError, match=r"cannot run .*--torch-python"):
        probe(tmp_path / "python", "torch")


def test_an_interpreter_that_hangs(tmp_path: Path) -> None:
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nexec sleep 30\n")
    slow.chmod(0o755)
    with pytest.raises(VersionError, match="within 1 s"):
        probe(slow, "torch", timeout=1)


def test_a_program_that_is_no_python() -> None:
    with pytest.raises(VersionError, match="no usable Python"):
        probe(Path("/bin/true"), "torch")


def test_two_machines_are_told_apart() -> None:
    paddle = {"version": "3.3.1", "python": "3.11.7", "os": "Debian"}
    torch = {"version": "2.13.0", "python": "3.10.1", "os": "Debian"}
    ours, theirs, environment = split(paddle, torch)
    assert (ours, theirs) == ({"version": "3.3.1"}, {"version": "2.13.0"})
    assert environment["python"] == "3.11.7 (PyTorch side: 3.10.1)"
    assert environment["os"] == "Debian"
