"""Dropping whole files of any kind, together with what names them."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator, Sequence

from reducer.edits.edit import Drop, Edit, Op, Splice
from reducer.edits.passes import Proposal, nothing
from reducer.syntax.cxx import includes_of, is_cxx, is_cxx_source, resolve_include
from reducer.tree import SourceTree

_SETTINGS = frozenset({"pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini"})
_QUOTED = re.compile(r"""["']([^"'\n]+)["']|=[ \t]*(?:file:[ \t]*)?([\w./-]+)[ \t]*$""", re.M)


class Files:
    """One element for each file.

    A file needs what it includes, imports or names in a string, as far as that is in the tree. A C++ source that
    stands in a list of a Python file (``sources=[...]``) goes from that list too; a glob needs no change.
    """

    name = "files"

    def __init__(self, include_dirs: Sequence[str] = ()) -> None:
        self._include_dirs = tuple(include_dirs)

    def propose(self, tree: SourceTree) -> Proposal:
        if not tree:
            return nothing()
        number = {path: index for index, path in enumerate(tree)}
        listed = listed_sources(tree)
        edits: list[Edit] = []
        needs: list[frozenset[int]] = []
        for path, content in tree.items():
            ops: list[Op] = [Drop(path), *(op for op in listed.get(path, ()) if op.path != path)]
            edits.append(Edit(tuple(ops), f"file {path}", max(1, len(content))))
            needs.append(frozenset(number[p] for p in self._needs(tree, path, listed) if p != path))
        return Proposal(tuple(edits), "closures", tuple(needs))

    def _needs(self, tree: SourceTree, path: str, listed: dict[str, tuple[Splice, ...]]) -> set[str]:
        if is_cxx(path):
            found = (resolve_include(tree, path, name, self._include_dirs) for name, *_ in includes_of(tree[path]))
            return {p for p in found if p is not None}
        if path.endswith(".py"):
            module = parse_python(tree, path)
            if module is None:
                return set()
            return imported_files(tree, path, module) | {p for p in _named_files(tree, path, module) if p not in listed}
        if posixpath.basename(path) in _SETTINGS:
            words = {(m[1] or m[2]) for m in _QUOTED.finditer(tree.text(path))}
            base = posixpath.dirname(path)
            return {p for w in words if (p := posixpath.normpath(posixpath.join(base, w))) in tree}
        return set()


def parse_python(tree: SourceTree, path: str) -> ast.Module | None:
    """The file's syntax tree, or None for one that this Python cannot parse."""
    try:
        return ast.parse(tree[path])
    except (SyntaxError, ValueError):
        return None


def imported_files(tree: SourceTree, path: str, module: ast.Module) -> set[str]:
    """The tree's files that the import statements of a Python file name, packages' ``__init__.py`` included."""
    found: set[str] = set()
    package = path.split("/")[:-1]
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found |= _module_files(tree, path, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            target = node.module.split(".") if node.module else []
            if node.level:
                base = package[: len(package) - node.level + 1]
                for alias in node.names:
                    found |= _below(tree, [*base, *target, alias.name]) | _below(tree, [*base, *target])
            else:
                for alias in node.names:
                    found |= _module_files(tree, path, [*target, alias.name])
    found |= {p for p in _below(tree, package) if package}
    return found


def _module_files(tree: SourceTree, importer: str, parts: list[str]) -> set[str]:
    """Files of an absolute import, looked for from the top, the usual source folders and the importer's own."""
    for base in ("", "src", "python", posixpath.dirname(importer)):
        found = _below(tree, [*(base.split("/") if base else []), *parts])
        last = "/".join([*(base.split("/") if base else []), parts[0]])
        if any(p in (f"{last}.py", f"{last}/__init__.py") or p.startswith(f"{last}/") for p in found):
            return found
    return set()


def _below(tree: SourceTree, parts: list[str]) -> set[str]:
    """The module file at ``parts`` and the ``__init__.py`` files on the way."""
    steps = ["/".join(parts[: i + 1]) for i in range(len(parts))]
    names = [f"{step}/__init__.py" for step in steps] + [f"{step}.py" for step in steps]
    return {name for name in names if name in tree}


def _named_files(tree: SourceTree, path: str, module: ast.Module) -> set[str]:
    """Files that a Python file names in a string: README, version.txt, data."""
    base = posixpath.dirname(path)
    found: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and 0 < len(node.value) < 200:
            for start in {base, ""}:
                candidate = posixpath.normpath(posixpath.join(start, node.value))
                if candidate in tree:
                    found.add(candidate)
    return found


def listed_sources(tree: SourceTree) -> dict[str, tuple[Splice, ...]]:
    """For each C++ source that stands in a list or tuple of a Python file: the cuts that take it out of there."""
    found: dict[str, list[Splice]] = {}
    for path in tree:
        if path.endswith(".py") and (module := parse_python(tree, path)) is not None:
            for source, splices in _lists(tree, path, module):
                found.setdefault(source, []).extend(splices)
    return {source: tuple(splices) for source, splices in found.items()}


def list_entries(tree: SourceTree, path: str) -> list[tuple[str, int, int]]:
    """(source, start, end) of each list entry of a Python file that names one C++ source of the tree."""
    module = parse_python(tree, path)
    if module is None:
        return []
    lines = _line_starts(tree[path])
    return [
        (source, *_range(lines, element))
        for node in ast.walk(module)
        if isinstance(node, ast.List | ast.Tuple | ast.Set)
        for element in node.elts
        if (source := _source_of(tree, path, element)) is not None
    ]


def _lists(tree: SourceTree, path: str, module: ast.Module) -> Iterator[tuple[str, list[Splice]]]:
    content = tree[path]
    lines = _line_starts(content)
    for node in ast.walk(module):
        if not isinstance(node, ast.List | ast.Tuple | ast.Set):
            continue
        for index, element in enumerate(node.elts):
            source = _source_of(tree, path, element)
            if source is None:
                continue
            start, end = _range(lines, element)
            last = index + 1 == len(node.elts)
            following = re.compile(rb"\s*,[ \t]*(?:\n[ \t]*(?=[^\s]))?").match(content, end)
            if following:
                end = following.end()
            splices = [Splice(path, start, end)]
            if isinstance(node, ast.Tuple) and not last:
                finish = _range(lines, node.elts[-1])[1]
                if not re.compile(rb"\s*,").match(content, finish):
                    splices.append(Splice(path, finish, finish, b","))  # (a, b) without a is (b,), not (b)
            yield source, splices


def _source_of(tree: SourceTree, path: str, element: ast.expr) -> str | None:
    """The C++ source that a list entry names: a literal, or a join that ends in literals."""
    parts = _path_parts(element)
    if not parts or all(p is None for p in parts):
        return None
    known = any(p is None for p in parts)
    tail = parts[max((i for i, p in enumerate(parts) if p is None), default=-1) + 1 :]
    text = posixpath.normpath("/".join(str(p) for p in tail)).lstrip("/") if tail else ""
    if not text:
        return None
    direct = posixpath.normpath(posixpath.join(posixpath.dirname(path), text))
    for candidate in (direct, text):
        if candidate in tree and is_cxx_source(candidate):
            return candidate
    if known:
        matches = [p for p in tree if p.endswith("/" + text) and is_cxx_source(p)]
        return matches[0] if len(matches) == 1 else None
    return None


def _path_parts(node: ast.expr) -> list[str | None]:
    """The pieces of a path expression, None for what only a run would tell."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else [None]
    if isinstance(node, ast.JoinedStr):
        return [p for value in node.values for p in _path_parts(value)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Add):
        return _path_parts(node.left) + _path_parts(node.right)
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("join", "joinpath", "Path", "str", "abspath", "normpath", "fspath", "relpath"):
            head: list[str | None] = []
            if name == "joinpath" and isinstance(node.func, ast.Attribute):
                head = _path_parts(node.func.value)
            return head + [p for argument in node.args for p in _path_parts(argument)]
    return [None]


def _line_starts(content: bytes) -> list[int]:
    starts = [0]
    for match in re.finditer(rb"\r\n|\r|\n", content):
        starts.append(match.end())
    return starts


def _range(lines: list[int], node: ast.expr) -> tuple[int, int]:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return lines[node.lineno - 1] + node.col_offset, lines[node.end_lineno - 1] + node.end_col_offset
