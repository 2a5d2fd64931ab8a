"""The command line: usage errors, help, and what is imported for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "reducer"]


def reduce(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def test_help_names_options_exit_codes_and_commands() -> None:
    shown = reduce("--help")
    assert shown.returncode == 0
    for word in ("--failing-cmd", "--build-cmd", "--paddle-python", "--torch-python", "--control-cmd", "--match"):
        assert word in shown.stdout
    for word in ("--timeout", "--jobs", "--out", "--json", "--repo", "130 interrupted", "demo", "doctor"):
        assert word in shown.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["demo", "--help"], ["doctor", "--help"], []])
def test_nothing_heavy_is_imported_for_a_few_words(arguments: list[str]) -> None:
    script = (
        "import sys\nfrom reducer.cli import app\n"
        "try:\n    app(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print(*sorted(m for m in sys.modules if '.' not in m or m.startswith('reducer')), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = set(done.stderr.splitlines()[-1].split())
    assert {"reducer", "reducer.cli", "typer"} <= loaded
    assert not loaded & {
        "paddle",
        "torch",
        "numpy",
        "clang",
        "black",
        "rich",
        "reducer.session",
        "reducer.case",
        "reducer.syntax",
    }


def test_without_a_command_it_says_how_to_start() -> None:
    done = reduce()
    assert done.returncode == 2
    assert "--failing-cmd" in done.stderr
    assert "reduce demo" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--failing-cmd", "true", "--timeout", "soon"], 2, "--timeout soon"),
        (["--failing-cmd", "true", "--timeout", "-3"], 2, "--timeout -3"),
        (["--failing-cmd", "true", "--timeout", "nan"], 2, "--timeout nan"),
        (["--failing-cmd", "true", "--match", "("], 2, "not a regular expression"),
        (["--failing-cmd", "true", "--repo", "nowhere"], 2, "nowhere does not exist"),
        (["--failing-cmd", "true", "--repo", "file"], 2, "is a file"),
        (["--failing-cmd", "true", "--repo", "empty"], 2, "holds no files"),
        (["--failing-cmd", "true", "--out", "full"], 2, "not empty"),
        (["--failing-cmd", "true", "--out", "file"], 2, "it is a file"),
        (["--failing-cmd", "  "], 2, "--failing-cmd is empty"),
        (["--failing-cmd", "true", "--paddle-python", "no/python"], 6, "--paddle-python"),
        (["--failing-cmd", "true", "--torch-python", "no/python"], 6, "--torch-python"),
        (["demo", "nothing_of_that_name"], 2, "cxx_build"),
        (["doctor", "--paddle-python", "no/python"], 6, "--paddle-python"),
    ],
)
def test_errors_say_what_and_end_with_their_code(tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    (tmp_path / "lib.py").write_text("")
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    before = sorted(p.name for p in tmp_path.rglob("*"))
    done = reduce(*arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert sorted(p.name for p in tmp_path.rglob("*")) == before
    told = json.loads(reduce(*arguments, "--json", cwd=tmp_path).stdout)
    assert told["exit_code"] == code
    assert words in told["error"]


def test_an_unknown_option_is_a_usage_error() -> None:
    done = reduce("--failing-command", "x")
    assert done.returncode == 2
    assert "--failing-command" in done.stderr


def test_demo_list_names_the_shipped_libraries() -> None:
    shown = reduce("demo", "list")
    assert shown.returncode == 0
    assert {line.split()[0] for line in shown.stdout.splitlines()} >= {"cxx_build", "cxx_run", "py_api", "not_a_gap"}


def test_doctor_says_what_is_missing_and_how_to_get_it(tmp_path: Path) -> None:
    """An interpreter without either framework: a bare copy of this one's Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    done = reduce("doctor", "--paddle-python", str(tmp_path / "bare" / "bin" / "python"), "--json")
    assert done.returncode == 6
    findings = {finding["what"]: finding for finding in json.loads(done.stdout)}
    assert findings["paddle"]["mark"] == "missing"
    assert "pip install" in findings["paddle"]["advice"]
