"""Free checks: what is refused without a query."""

from __future__ import annotations

import pytest

from reducer.checks import for_case
from reducer.oracle.candidate import Candidate, Recipe
from reducer.tree import SourceTree

START = {"lib/__init__.py": b"", "lib/a.py": b"x = 1\n", "test.py": b"import lib.a\n", "src/other/__init__.py": b""}


def admitted(start: dict[str, bytes], files: dict[str, bytes], build: str | None = None) -> bool:
    candidate = Candidate(SourceTree(files), Recipe(build, "python test.py"))
    return all(check(candidate) for check in for_case(SourceTree(start)))


def test_the_start_itself_is_admitted() -> None:
    assert admitted(START, START)


def test_broken_python_is_refused_unless_it_was_broken_before() -> None:
    assert not admitted(START, {**START, "lib/a.py": b"def f(:\n"})
    assert not admitted(START, {**START, "lib/a.py": b"x = 1\0\n"})
    start = {**START, "lib/template.py": b"{{ jinja }} code\n"}
    assert admitted(start, start)


@pytest.mark.parametrize("statement", [b"import lib\n", b"import lib.a as b\n", b"from lib.a import x\n"])
def test_a_module_of_the_library_that_is_gone_may_not_be_imported(statement: bytes) -> None:
    """An installed copy of the library would take its place."""
    assert not admitted(START, {"test.py": statement})
    assert admitted(START, {"test.py": statement, "lib.py": b""})


def test_a_package_below_src_counts_by_its_own_name() -> None:
    assert not admitted(START, {"test.py": b"import other\n"})
    assert admitted(START, {"test.py": b"import src\n"}), "src is a folder, not a module that anybody imports"


def test_other_imports_are_nobodys_business() -> None:
    assert admitted(START, {"test.py": b"import torch, os\nfrom . import lib\n"})


def test_a_build_may_make_what_is_imported() -> None:
    assert admitted(START, {"test.py": b"import lib\n"}, build="python setup.py build_ext --inplace")


def test_what_is_built_runs_with_the_framework_imported() -> None:
    """A warm interpreter has it in the process, so that only the real run would miss it."""
    start = {"setup.py": b"import torch\n", "test.py": b"import torch\nimport _C\n"}
    build = "python setup.py build_ext --inplace"
    assert admitted(start, start, build)
    assert not admitted(start, {**start, "test.py": b"import _C\n"}, build)
    assert admitted(start, {"test.py": b"print(1)\n"}), "nothing is built"
    without = {**start, "test.py": b"import _C\n"}
    assert admitted(without, without, build), "the case did not import it either"
