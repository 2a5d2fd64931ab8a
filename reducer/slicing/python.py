"""What of a Python tree the failing run executed, as a few large edits to try first: no search is needed for what a
trace already tells (the idea of a dynamic slice, taken at the level of statements and definitions)."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence

from reducer.edits.edit import Drop, Edit, Op, Splice
from reducer.syntax.python import (
    DEFINITIONS,
    FUNCTIONS,
    Definition,
    PyModule,
    blocks,
    is_docstring,
    parse_module,
    pinned_nodes,
)
from reducer.tree import SourceTree

_NO_CODE = (ast.Global, ast.Nonlocal, ast.Pass)
_KEPT_FILES = ("setup.py", "conftest.py")


def executed_slice(
    tree: SourceTree,
    executed: Mapping[str, Collection[int]],
    keep: Collection[str] = (),
    frames: Sequence[tuple[str, int]] = (),
) -> list[Edit]:
    """Edits that each drop what the run did not execute, the boldest first; at most one of them is to be applied.

    ``executed`` holds the executed lines (from 1) of each file, as ``reducer.world.recorder`` reports. The first edit
    drops unexecuted statements, definitions and files; the second spares what follows the failing lines in the
    functions that were running (``frames``: the traceback's paths and lines), since the side that does not fail goes
    on there; the third drops unexecuted definitions that nothing left mentions, and files; the last files only.
    ``keep`` are files that stay as they are. Edits that save nothing are left out.
    """
    found: list[Edit] = []
    for statements, definitions, going_on, label in (
        (True, True, (), "all that the failing run did not execute"),
        (True, True, frames, "what neither the failing run executed nor its functions would have gone on with"),
        (False, True, (), "definitions that the failing run did not execute"),
        (False, False, (), "files that the failing run did not execute"),
    ):
        ops = _Slice(tree, executed, keep, statements, definitions, going_on).ops()
        if ops and not any(edit.ops == ops for edit in found):
            found.append(Edit(ops, label, _weight(tree, ops)))
    return found


def _weight(tree: SourceTree, ops: tuple[Op, ...]) -> int:
    dropped = sum(len(tree[op.path]) for op in ops if isinstance(op, Drop))
    return max(1, dropped + sum(op.end - op.start for op in ops if isinstance(op, Splice)))


class _Slice:
    """One level of boldness: what is kept, and the operations that remove the rest."""

    def __init__(
        self,
        tree: SourceTree,
        executed: Mapping[str, Collection[int]],
        keep: Collection[str],
        statements: bool,
        definitions: bool,
        frames: Sequence[tuple[str, int]],
    ) -> None:
        self.statements = statements
        self.lines = {path: set(lines) for path, lines in executed.items()}
        self.modules: list[PyModule] = []
        self.dropped_files: list[str] = []
        for path in tree:
            if not path.endswith(".py") or path in keep:
                continue
            module = parse_module(tree, path)
            if module is None:
                continue
            if self.lines.get(path):
                self.modules.append(module)
            elif path.rpartition("/")[2] not in _KEPT_FILES and any(not is_docstring(s) for s in module.tree.body):
                self.dropped_files.append(path)
        self.kept_elsewhere = [m for m in (parse_module(tree, p) for p in keep if p in tree) if m is not None]
        self.pinned = {node for module in self.modules for node in pinned_nodes(module)}
        self._go_on(frames)
        self.idle: dict[ast.AST, str] = {}
        self.idle_in: dict[ast.AST, PyModule] = {}
        if definitions:
            for module in self.modules:
                self._find_idle(module, module.tree)
            self._widen()
        self.gone = set(self.idle.values()) - self._defined()

    # -- what is kept -------------------------------------------------------------------------------------------

    def _go_on(self, frames: Sequence[tuple[str, int]]) -> None:
        """Count what follows each frame's line in its function as executed."""
        for path, line in frames:
            module = next((m for m in self.modules if m.path == path), None)
            running = [
                node
                for node in (ast.walk(module.tree) if module is not None else ())
                if isinstance(node, FUNCTIONS) and node.lineno <= line <= (node.end_lineno or 0)
            ]
            if running:
                inner = max(running, key=lambda node: node.lineno)
                self.lines[path].update(range(line, (inner.end_lineno or line) + 1))

    def _find_idle(self, module: PyModule, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            # Special methods are called without being named.
            special = isinstance(child, FUNCTIONS) and child.name.startswith("__") and child.name.endswith("__")
            if isinstance(child, DEFINITIONS) and self._is_idle(module, child):
                if special:
                    self._keep_whole(module, child)
                else:
                    self.idle[child] = child.name
                    self.idle_in[child] = module
            elif not isinstance(child, ast.expr):
                self._find_idle(module, child)

    def _keep_whole(self, module: PyModule, node: ast.AST) -> None:
        """Count all lines of a definition that stays though it never ran as executed: half of it helps nobody."""
        assert isinstance(node, DEFINITIONS)
        self.lines[module.path].update(range(node.lineno, (node.end_lineno or node.lineno) + 1))

    def _is_idle(self, module: PyModule, node: Definition) -> bool:
        """True for a function whose body never ran, and for a class none of whose methods did."""
        if isinstance(node, FUNCTIONS):
            return not self._ran(module, node.body[0].lineno, node.end_lineno)
        methods = [s for s in node.body if isinstance(s, FUNCTIONS)]
        return bool(methods) and all(self._is_idle(module, m) for m in methods)

    def _ran(self, module: PyModule, first: int, last: int | None) -> bool:
        return any(line in self.lines[module.path] for line in range(first, (last or first) + 1))

    def _widen(self) -> None:
        """Keep the idle definitions that kept code mentions, and what these mention, until nothing changes."""
        while True:
            mentioned = self._mentioned()
            wanted = [node for node, name in self.idle.items() if name in mentioned]
            if not wanted:
                return
            for node in wanted:
                del self.idle[node]
                self._keep_whole(self.idle_in[node], node)

    def _mentioned(self) -> set[str]:
        found: set[str] = set()
        for module in self.modules:
            for node in self._kept(module, module.tree):
                found |= _names(node)
        for module in self.kept_elsewhere:
            for node in ast.walk(module.tree):
                found |= _names(node)
        return found

    def _defined(self) -> set[str]:
        """The names of the definitions that stay."""
        return {
            node.name
            for module in self.modules
            for node in self._kept(module, module.tree)
            if isinstance(node, DEFINITIONS)
        }

    def _kept(self, module: PyModule, node: ast.AST) -> Iterator[ast.AST]:
        yield node
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt) and (self._is_cut(module, child) or _is_all(child)):
                continue
            yield from self._kept(module, child)

    def _is_cut(self, module: PyModule, statement: ast.stmt) -> bool:
        if statement in self.pinned:
            return False
        if statement in self.idle:
            return True
        if not self.statements or isinstance(statement, _NO_CODE) or is_docstring(statement):
            return False
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
        return not self._ran(module, first, statement.end_lineno)

    # -- operations ---------------------------------------------------------------------------------------------

    def ops(self) -> tuple[Op, ...]:
        found: list[Op] = [Drop(path) for path in self.dropped_files]
        for module in self.modules:
            for block in blocks(module.tree):
                found += self._block(module, block, top=True)
        return tuple(found)

    def _block(self, module: PyModule, block: list[ast.stmt], top: bool = False) -> Iterator[Op]:
        rewrites = {s: self._without_gone(module, s) for s in block}
        cut = [s for s in block if self._is_cut(module, s) or rewrites[s] == b""]
        if len(cut) == len(block) and not top:
            yield Splice(module.path, module.start(block[0]), module.end(block[-1]), b"pass")
            return
        for index, statement in enumerate(block):
            rewrite = rewrites[statement]
            if statement in cut:
                before = block[index - 1] if index else None
                after = block[index + 1] if index + 1 < len(block) else None
                start, end = module.statement_span(statement, before, after)
                yield Splice(module.path, start, end)
            elif rewrite is not None:
                yield Splice(module.path, *module.span(statement), rewrite)
            else:
                for inner in blocks(statement):
                    yield from self._block(module, inner)

    def _without_gone(self, module: PyModule, statement: ast.stmt) -> bytes | None:
        """An import or ``__all__`` without the names whose definitions go; None when it has none of them."""
        if statement in self.pinned or not self.gone:
            return None
        if isinstance(statement, ast.ImportFrom):
            left = [a for a in statement.names if a.name not in self.gone]
            if len(left) == len(statement.names):
                return None
            text = ast.unparse(ast.ImportFrom(statement.module, left, statement.level)) if left else ""
            return module.encode(text)
        if _is_all(statement):
            assert isinstance(statement, ast.Assign)
            try:
                names = [str(n) for n in ast.literal_eval(statement.value)]
            except (ValueError, TypeError):
                return None
            left_names = [n for n in names if n not in self.gone]
            return module.encode(f"__all__ = {left_names!r}") if len(left_names) < len(names) else None
        return None


def _is_all(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and any(
        isinstance(t, ast.Name) and t.id == "__all__" for t in statement.targets
    )


def _names(node: ast.AST) -> set[str]:
    """The names by which a node may mean a definition: a string too, as in a registry or ``getattr``."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Attribute):
        return {node.attr}
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
        return {node.value}
    return set()
