"""What every route works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reducer.baseline import Baseline
from reducer.edits.extension import SCRIPT
from reducer.frameworks.runner import Runner
from reducer.frameworks.side import Side
from reducer.frameworks.syntax_tier import ClangTier
from reducer.reduction import Reduction
from reducer.world.commands import parse_simple

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

    def record(self) -> dict[str, Any]:
        """What the recorder saw in one run of the best candidate on Paddle."""
        return self.runner.record(self.paddle, self.reduction.best)


def script_of(command: str | None) -> tuple[str, list[str]] | None:
    """The script and its arguments when ``command`` is ``python SCRIPT ...``."""
    simple = parse_simple(command or "")
    if simple is None or len(simple.argv) < 2 or not simple.argv[0].rsplit("/", 1)[-1].startswith("python"):
        return None
    words = list(simple.argv[1:])
    while words and words[0] in ("-u", "-B", "-I", "-s", "-E"):
        words.pop(0)
    if not words or words[0].startswith("-") or simple.env:
        return None
    path = words[0][2:] if words[0].startswith("./") else words[0]
    return path, words[1:]


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
