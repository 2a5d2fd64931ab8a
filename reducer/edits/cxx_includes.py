"""Preprocessor lines: includes, pragmas, unused macros, conditionals; and ``using namespace``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from reducer.edits.edit import Edit, Splice, apply, cut
from reducer.edits.passes import Proposal, proposal
from reducer.syntax.cxx import includes_of, is_cxx
from reducer.syntax.cxx_chunks import chunks
from reducer.syntax.cxx_conditionals import BRANCH, OPENING, Conditional, conditionals
from reducer.syntax.cxx_text import whole_lines
from reducer.syntax.cxx_tokens import Token, code_tokens, directive_name
from reducer.tree import SourceTree

_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class CxxIncludes:
    """Cuts one ``#include``, ``#pragma``, ``#error``, ``using namespace`` or unused ``#define`` each."""

    name = "C++ includes"

    def propose(self, tree: SourceTree) -> Proposal:
        files = [path for path in tree if is_cxx(path)]
        uses: Counter[str] = Counter()
        for path in files:
            uses.update(_WORD.findall(tree[path].decode("latin-1")))
        edits: list[Edit] = []
        for path in files:
            content = tree[path]
            for token in code_tokens(content):
                if token.kind == "directive" and _goes(token, uses):
                    label = " ".join(token.text.split())[:60]
                    edits.append(cut(path, *whole_lines(content, token.start, token.end), label))
            for chunk in chunks(content):
                if chunk.kind == "using-namespace":
                    label = content[chunk.start : chunk.end].decode("utf-8", "replace")
                    edits.append(cut(path, *whole_lines(content, chunk.start, chunk.end), label))
        return proposal(edits, "list")


def _goes(token: Token, uses: Counter[str]) -> bool:
    name = directive_name(token.text)
    if name in ("define", "undef"):
        words = _WORD.findall(token.text)
        return len(words) > 1 and uses[words[1]] == 1
    return name not in (*OPENING, *BRANCH, "endif")


class CxxConditionals:
    """Resolves ``#if ... #endif``: cut it whole, or leave one branch as plain code."""

    name = "C++ conditionals"

    def propose(self, tree: SourceTree) -> Proposal:
        edits: list[Edit] = []
        for path in tree:
            if not is_cxx(path):
                continue
            content = tree[path]
            for item in conditionals(content):
                label = item.lines[0].text
                start, end = whole_lines(content, item.lines[0].start, item.lines[-1].end)
                edits.append(cut(path, start, end, f"{label}, whole"))
                for kept in range(len(item.lines) - 1):
                    edits.append(_one_branch(path, content, item, kept, label))
        return proposal(edits, "sweep")


def _one_branch(path: str, content: bytes, item: Conditional, kept: int, label: str) -> Edit:
    """Cut everything but the code behind directive line ``kept``."""
    first = whole_lines(content, item.lines[0].start, item.lines[0].end)[0]
    start = whole_lines(content, item.lines[kept].start, item.lines[kept].end)[1]
    end = whole_lines(content, item.lines[kept + 1].start, item.lines[kept + 1].end)[0]
    last = whole_lines(content, item.lines[-1].start, item.lines[-1].end)[1]
    weight = max(1, start - first + last - end)
    return Edit((Splice(path, first, start), Splice(path, end, last)), f"{label}, branch {kept + 1}", weight)


def only_includes(content: bytes, keep: Callable[[str], bool]) -> bytes:
    """``content`` with only those ``#include <...>`` lines whose header ``keep`` admits."""
    edits = [
        cut("x", *whole_lines(content, start, end))
        for name, quoted, start, end in includes_of(content)
        if not quoted and not keep(name)
    ]
    return apply(SourceTree({"x": content}), edits)["x"]
