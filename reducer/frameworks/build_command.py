"""Finds the build command of a checkout."""

from __future__ import annotations

import re

from reducer.tree import SourceTree

CXX_SOURCE = (".cc", ".cpp", ".cxx", ".c", ".cu")
CXX_HEADER = (".h", ".hh", ".hpp", ".hxx", ".inl", ".ipp", ".tpp", ".inc", ".cuh")

IN_PLACE = "python setup.py build_ext --inplace"
PIP = "python -m pip install . --no-build-isolation --no-deps"

_EXTENSION = re.compile(rb"ext_modules|cpp_extension|Extension\s*\(|BuildExtension|CMakeBuild|cffi_modules")
_BACKEND = re.compile(rb"build-backend\s*=\s*[\"']([^\"']+)")


def find(tree: SourceTree) -> str | None:
    """The command that builds the tree in place, or None for a tree that runs as it is (pure Python, JIT builds).

    A ``setup.py`` that names extensions is built in place, so that the tests see what they see in a developer's
    checkout. A ``pyproject.toml`` alone with compiled sources is installed by pip into the candidate's own directory.
    """
    if "setup.py" in tree:
        setup = tree["setup.py"]
        helpers = [content for path, content in tree.items() if path.endswith(".py") and "/" not in path]
        if _EXTENSION.search(setup):
            return IN_PLACE
        stems = {path[:-3].encode() for path in tree if path.endswith(".py") and "/" not in path} - {b"setup"}
        imports = set(re.findall(rb"^\s*(?:from|import)\s+(\w+)", setup, re.MULTILINE))
        if stems & imports and any(_EXTENSION.search(content) for content in helpers):
            return IN_PLACE
        return None
    if "pyproject.toml" in tree and any(path.endswith(CXX_SOURCE) for path in tree):
        content = tree["pyproject.toml"]
        if _BACKEND.search(content) or b"ext-modules" in content:
            return PIP
    return None


def is_build_input(path: str, tree: SourceTree, build: str) -> bool:
    """Whether a change of ``path`` may change what ``build`` produces.

    A build in place takes no part of Python modules, except those that ``setup.py`` names (imports, reads, lists); a
    pip install copies them all.
    """
    if not path.endswith(".py") or path == "setup.py":
        return True
    if "build_ext" not in build or "setup.py" not in tree:
        return True
    stem = path.rsplit("/", 1)[-1][:-3].encode("utf-8", "surrogateescape")
    return re.search(rb"(?<![\w.])" + re.escape(stem) + rb"(?!\w)", tree["setup.py"]) is not None
