"""What a pytest node is made of: the test's file, its conftest chain, fixtures, and the places imports are found."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from reducer.edits.inline_graph import Module, ModuleMap, module_name
from reducer.tree import SourceTree

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class CannotFold(ValueError):
    """The node needs pytest itself."""


@dataclass
class Fixture:
    """One fixture. ``layer`` counts from the outermost conftest; ``owner`` is the class that defines it, if any."""

    name: str
    function: ast.FunctionDef
    layer: int
    options: dict[str, ast.expr]
    owner: str = ""

    @property
    def autouse(self) -> bool:
        value = self.options.get("autouse")
        return isinstance(value, ast.Constant) and value.value is True

    @property
    def rank(self) -> int:
        """The scope's place in the order in which pytest sets fixtures up."""
        scope = self.options.get("scope")
        names = ("session", "package", "module", "class", "function")
        known = isinstance(scope, ast.Constant) and scope.value in names
        return names.index(scope.value) if known and isinstance(scope, ast.Constant) else 4


@dataclass
class Node:
    """A parsed node id: classes around the function, its name, and the text between the brackets."""

    classes: list[str]
    function: str
    parameters: str | None = None

    @classmethod
    def parse(cls, text: str) -> Node:
        head, bracket, rest = text.partition("[")
        parts = [part for part in head.split("::") if part]
        return cls(parts[:-1], parts[-1] if parts else "", rest[:-1] if bracket else None)


@dataclass
class Sources:
    """The files that pytest would have run before the test, outermost first; the last one is the test's."""

    modules: list[Module]
    roots: list[str]
    fixtures: list[Fixture] = field(default_factory=list)

    @property
    def test(self) -> Module:
        return self.modules[-1]

    def fixture(self, name: str, below: int | None = None) -> Fixture | None:
        """The innermost fixture of that name, or the one that it overrides (``below`` its layer)."""
        found = [f for f in self.fixtures if f.name == name and (below is None or f.layer < below)]
        return found[-1] if found else None


def read_sources(tree: SourceTree, test_file: str) -> Sources:
    """Parse the test's file, its conftest chain, and modules of the tree that these take fixtures from.

    Raises CannotFold when one of them does not parse.
    """
    parts = test_file.split("/")[:-1]
    directories = ["/".join(parts[:depth]) for depth in range(len(parts) + 1)]
    chain = [p for p in (f"{d}/conftest.py" if d else "conftest.py" for d in directories) if p in tree]
    roots = list(dict.fromkeys(["", *(import_root(tree, p) for p in [*chain, test_file]), *_configured(tree), "src"]))
    roots = [r for r in roots if not r or any(p.startswith(r + "/") for p in tree)]
    modules = [_load(tree, path) for path in chain]
    test = _load(tree, test_file)
    lookup = ModuleMap(tree, roots)
    extra: list[Module] = []
    for module in [*modules, test]:
        for name in _fixture_modules(module, lookup):
            path = lookup.paths[name]
            if path not in {m.path for m in [*modules, *extra, test]}:
                extra.append(_load(tree, path))
    sources = Sources([*extra, *modules, test], roots)
    for layer, module in enumerate(sources.modules):
        sources.fixtures += fixtures_in(module.body, layer)
    return sources


def import_root(tree: SourceTree, path: str) -> str:
    """The directory that pytest puts on ``sys.path`` for a file: the first one upward that is no package."""
    directory = path.rpartition("/")[0]
    while directory and f"{directory}/__init__.py" in tree:
        directory = directory.rpartition("/")[0]
    return directory


def _load(tree: SourceTree, path: str) -> Module:
    root = import_root(tree, path)
    name = module_name(path[len(root) + 1 :] if root else path) or path
    try:
        return Module(name, path, tree.text(path))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise CannotFold(f"{path}: {error}") from error


_CONFIGURED = re.compile(r"^\s*pythonpath\s*=\s*(\[[^\]]*\]|[^\n]*(?:\n[ \t]+[^\n]+)*)", re.MULTILINE)


def _configured(tree: SourceTree) -> list[str]:
    """The ``pythonpath`` directories of pytest's configuration files."""
    found: list[str] = []
    for path in ("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"):
        match = _CONFIGURED.search(tree.text(path)) if path in tree else None
        if match:
            words = re.split(r"[\s,\[\]\"']+", match.group(1))
            found += [w.strip("/").removeprefix("./") for w in words if w and w != "."]
    return found


def _fixture_modules(module: Module, lookup: ModuleMap) -> Iterator[str]:
    """The tree's modules that fixtures come from by an import or by ``pytest_plugins``."""
    for statement in module.body:
        if isinstance(statement, ast.ImportFrom):
            base = module.absolute(statement)
            source = lookup.load(base) if base in lookup else None
            if source is not None and source.path != module.path:
                names = {f.name for f in fixtures_in(source.body, 0)}
                if names and any(a.name in names or a.name == "*" for a in statement.names):
                    yield base
        elif isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "pytest_plugins":
            try:
                value = ast.literal_eval(statement.value)
            except ValueError:
                continue
            yield from (n for n in ([value] if isinstance(value, str) else value) if n in lookup)


# -- recognising pytest's forms -------------------------------------------------------------------------------------


def fixtures_in(body: Sequence[ast.stmt], layer: int, owner: str = "") -> list[Fixture]:
    """The fixtures that the statements define."""
    found = []
    for statement in body:
        if isinstance(statement, ast.FunctionDef):
            options = fixture_options(statement)
            if options is not None:
                name = options.get("name")
                text = str(name.value) if isinstance(name, ast.Constant) else statement.name
                found.append(Fixture(text, statement, layer, options, owner))
    return found


def fixture_options(function: ast.FunctionDef) -> dict[str, ast.expr] | None:
    """The keyword arguments of the fixture decorator; None for a function that is no fixture."""
    for decorator in function.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        target = call.func if call is not None else decorator
        if ast.unparse(target) in ("pytest.fixture", "fixture", "pytest.yield_fixture"):
            options = {k.arg: k.value for k in call.keywords if k.arg} if call is not None else {}
            if call is not None and call.args:
                options["scope"] = call.args[0]
            return options
    return None


def marks(nodes: Sequence[ast.expr], name: str) -> list[ast.Call]:
    """The ``pytest.mark.NAME(...)`` calls among decorators, in the order in which they stand."""
    return [
        node
        for node in nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (f"pytest.mark.{name}", f"mark.{name}")
    ]


def is_mark(decorator: ast.expr) -> bool:
    """True for a decorator that only pytest (or unittest's skipping) reads."""
    text = ast.unparse(decorator)
    return text.startswith(("pytest.mark.", "mark.", "unittest.skip", "unittest.expectedFailure", "skip"))


def module_marks(body: Sequence[ast.stmt]) -> list[ast.expr]:
    """The marks in ``pytestmark``."""
    for statement in body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "pytestmark":
            value = statement.value
            return list(value.elts) if isinstance(value, ast.List | ast.Tuple) else [value]
    return []


def is_test_function(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name.startswith("test")


def is_test_class(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.ClassDef):
        return False
    return statement.name.startswith("Test") or any("TestCase" in ast.unparse(b) for b in statement.bases)
