"""Quick objects of PyTorch's own headers: what takes two seconds with the header alone takes a fraction when the code
and the virtual members stand aside."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from reducer.frameworks.quick import QuickObjects
from reducer.frameworks.side import Side
from reducer.frameworks.syntax_tier import cache_directory
from reducer.frameworks.toolchain import find_toolchain
from reducer.frameworks.virtual_members import instantiations
from reducer.oracle.observation import CompilerCall, Observation


def event(detail: str, start: int, duration: int, name: str = "InstantiateFunction") -> dict[str, object]:
    return {"ph": "X", "name": name, "ts": start, "dur": duration, "args": {"detail": detail}}


def test_the_outermost_members_name_their_class() -> None:
    events = [
        event("a::Box<a::Pair<int, long>>::clone", 0, 10),
        event("std::vector<int>::push_back", 2, 3),  # in the course of the first
        event("a::Box<a::Pair<int, long>>::print", 10, 5),
        event("b::Kind<b::K::L>::equals<b::X>", 20, 5),
        event("a::plain", 30, 5),
        event("std::make_pair<int, int>", 40, 5),
        event("a::Box<(anonymous namespace)::T>::clone", 50, 5),
        event("c::Box<int>::clone", 60, 5, "InstantiateClass"),
    ]
    assert instantiations(json.dumps({"traceEvents": [{"name": "meta"}, *events]})) == (
        "template class a::Box<a::Pair<int, long>>;\ntemplate class b::Kind<b::K::L>;\n"
    )


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"traceEvents": [{"name": "InstantiateFunction"}]}'])
def test_what_is_no_trace_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        instantiations(text)


def objects(tmp_path: Path, cache: Path) -> tuple[QuickObjects, Side]:
    """For a unit that is compiled with PyTorch's include directories."""
    side = Side("torch", Path(sys.executable), tmp_path / "side")
    side.prepare()
    code = "import torch.utils.cpp_extension as c; print(*c.include_paths(), sep='\\n')"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    include = [f"-I{directory}" for directory in (*found, sysconfig.get_paths()["include"])]
    argv = ("g++", *include, "-std=c++20", "-fPIC", "-c", "a.cc", "-o", "a.o")
    seen = Observation("torch", str(tmp_path), calls=(CompilerCall(argv, str(tmp_path), 0, ""),))
    toolchain = find_toolchain()
    assert toolchain is not None, "the ziglang wheel is a dependency"
    return QuickObjects(toolchain, (seen,), cache), side


@pytest.mark.real
def test_an_empty_unit_has_none_of_the_headers_code(tmp_path: Path) -> None:
    quick, side = objects(tmp_path, cache_directory().with_name("quick"))
    assert quick.settings(side) is not None
    quick.improve(side)
    path = quick.settings(side)
    assert path is not None
    settings = json.loads(path.read_text())
    assert settings["library"], "the code of the header is to come from a library"
    include = [word for word in _flags(quick, side) if word.startswith(("-I", "-D", "-std="))]
    command = [*settings["compiler"], *settings["code"], *include, "-include-pch", settings["pch"]]
    unit = tmp_path / "a.cc"
    unit.write_text("int x;\n")
    subprocess.run([*command, "-c", str(unit), "-o", str(tmp_path / "a.o")], check=True)
    # With the header alone these are 1.8 MB: virtual members of a hundred templates, which nobody here calls.
    assert (tmp_path / "a.o").stat().st_size < 400_000


def _flags(quick: QuickObjects, side: Side) -> tuple[str, ...]:
    return quick._arguments(side)


def test_what_is_killed_is_not_remembered_as_impossible(tmp_path: Path) -> None:
    quick, side = objects(tmp_path, tmp_path / "cache")
    quick.close()
    assert quick.settings(side) is None
    assert not [path for path in (tmp_path / "cache").iterdir() if path.suffix in (".pch", ".a", ".inst")]
