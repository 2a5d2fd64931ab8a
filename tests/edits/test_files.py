"""Dropping files, and what names them."""

from __future__ import annotations

import ast

from hypothesis import given
from hypothesis import strategies as st

from reducer.edits.edit import apply
from reducer.edits.files import Files, listed_sources
from reducer.tree import SourceTree

TREE = SourceTree(
    {
        "setup.py": b"""import os
from glob import glob
from setuptools import setup
HERE = os.path.dirname(__file__)
with open("README.md") as f:
    text = f.read()
SOURCES = [
    "csrc/a.cc",
    os.path.join("csrc", "b.cc"),  # second
    f"{HERE}/csrc/deep/c.cc",
]
MORE = ("csrc/a.cc", "csrc/b.cc")
setup(ext_modules=[Ext("x", SOURCES + list(glob("csrc/*.cpp")))])
""",
        "README.md": b"read me",
        "LICENSE": b"",
        "csrc/a.cc": b'#include "../include/h.h"\n',
        "csrc/b.cc": b"",
        "csrc/deep/c.cc": b"",
        "csrc/g.cpp": b"",
        "include/h.h": b'#include "k.h"\n',
        "include/k.h": b"",
        "lib/__init__.py": b"from .core import thing\nfrom . import extra\n",
        "lib/core.py": b"import lib.sub.leaf\n",
        "lib/extra.py": b"",
        "lib/sub/__init__.py": b"",
        "lib/sub/leaf.py": b"def f(:\n",
        "tests/test_x.py": b"import lib\nfrom helpers import h\nDATA = 'data.json'\n",
        "tests/helpers.py": b"",
        "tests/data.json": b"{}",
        "pyproject.toml": b'[project]\nreadme = "README.md"\nlicense = { file = "LICENSE" }\n',
    }
)
PATHS = list(TREE)


def needs(path: str) -> set[str]:
    proposal = Files().propose(TREE)
    return {PATHS[i] for i in proposal.requires[PATHS.index(path)]}


def without(*paths: str) -> SourceTree:
    proposal = Files().propose(TREE)
    return apply(TREE, [proposal.edits[PATHS.index(p)] for p in paths])


def test_what_files_need() -> None:
    assert needs("csrc/a.cc") == {"include/h.h"}
    assert needs("include/h.h") == {"include/k.h"}
    assert needs("lib/__init__.py") == {"lib/core.py", "lib/extra.py"}
    assert needs("lib/core.py") == {"lib/__init__.py", "lib/sub/__init__.py", "lib/sub/leaf.py"}
    assert needs("tests/test_x.py") == {"lib/__init__.py", "tests/helpers.py", "tests/data.json"}
    assert needs("pyproject.toml") == {"README.md", "LICENSE"}
    assert needs("setup.py") == {"README.md"}
    assert needs("lib/sub/leaf.py") == set()


def test_a_source_leaves_the_lists_that_name_it() -> None:
    left = without("csrc/a.cc", "csrc/deep/c.cc")
    text = left.text("setup.py")
    assert "csrc/a.cc" not in text and "c.cc" not in text and 'os.path.join("csrc", "b.cc")' in text
    assert 'MORE = ("csrc/b.cc",)' in text
    assert 'glob("csrc/*.cpp")' in text


@given(st.sets(st.sampled_from(PATHS)))
def test_any_set_of_files_goes_at_once_and_python_stays_python(gone: set[str]) -> None:
    left = without(*gone)
    assert set(left) == set(PATHS) - gone
    sources = {"csrc/a.cc", "csrc/b.cc"} & gone
    if "setup.py" in left and len(sources) < 2:
        ast.parse(left["setup.py"])
        assert not any(path in left.text("setup.py") for path in sources - {"csrc/b.cc"})


def test_a_joined_path_is_found_only_when_it_is_the_only_one() -> None:
    setup = b'import os\nS = [os.path.join(root, "a.cc")]\n'
    assert set(listed_sources(SourceTree({"setup.py": setup, "x/a.cc": b""}))) == {"x/a.cc"}
    assert listed_sources(SourceTree({"setup.py": setup, "x/a.cc": b"", "y/a.cc": b""})) == {}
