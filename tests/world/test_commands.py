"""Command lines that need no shell mean the same to us as to bash."""

import json
import shlex
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reducer.world.commands import parse_simple

SHOW = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ.get('A'), os.environ.get('B')]))"


@pytest.mark.parametrize(
    "command",
    [
        "a | b",
        "a && b",
        "a; b",
        "a > f",
        "python $X",
        'python "$X"',
        "python `x`",
        "ls *.py",
        "ls ~/x",
        "A=~ python",
        "a &",
        "cd sub",
        "exec python x.py",
        "A=1",
        "",
        "  ",
        "echo 'open",
        "echo {a,b}",
        "a\nb",
        "a # comment",
        "! a",
        "source venv/bin/activate",
    ],
)
def test_needs_a_shell(command: str) -> None:
    assert parse_simple(command) is None


def test_assignments_and_env() -> None:
    command = parse_simple("A='x y' PYTHONPATH=src:lib env B=2 python -m pytest 'tests/a b.py'")
    assert command is not None
    assert command.env == {"A": "x y", "PYTHONPATH": "src:lib", "B": "2"}
    assert command.argv == ("python", "-m", "pytest", "tests/a b.py")


def test_a_quoted_name_is_no_assignment() -> None:
    command = parse_simple("'A=1' python")
    assert command is not None
    assert command.argv == ("A=1", "python")


def test_options_of_env_are_left_to_env() -> None:
    command = parse_simple("env -u A python x.py")
    assert command is not None
    assert command.argv == ("env", "-u", "A", "python", "x.py")


def test_node_id_is_taken_literally() -> None:
    command = parse_simple("pytest tests/test_x.py::test_a[1-float]")
    assert command is not None
    assert command.argv == ("pytest", "tests/test_x.py::test_a[1-float]")


def test_joined_lines() -> None:
    command = parse_simple("python \\\n -m pytest \\\n -q")
    assert command is not None
    assert command.argv == ("python", "-m", "pytest", "-q")


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="ab= \t\\\"'#!:A-B", max_size=24))
def test_agrees_with_bash(arguments: str) -> None:
    command = f"A=1 B= {shlex.quote(sys.executable)} -c {shlex.quote(SHOW)} {arguments}"
    simple = parse_simple(command)
    if simple is None:
        return
    ours = subprocess.run(simple.argv, env={**simple.env}, capture_output=True, check=True).stdout
    theirs = subprocess.run(["bash", "-c", command], env={}, capture_output=True, check=True).stdout
    assert json.loads(ours) == json.loads(theirs)
