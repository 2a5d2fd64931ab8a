"""What every route works with."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reducer.baseline import Baseline
from reducer.edits.extension import SCRIPT
from reducer.frameworks.build_command import CXX_SOURCE
from reducer.frameworks.runner import Runner
from reducer.frameworks.side import Side
from reducer.frameworks.syntax_tier import ClangTier
from reducer.oracle.candidate import Candidate
from reducer.oracle.oracle import Oracle, agrees
from reducer.reduction import Reduction
from reducer.tree import SourceTree
from reducer.world.commands import join_simple, parse_simple

RUN_SCRIPT = f"python {SCRIPT}"
SETUP_TEMPLATE = "setup.py.in"


@dataclass(frozen=True, slots=True)
class Context:
    """One run's parts, wired by the session. ``clang`` is None where no C++ flags are known."""

    baseline: Baseline
    reduction: Reduction
    runner: Runner
    paddle: Side
    torch: Side
    clang: ClangTier | None
    say: Callable[[str], None]
    setup_template: str

    @property
    def run_script(self) -> str:
        """The command that runs the script with the variables of the failing command."""
        simple = parse_simple(self.reduction.best.recipe.run or "")
        return join_simple(simple.env, RUN_SCRIPT.split()) if simple is not None else RUN_SCRIPT

    def use_front_end(self) -> None:
        """Let the compiler front end judge C++ from here on, if it sees what the real build saw."""
        if "clang" not in self.reduction.distrusted:
            ask_front_end(self.reduction.oracle, self.clang, self.reduction.best)

    def check_warm(self, *, rebuilt: bool = False) -> None:
        """Have warm queries do more of what the real thing does where they do not show the best candidate's failure:
        builds with the library's own optimisation first, then real builds and commands only.

        ``rebuilt``: ask a build of its own, not a stored one, which may be a real one.
        """
        reduction, best = self.reduction, self.reduction.best
        sources = [path for path in best.tree if rebuilt and path.endswith(CXX_SOURCE)]
        asked = best.with_tree(best.tree.updated({path: best.tree[path] + b"\n" for path in sources}))
        if reduction.real_only:
            return
        self.runner.optimised = "quick builds" in reduction.distrusted
        if reduction.oracle.shown_warm(asked):
            return
        quick, self.runner.optimised = not self.runner.optimised, True
        reduction.oracle.forget_cheap()
        if quick and reduction.oracle.shown_warm(asked):
            self.say("a quick build does not show the failure: on with the library's own optimisation")
        else:
            reduction.distrust("warm runs")
            self.say("warm builds and runs do not show the failure: on with real ones only")

    def record(self) -> dict[str, Any]:
        """What the recorder saw in one run of the best candidate on Paddle."""
        return self.runner.record(self.paddle, self.reduction.best)


def ask_front_end(oracle: Oracle, clang: ClangTier | None, candidate: Candidate) -> None:
    """Switch the compiler front end on for ``oracle`` if it sees of ``candidate`` what the real build saw."""
    if clang is not None and oracle.syntax is None and agrees(clang, candidate, oracle.expected):
        oracle.syntax = clang


def script_source(command: str | None, tree: SourceTree) -> tuple[str | None, str] | None:
    """The file (None for ``-c``) and the text of the script that ``command`` runs with Python.

    Arguments and variables of the command line become statements of the text. None for any other command.
    """
    simple = parse_simple(command or "")
    if simple is None or len(simple.argv) < 2 or not simple.argv[0].rsplit("/", 1)[-1].startswith("python"):
        return None
    words = list(simple.argv[1:])
    while words and words[0] in ("-u", "-B", "-I", "-s", "-E"):
        words.pop(0)
    if len(words) > 1 and words[0] == "-c":
        path, text, arguments = None, words[1], words[2:]
    elif words and not words[0].startswith("-"):
        path, arguments = posixpath.normpath(words[0]), words[1:]
        if path not in tree:
            return None
        text = tree.text(path)
    else:
        return None
    variables = {name: value for name, value in simple.env.items() if name != "PYTHONPATH"}  # stays in the command
    head = [f"import os\nos.environ[{name!r}] = {value!r}\n" for name, value in variables.items()]
    head += [f"import sys\nsys.argv[1:] = {arguments!r}\n"] if arguments else []
    return path, "".join(head) + text


def pytest_node(command: str | None) -> tuple[str, str] | None:
    """The test file and the node below it when ``command`` runs one pytest node (``pytest tests/t.py::test_x``)."""
    simple = parse_simple(command or "")
    if simple is None or "pytest" not in " ".join(simple.argv[:3]):
        return None
    for word in simple.argv[1:]:
        path, _, node = word.partition("::")
        if path.endswith(".py"):
            return (path[2:] if path.startswith("./") else path), node
    return None
