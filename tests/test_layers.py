"""Which package may import which: read from the import statements themselves, also those inside functions."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1] / "reducer"

# The whole list of what each layer knows. One that is not here (session, routes, baseline, ...) wires others together.
ALLOWED: dict[str, set[str]] = {
    "tree": set(),
    "errors": set(),
    "resources": set(),
    "console": set(),
    "syntax": {"tree"},
    "search": set(),
    "edits": {"tree", "syntax", "slicing"},
    "slicing": {"tree", "syntax", "edits"},
    "world": {"tree", "oracle.observation"},
    "frameworks": {"tree", "syntax", "world", "oracle.observation", "oracle.candidate"},
    "oracle": {"tree", "syntax"},
    "diagnosis": {"oracle", "tree"},
    "report": {"oracle", "tree", "resources"},
    "checks": {"oracle", "tree", "syntax"},
    "asking": {"oracle", "world"},
    "reduction": {"asking", "edits", "search", "oracle", "tree", "report.sizes"},
}
PURE = ("tree", "syntax", "search", "edits", "slicing")
FILTERS = {"edits/cxx_format.py"}  # clang-format comes as a program: text in, text out, no file of the case
MACHINE = {"subprocess", "socket", "multiprocessing", "signal", "shutil", "tempfile", "threading", "concurrent"}


def layer_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Modules that a file imports, absolute."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            module = node.module or ""
            found.update(f"{module}.{alias.name}" for alias in node.names)
    return found


def knows(layer: str, module: str) -> bool:
    return any(f"{module}.".startswith(f"reducer.{other}.") for other in ALLOWED[layer] | {layer})


FILES = [path for path in sorted(ROOT.rglob("*.py")) if layer_of(path) in ALLOWED]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_layer_imports_only_what_it_may_know(path: Path) -> None:
    layer = layer_of(path)
    ours = {module for module in imported(path) if module.split(".")[0] == "reducer"}
    assert {module for module in ours if not knows(layer, module)} == set()


PURE_FILES = [p for p in FILES if layer_of(p) in PURE[1:] and p.relative_to(ROOT).as_posix() not in FILTERS]


@pytest.mark.parametrize("path", PURE_FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pure_layers_start_no_processes_and_touch_no_files(path: Path) -> None:
    used = {module.split(".")[0] for module in imported(path)}
    assert not used & MACHINE


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_tool_itself_needs_no_framework(path: Path) -> None:
    assert not {module.split(".")[0] for module in imported(path)} & {"paddle", "torch", "numpy"}


def test_every_layer_in_the_list_exists() -> None:
    there = {layer_of(path) for path in ROOT.rglob("*.py")}
    assert set(ALLOWED) <= there


def test_the_session_is_the_only_one_that_wires() -> None:
    """Search and world meet in one place only; the session has its world from ``case``."""
    both = set()
    for path in ROOT.rglob("*.py"):
        known = {module.split(".")[1] for module in imported(path) if module.startswith("reducer.")}
        if "search" in known and known & {"world", "case"}:
            both.add(path.name)
    assert both == {"session.py"}
