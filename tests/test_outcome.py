"""The commands that a report prints."""

from __future__ import annotations

import shlex

import pytest

from reducer.oracle.candidate import Recipe
from reducer.outcome import commands_of


@pytest.mark.parametrize(
    ("run", "control"),
    [
        ("python repro.py", "env USE_TORCH=1 python repro.py"),
        ("PYTHONPATH=site python repro.py", "env USE_TORCH=1 PYTHONPATH=site python repro.py"),
    ],
)
def test_both_sides_run_the_same_command_without_a_shell(run: str, control: str) -> None:
    commands = commands_of(Recipe("python setup.py build_ext --inplace", run))
    assert commands.control_run == control
    assert commands.run == (f"env {run}" if "=" in run else run)
    assert commands.control_build == "env USE_TORCH=1 python setup.py build_ext --inplace"


def test_a_control_command_of_its_own_is_used() -> None:
    commands = commands_of(Recipe(None, "python a.py", "python b.py"))
    assert (commands.build, commands.run) == (None, "python a.py")
    assert (commands.control_build, commands.control_run) == (None, "env USE_TORCH=1 python b.py")


def test_a_build_alone_has_nothing_to_run() -> None:
    commands = commands_of(Recipe("python setup.py build_ext --inplace", None))
    assert (commands.run, commands.control_run) == (None, None)


def test_what_needs_a_shell_gets_one() -> None:
    commands = commands_of(Recipe("make && pip install .", "cd x && python 'y z.py'"))
    assert commands.build == "bash -c 'make && pip install .'"
    assert commands.run is not None and commands.control_run is not None
    assert shlex.split(commands.run) == ["bash", "-c", "cd x && python 'y z.py'"]
    assert commands.control_run == f"env USE_TORCH=1 {commands.run}"
