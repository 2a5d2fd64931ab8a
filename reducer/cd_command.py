"""`cd DIR && COMMAND` as a command from the top of the tree, which needs no shell and can be narrowed."""

from __future__ import annotations

import posixpath
import shlex

from reducer.tree import SourceTree
from reducer.world.commands import join_simple, parse_simple


def from_the_top(command: str, tree: SourceTree) -> str | None:
    """The same command with its files named from the top of the tree, or None when it is not of this kind.

    Whether it does the same is for a run to say: the command may look for files in the directory that it is in.
    """
    folder = "."
    rest = command
    while True:
        head, sign, tail = rest.partition("&&")
        target = _target(head) if sign else None
        if target is None:
            break
        folder, rest = posixpath.normpath(posixpath.join(folder, target)), tail
    simple = parse_simple(rest.strip())
    known = places(tree)
    if folder == "." or folder not in known or simple is None:
        return None
    argv = [_moved(word, folder, known) for word in simple.argv]
    if "pytest" in " ".join(argv[:3]) and argv == list(simple.argv):
        argv.append(folder)  # no file is named: all of the directory
    return join_simple(simple.env, argv)


def _target(words: str) -> str | None:
    """DIR of ``cd DIR``; None for anything else, and for what a shell would replace."""
    try:
        split = shlex.split(words)
    except ValueError:
        return None
    if len(split) != 2 or split[0] != "cd" or split[1].startswith(("-", "/", "~")) or set(split[1]) & set("$`*?["):
        return None
    return split[1]


def _moved(word: str, folder: str, known: set[str]) -> str:
    path, sign, test = word.partition("::")
    moved = posixpath.normpath(posixpath.join(folder, path)) if path and not path.startswith("/") else path
    if moved not in known:
        return word
    return f"{'./' if path.startswith('./') else ''}{moved}{sign}{test}"


def places(tree: SourceTree) -> set[str]:
    """Files and folders of the tree, as a command names them."""
    found = {"."}
    for path in tree:
        found.add(path)
        parts = path.split("/")
        found.update("/".join(parts[:i]) for i in range(1, len(parts)))
    return found | {f"./{name}" for name in found}
