"""The commands that a report prints."""

from __future__ import annotations

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
