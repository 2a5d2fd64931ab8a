"""Folding: a pytest node as a script that fails (or not) as the node does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reducer.edits.fold_pytest import fold
from reducer.edits.prelude import PRELUDE
from reducer.tree import SourceTree

PADDLE = {"paddle.py": b"def enable_compat(scope=None):\n    pass\n"}  # the prelude's import, without a framework
CONFTEST = """
import pytest
try:
    import paddle
    paddle.enable_compat(scope={"lib"})
except ImportError:
    pass
SEEN = []

@pytest.fixture(scope="session")
def base():
    return 40

@pytest.fixture(autouse=True)
def mark():
    SEEN.append("mark")

@pytest.fixture(params=[1, 2], ids=["one", "two"])
def step(request):
    yield request.param
    SEEN.append("teardown")
"""
TESTS = """
import pytest, unittest
from .helpers import double
from lib import add
TABLE = [(1, 2), (3, 4)]

@pytest.fixture
def total(base, step):
    value = add(base, step)
    return value

def test_fixtures(total):
    print("total", total)

@pytest.mark.parametrize("a,b", TABLE, ids=["low", "high"])
@pytest.mark.parametrize("flag", [True, pytest.param(None, id="none")])
def test_stacked(a, b, flag):
    print(a, b, flag)

@pytest.mark.parametrize("n", range(5))
def test_early(n):
    if n == 3:
        print("early", n)
        return
    print("late")

class TestPlain:
    size = 3
    def setup_method(self):
        self.items = [self.size]
    def grow(self, by):
        self.items = self.items + [by]
    def test_grow(self, base):
        self.grow(double(base))
        print(self.items)

class TestCase(unittest.TestCase):
    def setUp(self):
        self.x = 5
    def test_simple(self):
        self.assertEqual(self.x, 5)
        print("x", self.x)
    def test_raises(self):
        with self.assertRaises(KeyError):
            {}[self.x]
        print("raised")

class Prepared(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.y = 6
    def setUp(self):
        self.x = 7

class TestDerived(Prepared):
    def test_inherited_setup(self):
        self.assertEqual(self.x, 7)
        print("x", self.x, "y", self.y)

def test_captured(capsys):
    print("in")
    assert capsys.readouterr().out == "in\\n"

@pytest.mark.usefixtures("tmp_path")
def test_path(tmp_path):
    values = {name: len(name) for name in ("a", "bc")}
    print(tmp_path.is_dir(), values)
"""
TREE = SourceTree(
    {
        "tests/__init__.py": b"",
        "tests/conftest.py": CONFTEST.encode(),
        "tests/helpers.py": b"def double(x):\n    return 2 * x\n",
        "tests/test_all.py": TESTS.encode(),
        "src/lib.py": b"def add(a, b):\n    return a + b\n",
        "pytest.ini": b"[pytest]\npythonpath = src\n",
    }
)


def run(tree: SourceTree, place: Path) -> subprocess.CompletedProcess[str]:
    tree.updated(PADDLE).write(place)
    return subprocess.run([sys.executable, "repro.py"], cwd=place, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("node", "indices", "printed"),
    [
        ("test_fixtures[two]", None, "total 42\n"),
        ("test_fixtures[two]", {"step": 0}, "total 41\n"),
        ("test_stacked[none-high]", None, "3 4 None\n"),
        ("test_stacked[True-low]", {"flag": 0, "a": 0, "b": 0}, "1 2 True\n"),
        ("test_early[3]", None, "early 3\n"),
        ("TestPlain::test_grow", None, "[3, 80]\n"),
        ("TestCase::test_simple", None, "x 5\n"),
        ("TestCase::test_raises", None, "raised\n"),
        ("TestDerived::test_inherited_setup", None, "x 7 y 6\n"),
        ("test_path", None, "True {'a': 1, 'bc': 2}\n"),
    ],
)
def test_the_script_prints_what_the_node_prints(
    node: str, indices: dict[str, int] | None, printed: str, tmp_path: Path
) -> None:
    folded = fold(TREE, "tests/test_all.py", node, indices=indices)
    assert folded is not None
    text = folded.text("repro.py")
    assert text.startswith(PRELUDE) and text.count("enable_compat") == 1 and "pytest.main" not in text
    done = run(folded, tmp_path / "case")
    assert (done.returncode, done.stdout) == (0, printed), done.stderr + text


def test_other_tests_are_gone() -> None:
    folded = fold(TREE, "tests/test_all.py", "TestPlain::test_grow")
    assert folded is not None
    text = folded.text("repro.py")
    assert "class " not in text and "test_stacked" not in text and "self" not in text
    assert "tests/test_all.py" not in folded and "tests/conftest.py" not in folded and "tests/helpers.py" in folded


def test_what_needs_pytest_stays_a_pytest_file(tmp_path: Path) -> None:
    folded = fold(TREE, "tests/test_all.py", "test_captured")
    assert folded is not None and "pytest.main" in folded.text("repro.py")
    done = run(folded, tmp_path / "case")
    assert done.returncode == 0 and "1 passed" in done.stdout


def test_a_file_that_does_not_parse_is_left_alone() -> None:
    assert fold(TREE.updated({"tests/test_all.py": b"def ("}), "tests/test_all.py", "test_x") is None
