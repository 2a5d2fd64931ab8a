"""The process that parses C++ with libclang for ``clang_process.py``: a crash or a leak in it hurts nobody else.

A stand-alone script: ``python clang_worker.py DIRECTORY``. Each line on stdin is a JSON request, answered by one line:

    {"do": "check", "files": {PATH: TEXT}, "unit": PATH, "arguments": [...]}
        -> {"diagnostics": [[severity, message, file, line, column, [[file, line], ...]], ...]}
    {"do": "precompile", "headers": [NAME, ...], "arguments": [...], "out": FILE}
        -> {"saved": BOOL, "failed": [NAME, ...]}

Paths are relative to DIRECTORY, where the worker keeps the files of the latest request (libclang does not resolve
``../x.h`` or ``-I`` among files that are only in memory). Texts are Latin-1, so that any bytes survive. A request that
cannot be answered gets {"error": WHY}.
"""

from __future__ import annotations

import sys

sys.path.pop(0)  # this script's own directory has modules of other names than they seem

import ctypes
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from clang import cindex

# CXTranslationUnit_ForSerialization. Not with CXTranslationUnit_Incomplete, which is how clang itself precompiles: as a
# complete unit the header gets its templates and vtables instantiated once, not again in every unit that uses it (for
# torch/extension.h 0.5 s a unit, not 2 s; a prefix with -fpch-instantiate-templates still leaves the vtables undone).
_FOR_SERIALIZATION = 0x10
_SEVERITIES = {cindex.Diagnostic.Error: "error", cindex.Diagnostic.Fatal: "fatal"}
_MACRO = "expanded from macro"
# Notes that say in what an error stands (others name candidates or earlier declarations).
_CONTEXT = re.compile(r"in (?!file included)|while |during |required ")
_HEADER = "reduce-precompiled.h"

Place = tuple[str, int, int]


class Worker:
    """Answers requests with one libclang index."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._index = cindex.Index.create(excludeDecls=False)
        self._written: dict[str, str] = {}

    def answer(self, request: Any) -> dict[str, Any]:
        """The answer to one request; raises what libclang raises."""
        if request["do"] == "precompile":
            return self._precompile(request["headers"], request["arguments"], request["out"])
        return {"diagnostics": self._check(request)}

    def _check(self, request: Any) -> list[Any]:
        self._place_files(request["files"])
        unit = self._index.parse(self._full(request["unit"]), args=request["arguments"])
        return [self._describe(item) for item in unit.diagnostics if item.severity in _SEVERITIES]

    def _place_files(self, files: dict[str, str]) -> None:
        """Make the directory hold exactly these files, writing only what has changed."""
        for path in self._written.keys() - files.keys():
            Path(self._directory, path).unlink()
            del self._written[path]
        for path, text in files.items():
            if self._written.get(path) != text:
                target = Path(self._directory, path)
                if target.is_dir():  # left over from a tree in which this was a directory
                    shutil.rmtree(target)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(text.encode("latin-1"))
                self._written[path] = text

    def _precompile(self, headers: list[str], arguments: list[str], out: str) -> dict[str, Any]:
        """Write ``out`` from those headers that exist and compile; name the ones that exist but do not compile."""
        failed: list[str] = []
        while True:
            lines = [f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n" for name in headers]
            header = self._full(_HEADER)
            unit = self._index.parse(
                header,
                args=arguments,
                unsaved_files=[(header, "".join(lines))],
                options=_FOR_SERIALIZATION,
            )
            errors = [item for item in unit.diagnostics if item.severity in _SEVERITIES]
            if not errors:
                unit.save(out)
                return {"saved": True, "failed": failed}
            bad = {headers[line // 3] for line in _top_lines(unit, header, errors)}
            if not bad:
                return {"saved": False, "failed": [*failed, errors[0].spelling]}
            failed += sorted(bad)
            headers = [name for name in headers if name not in bad]

    def _full(self, path: str) -> str:
        return f"{self._directory}/{path}"

    def _describe(self, item: Any) -> list[Any]:
        file, line, column = self._place(item.location)
        expansion = self._named(item.location.file, item.location.line, item.location.column)
        children = list(item.children)
        macros = [self._place(note.location) for note in children if note.spelling.startswith(_MACRO)]
        chain: list[Place] = []
        if macros and (file, line, column) == expansion:  # the offending token stands in a macro, not in an argument
            chain += [*reversed(macros[:-1]), expansion]
            file, line, column = macros[-1]
        elif (file, line, column) != expansion:
            chain.append(expansion)
        chain += [self._place(note.location) for note in children if _CONTEXT.match(note.spelling)]
        places = [[name, number] for name, number, _ in chain if name]
        message = item.spelling.replace(self._directory + "/", "")
        return [_SEVERITIES[item.severity], message, file, line, column, places]

    def _place(self, location: Any) -> Place:
        """Where it stands in a file: for a macro argument its own place, for a macro's text the place of its use."""
        file, line, column, offset = (cindex.c_object_p(), ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint())
        get = cindex.conf.lib.clang_getFileLocation
        get(location, ctypes.byref(file), ctypes.byref(line), ctypes.byref(column), ctypes.byref(offset))
        return self._named(cindex.File(file) if file else None, line.value, column.value)

    def _named(self, file: Any, line: int, column: int) -> Place:
        if file is None:
            return "", 0, 0
        name = file.name
        if name.startswith(self._directory + "/"):
            name = os.path.normpath(name[len(self._directory) + 1 :])
        return name, line, column


def _top_lines(unit: Any, header: str, errors: list[Any]) -> set[int]:
    """The lines of the header that brought in the files where the errors stand."""
    includer: dict[str, tuple[str, int]] = {}
    for inclusion in unit.get_includes():
        includer.setdefault(inclusion.include.name, (inclusion.source.name, inclusion.location.line))
    lines: set[int] = set()
    for item in errors:
        name, line = (item.location.file.name if item.location.file else ""), item.location.line
        seen: set[str] = set()
        while name != header and name in includer and name not in seen:
            seen.add(name)
            name, line = includer[name]
        if name == header:
            lines.add(line - 1)
    return lines


def main(directory: str) -> None:
    """Serve until stdin closes."""
    cindex.conf.lib.clang_getFileLocation.argtypes = [cindex.SourceLocation, *[ctypes.c_void_p] * 4]
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever libclang prints must not stand between the answers
    worker = Worker(directory)
    for line in sys.stdin:
        try:
            answer = worker.answer(json.loads(line))
        except (cindex.TranslationUnitLoadError, cindex.TranslationUnitSaveError, OSError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
