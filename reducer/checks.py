"""Free checks: what a candidate's text alone can rule out."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Callable
from functools import lru_cache

from reducer.oracle.candidate import Candidate
from reducer.syntax.cxx import is_cxx
from reducer.syntax.cxx_registrations import bindings, ops
from reducer.tree import SourceTree

_MODULE = re.compile(rb"\bPyInit_\w+|\bPYBIND11_MODULE\b")


def for_case(tree: SourceTree) -> tuple[Callable[[Candidate], bool], ...]:
    """The checks of a case that starts from ``tree``."""
    broken = {path for path in tree if path.endswith(".py") and _imports(tree[path]) is None}
    local = top_level(tree)
    framework = _imports_torch(tree)

    def parses(candidate: Candidate) -> bool:
        """No Python file is broken that was whole at the start."""
        files = candidate.tree.items()
        return all(p in broken or _imports(content) is not None for p, content in files if p.endswith(".py"))

    def self_contained(candidate: Candidate) -> bool:
        """Nothing imports a module of the library that is gone: an installed copy of the library would be found in its
        place, and the candidate would no longer be what is run."""
        gone = local - top_level(candidate.tree)
        if not gone or candidate.recipe.build is not None:
            return True
        files = candidate.tree.items()
        return not any(gone & (_imports(content) or frozenset()) for p, content in files if p.endswith(".py"))

    def has_framework(candidate: Candidate) -> bool:
        """What runs imports torch if the case did: a compiled module needs its libraries in the process, and a warm
        interpreter has them there whether it is imported or not."""
        recipe = candidate.recipe
        return not framework or not recipe.build or not recipe.run or _imports_torch(candidate.tree)

    return (parses, self_contained, has_framework)


def _imports_torch(tree: SourceTree) -> bool:
    files = ((posixpath.basename(path), content) for path, content in tree.items() if path.endswith(".py"))
    return any(name != "setup.py" and "torch" in (_imports(content) or ()) for name, content in files)


def keeps_module(tree: SourceTree) -> Callable[[Candidate], bool]:
    """Whether the extension still can be imported and, when ``tree`` registers or binds a function, still does so, with
    a schema if it had one: a gap that stops the compiler needs none of it to show, and Paddle calls an operator
    without a schema where PyTorch does not, but the code must be of use once the gap is closed."""
    registers = bool(ops(tree) or bindings(tree))
    declares = any(op.schema for op in ops(tree))

    def holds(candidate: Candidate) -> bool:
        files = candidate.tree
        if not any(_MODULE.search(content) for path, content in files.items() if is_cxx(path)):
            return False
        found = ops(files)
        if declares and not any(op.schema for op in found):
            return False
        return not registers or any(op.function for op in found) or any(b.function for b in bindings(files))

    return holds


def top_level(tree: SourceTree) -> frozenset[str]:
    """Names of the modules and packages that can be imported from the root of the tree or from ``src``."""
    names: set[str] = set()
    for path in tree:
        parts = path.removeprefix("src/").split("/")
        if path.endswith(".py"):
            names.add(parts[0].removesuffix(".py"))
    return frozenset(names - {"setup", "conftest", "repro"})


@lru_cache(maxsize=4096)
def _imports(content: bytes) -> frozenset[str] | None:
    """First parts of the modules that top-level statements import absolutely; None when the text does not parse."""
    try:
        module = ast.parse(content)
    except (SyntaxError, ValueError):
        return None
    found: set[str] = set()
    for node in module.body:
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return frozenset(found)
