"""The extension form of a result: one ``setup.py`` from a template, one C++ source, one script."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from reducer.edits.edit import Edit, Splice, apply
from reducer.edits.prelude import CONDITION, PRELUDE
from reducer.syntax.python import parse_source
from reducer.tree import SourceTree

NAME = "mre_ext"
SOURCE = "csrc/mre.cc"
SCRIPT = "repro.py"

_PYBIND = re.compile(rb"\bPYBIND11_MODULE\s*\(\s*(\w+)")
_PYINIT = re.compile(rb"\bPyInit_(\w+)")
_EMPTY_MODULE = b"\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n"
_INCLUDE = b"#include <torch/extension.h>\n"
_LIBRARY = b"#include <torch/library.h>\n"


def setup_script(template: str, own_flags: Sequence[str] = ()) -> bytes:
    """The ``setup.py`` of the extension form; ``own_flags`` are compile flags that the failure needs."""
    flags = f", extra_compile_args={list(own_flags)!r}" if own_flags else ""
    filled = template.replace("@PRELUDE@", PRELUDE.rstrip("\n")).replace("@FLAGS@", flags)
    return filled.replace("@NAME@", NAME).replace("@SOURCE@", SOURCE).encode()


def module_source(content: bytes, old: str) -> bytes:
    """``content`` as the source of the module ``mre_ext``: its initialiser renamed from ``old`` (the last part of the
    old module's dotted name), or an empty one added when there is none."""
    renamed = re.sub(rb"\bPyInit_%s\b" % re.escape(old.encode()), b"PyInit_" + NAME.encode(), content)
    renamed = re.sub(rb"(\bPYBIND11_MODULE\s*\(\s*)%s\b" % re.escape(old.encode()), rb"\1" + NAME.encode(), renamed)
    if not _PYBIND.search(renamed) and not _PYINIT.search(renamed):
        include = b"" if b"<torch/extension.h>" in renamed else _INCLUDE
        renamed = include + renamed + _EMPTY_MODULE
    if b"TORCH_LIBRARY" in renamed and b"<torch/library.h>" not in renamed:
        renamed = _LIBRARY + renamed  # PyTorch brings it by other headers too, Paddle only by this one
    return renamed


def module_imports(script: bytes, names: Sequence[str]) -> bytes:
    """``script`` with every way of loading the extensions ``names`` (dotted) turned into ``import mre_ext``."""
    module = parse_source(SCRIPT, script)
    if module is None:
        return script
    changes: list[Splice] = []
    for node in ast.walk(module.tree):
        text = _loaded(node, set(names)) if isinstance(node, ast.stmt) else None
        if text is not None:
            changes.append(Splice(SCRIPT, module.start(node), module.end(node), text.encode()))
        elif isinstance(node, ast.Attribute) and _dotted(node) in names:
            changes.append(Splice(SCRIPT, module.start(node), module.end(node), NAME.encode()))
    return apply(SourceTree({SCRIPT: script}), [Edit((change,)) for change in changes])[SCRIPT]


def _loaded(node: ast.stmt, names: set[str]) -> str | None:
    """The statement that replaces ``node`` when it loads one of the modules; None when it does not."""
    lasts = {name.rsplit(".", 1)[-1] for name in names}
    if isinstance(node, ast.Import):
        kept = [alias for alias in node.names if alias.name not in names]
        ours = [alias for alias in node.names if alias.name in names]
        if not ours:
            return None
        parts = [f"import {NAME}" + (f" as {alias.asname}" if alias.asname else "") for alias in ours]
        return "; ".join([*(f"import {ast.unparse(a)}" for a in kept), *parts])
    if isinstance(node, ast.ImportFrom):
        source = node.module or ""
        if source in names or (node.level and source in lasts):
            return "from " + NAME + " import " + ", ".join(ast.unparse(alias) for alias in node.names)
        full = {alias.name: (f"{source}.{alias.name}" if source else alias.name) for alias in node.names}
        ours = [a for a in node.names if full[a.name] in names or (node.level and a.name in lasts)]
        if not ours:
            return None
        kept = [a for a in node.names if a not in ours]
        head = "." * node.level + source
        parts = [f"import {NAME} as {alias.asname or alias.name}" for alias in ours]
        rest = [f"from {head} import " + ", ".join(ast.unparse(a) for a in kept)] if kept else []
        return "; ".join([*rest, *parts])
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = _dotted(node.value.func)
        if called.endswith("ops.load_library"):
            return f"import {NAME}"
        argument = node.value.args[0] if node.value.args else None
        if called.endswith("import_module") and isinstance(argument, ast.Constant) and argument.value in names:
            return f"import {NAME}"
    return None


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def loader_script() -> bytes:
    """The script of a build-stage result: once the gap is closed it imports what was built."""
    return (PRELUDE + f"import torch\nimport {NAME}\n\nprint({NAME}.__name__)\n").encode()


def has_prelude(content: bytes) -> bool:
    """Whether a script carries the switch that serves both frameworks."""
    return CONDITION.encode() in content
