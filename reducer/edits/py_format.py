"""Write a script the way a person would: the prelude untouched, imports first, the rest by black."""

from __future__ import annotations

import ast

import black
from black.parsing import InvalidInput

from reducer.syntax.python import PyModule, parse_source, prelude_nodes

LINE_LENGTH = 119
SETTLING = 4  # black itself may want a second look: at parentheses that became redundant when lines were joined


def format_python(source: bytes) -> bytes:
    """The same program, formatted: formatting it again changes nothing. What does not parse is given back as it is.

    The compat prelude stays byte for byte at the top (with whatever stands before it). Below come the imports of the
    module, merged, then the other statements without redundant parentheses. No import is dropped: that it fails may be
    the point of the script (``PyUnusedImports`` asks the oracle).
    """
    for _ in range(SETTLING):
        formatted = _once(source)
        if formatted == source:
            break
        source = formatted
    return source


def _once(source: bytes) -> bytes:
    module = parse_source("", source)
    if module is None:
        return source
    prelude = prelude_nodes(module)
    head = b""
    body = list(module.tree.body)
    if prelude:
        end = module.next_line(module.end(prelude[-1]))
        head = module.source[:end]
        body = [s for s in body if module.start(s) >= end]
        if not head.endswith((b"\n", b"\r")):
            head += module.encode("\n")
    elif module.source.startswith(b"\xef\xbb\xbf"):
        head = module.source[:3]
    imports, rest = _imports(body)
    text = "\n".join([*imports, "", *(_statement(module, s) for s in rest)]).strip("\n") + "\n"
    try:
        mode = black.Mode(line_length=LINE_LENGTH, magic_trailing_comma=False)
        formatted = black.format_str(text, mode=mode) if text.strip() else ""
        result = head + module.encode(formatted)
    except (InvalidInput, UnicodeEncodeError):
        return source
    return result if parse_source("", result) is not None else source


def _imports(body: list[ast.stmt]) -> tuple[list[str], list[ast.stmt]]:
    """The import lines (one for each module that names are imported from) and the other statements."""
    plain: list[str] = []
    froms: dict[str, list[str]] = {}
    rest: list[ast.stmt] = []
    for statement in body:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            rest.append(statement)
            continue
        for alias in statement.names:
            name = alias.name if alias.asname in (None, alias.name) else f"{alias.name} as {alias.asname}"
            if isinstance(statement, ast.ImportFrom):
                names = froms.setdefault(f"{'.' * statement.level}{statement.module or ''}", [])
                names += [] if name in names else [name]
            elif f"import {name}" not in plain:
                plain.append(f"import {name}")
    future = [f"from __future__ import {', '.join(names)}" for m, names in froms.items() if m == "__future__"]
    others = [f"from {m} import {', '.join(names)}" for m, names in froms.items() if m != "__future__"]
    return [*future, *plain, *others], rest


def _statement(module: PyModule, statement: ast.stmt) -> str:
    """The statement's code without redundant parentheses and layout; as written where it has comments inside or
    strings over several lines, which would lose their shape."""
    start, end = module.span(statement)
    comments = any(start <= c.start < end for c in module.comments)
    strings = any(start <= t.start < end and "\n" in t.text for t in module.tokens)
    code = module.code(statement) if comments or strings else _unparsed(statement)
    before = [c.text for c in module.comments if _own_line_above(module, c.start, start)]
    trailing = [c.text for c in module.comments if end <= c.start < module.next_line(end)]
    return "\n".join([*before, code + "".join(f"  {c}" for c in trailing)])


def _unparsed(statement: ast.stmt) -> str:
    """``ast.unparse`` without its blank lines (black sets its own) and without the parentheses of returned tuples."""
    lines = [line for line in ast.unparse(statement).splitlines() if line.strip()]
    for number, line in enumerate(lines):
        head = line.lstrip()
        if head.startswith("return (") and _is_tuple(head[len("return ") :]):
            lines[number] = line[: len(line) - len(head)] + "return " + head[len("return (") : -1]
    return "\n".join(lines)


def _is_tuple(code: str) -> bool:
    try:
        node = ast.parse(code, mode="eval").body
    except SyntaxError:
        return False
    return isinstance(node, ast.Tuple) and len(node.elts) > 1 and node.end_col_offset == len(code.encode())


def _own_line_above(module: PyModule, comment: int, start: int) -> bool:
    """The comment stands on a line of its own somewhere between the token before the statement and the statement."""
    if comment >= start or module.source[module.line_start(comment) : comment].strip():
        return False
    before = module.token_before(start)
    return before is None or before.end <= comment
