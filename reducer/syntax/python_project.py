"""The modules of a tree under the names by which they import one another."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from reducer.syntax.python import PyModule


class ModuleIndex:
    """Finds the file behind a module name. Files outside the tree (torch, the standard library) are not found."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(p for p in paths if p.endswith(".py"))
        self._by_name: dict[str, str] = {}
        for path in sorted(self._paths, key=lambda p: (p.count("/"), p)):
            for name in self._names(path):
                self._by_name.setdefault(name, path)

    def _names(self, path: str) -> list[str]:
        """From the root of the tree, from the directory above its outermost package, and from beside it."""
        parts = path[: -len(".py")].split("/")
        if parts[-1] == "__init__":
            parts.pop()
        if not parts:
            return []
        top = len(path.split("/")) - 1
        while top > 0 and "/".join([*path.split("/")[:top], "__init__.py"]) in self._paths:
            top -= 1
        names = [".".join(parts), ".".join(parts[top:])]
        if parts[0] in ("src", "lib", "python"):
            names.append(".".join(parts[1:]))
        return [n for n in names if n]

    def module(self, name: str) -> str | None:
        """The path of the module with this absolute name."""
        return self._by_name.get(name)

    def imported(self, importer: str, module: str | None, level: int) -> str | None:
        """The path that ``from <level dots><module> import ...`` in the file ``importer`` refers to."""
        if level == 0:
            return self.module(module or "") or self._beside(importer, module or "")
        parts = importer.split("/")[:-level]
        if len(importer.split("/")) < level:
            return None
        return self._at([*parts, *(module.split(".") if module else [])])

    def _beside(self, importer: str, module: str) -> str | None:
        return self._at([*importer.split("/")[:-1], *module.split(".")]) if module else None

    def _at(self, parts: Sequence[str]) -> str | None:
        base = "/".join(parts)
        for candidate in ((f"{base}/__init__.py" if base else "__init__.py"), f"{base}.py"):
            if candidate in self._paths:
                return candidate
        return None

    def submodule(self, package: str, name: str) -> str | None:
        """The path of module ``name`` directly inside the package whose ``__init__.py`` is ``package``."""
        if not package.endswith("__init__.py"):
            return None
        return self._at([*package.split("/")[:-1], name])

    def packages(self, path: str) -> list[str]:
        """The ``__init__.py`` files that run before the module at ``path`` does, outermost first."""
        parts = path.split("/")[:-1]
        found = ["/".join([*parts[:n], "__init__.py"]) for n in range(1, len(parts) + 1)]
        return [p for p in found if p in self._paths and p != path]


def star_targets(module: PyModule, index: ModuleIndex) -> list[tuple[ast.ImportFrom, str]]:
    """The ``from x import *`` statements at the top of a module, with the paths of the files they mean."""
    found = []
    for statement in module.tree.body:
        if isinstance(statement, ast.ImportFrom) and any(a.name == "*" for a in statement.names):
            target = index.imported(module.path, statement.module, statement.level)
            if target is not None:
                found.append((statement, target))
    return found
