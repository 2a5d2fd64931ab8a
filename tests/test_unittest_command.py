"""unittest commands, as the documentation of unittest spells them, and the pytest commands on the same tests."""

from __future__ import annotations

import pytest

from reducer.tree import SourceTree
from reducer.unittest_command import as_pytest

TREE = SourceTree({"tests/__init__.py": b"", "tests/test_a.py": b"", "tests/sub/testing.py": b"", "lib/b.py": b""})


@pytest.mark.parametrize(
    ("words", "nodes"),
    [
        ("", ["tests/sub/testing.py", "tests/test_a.py"]),
        ("discover -s tests -p test_*.py", ["tests/test_a.py"]),
        ("discover -v ./tests/", ["tests/sub/testing.py", "tests/test_a.py"]),
        ("-v tests.test_a", ["tests/test_a.py"]),
        ("tests/test_a.py", ["tests/test_a.py"]),
        ("tests.test_a.TestX.test_y lib.b", ["tests/test_a.py::TestX::test_y", "lib/b.py"]),
    ],
)
def test_the_same_tests_are_named(words: str, nodes: list[str]) -> None:
    command = ["python", "-m", "unittest", *words.split()]
    assert as_pytest(command, TREE) == ["python", "-m", "pytest", "-q", *nodes]


@pytest.mark.parametrize(
    "command",
    [
        "python -m unittest tests.absent",
        "python -m unittest tests.test_a tests.absent",
        "python -m unittest discover --unknown x",
        "python -m unittest discover -s docs",
        "python -m pytest tests",
        "python run.py",
        "make test",
    ],
)
def test_what_has_no_counterpart_is_left_alone(command: str) -> None:
    assert as_pytest(command.split(), TREE) is None
