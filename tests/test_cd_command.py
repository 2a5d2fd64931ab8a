"""`cd DIR && COMMAND`, named from the top of the tree."""

from __future__ import annotations

import pytest

from reducer.cd_command import from_the_top
from reducer.tree import SourceTree

TREE = SourceTree({"tests/test_a.py": b"", "tests/unit/test_b.py": b"", "tests/run.sh": b"", "check.py": b""})


@pytest.mark.parametrize(
    ("command", "same"),
    [
        ("cd tests && pytest test_a.py", "pytest tests/test_a.py"),
        ("cd tests && pytest -q test_a.py::TestA::test_b", "pytest -q tests/test_a.py::TestA::test_b"),
        ("cd ./tests/ && python -m pytest -k near", "python -m pytest -k near tests"),
        ("cd tests&&cd unit && X=1 python test_b.py --n 3", "X=1 python tests/unit/test_b.py --n 3"),
        ("cd tests && python ../check.py", "python check.py"),
        ("cd tests && ./run.sh", "./tests/run.sh"),
        ("cd 'tests' && python test_a.py", "python tests/test_a.py"),
    ],
)
def test_files_are_named_from_the_top(command: str, same: str) -> None:
    assert from_the_top(command, TREE) == same


@pytest.mark.parametrize(
    "command",
    [
        "pytest tests",
        "cd tests; pytest test_a.py",
        "cd nowhere && pytest",
        "cd .. && pytest",
        "cd $DIR && pytest",
        "cd /tests && pytest",
        "cd tests && pytest test_a.py | tee log",
        "cd tests && make && pytest",
        "cd 'tests && pytest",
        "cd . && pytest",
        "",
    ],
)
def test_others_are_left_alone(command: str) -> None:
    assert from_the_top(command, TREE) is None
