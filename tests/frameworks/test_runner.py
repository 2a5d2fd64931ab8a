"""Builds of candidates: kept, repeated by their compiler calls, and made by clang where it can."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reducer.frameworks.quick import QuickObjects
from reducer.frameworks.runner import Runner, Timeouts
from reducer.frameworks.side import Side
from reducer.frameworks.toolchain import find_toolchain
from reducer.oracle.candidate import Candidate, Recipe
from reducer.tree import SourceTree
from reducer.world.processes import Limits
from reducer.world.workspace import Workspace

SETUP = b"""from setuptools import Extension, setup

names = ["mod.cc", "part.cc"]
setup(name="mod", ext_modules=[Extension("mod", names, language="c++")])
"""
MODULE = b"""#include <Python.h>
#include <vector>
#include "part.h"
static PyObject* value(PyObject*, PyObject*) {
  std::vector<long> v(3, part());
#ifdef __clang__
  return Py_BuildValue("sl", "clang", v.back());
#else
  return Py_BuildValue("sl", "gcc", v.back());
#endif
}
static PyMethodDef methods[] = {{"value", value, METH_NOARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef mod = {PyModuleDef_HEAD_INIT, "mod", "", -1, methods};
PyMODINIT_FUNC PyInit_mod() { return PyModule_Create(&mod); }
"""
FILES = {
    "setup.py": SETUP,
    "mod.cc": MODULE,
    "part.cc": b'#include "part.h"\nlong part() { return 1; }\n',
    "part.h": b"long part();\n",
    "show.py": b"import mod\nprint(mod.value())\n",
}


def case(build: str = "python setup.py build_ext --inplace", **files: bytes) -> Candidate:
    changed = {name.replace("_", "."): content for name, content in files.items()}
    return Candidate(SourceTree({**FILES, **changed}), Recipe(build, "python show.py"))


@pytest.fixture
def side(tmp_path: Path) -> Side:
    side = Side("paddle", Path(sys.executable), tmp_path / "side")
    side.prepare()
    return side


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runner]:
    monkeypatch.setattr("reducer.frameworks.runner.PRELOAD", {"paddle": (), "torch": ()})
    with Workspace(tmp_path / "work") as workspace:
        runner = Runner(workspace, Timeouts(), Limits(network=False))
        yield runner
        runner.close()


@pytest.fixture
def quick(runner: Runner, side: Side, tmp_path: Path) -> QuickObjects:
    toolchain = find_toolchain()
    assert toolchain is not None, "the ziglang wheel is a dependency"
    seen = runner.observe(side, case())
    runner.quick = QuickObjects(toolchain, (seen,), tmp_path / "cache")
    return runner.quick


def shown(runner: Runner, side: Side, candidate: Candidate) -> tuple[str, str]:
    """What was printed, and how it was built."""
    seen = runner.observe(side, candidate, fast=True)
    assert seen.run is not None, seen
    return seen.run.stdout.strip() or seen.run.stderr, seen.build.command.replace(
        sys.executable, "python"
    ) if seen.build else "reused"


def test_a_build_is_kept_and_its_calls_are_repeated(runner: Runner, side: Side) -> None:
    assert shown(runner, side, case()) == ("('gcc', 1)", "python setup.py build_ext --inplace")
    assert shown(runner, side, case()) == ("('gcc', 1)", "reused")
    changed = case(part_cc=b'#include "part.h"\nlong part() { return 2; }\n')
    printed, command = shown(runner, side, changed)
    assert printed == "('gcc', 2)"
    assert command.startswith("sh -c") and "setup.py" not in command
    assert shown(runner, side, changed) == (printed, "reused")


def test_another_setup_is_built_by_the_build_system(runner: Runner, side: Side) -> None:
    shown(runner, side, case())
    changed = case(setup_py=SETUP + b"# once more\n", part_cc=b"long part() { return 3; }\n")
    assert shown(runner, side, changed) == ("('gcc', 3)", "python setup.py build_ext --inplace")


def test_what_does_not_compile_any_more_fails_in_the_build(runner: Runner, side: Side) -> None:
    shown(runner, side, case())
    seen = runner.observe(side, case(part_cc=b"long part() { return nothing; }\n"), fast=True)
    assert seen.run is None
    assert any("nothing" in call.stderr and call.exit_code for call in seen.calls)


def test_a_build_into_another_directory(runner: Runner, side: Side) -> None:
    recipe = Recipe("python setup.py build_ext --build-lib site", "PYTHONPATH=site python show.py")
    for number in (1, 2):
        text = b'#include "part.h"\nlong part() { return %d; }\n' % number
        candidate = Candidate(case(part_cc=text).tree, recipe)
        for _ in range(2):
            assert shown(runner, side, candidate)[0] == f"('gcc', {number})"


def test_quick_objects(runner: Runner, side: Side, quick: QuickObjects) -> None:
    for number in (2, 3):
        text = b'#include "part.h"\nlong part() { return %d; }\n' % number
        printed, command = shown(runner, side, case(part_cc=text))
        assert (printed, command[:5]) == (f"('clang', {number})", "sh -c")


def test_a_real_build_serves_warm_queries_of_the_same_content(runner: Runner, side: Side, quick: QuickObjects) -> None:
    assert shown(runner, side, case()) == ("('gcc', 1)", "reused")


def test_without_clang_when_it_refuses_the_code(runner: Runner, side: Side, quick: QuickObjects) -> None:
    odd = b"#ifdef __clang__\n#error not for clang\n#endif\nlong part() { return 4; }\n"
    assert shown(runner, side, case(part_cc=odd))[0] == "('gcc', 4)"


def test_real_observations_take_no_part_in_it(runner: Runner, side: Side, quick: QuickObjects) -> None:
    changed = case(part_cc=b"long part() { return 5; }\n")
    assert shown(runner, side, changed)[0] == "('clang', 5)"
    seen = runner.observe(side, changed)
    assert seen.run is not None and seen.run.stdout.strip() == "('gcc', 5)"
    assert seen.build is not None and "setup.py build_ext" in seen.build.command


def test_more_runs_are_warm_and_in_the_same_place(runner: Runner, side: Side) -> None:
    seen = runner.observe_runs(side, case(), 2, more=lambda first: len(first) + 1)
    assert [o.run.stdout.strip() for o in seen if o.run] == ["('gcc', 1)"] * 5
    assert len({id(o.build) for o in seen}) == 1


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(
    ("script", "again"),
    [
        (b"import os\nos.makedirs('out')\n", "FileExistsError"),
        (b"import os\nos.makedirs('out', exist_ok=True)\n", ""),
        (b"open('log', 'a').write('x')\nassert len(open('log').read()) == 1\n", "AssertionError"),
        (b"import helper\n", None),  # its __pycache__ is nothing that a run left
    ],
)
def test_a_run_that_leaves_files_is_repeated_there(
    runner: Runner, side: Side, script: bytes, again: str | None, fast: bool
) -> None:
    tree = SourceTree({"show.py": script, "helper.py": b"x = 1\n"})
    seen = runner.observe(side, Candidate(tree, Recipe(None, "python show.py")), fast=fast)
    assert seen.run is not None and seen.run.exit_code == 0, seen.run
    assert len(seen.repeats) == (1 if again is None else 2)
    if again is not None:
        last = seen.repeats[-1].run
        assert last is not None and again in last.stderr and (last.exit_code != 0) == bool(again)
