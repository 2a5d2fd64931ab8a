"""Passes over the statements of C++ function bodies: whole bodies, single statements, nesting."""

from __future__ import annotations

from collections.abc import Iterator

from reducer.edits.cxx_functions import (
    cxx_files,
    default_value,
    is_registration,
    plain_type,
    return_type,
    returns_of,
    span,
)
from reducer.edits.edit import Edit, Splice, cut
from reducer.edits.passes import Proposal, proposal
from reducer.syntax.cxx_outline import Function, Outline
from reducer.syntax.cxx_statements import Block, Statement, blocks_in
from reducer.syntax.cxx_tokens import TokenFile
from reducer.tree import SourceTree


class CxxBodies:
    """Whole bodies at once: ``return x;`` for a parameter of the return type, or a default value; then only the
    expressions that are returned. A sweep, the largest gain first."""

    name = "cxx-bodies"

    def propose(self, tree: SourceTree) -> Proposal:
        edits: list[Edit] = []
        for path, view in cxx_files(tree):
            for function in view.functions:
                if function.body is not None and not is_registration(view, function):
                    edits += self._function(path, view, function, function.body)
        return proposal(sorted(edits, key=lambda e: -e.weight), "sweep")

    def _function(self, path: str, view: Outline, function: Function, body: Block) -> Iterator[Edit]:
        file = view.file
        if not body.statements:
            return
        name = file.text(function.name)
        result = return_type(view, function)
        inside = Splice(path, file.tokens[body.open].end, file.tokens[body.close].start)
        if result is None:
            return
        if result == "void":
            if len(body.statements) > 1:
                yield Edit((inside,), f"body of {name}", inside.end - inside.start)
            return
        same = [p for p in function.parameters if plain_type(file.source(p.first, p.type_last)) == result]
        names = [file.text(p.name) for p in same if p.name is not None]
        value = names[0] if names else default_value(result)
        if len(body.statements) > 1:
            text = b" return %s; " % value.encode()
            splice = Splice(path, inside.start, inside.end, text)
            yield Edit((splice,), f"body of {name} to return {value}", inside.end - inside.start - len(text))
        ops: list[Splice] = []
        for statement in returns_of(view, body):
            if statement.last - 1 > statement.first:
                start, end = file.extent(statement.first + 1, statement.last - 1)
                shown = file.source(statement.first + 1, statement.last - 1)
                if shown not in (*names, "{}", "0", "false", "true"):
                    ops.append(Splice(path, start, end, value.encode()))
        if ops:
            yield Edit(tuple(ops), f"{name} returns {value}", max(1, sum(o.end - o.start for o in ops)))


class CxxStatements:
    """Single statements, nested ones too, as closures: a statement needs what it stands in and the local
    declarations that it names. The last ``return`` of a body, and what it needs, is not offered, nor are registration
    lines (their functions' own passes drop those) and the code that makes a module importable."""

    name = "cxx-statements"

    def propose(self, tree: SourceTree) -> Proposal:
        edits: list[Edit] = []
        requires: list[frozenset[int]] = []
        for path, view in cxx_files(tree):
            for function in view.functions:
                role = is_registration(view, function)
                if function.body is None or role == "module":
                    continue
                collector = _Collector(view, function.body, role == "ops")
                kept = collector.fixed()
                order = [i for i in range(len(collector.elements)) if i not in kept]
                index = {element: len(edits) + k for k, element in enumerate(order)}
                for i in order:
                    statement = collector.elements[i]
                    start, end = span(view.file, statement.first, statement.last)
                    label = " ".join(view.file.source(statement.first, statement.last).split())[:60]
                    edits.append(cut(path, start, end, label))
                    requires.append(frozenset(index[j] for j in collector.needs[i] if j in index))
        return Proposal(tuple(edits), "closures", tuple(requires))


class _Collector:
    """The removable statements of one body and what each needs."""

    def __init__(self, view: Outline, body: Block, frozen: bool) -> None:
        self.file = view.file
        self.elements: list[Statement] = []
        self.needs: list[set[int]] = []
        self._fixed: set[int] = set()
        if frozen:
            for statement in body.statements:
                self._statement(statement, None, {}, False)
        else:
            self._block(body, None, {})

    def fixed(self) -> set[int]:
        """Elements that something needs which is no element itself, directly or not."""
        pending = list(self._fixed)
        seen: set[int] = set()
        while pending:
            element = pending.pop()
            if element not in seen:
                seen.add(element)
                pending += self.needs[element]
        return seen

    def _block(self, block: Block, parent: int | None, visible: dict[str, int]) -> None:
        visible = dict(visible)
        for position, statement in enumerate(block.statements):
            removable = not (statement.kind == "return" and position == len(block.statements) - 1)
            self._statement(statement, parent, visible, removable)

    def _statement(self, statement: Statement, parent: int | None, visible: dict[str, int], removable: bool) -> None:
        owner = parent
        if removable:
            owner = len(self.elements)
            self.elements.append(statement)
            self.needs.append(set() if parent is None else {parent})
        position = statement.first
        nested = sorted(
            [(b.first, b.last) for b in statement.bodies]
            + [(f.body.open, f.body.close) for f in statement.lambdas]
            + ([(statement.first, statement.last)] if statement.block is not None else [])
        )
        for begin, end in [*nested, (statement.last + 1, statement.last)]:
            self._names(range(position, begin), owner, visible, statement.declares)
            position = end + 1
        for body in statement.bodies:
            if body.block is not None:
                self._block(body.block, owner, visible)
            else:
                self._statement(body, owner, dict(visible), False)
        for function in statement.lambdas:
            self._block(function.body, owner, visible)
        if statement.block is not None:
            self._block(statement.block, owner, visible)
        for name in statement.declares:
            if removable and owner is not None:
                visible[name] = owner
            else:
                visible.pop(name, None)

    def _names(self, tokens: range, owner: int | None, visible: dict[str, int], declares: tuple[str, ...]) -> None:
        for i in tokens:
            if self.file.kind(i) not in ("word", "directive") or self.file.text(i - 1) in (".", "->", "::"):
                continue
            target = visible.get(self.file.text(i))
            if target is None or self.file.text(i) in declares:
                continue
            if owner is None:
                self._fixed.add(target)
            elif target != owner:
                self.needs[owner].add(target)


class CxxUnwrap:
    """Compound statements by what is in them: branches, loop bodies, try blocks, called lambdas, plain blocks; and
    what stands after a ``return``. A sweep, outer statements first."""

    name = "cxx-unwrap"

    def propose(self, tree: SourceTree) -> Proposal:
        edits: list[Edit] = []
        for path, view in cxx_files(tree):
            unwrapper = _Unwrapper(path, view.file)
            for function in view.functions:
                if function.body is not None:
                    for block in blocks_in(function.body):
                        for position, statement in enumerate(block.statements):
                            rest = block.statements[position + 1 :]
                            if statement.kind == "return" and rest and rest[0].kind != "label":
                                edits.append(unwrapper.drop(rest[0].first, rest[-1].last, "code after return"))
                            edits += unwrapper.statement(statement)
        return proposal(sorted(edits, key=lambda e: -e.weight), "sweep")


class _Unwrapper:
    def __init__(self, path: str, file: TokenFile) -> None:
        self.path = path
        self.file = file

    def drop(self, first: int, last: int, label: str) -> Edit:
        start, end = span(self.file, first, last)
        return cut(self.path, start, end, label)

    def statement(self, statement: Statement) -> Iterator[Edit]:
        """Every way to replace a statement that stands in a block by a part of it."""
        file = self.file
        head, bodies = statement.head, statement.bodies
        if statement.kind == "if" and head is not None:
            yield self._keep(statement, [self._inner(bodies[0])], "if to its branch")
            if len(bodies) > 1:
                yield self._keep(statement, [self._inner(bodies[1])], "if to its else branch")
                yield self.drop(bodies[0].last + 1, bodies[1].last, "else branch")
            yield self._keep(statement, [head], "if to its condition", ";")
        elif statement.kind == "for" and head is not None:
            parts = file.split(*head, separator=";")
            body = self._inner(bodies[0])
            yield self._keep(statement, [body], "loop to its body")
            if len(parts) == 3 and parts[0][0] <= parts[0][1]:
                yield self._keep(statement, [(parts[0][0], parts[0][1] + 1), body], "loop to its first round")
            elif len(parts) == 1 and len(pieces := file.split(*head, separator=":")) == 2:
                (left, right) = pieces
                ops = self._cuts(statement.first, statement.last, [left, right, body])
                ops = _with_text(ops, file.tokens[left[1]].end, b" = ")
                ops = _with_text(ops, file.tokens[right[1]].end, b"[0];\n")
                yield self._edit(ops, "loop to its first element")
        elif statement.kind in ("while", "do") and head is not None:
            yield self._keep(statement, [self._inner(bodies[0])], "loop to its body")
            yield self._keep(statement, [head], "loop to its condition", ";")
        elif statement.kind == "switch" and head is not None:
            yield self._keep(statement, [head], "switch to its subject", ";")
        elif statement.kind == "try":
            yield self._keep(statement, [self._inner(bodies[0])], "try to its block")
        elif statement.kind == "block":
            yield self._keep(statement, [self._inner(statement)], "block to its statements")
        for function in statement.lambdas:
            body = (function.body.open + 1, function.body.close - 1)
            before = {file.text(i) for i in range(statement.first, function.first)}
            called = before <= {"return"} and (
                function.parameters is None or function.parameters[0] > function.parameters[1]
            )
            dispatched = "DISPATCH" in file.text(statement.first)
            if body[0] > body[1] or not (called or dispatched):
                continue
            ops = self._cuts(statement.first, statement.last, [body])
            if dispatched and "scalar_t" in {t.text for t in file.tokens[body[0] : body[1] + 1]}:
                ops = _with_text(ops, file.tokens[statement.first].start, b"using scalar_t = float;\n")
            yield self._edit(ops, "lambda to its body")

    def _inner(self, body: Statement) -> tuple[int, int]:
        """The tokens of a branch or loop body without its braces."""
        return (body.first + 1, body.last - 1) if body.block is not None else (body.first, body.last)

    def _keep(self, statement: Statement, kept: list[tuple[int, int]], label: str, after: str = "") -> Edit:
        ops = self._cuts(statement.first, statement.last, kept)
        if after:
            ops = _with_text(ops, self.file.tokens[kept[-1][1]].end, after.encode())
        return self._edit(ops, label)

    def _cuts(self, first: int, last: int, kept: list[tuple[int, int]]) -> tuple[Splice, ...]:
        """Cuts of all of a token range but the kept parts."""
        file = self.file
        position = file.tokens[first].start
        ops: list[Splice] = []
        for begin, end in kept:
            if begin > end:
                continue
            ops.append(Splice(self.path, position, file.tokens[begin].start))
            position = file.tokens[end].end
        ops.append(Splice(self.path, position, file.tokens[last].end))
        return tuple(o for o in ops if o.end > o.start)

    def _edit(self, ops: tuple[Splice, ...], label: str) -> Edit:
        return Edit(ops, label, max(1, sum(o.end - o.start - len(o.text) for o in ops)))


def _with_text(ops: tuple[Splice, ...], start: int, text: bytes) -> tuple[Splice, ...]:
    """``ops`` where the one that begins at ``start`` leaves ``text`` behind."""
    return tuple(Splice(o.path, o.start, o.end, text) if o.start == start else o for o in ops)
