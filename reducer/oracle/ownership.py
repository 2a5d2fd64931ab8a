"""Who owns a file that a traceback or a compiler names."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from typing import cast

from reducer.oracle.failure import Owner

_OWNERS = frozenset({"paddle", "torch", "library", "test", "stdlib", "other"})
_PACKAGES = re.compile(r"/(?:site|dist)-packages/")
_FRAMEWORK = re.compile(r"/(?:site|dist)-packages/(paddle|torch|functorch|torchgen)(?:/|$)")
_STDLIB = re.compile(
    r"/lib(?:64)?/python3\.\d+/|/python3\.\d+\.zip/|^<frozen |^<__array_function__|importlib/_bootstrap"
)
_TEST = re.compile(r"(?:^|/)(?:tests?|testing)/|(?:^|/)(?:test_?[^/]*|[^/]*_test|conftest)\.py$")
_INLINE = frozenset({"<string>", "<stdin>"})


@dataclass(frozen=True, slots=True)
class Ownership:
    """Decides owners for one candidate: ``root`` is its directory, ``roots`` other prefixes with their owner."""

    root: str
    roots: dict[str, str] = field(default_factory=dict)

    def owner(self, file: str, directory: str = "") -> Owner:
        """The owner of ``file`` as printed; relative paths are meant from ``directory`` (the root by default)."""
        if file in _INLINE:
            return "library"
        if not file or (_STDLIB.search(file) and not _PACKAGES.search(file)):
            return "stdlib" if file else ""
        path = self._absolute(file, directory)
        for prefix in sorted(self.roots, key=len, reverse=True):
            if _below(path, prefix) and self.roots[prefix] in _OWNERS:
                return cast(Owner, self.roots[prefix])
        framework = _FRAMEWORK.search(path)
        if framework is not None:
            return "paddle" if framework.group(1) == "paddle" else "torch"
        if self.root and _below(path, self.root):
            return "test" if _TEST.search(path[len(self.root.rstrip("/")) :]) else "library"
        return "other"

    def ours(self, file: str, directory: str = "") -> bool:
        """Whether the file is the candidate's own."""
        return self.owner(file, directory) in ("library", "test")

    def relative(self, file: str, directory: str = "") -> str:
        """The path below the candidate's directory; as printed when it is not below it."""
        if file in _INLINE:
            return file
        path = self._absolute(file, directory)
        return posixpath.relpath(path, self.root) if self.root and _below(path, self.root) else file

    def _absolute(self, file: str, directory: str) -> str:
        if file.startswith("/"):
            return posixpath.normpath(file)
        return posixpath.normpath(posixpath.join(directory or self.root or "/", file))


def _below(path: str, prefix: str) -> bool:
    prefix = prefix.rstrip("/")
    return path == prefix or path.startswith(prefix + "/")
