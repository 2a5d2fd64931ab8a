"""The commands that a report prints."""

from __future__ import annotations

import shlex

import pytest

from reducer.oracle.candidate import Recipe
from reducer.outcome import commands_of
from reducer.tree import SourceTree

NOTHING = SourceTree({})


@pytest.mark.parametrize(
    ("run", "control"),
    [
        ("python repro.py", "env USE_TORCH=1 python repro.py"),
        ("PYTHONPATH=site python repro.py", "env USE_TORCH=1 PYTHONPATH=site python repro.py"),
    ],
)
def test_both_sides_run_the_same_command_without_a_shell(run: str, control: str) -> None:
    commands = commands_of(Recipe("python setup.py build_ext --inplace", run), NOTHING)
    assert commands.control_run == control
    assert commands.run == (f"env {run}" if "=" in run else run)
    assert commands.control_build == "env USE_TORCH=1 python setup.py build_ext --inplace"


def test_a_control_command_of_its_own_is_used() -> None:
    commands = commands_of(Recipe(None, "python a.py", "python b.py"), NOTHING)
    assert (commands.build, commands.run) == (None, "python a.py")
    assert (commands.control_build, commands.control_run) == (None, "env USE_TORCH=1 python b.py")


def test_a_build_alone_has_nothing_to_run() -> None:
    commands = commands_of(Recipe("python setup.py build_ext --inplace", None), NOTHING)
    assert (commands.run, commands.control_run) == (None, None)


def test_what_needs_a_shell_gets_one() -> None:
    commands = commands_of(Recipe("make && pip install .", "cd x && python 'y z.py'"), NOTHING)
    assert commands.build == "bash -c 'make && pip install .'"
    assert commands.run is not None and commands.control_run is not None
    assert shlex.split(commands.run) == ["bash", "-c", "cd x && python 'y z.py'"]
    assert commands.control_run == f"env USE_TORCH=1 {commands.run}"


@pytest.mark.parametrize(
    ("run", "files", "written"),
    [
        ("pytest -q tests", ("lib/a.py", "tests/test_a.py"), "python -m pytest -q tests"),
        ("A='b c' pytest -k 'x and y'", ("lib/a.py",), "env A='b c' python -m pytest -k 'x and y'"),
        ("python -m pytest t.py", ("src/lib/a.py", "t.py"), "env PYTHONPATH=src python -m pytest t.py"),
        ("pytest t.py", ("src/lib/a.py", "t.py"), "env PYTHONPATH=src python -m pytest t.py"),
        ("python repro.py", ("repro.py", "lib/a.py"), "python repro.py"),
        ("python x/y.py", ("x/y.py", "lib/a.py"), "env PYTHONPATH=. python x/y.py"),
        ("python x/y.py", ("x/y.py", "src/a.py"), "env PYTHONPATH=src python x/y.py"),
        ("PYTHONPATH=lib python x/y.py", ("x/y.py", "lib/a.py"), "env PYTHONPATH=lib python x/y.py"),
        ("python x/y.py", ("x/y.py", "setup.py"), "python x/y.py"),
    ],
)
def test_a_reader_finds_the_modules_too(run: str, files: tuple[str, ...], written: str) -> None:
    commands = commands_of(Recipe(None, run), SourceTree(dict.fromkeys(files, b"")))
    assert commands.run == written
    assert commands.control_run == "env USE_TORCH=1 " + written.removeprefix("env ")
