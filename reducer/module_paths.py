"""Where a written command finds the modules of its tree.

The tool's own runs have the tree, and ``src`` in it, on Python's path: the library may be installed at its user's, and
an installed copy must not take its place. A reader has neither.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from reducer.tree import SourceTree
from reducer.world.commands import PYTHONS, join_simple, parse_simple


def from_here(command: str, tree: SourceTree) -> str:
    """``command`` with what it takes to import the modules of ``tree``: ``python -m pytest`` in place of ``pytest``
    (which leaves the current directory out), and PYTHONPATH for a script that lies elsewhere, and for ``src``."""
    simple = parse_simple(command)
    if simple is None or not simple.argv or "PYTHONPATH" in simple.env:
        return command
    argv = list(simple.argv)
    modules = [path for path in tree if path.endswith(".py")]
    if argv[0] in ("pytest", "py.test"):
        argv[:1] = ["python", "-m", "pytest"]
    missing = [] if _starts_here(argv) or not _imported_from("", argv, modules) else ["."]
    missing += ["src"] if _imported_from("src/", argv, modules) else []
    if argv == list(simple.argv) and not missing:
        return command
    variables = {**simple.env, **({"PYTHONPATH": ":".join(missing)} if missing else {})}
    return join_simple(variables, argv)


def _starts_here(argv: Sequence[str]) -> bool:
    """Whether Python puts the current directory on its path."""
    if argv[0] not in PYTHONS or len(argv) < 2:
        return False
    return argv[1] in ("-m", "-c") or (not argv[1].startswith("-") and "/" not in posixpath.normpath(argv[1]))


def _imported_from(folder: str, argv: Sequence[str], modules: Sequence[str]) -> bool:
    """Whether there is a module below ``folder`` besides what the command names, and tests and their helpers."""
    named = {posixpath.normpath(word.partition("::")[0]) for word in argv}
    for path in modules:
        inner = path.removeprefix(folder)
        top = inner.split("/")[0]
        own = path in named or top in ("setup.py", "conftest.py") or (not folder and top == "src")
        if path.startswith(folder) and not own:
            return True
    return False
