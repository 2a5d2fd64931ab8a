"""Cut imports: single names, whole statements, and whatever nothing uses."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reducer.edits.edit import Edit, Op, Splice
from reducer.edits.passes import Proposal, nothing, proposal
from reducer.syntax.python import PyModule, all_blocks, pinned_nodes, python_modules
from reducer.tree import SourceTree

Import = ast.Import | ast.ImportFrom


@dataclass(frozen=True, slots=True)
class ImportedName:
    """One name that an import statement binds, and the operations that cut it alone."""

    statement: Import
    alias: ast.alias
    ops: tuple[Op, ...]

    @property
    def binds(self) -> str:
        return self.alias.asname or self.alias.name.split(".")[0]


def imported_names(module: PyModule, statement: Import, block: Sequence[ast.stmt], top: bool) -> list[ImportedName]:
    """The names of an import statement with their cuts; the cuts of any subset of them leave code that parses.

    To make that so, the cut of one name out of several also splits the statement into one statement for each name
    (the same splices in every cut, so they count once). A statement that shares its line is only cut whole. ``top``
    is False for an indented block, in which the statement leaves a ``pass`` behind.
    """
    position = block.index(statement)
    before = block[position - 1] if position else None
    after = block[position + 1] if position + 1 < len(block) else None
    start, end = module.statement_span(statement, before, after)
    alone = start == module.line_start(start) and end == module.next_line(module.end(statement))
    first = module.start(statement)
    if len(statement.names) == 1:
        whole = Splice(module.path, start, end) if top else Splice(module.path, *module.span(statement), b"pass")
        return [ImportedName(statement, statement.names[0], (whole,))]
    if not alone:
        return []
    spans = [module.span(alias) for alias in statement.names]
    head = module.encode(_head(statement))
    separator = module.encode("\n") + module.indent(statement) + head
    shared = [Splice(module.path, first, spans[0][0], head)]
    shared += [Splice(module.path, a[1], b[0], separator) for a, b in itertools.pairwise(spans)]
    shared.append(Splice(module.path, spans[-1][1], module.end(statement)))
    found = []
    for number, alias in enumerate(statement.names):
        if number == 0:
            own = Splice(module.path, first, spans[0][1], b"" if top else b"pass")
        else:
            own = Splice(module.path, spans[number - 1][1], spans[number][1])
        found.append(ImportedName(statement, alias, (*shared, own)))
    return found


def _head(statement: Import) -> str:
    if isinstance(statement, ast.Import):
        return "import "
    return f"from {'.' * statement.level}{statement.module or ''} import "


def module_imports(module: PyModule) -> list[ImportedName]:
    """The cuttable names of all import statements of a module, the compat prelude and ``__future__`` left out."""
    pinned = pinned_nodes(module)
    found = []
    for owner, block in all_blocks(module.tree):
        for statement in block:
            if not isinstance(statement, ast.Import | ast.ImportFrom) or statement in pinned:
                continue
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                continue
            found += imported_names(module, statement, block, top=owner is module.tree)
    return found


def used_names(module: PyModule) -> set[str]:
    """Every name that the module reads anywhere, the strings of ``__all__`` and identifiers in strings included."""
    used: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name):
            used.add(node.id)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            used.update(node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            used.update(part for part in node.value.replace("[", " ").replace("]", " ").replace(".", " ").split())
    return used


class PyImports:
    """Every imported name of the tree, any subset of which may go."""

    name = "py_imports"

    def propose(self, tree: SourceTree) -> Proposal:
        edits = [_edit(m, item) for m in python_modules(tree) for item in module_imports(m)]
        return proposal(edits, "list") if edits else nothing()


class PyUnusedImports:
    """Imports that no code names: all at once, then file by file, then one by one; then only their aliases."""

    name = "py_unused_imports"

    def propose(self, tree: SourceTree) -> Proposal:
        by_file: list[list[Edit]] = []
        for module in python_modules(tree):
            used = used_names(module)
            edits = [_edit(module, item) for item in module_imports(module) if item.binds not in used]
            if edits:
                by_file.append(edits)
        single = [edit for edits in by_file for edit in edits]
        aliases = [edit for m in python_modules(tree) for edit in _unused_aliases(m)]
        if not single:
            return proposal(aliases, "sweep") if aliases else nothing()
        every = [_together(single, "all unused imports")] if len(single) > 1 else []
        per_file = [_together(edits, "unused imports of a file") for edits in by_file if len(edits) > 1]
        return proposal([*every, *(per_file if len(by_file) > 1 else []), *single, *aliases], "sweep")


def _unused_aliases(module: PyModule) -> Iterator[Edit]:
    """The ``as name`` of imports whose name nothing uses."""
    used = used_names(module)
    fixed = pinned_nodes(module)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.alias) and node.asname and node.asname not in used and node not in fixed:
            start, end = module.span(node)
            text = module.encode(node.name)
            yield Edit(
                (Splice(module.path, start, end, text),), f"alias {node.asname}", max(1, end - start - len(text))
            )


class PySplitImports:
    """One statement for each imported name, in the whole tree at once, so that later cuts are plain line cuts."""

    name = "py_split_imports"

    def propose(self, tree: SourceTree) -> Proposal:
        ops: set[Op] = set()
        for module in python_modules(tree):
            for item in module_imports(module):
                ops.update(item.ops[:-1])
        return (
            proposal([Edit(tuple(sorted(ops, key=repr)), "one import for each name", 1)], "sweep") if ops else nothing()
        )


def _edit(module: PyModule, item: ImportedName) -> Edit:
    start, end = module.span(item.statement if len(item.statement.names) == 1 else item.alias)
    return Edit(item.ops, f"import of {item.binds}", max(1, end - start))


def _together(edits: Sequence[Edit], label: str) -> Edit:
    ops = tuple(dict.fromkeys(op for edit in edits for op in edit.ops))
    return Edit(ops, label, sum(edit.weight for edit in edits))
