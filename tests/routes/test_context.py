"""What the text of a command says about the script that it runs."""

from __future__ import annotations

from reducer.routes.context import script_source
from reducer.tree import SourceTree

TREE = SourceTree({"tests/run.py": b"print(1)\n"})


def test_a_script_of_the_tree() -> None:
    assert script_source("python -u tests/run.py", TREE) == ("tests/run.py", "print(1)\n")


def test_arguments_and_variables_become_statements() -> None:
    found = script_source("MODE=fast python ./tests/run.py --size 3", TREE)
    assert found is not None
    assert found[1] == (
        "import os\nos.environ['MODE'] = 'fast'\nimport sys\nsys.argv[1:] = ['--size', '3']\nprint(1)\n"
    )


def test_the_module_path_stays_in_the_command() -> None:
    """Setting it in the script would be too late."""
    assert script_source("PYTHONPATH=site python tests/run.py", TREE) == ("tests/run.py", "print(1)\n")


def test_code_on_the_command_line() -> None:
    assert script_source("python -c 'import torch'", TREE) == (None, "import torch")


def test_what_is_no_script() -> None:
    for command in ("pytest tests", "python -m pytest", "python missing.py", "python a.py | tail", "python", None):
        assert script_source(command, TREE) is None, command
