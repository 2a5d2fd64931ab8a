"""All host sources and local headers of an extension in one file."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from reducer.edits.cxx_clashes import without_clashes
from reducer.edits.edit import Edit, Splice, apply
from reducer.edits.files import list_entries, listed_sources
from reducer.syntax.cxx import CxxParser, includes_of, is_cxx, is_cxx_source, resolve_include
from reducer.syntax.cxx_chunks import Chunk, chunks
from reducer.syntax.cxx_conditionals import OPENING, balanced_conditionals
from reducer.syntax.cxx_text import strip_comments, whole_lines
from reducer.syntax.cxx_tokens import Token, code_tokens, directive_name, tokenize
from reducer.tree import SourceTree

_PRAGMA_ONCE = re.compile(r"#\s*pragma\s+once\b")
_DEFINE = re.compile(r"#\s*(?:define|ifndef)\s+([A-Za-z_]\w*)", re.ASCII)


def merge_sources(
    tree: SourceTree,
    parser: CxxParser | None = None,
    target: str = "csrc/mre.cc",
    *,
    include_dirs: Sequence[str] = (),
    comments: bool = True,
) -> SourceTree:
    """The tree with its host sources and the headers that they include merged into ``target``.

    Local includes are replaced by their content, once each; include guards go. Other includes stand once each at the
    top, ``Python.h`` first, with the macros that the first of them may depend on. Names that two sources use for
    different things inside themselves are renamed; equal definitions are kept once. The ``sources=[...]`` lists of
    Python files name the target afterwards. CUDA sources, and headers that remaining files include, stay as they are;
    without any host source the tree comes back unchanged.

    With a parser, a merge whose includes had to stay in place to parse is preferred over one that does not parse.
    """
    chosen = host_sources(tree, include_dirs)
    if not chosen:
        return tree
    results = (_merge(tree, chosen, target, include_dirs, comments, hoist) for hoist in (True, False))
    first = next(results)
    if parser is None or not parser.parse(first, target).diagnostics():
        return first
    second = next(results)
    return first if parser.parse(second, target).diagnostics() else second


def host_sources(tree: SourceTree, include_dirs: Sequence[str] = ()) -> list[str]:
    """The sources that a host compiler is called on, registrations and module initialisers last.

    A source that another one includes is part of that one.
    """
    included: set[str] = set()
    found: list[str] = []
    for path in tree:
        if is_cxx(path):
            included |= {p for p in _included(tree, path, include_dirs) if p != path}
            if is_cxx_source(path) and not path.endswith(".cu"):
                found.append(path)
    return sorted((p for p in found if p not in included), key=lambda p: (_registers(tree[p]), p))


def _registers(content: bytes) -> bool:
    return any(chunk.kind in ("registration", "module") for chunk in chunks(content))


def _included(tree: SourceTree, path: str, include_dirs: Sequence[str]) -> Iterator[str]:
    for name, *_ in includes_of(tree[path]):
        found = resolve_include(tree, path, name, include_dirs)
        if found is not None:
            yield found


def _merge(
    tree: SourceTree, sources: list[str], target: str, include_dirs: Sequence[str], comments: bool, hoist: bool
) -> SourceTree:
    renamed = without_clashes(tree, sources)
    writer = _Writer(renamed, include_dirs, hoist, frozenset(_guarded_in_branches(tree, include_dirs)))
    for path in sources:
        writer.source(path)
    text = writer.text()
    content = _tidy(unite_blocks(text if comments else strip_comments(text)))
    left = _replace_in_lists(tree, sources, target).updated({p: None for p in sources if p != target})
    needed = _needed(left, {target, *writer.inlined}, include_dirs)
    gone = {p: None for p in writer.inlined if p not in needed}
    return left.updated({**gone, target: content})


def _needed(tree: SourceTree, merged: set[str], include_dirs: Sequence[str]) -> set[str]:
    """The files that sources outside the merge include, directly or not."""
    seen: set[str] = set()
    stack = [p for p in tree if is_cxx_source(p) and p not in merged]
    while stack:
        current = stack.pop()
        if current not in seen:
            seen.add(current)
            stack.extend(_included(tree, current, include_dirs))
    return seen


def _replace_in_lists(tree: SourceTree, sources: list[str], target: str) -> SourceTree:
    """Let each source list of a Python file name the target once in place of the merged sources."""
    gone = set(sources)
    cuts = listed_sources(tree)
    edits: list[Edit] = []
    for path in tree:
        if not path.endswith(".py"):
            continue
        entries = sorted((s, e, name) for name, s, e in list_entries(tree, path) if name in gone)
        for index, (start, end, name) in enumerate(entries):
            if index == 0:
                relative = posixpath.relpath(target, posixpath.dirname(path) or ".")
                quote = tree[path][end - 1 : end] if tree[path][end - 1 : end] in (b"'", b'"') else b'"'
                edits.append(Edit((Splice(path, start, end, quote + relative.encode() + quote),)))
            else:
                edits.append(Edit(tuple(c for c in cuts[name] if c.path == path and c.start == start)))
    return apply(tree, [edit for edit in edits if edit.ops])


@dataclass(slots=True)
class _Writer:
    """Collects the merged file: ``head`` holds what stands above all code."""

    tree: SourceTree
    include_dirs: Sequence[str]
    hoist: bool
    keep_guards: frozenset[str]
    head: list[bytes] = field(default_factory=list)
    body: list[bytes] = field(default_factory=list)
    inlined: dict[str, None] = field(default_factory=dict)
    seen: set[bytes] = field(default_factory=set)

    def source(self, path: str) -> None:
        start = len(self.body)
        self.file(path, 0, ())
        mine = b"".join(self.body[start:])
        self.body[start:] = [mine.strip(b"\n") + b"\n\n"] if mine.strip() else []

    def file(self, path: str, depth: int, inside: tuple[str, ...]) -> None:
        """Append one file; ``depth`` counts the conditionals around it, ``inside`` the files that include it."""
        content = self.tree[path]
        skip = _guard_lines(content) if path not in self.keep_guards else set()
        once = bool(_guard_lines(content))
        if path in inside or (once and path in self.inlined and path not in self.keep_guards):
            return
        if inside:
            self.inlined[path] = None
        position = 0
        code = False  # a declaration has been seen, so that macros no longer belong to the includes
        for token in code_tokens(content):
            if token.kind != "directive":
                code = True
                continue
            name = directive_name(token.text)
            start, end = whole_lines(content, token.start, token.end)
            if token.start in skip:
                self.put(content[position:start], code)
                position = end
                continue
            if name in OPENING:
                depth += 1
            elif name == "endif":
                depth -= 1
            elif name == "include":
                self.put(content[position:start], code)
                position = end
                self.include(path, content, token, depth, inside, (start, end))
        self.put(content[position:], True)
        if content and not content.endswith(b"\n"):
            self.body.append(b"\n")

    def put(self, text: bytes, code: bool) -> None:
        """Add text between includes: macros above any code stay with the includes."""
        macros_only = self.hoist and not code and not self.body and text.strip()
        tokens = tokenize(text) if macros_only else ()
        plain = all(t.kind == "comment" or directive_name(t.text) in ("define", "undef") for t in tokens)
        if macros_only and plain and any(t.kind == "directive" for t in tokens):
            self.head.append(text)
        else:
            self.body.append(text)

    def include(
        self, path: str, content: bytes, token: Token, depth: int, inside: tuple[str, ...], line: tuple[int, int]
    ) -> None:
        names = includes_of(content[token.start : token.end])
        local = resolve_include(self.tree, path, names[0][0], self.include_dirs) if names else None
        text = content[line[0] : line[1]]
        if local is not None and is_cxx(local) and not (local == path or local in inside):
            self.file(local, depth, (*inside, path))
        elif depth or not names:
            self.body.append(text)
        else:
            key = b" ".join(strip_comments(content[token.start : token.end]).split()).replace(b"# ", b"#")
            if key not in self.seen:
                self.seen.add(key)
                (self.head if self.hoist else self.body).append(key + b"\n")

    def text(self) -> bytes:
        python = [line for line in self.head if b"<Python.h>" in line or b'"Python.h"' in line]
        if python and self.hoist:
            at = self.head.index(python[0])
            macros = [line for line in self.head[:at] if not line.startswith(b"#include")]
            rest = [line for line in self.head if line not in macros and line not in python]
            self.head = [*macros, *python, *rest]
        return b"".join(self.head) + (b"\n" if self.head else b"") + b"".join(self.body)


def unite_blocks(content: bytes) -> bytes:
    """One block for each TORCH_LIBRARY* header: the lines of earlier blocks move into the last one with equal words.

    Several blocks for one namespace and key in one file are more than some implementations of the macros can tell
    apart.
    """
    last: dict[tuple[str, ...], Chunk] = {}
    moved: dict[tuple[str, ...], list[bytes]] = {}
    splices: list[Splice] = []
    blocks = [c for c in chunks(content) if c.kind == "registration" and c.body and c.parent is None]
    for block in reversed(blocks):
        assert block.body is not None
        start, end = block.body
        key = tuple(t.text for t in code_tokens(content[block.start : start]))
        if key not in last:
            last[key] = block
        elif balanced_conditionals(content[start:end]):
            moved.setdefault(key, []).insert(0, content[start:end].strip(b"\n").rstrip())
            splices.append(Splice("", *whole_lines(content, block.start, block.end)))
    for key, lines in moved.items():
        body = last[key].body
        assert body is not None
        splices.append(Splice("", body[0], body[0], b"".join(b"\n" + line for line in lines)))
    edited = apply(SourceTree({"file": content}), [Edit((Splice("file", s.start, s.end, s.text),)) for s in splices])
    return edited["file"]


def _tidy(text: bytes) -> bytes:
    """No blank lines at the ends and never more than one in a row between top-level pieces, literals left alone."""
    keep = [(t.start, t.end) for t in tokenize(text) if t.kind == "string" and "\n" in t.text]
    pieces: list[bytes] = []
    position = 0
    for start, end in [*keep, (len(text), len(text))]:
        pieces += [re.sub(rb"\n[ \t]*(?:\n[ \t]*)+\n", b"\n\n", text[position:start]), text[start:end]]
        position = end
    return b"".join(pieces).strip(b"\n") + b"\n"


def _guard_lines(content: bytes) -> set[int]:
    """The offsets of the directives that make a header count once: #pragma once, or the three of a guard."""
    tokens = code_tokens(content)
    once = {t.start for t in tokens if t.kind == "directive" and _PRAGMA_ONCE.match(t.text)}
    rest = [t for t in tokens if t.start not in once]
    if len(rest) >= 3 and directive_name(rest[0].text) == "ifndef" and directive_name(rest[1].text) == "define":
        first, second = _DEFINE.match(rest[0].text), _DEFINE.match(rest[1].text)
        closes = rest[-1].kind == "directive" and directive_name(rest[-1].text) == "endif"
        if first and second and first[1] == second[1] and closes and _one_conditional(rest):
            return once | {rest[0].start, rest[1].start, rest[-1].start}
    return once


def _one_conditional(tokens: Sequence[Token]) -> bool:
    """True when the first directive's #endif is the last token and it has no #else."""
    depth = 0
    for index, token in enumerate(tokens):
        name = directive_name(token.text) if token.kind == "directive" else ""
        depth += name in OPENING
        depth -= name == "endif"
        if depth == 1 and name in ("else", "elif"):
            return False
        if depth == 0:
            return index == len(tokens) - 1
    return False


def _guarded_in_branches(tree: SourceTree, include_dirs: Sequence[str]) -> Iterator[str]:
    """Headers that some file includes under an #if: they keep their guards, for the branch may not be taken."""
    for path in tree:
        if not is_cxx(path):
            continue
        content = tree[path]
        guard = _guard_lines(content)
        depth = 0
        for token in code_tokens(content):
            if token.kind != "directive" or token.start in guard:
                continue
            name = directive_name(token.text)
            depth += name in OPENING
            depth -= name == "endif"
            if depth and name == "include" and (names := includes_of(content[token.start : token.end])):
                found = resolve_include(tree, path, names[0][0], include_dirs)
                if found is not None and not any(_PRAGMA_ONCE.match(t.text) for t in code_tokens(tree[found])):
                    yield found
