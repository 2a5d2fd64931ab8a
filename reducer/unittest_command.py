"""A unittest command as a pytest one: pytest runs the same tests, and one of its node ids names one of them."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from reducer.tree import SourceTree

_FLAGS = {"-v", "--verbose", "-q", "--quiet", "-f", "--failfast", "-c", "--catch", "-b", "--buffer", "--locals"}
_VALUES = {
    "-s": "start",
    "--start-directory": "start",
    "-p": "pattern",
    "--pattern": "pattern",
    "-t": "top",
    "--top-level-directory": "top",
}


def as_pytest(argv: Sequence[str], tree: SourceTree) -> list[str] | None:
    """``python -m unittest ...`` as a pytest command on the same tests of ``tree``; None for any other command, and
    for one with options or names that have no counterpart there."""
    if list(argv[1:3]) != ["-m", "unittest"] or not argv[0].rsplit("/", 1)[-1].startswith("python"):
        return None
    words = [word for word in argv[3:] if word not in _FLAGS]
    if not words or words[0] == "discover":
        nodes = _discovered(words[1:], tree)
    else:
        named = [_node(word, tree) for word in words]
        nodes = [node for node in named if node is not None] if None not in named else []
    return [argv[0], "-m", "pytest", "-q", *nodes] if nodes else None


def _discovered(words: Sequence[str], tree: SourceTree) -> list[str]:
    """The files that ``discover`` with these options finds, in its order; [] for options that are not known."""
    options = {"start": ".", "pattern": "test*.py", "top": "."}
    rest, positional = list(words), ["start", "pattern", "top"]
    while rest:
        word = rest.pop(0)
        name = _VALUES.get(word)
        if name is not None and rest:
            options[name] = rest.pop(0)
        elif not word.startswith("-") and positional:
            options[positional.pop(0)] = word
        else:
            return []
    start = options["start"].removeprefix("./").rstrip("/")
    below = "" if start in ("", ".") else start + "/"
    return sorted(
        path
        for path in tree
        if path.startswith(below) and fnmatch.fnmatchcase(path.rsplit("/", 1)[-1], options["pattern"])
    )


def _node(word: str, tree: SourceTree) -> str | None:
    """``tests/test_x.py`` or ``tests.test_x.TestX.test_y`` as a node id."""
    path = word.removeprefix("./")
    if path in tree:
        return path
    parts = word.split(".")
    for count in range(len(parts), 0, -1):
        file = "/".join(parts[:count]) + ".py"
        if file in tree:
            return "::".join([file, *parts[count:]])
    return None
