"""Growing a library: the copies are part of it, their names do not clash, and the gap stays the only one."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.measured import Measured, known
from benchmarks.scaling import GROWTHS, HEADER, Cut, Growth, GrowthError, grown, row, tokens, write

THERE = [name for name in GROWTHS if name in known()]  # run_gap always; the others where their folder is
TINY = {
    "tiny/__init__.py": "from .core import area\n",
    "tiny/core.py": "def area(a, b):\n    return a + b\n",
    "tests/test_tiny.py": "import tiny\n\n\ndef test_area():\n    assert tiny.area(2, 3) == 6\n",
    "conftest.py": 'SCOPE = {"tiny", "test_tiny"}\n',
}
GROWTH = Growth("tiny", (Cut("tiny/core.py", "a + b", "a * b"),))


def files_of(name: str) -> dict[str, str]:
    folder = known()[name].directory
    paths = [path for path in sorted(folder.rglob("*")) if path.suffix in (".py", ".cc")]
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def cxx(files: dict[str, str]) -> str:
    return "\n".join(text for path, text in files.items() if path.endswith(".cc"))


def test_run_gap_is_in_the_repository() -> None:
    assert "run_gap" in THERE


@pytest.mark.parametrize(("times", "grow"), [(1, "file"), (4, "files"), (16, "file")])
@pytest.mark.parametrize("name", THERE)
def test_size_grows_with_the_number(name: str, times: int, grow: str) -> None:
    files = files_of(name)
    larger = grown(files, GROWTHS[name], times, grow)
    assert tokens(larger) / (times * tokens(files)) == pytest.approx(1, abs=0.04)


@pytest.mark.parametrize("grow", ["file", "files"])
@pytest.mark.parametrize("name", THERE)
def test_only_the_library_itself_has_the_gap(name: str, grow: str) -> None:
    larger = grown(files_of(name), GROWTHS[name], 5, grow)
    for cut in GROWTHS[name].cuts:
        counts = {path: text.count(cut.gap) for path, text in larger.items() if cut.gap in text}
        assert counts == {cut.file: 1}


@pytest.mark.parametrize(
    ("name", "call"), [("compile_gap", "index_add_("), ("run_gap", ".slice("), ("python_gap", ".index_copy_(")]
)
def test_no_other_use_of_the_missing_function(name: str, call: str) -> None:
    if name not in THERE:
        pytest.skip(f"{name} is not on this machine")
    larger = grown(files_of(name), GROWTHS[name], 5)
    assert sum(text.count(call) for text in larger.values()) == 1


@pytest.mark.parametrize("name", THERE)
def test_once_is_the_library_itself(name: str) -> None:
    files = files_of(name)
    assert grown(files, GROWTHS[name], 1) == files


@pytest.mark.parametrize("grow", ["file", "files"])
@pytest.mark.parametrize("name", [name for name in THERE if GROWTHS[name].source is not None])
def test_cxx_names_do_not_clash(name: str, grow: str) -> None:
    growth = GROWTHS[name]
    text = cxx(grown(files_of(name), growth, 4, grow))
    names = [growth.package, *(f"{growth.package}_part{number}" for number in (2, 3, 4))]
    assert re.findall(r"^namespace (\w+) \{", text, re.MULTILINE) == names
    assert re.findall(r"^TORCH_LIBRARY\((\w+),", text, re.MULTILINE) == names
    assert re.findall(r"^TORCH_LIBRARY_IMPL\((\w+),", text, re.MULTILINE) == names
    macros = re.findall(r"^#define (\w+)", text, re.MULTILINE)
    assert macros and len(set(macros)) == len(macros)
    assert len(re.findall(r"\bPyInit_", text)) == 1
    for part in names[1:]:
        assert f"&{part}::" in text


@pytest.mark.parametrize("name", [name for name in THERE if GROWTHS[name].source is not None])
def test_one_file_or_further_units(name: str) -> None:
    files = files_of(name)
    one, more = (grown(files, GROWTHS[name], 3, grow) for grow in ("file", "files"))
    assert [path for path in one if path.endswith(".cc")] == ["csrc/ops.cc"]
    assert one["csrc/ops.cc"].count("#include") == files["csrc/ops.cc"].count("#include")
    units = ["csrc/ops.cc", "csrc/ops_part2.cc", "csrc/ops_part3.cc"]
    assert sorted(path for path in more if path.endswith(".cc")) == units
    assert f"sources={units!s}".replace("'", '"') in more["setup.py"]
    assert more["csrc/ops.cc"] == files["csrc/ops.cc"]
    assert "ops_part2.cc" not in one["setup.py"]


@pytest.mark.parametrize("name", THERE)
def test_python_is_valid_and_reaches_its_own_copy(name: str) -> None:
    growth = GROWTHS[name]
    larger = grown(files_of(name), growth, 3)
    for path, text in larger.items():
        if path.endswith(".py"):
            ast.parse(text, path)
    stems = Counter(Path(path).stem for path in larger if path.startswith("tests/"))
    assert all(count == 1 for count in stems.values())
    init = larger[f"{growth.package}/__init__.py"]
    assert init.endswith("from . import part2\nfrom . import part3\n")
    copies = "\n".join(text for path, text in larger.items() if path.startswith(f"{growth.package}/part2/"))
    assert f"torch.ops.{growth.package}." not in copies
    if growth.source is not None:
        assert f"torch.ops.{growth.package}_part2" in copies
        assert f"{growth.package}.part3" in larger["setup.py"]


def test_the_compat_scope_has_the_tests_of_the_copies() -> None:
    assert (
        grown(TINY, GROWTH, 3)["conftest.py"] == 'SCOPE = {"tiny", "test_tiny", "test_tiny_part2", "test_tiny_part3"}\n'
    )


def test_the_tests_of_the_copies_run_and_pass_without_the_gap(tmp_path: Path) -> None:
    for path, text in grown(TINY, GROWTH, 4).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    assert "FAILED tests/test_tiny.py::test_area" in done.stdout


@pytest.mark.parametrize("text", ["def area(a, b):\n    return 0\n", "def area(a, b):\n    return a + b or a + b\n"])
def test_a_gap_that_does_not_stand_once_is_an_error(text: str) -> None:
    with pytest.raises(GrowthError, match="times instead of once"):
        grown({**TINY, "tiny/core.py": text}, GROWTH, 2)


def test_a_grown_library_is_written(tmp_path: Path) -> None:
    library, size = write(known()["run_gap"], 3, "files", tmp_path / "place")
    files = {p.relative_to(library.directory).as_posix() for p in library.directory.rglob("*") if p.is_file()}
    assert files == set(grown(files_of("run_gap"), GROWTHS["run_gap"], 3, "files"))
    assert size > 2 * tokens(files_of("run_gap"))
    assert library.name == "run_gap" and library.failing_cmd == known()["run_gap"].failing_cmd


def test_a_row_has_the_time_above_the_floor() -> None:
    data = {"search": {"queries": 42}, "size": {"before": {"tokens": 900}, "after": {"tokens": 71}}}
    line = row("tiny", 4, 900, 20.0, Measured(50.5, 0, 1.0, data, ""))
    assert line == "| tiny | 4 | 900 | 20.0 | 50.5 | 30.5 | 42 | 71 | 0 |\n"
    assert line.count("|") == HEADER.splitlines()[0].count("|")


def test_a_row_of_a_failed_run_says_so() -> None:
    assert (
        row("tiny", 1, 900, 20.0, Measured(5.0, 3, 1.0, {}, ""))
        == "| tiny | 1 | 900 | 20.0 | 5.0 | -15.0 | - | - | 3 |\n"
    )
