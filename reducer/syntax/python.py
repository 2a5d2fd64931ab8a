"""A Python file as the passes see it: its syntax tree with every position turned into a byte offset of the file.

``ast`` counts columns in UTF-8 bytes of the decoded text; files may carry a byte order mark, CRLF or CR line ends, or
an encoding declaration. All of that is settled here, so that the passes only ever see offsets into the bytes.
"""

from __future__ import annotations

import ast
import io
import re
import token as token_kinds
import tokenize
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from reducer.tree import SourceTree

_NEWLINE = re.compile("\r\n|\r|\n")
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BLOCK_FIELDS = ("body", "orelse", "finalbody")
_TRIVIA = {
    token_kinds.COMMENT,
    token_kinds.NL,
    token_kinds.NEWLINE,
    token_kinds.INDENT,
    token_kinds.DEDENT,
    token_kinds.ENDMARKER,
}


@dataclass(frozen=True, slots=True)
class Token:
    """One token with byte offsets. Line ends, comments and indentation are not tokens here."""

    text: str
    start: int
    end: int


class PyModule:
    """One parsed file. ``source`` are the bytes of the file, ``tree`` its syntax tree; treat both as read-only."""

    def __init__(self, path: str, source: bytes) -> None:
        """Raises SyntaxError, ValueError or RecursionError for what is not Python."""
        self.path = path
        self.source = source
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        self._mark = 3 if encoding == "utf-8-sig" else 0
        self.encoding = "utf-8" if encoding in ("utf-8-sig", "ascii") else encoding
        decoded = source[self._mark :].decode(self.encoding)
        newlines = [(m.start(), m.end()) for m in _NEWLINE.finditer(decoded)]
        begins = [0, *(end for _, end in newlines)]
        ends = [*(start for start, _ in newlines), len(decoded)]
        self._lines = [decoded[begin:end] for begin, end in zip(begins, ends, strict=True)]
        self.newline = decoded[newlines[0][0] : newlines[0][1]] if newlines else "\n"
        self.text = "\n".join(self._lines)
        self._starts: list[int] = []
        position = self._mark
        for begin, following in zip(begins, [*begins[1:], len(decoded)], strict=True):
            self._starts.append(position)
            position += len(decoded[begin:following].encode(self.encoding))
        self.tree = ast.parse(self.text)

    # -- positions ----------------------------------------------------------------------------------------------

    def offset(self, line: int, column: int) -> int:
        """The byte offset of an ``ast`` position (line from 1, column in UTF-8 bytes)."""
        if line > len(self._starts):
            return len(self.source)
        if self.encoding == "utf-8":
            return self._starts[line - 1] + column
        before = self._lines[line - 1].encode("utf-8")[:column].decode("utf-8", "ignore")
        return self._starts[line - 1] + len(before.encode(self.encoding))

    def start(self, node: ast.AST) -> int:
        """Where the node begins; a decorated definition begins at the ``@`` of its first decorator."""
        decorators = getattr(node, "decorator_list", None)
        if decorators:
            return self._sign_before(decorators[0])
        return self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def _sign_before(self, decorator: ast.expr) -> int:
        at = self.offset(decorator.lineno, decorator.col_offset)
        return self.source.rindex(b"@", 0, at)

    def end(self, node: ast.AST) -> int:
        """Where the node ends (exclusive)."""
        line, column = node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        return self.offset(line, column)

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self.start(node), self.end(node)

    def code(self, node: ast.AST) -> str:
        """The node's source text, with line ends as ``\\n``."""
        start, end = self.span(node)
        return _NEWLINE.sub("\n", self.source[start:end].decode(self.encoding))

    def encode(self, text: str) -> bytes:
        """Text as bytes of this file: its encoding and its line ends. Raises UnicodeEncodeError."""
        return text.replace("\n", self.newline).encode(self.encoding)

    def line_start(self, offset: int) -> int:
        """The offset at which the line of ``offset`` begins (after a byte order mark)."""
        return self._starts[max(0, bisect_right(self._starts, offset) - 1)]

    def next_line(self, offset: int) -> int:
        """The offset at which the line after that of ``offset`` begins; the end of the file for the last one."""
        index = bisect_right(self._starts, offset)
        return self._starts[index] if index < len(self._starts) else len(self.source)

    def line_starts_in(self, start: int, end: int) -> list[int]:
        """The offsets in ``start <= x < end`` at which a line begins."""
        return self._starts[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    def indent(self, node: ast.stmt) -> bytes:
        """The whitespace before the node's line (of the whole statement line for one after a semicolon)."""
        start = self.line_start(self.start(node))
        line = self.source[start : self.next_line(start)]
        return line[: len(line) - len(line.lstrip(b" \t\f"))]

    # -- tokens -------------------------------------------------------------------------------------------------

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return tuple(token for kind, token in self._all_tokens if kind not in _TRIVIA)

    @cached_property
    def comments(self) -> tuple[Token, ...]:
        return tuple(token for kind, token in self._all_tokens if kind == token_kinds.COMMENT)

    @cached_property
    def _all_tokens(self) -> tuple[tuple[int, Token], ...]:
        return tuple(
            (item.type, Token(item.string, self._char_offset(*item.start), self._char_offset(*item.end)))
            for item in tokenize.generate_tokens(io.StringIO(self.text).readline)
        )

    def _char_offset(self, line: int, column: int) -> int:
        if line > len(self._starts):
            return len(self.source)
        return self._starts[line - 1] + len(self._lines[line - 1][:column].encode(self.encoding))

    @cached_property
    def _token_starts(self) -> list[int]:
        return [t.start for t in self.tokens]

    def token_after(self, offset: int) -> Token | None:
        """The first token that begins at or after ``offset``."""
        index = bisect_left(self._token_starts, offset)
        return self.tokens[index] if index < len(self.tokens) else None

    def token_before(self, offset: int) -> Token | None:
        """The last token that ends at or before ``offset``."""
        index = bisect_left(self._token_starts, offset) - 1
        while index >= 0 and self.tokens[index].end > offset:
            index -= 1
        return self.tokens[index] if index >= 0 else None

    def outer_span(self, node: ast.AST, low: int, high: int) -> tuple[int, int]:
        """The node with the parentheses around it, as far as they lie inside ``low:high``."""
        start, end = self.span(node)
        while True:
            before, after = self.token_before(start), self.token_after(end)
            if not (before and after and before.text == "(" and after.text == ")"):
                return start, end
            if before.start < low or after.end > high:
                return start, end
            start, end = before.start, after.end

    # -- statements ---------------------------------------------------------------------------------------------

    def statement_span(self, node: ast.stmt, before: ast.stmt | None, after: ast.stmt | None) -> tuple[int, int]:
        """The bytes to cut so that the statement is gone: whole lines with their comments where it stands alone.

        ``before`` and ``after`` are its neighbours in its block. A statement that shares its line is cut up to its
        neighbour, so that the cuts of any subset of a block unite into something that parses (unless all of an
        indented block go: that one needs ``pass``).
        """
        start, end = self.span(node)
        line = self.line_start(start)
        shares_before = bool(self.source[line:start].strip(b" \t\f"))
        following = self.next_line(end)
        shares_after = after is not None and self.start(after) < following
        if not shares_before and not shares_after:
            return line, following
        if shares_after and after is not None:
            return start, self.start(after)
        sibling = before is not None and self.end(before) >= line
        begin = self.end(before) if before is not None and sibling else start
        trailing = self.token_after(end)
        if trailing is not None and trailing.text == ";" and trailing.end <= following:
            end = trailing.end
        return begin, end

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Each node's parent. (Context nodes such as ``Load`` are shared and are left out.)"""
        return {
            child: node
            for node in ast.walk(self.tree)
            for child in ast.iter_child_nodes(node)
            if not isinstance(child, ast.expr_context | ast.operator | ast.unaryop | ast.cmpop | ast.boolop)
        }

    def enclosing(self, node: ast.AST) -> Iterator[ast.AST]:
        """The parents of a node, innermost first."""
        current = self.parents.get(node)
        while current is not None:
            yield current
            current = self.parents.get(current)

    def statement_of(self, node: ast.AST) -> ast.stmt | None:
        """The innermost statement that the node is or stands in."""
        if isinstance(node, ast.stmt):
            return node
        return next((p for p in self.enclosing(node) if isinstance(p, ast.stmt)), None)

    @cached_property
    def expressions(self) -> tuple[ast.expr, ...]:
        """All expressions with reliable positions, outer before inner: nothing inside f-strings, whose parts have
        wrong positions before Python 3.12."""
        found: list[ast.expr] = []

        def visit(node: ast.AST) -> None:
            if isinstance(node, ast.expr):
                found.append(node)
                if isinstance(node, ast.JoinedStr):
                    return
            for child in ast.iter_child_nodes(node):
                visit(child)

        visit(self.tree)
        return tuple(found)


@lru_cache(maxsize=1024)
def parse_source(path: str, source: bytes) -> PyModule | None:
    """The parsed file, or None for one that is not Python (any more)."""
    try:
        return PyModule(path, source)
    except (SyntaxError, ValueError, LookupError, RecursionError, MemoryError):
        return None


def parse_module(tree: SourceTree, path: str) -> PyModule | None:
    """``tree[path]`` parsed, or None for one that is not Python."""
    return parse_source(path, tree[path])


def python_modules(tree: SourceTree) -> list[PyModule]:
    """All ``.py`` files of the tree that parse, by path."""
    found = (parse_module(tree, path) for path in tree if path.endswith(".py"))
    return [module for module in found if module is not None]


def parses(source: bytes) -> bool:
    """True when the bytes are a Python file that parses."""
    return parse_source("", source) is not None


# -- blocks ---------------------------------------------------------------------------------------------------------


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The statement lists directly below a node (body, else, finally, and those of handlers and match cases)."""
    for name in _BLOCK_FIELDS:
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block
    for name in ("handlers", "cases"):
        for part in getattr(node, name, ()):
            yield part.body


def all_blocks(module: ast.AST) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    """Every statement list of the tree with the node that it belongs to, outer before inner."""
    for block in blocks(module):
        yield module, block
    for block in list(blocks(module)):
        for statement in block:
            yield from all_blocks(statement)


def is_docstring(node: ast.stmt) -> bool:
    """True for a statement that is nothing but a string."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


# -- the compat prelude ---------------------------------------------------------------------------------------------


def prelude_nodes(module: PyModule) -> list[ast.stmt]:
    """The top-level statements that switch Paddle's torch-compat layer on, in order; [] when there are none.

    That is: a statement that calls ``enable_compat`` (bare, or inside an ``if`` or ``try`` of its own), the imports
    of paddle beside it, and the ``import os`` that the condition of such an ``if`` needs. Cutting or moving one of
    them turns every failure into ``No module named 'torch'``.
    """
    switches = [s for s in module.tree.body if not isinstance(s, DEFINITIONS) and _calls_switch(s)]
    if not switches:
        return []
    needs_os = any(isinstance(n, ast.Name) and n.id == "os" for s in switches for n in ast.walk(s))
    last = switches[-1]
    found = []
    for statement in module.tree.body:
        if (statement in switches or _imports(statement, "paddle")) or (
            needs_os and _imports(statement, "os") and statement.lineno <= last.lineno
        ):
            found.append(statement)
    return found


def pinned_nodes(module: PyModule) -> frozenset[ast.AST]:
    """The prelude's statements and everything inside them: what no pass may touch."""
    return frozenset(node for statement in prelude_nodes(module) for node in ast.walk(statement))


def _calls_switch(statement: ast.stmt) -> bool:
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("enable_compat", "disable_compat"):
                return True
    return False


def _imports(statement: ast.stmt, top: str) -> bool:
    if isinstance(statement, ast.Import):
        return any(alias.name == top for alias in statement.names)
    return isinstance(statement, ast.ImportFrom) and statement.level == 0 and statement.module == top
