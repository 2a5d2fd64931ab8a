"""Cut statements at every depth, docstrings and comments."""

from __future__ import annotations

import ast
from collections import defaultdict

from reducer.edits.edit import Edit, Splice
from reducer.edits.passes import Proposal, nothing, proposal
from reducer.edits.py_definitions import Pinned, pin_nothing
from reducer.syntax.python import DEFINITIONS, FUNCTIONS, PyModule, blocks, is_docstring, pinned_nodes, python_modules
from reducer.syntax.python_names import bound_names, free_names
from reducer.tree import SourceTree


class PyStatements:
    """Every statement of the tree, any subset of which may go.

    In an indented block one statement turns into ``pass`` instead of going, so that what is left always parses; a
    ``pass`` that is not needed any more is itself a statement that may go. With ``dependencies`` the statements are
    closures: one requires the statement that it stands in and those of its scope that bind what it reads.
    """

    def __init__(self, pinned: Pinned = pin_nothing, dependencies: bool = False) -> None:
        self._pinned = pinned
        self._dependencies = dependencies

    @property
    def name(self) -> str:
        return "py_statement_closures" if self._dependencies else "py_statements"

    def propose(self, tree: SourceTree) -> Proposal:
        collector = _Collector(self._pinned)
        for module in python_modules(tree):
            collector.module(module)
        if not collector.edits:
            return nothing()
        if not self._dependencies:
            return proposal(collector.edits, "list")
        collector.link()
        return Proposal(tuple(collector.edits), "closures", tuple(frozenset(n) for n in collector.needs))


class _Collector:
    def __init__(self, pinned: Pinned) -> None:
        self.edits: list[Edit] = []
        self.needs: list[set[int]] = []
        self._pinned = pinned
        self._scopes: list[tuple[int, ast.stmt]] = []  # scope number of each edit, and its statement
        self._scope_count = 0

    def module(self, module: PyModule) -> None:
        kept: set[ast.AST] = set()
        fixed = pinned_nodes(module)
        for node in ast.walk(module.tree):
            if node in fixed or self._pinned(node, module.path):
                kept.add(node)
                kept.update(module.enclosing(node))
        self._scope_count += 1
        self._block(module, module.tree, module.tree.body, kept, fixed, None, self._scope_count)

    def _block(
        self,
        module: PyModule,
        owner: ast.AST,
        block: list[ast.stmt],
        kept: set[ast.AST],
        fixed: frozenset[ast.AST],
        above: int | None,
        scope: int,
    ) -> None:
        anchor = None if isinstance(owner, ast.Module) else _anchor(block, kept)
        for position, statement in enumerate(block):
            if statement in fixed:
                continue
            number = above
            if statement not in kept and not (statement is anchor and isinstance(statement, ast.Pass)):
                before = block[position - 1] if position else None
                after = block[position + 1] if position + 1 < len(block) else None
                start, end = module.statement_span(statement, before, after)
                weight = max(1, end - start)
                if statement is anchor:
                    splice = Splice(module.path, *module.span(statement), b"pass")
                    weight = max(1, weight - 4)
                else:
                    splice = Splice(module.path, start, end)
                number = len(self.edits)
                self.edits.append(Edit((splice,), _label(statement), weight))
                self.needs.append(set() if above is None else {above})
                self._scopes.append((scope, statement))
            inner = scope
            if isinstance(statement, DEFINITIONS):
                self._scope_count += 1
                inner = self._scope_count
            for nested in blocks(statement):
                self._block(module, statement, nested, kept, fixed, number, inner)

    def link(self) -> None:
        """Each statement requires the statements of its own scope, or of the file, that bind what it reads."""
        binders: dict[int, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        for number, (scope, statement) in enumerate(self._scopes):
            if not any(True for _ in blocks(statement)) or isinstance(statement, DEFINITIONS):
                for name in bound_names(statement):
                    binders[scope][name].add(number)
        for number, (scope, statement) in enumerate(self._scopes):
            if isinstance(statement, ast.If | ast.While):
                read = free_names(statement.test)
            elif isinstance(statement, ast.For | ast.AsyncFor):
                read = free_names(statement.iter)
            elif any(True for _ in blocks(statement)) and not isinstance(statement, FUNCTIONS):
                continue
            else:
                read = free_names(statement)
            for name in read:
                self.needs[number] |= {
                    n for n in binders[scope].get(name, ()) if n < number or isinstance(self._scopes[n][1], DEFINITIONS)
                }


def _anchor(block: list[ast.stmt], kept: set[ast.AST]) -> ast.stmt | None:
    """The statement that leaves ``pass`` behind: none when one stays anyway."""
    if any(s in kept for s in block):
        return None
    real = [s for s in block if not isinstance(s, ast.Pass)]
    return real[-1] if real else block[-1]


def _label(statement: ast.stmt) -> str:
    if isinstance(statement, DEFINITIONS):
        return f"{'class' if isinstance(statement, ast.ClassDef) else 'function'} {statement.name}"
    if is_docstring(statement):
        return "docstring"
    return f"{type(statement).__name__.lower()} at line {statement.lineno}"


class PyComments:
    """Comments and docstrings: all at once in the whole tree, then file by file."""

    name = "py_comments"

    def propose(self, tree: SourceTree) -> Proposal:
        per_file = []
        for module in python_modules(tree):
            splices = [*_comment_cuts(module), *_docstring_cuts(module)]
            if splices:
                weight = sum(s.end - s.start for s in splices)
                per_file.append(Edit(tuple(splices), f"comments of {module.path}", weight))
        if not per_file:
            return nothing()
        if len(per_file) == 1:
            return proposal(per_file, "sweep")
        together = Edit(tuple(op for e in per_file for op in e.ops), "all comments", sum(e.weight for e in per_file))
        return proposal([together, *per_file], "sweep")


def _comment_cuts(module: PyModule) -> list[Splice]:
    fixed = [module.span(n) for n in pinned_nodes(module) if isinstance(n, ast.stmt)]
    cuts = []
    for comment in module.comments:
        if any(start <= comment.start < end for start, end in fixed):
            continue
        if module.encoding != "utf-8" and "coding" in comment.text:
            continue
        line = module.line_start(comment.start)
        before = module.source[line : comment.start]
        if before.strip():
            cuts.append(Splice(module.path, line + len(before.rstrip()), comment.end))
        else:
            cuts.append(Splice(module.path, line, module.next_line(comment.start)))
    return cuts


def _docstring_cuts(module: PyModule) -> list[Splice]:
    cuts = []
    for node in ast.walk(module.tree):
        if not isinstance(node, (ast.Module, *DEFINITIONS)) or not node.body or not is_docstring(node.body[0]):
            continue
        if len(node.body) == 1 and not isinstance(node, ast.Module):
            cuts.append(Splice(module.path, *module.span(node.body[0]), b"pass"))
        else:
            after = node.body[1] if len(node.body) > 1 else None
            cuts.append(Splice(module.path, *module.statement_span(node.body[0], None, after)))
    return cuts
