"""What the rules look at: the failure, and the sources around it."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from reducer.oracle.failure import Failure

_CXX = (".cc", ".cpp", ".cxx", ".c", ".cu", ".h", ".hpp", ".cuh")
_OP_CALL = re.compile(r"torch\.ops\.\w+\.\w+")


@dataclass(frozen=True)
class Evidence:
    """A failure with the case's sources (path -> content; only C++ and Python files are read)."""

    failure: Failure
    sources: Mapping[str, bytes]

    @property
    def symbol(self) -> str:
        return self.failure.signature.symbol

    @property
    def message(self) -> str:
        return self.failure.message

    @cached_property
    def python(self) -> str:
        """All Python sources, one after the other."""
        return "\n".join(self._text(path) for path in sorted(self.sources) if path.endswith((".py", ".pyi")))

    @cached_property
    def cxx(self) -> str:
        """All C++ and CUDA sources, one after the other; "" for a case without any."""
        return "\n".join(self._text(path) for path in sorted(self.sources) if path.endswith(_CXX))

    @cached_property
    def line(self) -> str:
        """The source line of the case where it fails, "" when unknown."""
        lines = self._text(self.failure.file).splitlines()
        if 0 < self.failure.line <= len(lines):
            return lines[self.failure.line - 1].strip()
        own = [frame.text for frame in self.failure.frames if frame.owner in ("library", "test") and frame.text]
        return own[-1] if own else ""

    @cached_property
    def path(self) -> str:
        """The case's own lines on the way to the failure, the failing one included."""
        own = [frame.text for frame in self.failure.frames if frame.owner in ("library", "test")]
        return "\n".join([*own, self.line])

    @cached_property
    def nearby(self) -> str:
        """``path``, the function around the failing line, and the case's own functions that this line calls."""
        called = set(re.findall(r"(\w+)\(", self.line))
        pieces = [self.path]
        for path in sorted(self.sources):
            if not path.endswith(".py"):
                continue
            text = self._text(path)
            try:
                tree = ast.parse(text)
            except (SyntaxError, ValueError):
                continue
            for node in ast.walk(tree):
                if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    continue
                inside = path == self.failure.file and node.lineno <= self.failure.line <= (node.end_lineno or 0)
                if inside or node.name in called:
                    pieces.append(ast.get_source_segment(text, node) or "")
        return "\n".join(pieces)

    @cached_property
    def calls_ops(self) -> bool:
        """Whether Python code of the case calls registered ops."""
        return _OP_CALL.search(self.python) is not None

    def _text(self, path: str) -> str:
        return self.sources[path].decode("utf-8", "replace") if path in self.sources else ""
