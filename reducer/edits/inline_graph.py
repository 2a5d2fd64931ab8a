"""The modules of a tree: which import means which file."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from reducer.edits.inline_scopes import Scope, module_scope
from reducer.edits.prelude import strip_prelude
from reducer.syntax.python import is_docstring
from reducer.tree import SourceTree


class Module:
    """One Python file under its import name, without its prelude; its syntax tree is this object's own."""

    def __init__(self, name: str, path: str, source: str) -> None:
        """Raises SyntaxError or ValueError for what is not Python."""
        self.name = name
        self.path = path
        self.is_package = path.rpartition("/")[2] == "__init__.py"
        self.body: list[ast.stmt] = strip_prelude(ast.parse(source).body)
        self.scope: Scope = module_scope(self.body)

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    def absolute(self, node: ast.ImportFrom) -> str:
        """The absolute name of the module that an import-from names."""
        if not node.level:
            return node.module or ""
        parts = self.package.split(".") if self.package else []
        base = parts[: len(parts) - (node.level - 1)]
        return ".".join([*base, *([node.module] if node.module else [])])

    def exported(self) -> set[str] | None:
        """The names in a literal ``__all__``; None without one."""
        names: set[str] | None = None
        for statement in self.body:
            if isinstance(statement, ast.Assign | ast.AugAssign):
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                if any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets):
                    try:
                        names = (names or set()) | {str(n) for n in ast.literal_eval(statement.value)}
                    except (ValueError, TypeError):
                        return None
        return names


class ModuleMap:
    """Finds the files that imports mean, below the directories that Python searches."""

    def __init__(self, tree: SourceTree, roots: Sequence[str]) -> None:
        self.tree = tree
        self.paths: dict[str, str] = {}
        self._loaded: dict[str, Module | None] = {}
        for root in roots:
            prefix = f"{root}/" if root else ""
            for path in tree:
                if path.startswith(prefix) and path.endswith(".py"):
                    name = module_name(path[len(prefix) :])
                    if name is not None:
                        self.paths.setdefault(name, path)

    def __contains__(self, name: str) -> bool:
        return name in self.paths

    def load(self, name: str) -> Module | None:
        """The module of that name, or None when the tree has none or it does not parse."""
        if name not in self._loaded:
            path = self.paths.get(name)
            module = None
            if path is not None:
                try:
                    module = Module(name, path, self.tree.text(path))
                except (SyntaxError, ValueError, RecursionError):
                    module = None
            self._loaded[name] = module
        return self._loaded[name]

    def with_parents(self, name: str) -> list[str]:
        """The modules that importing ``name`` runs, outermost first."""
        parts = name.split(".")
        return [n for n in (".".join(parts[: i + 1]) for i in range(len(parts))) if n in self.paths]

    def imported(self, module: Module, nodes: Iterable[ast.AST] | None = None) -> Iterator[str]:
        """The tree's modules that the file's imports (at any depth) name, parents included."""
        for top in module.body if nodes is None else nodes:
            for node in ast.walk(top):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    yield from self.named_by(module, node)

    def named_by(self, module: Module, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
        """The tree's modules that one import statement runs, in order."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from self.with_parents(alias.name)
            return
        base = module.absolute(node)
        yield from self.with_parents(base)
        source = self.load(base)
        for alias in node.names:
            name = f"{base}.{alias.name}" if base else alias.name
            if name in self.paths and not (source is not None and alias.name in source.scope.otherwise):
                yield name


def module_name(path: str) -> str | None:
    """The import name of a file relative to its search directory; None for what cannot be imported by name."""
    parts = path[: -len(".py")].split("/")
    if parts[-1] == "__init__":
        parts.pop()
    if not parts or not all(part.isidentifier() for part in parts):
        return None
    return ".".join(parts)


def search_roots(tree: SourceTree, script: str) -> list[str]:
    """The directories, relative to the tree, that the script's imports are looked up in: its own, those that it puts
    on ``sys.path`` as literals, and ``src`` and ``python``, where packages that are installed in place live."""
    roots = [script.rpartition("/")[0]]
    try:
        module = ast.parse(tree.text(script))
    except (SyntaxError, ValueError):
        return roots
    for node in ast.walk(module):
        called = isinstance(node, ast.Call) and ast.unparse(node.func) in ("sys.path.insert", "sys.path.append")
        assigned = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith("sys.path")
        if called or assigned:
            roots += [c.value for c in ast.walk(node) if isinstance(c, ast.Constant) and isinstance(c.value, str)]
    roots += ["", "src", "python"]
    known = [r.strip("/").removeprefix("./") for r in roots]
    known = ["" if r == "." else r for r in known]
    return [r for r in dict.fromkeys(known) if not r or any(p.startswith(r + "/") for p in tree)]


def is_type_checking(statement: ast.stmt) -> bool:
    """True for ``if TYPE_CHECKING:`` without an else."""
    return (
        isinstance(statement, ast.If)
        and not statement.orelse
        and ast.unparse(statement.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
    )


def is_main_guard(statement: ast.stmt) -> bool:
    """True for ``if __name__ == "__main__":``."""
    return isinstance(statement, ast.If) and any(
        isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(statement.test)
    )


def without_text(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements that are no docstrings."""
    return [s for s in body if not is_docstring(s)]
