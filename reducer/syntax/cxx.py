"""C++ as libclang sees it: one translation unit of a tree, parsed from memory, with byte offsets into the tree's files.

The files of the tree stand below a virtual root that exists only inside libclang. Everything here is tolerant: what
does not parse gives a unit that knows less, never an exception.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from ctypes import CFUNCTYPE, POINTER, byref, c_uint, c_void_p
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import clang.cindex as cindex

from reducer.tree import SourceTree

ROOT = "/reduce-tree"
"""Where the tree stands for libclang. Nothing is ever read from or written to this place on the disk."""

SOURCES = frozenset({".c", ".cc", ".cpp", ".cxx", ".c++", ".cu", ".mm"})
HEADERS = frozenset(
    {".h", ".hh", ".hpp", ".hxx", ".h++", ".cuh", ".inl", ".inc", ".ipp", ".tpp", ".tcc", ".impl", ".def"}
)

Cursor = Any
"""A ``clang.cindex.Cursor``; the binding carries no types."""

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*(?:include|include_next|import)[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.M)
_PATH_FLAGS = ("-I", "-isystem", "-iquote", "-idirafter", "-include")


def is_cxx_source(path: str) -> bool:
    """True for a file that a compiler is called on."""
    return posixpath.splitext(path)[1].lower() in SOURCES


def is_cxx(path: str) -> bool:
    """True for a C, C++ or CUDA source or header, by its suffix."""
    return is_cxx_source(path) or posixpath.splitext(path)[1].lower() in HEADERS


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Bytes ``start:end`` of one file of the tree."""

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class CxxDiagnostic:
    """An error of the parse. ``path`` is "" outside the tree, where ``line`` is 0."""

    message: str
    path: str
    line: int


@dataclass(slots=True, eq=False)
class CxxUnit:
    """One parsed source with everything that it includes. ``tu`` is None when libclang gave up altogether."""

    path: str
    tree: SourceTree
    tu: Any
    root: str = ROOT
    _top: list[Cursor] | None = field(default=None, repr=False)

    def local(self, name: str) -> str | None:
        """The tree's path for a file name of libclang's, or None for a file outside the tree."""
        return _local(name, self.root)

    def place(self, location: Any) -> tuple[str, int] | None:
        """(path, byte offset) of a source location in the tree; a macro's expansion counts where it is written."""
        if location is None or location.file is None:
            return None
        return self._in_tree(location.file.name, location.offset)

    def written(self, location: Any) -> tuple[str, int] | None:
        """Like ``place``, but what stands in a macro's argument counts where the argument is written."""
        handle, line, column, offset = c_void_p(), c_uint(), c_uint(), c_uint()
        _file_location()(location, byref(handle), byref(line), byref(column), byref(offset))
        if not handle.value:
            return None
        return self._in_tree(cindex.File(cindex.c_object_p.from_buffer(handle)).name, offset.value)

    def _in_tree(self, name: str, offset: int) -> tuple[str, int] | None:
        path = self.local(name)
        return None if path is None or path not in self.tree else (path, offset)

    def top_level(self) -> list[Cursor]:
        """The file-level cursors that stand in the tree, in order.

        Declarations; macros, expansions and inclusions too, unless a precompiled header made without a preprocessing
        record is in use.
        """
        if self._top is None:
            children = [] if self.tu is None else self.tu.cursor.get_children()
            self._top = [c for c in children if self.place(c.location) is not None]
        return self._top

    def walk(self) -> Iterator[tuple[Cursor, Cursor | None]]:
        """Every cursor of the tree's own code with its parent, parents first."""
        stack: list[tuple[Cursor, Cursor | None]] = [(c, None) for c in reversed(self.top_level())]
        while stack:
            cursor, parent = stack.pop()
            yield cursor, parent
            stack.extend((child, cursor) for child in reversed(children_of(cursor)))

    def diagnostics(self) -> list[CxxDiagnostic]:
        """What libclang complains about, in its order; warnings are left out."""
        found: list[CxxDiagnostic] = []
        for item in () if self.tu is None else self.tu.diagnostics:
            if item.severity >= cindex.Diagnostic.Error:
                path, _ = self.place(item.location) or ("", 0)
                found.append(CxxDiagnostic(item.spelling, path, item.location.line if path else 0))
        return found

    def files(self) -> list[str]:
        """The tree's files that this unit reads, itself first, each once."""
        seen: dict[str, None] = {self.path: None}
        for item in () if self.tu is None else self.tu.get_includes():
            path = self.local(item.include.name)
            if path is not None and path in self.tree:
                seen[path] = None
        return list(seen)


def children_of(cursor: Cursor) -> list[Cursor]:
    """The direct children; kinds that this binding does not know give none."""
    try:
        return list(cursor.get_children())
    except ValueError:
        return []


def kind_of(cursor: Cursor) -> Any:
    """The cursor's kind, or None where this binding does not know it (newer syntax than the binding)."""
    try:
        return cursor.kind
    except ValueError:
        return None


class CxxParser:
    """Parses single sources of a tree with one set of clang arguments.

    ``args``: -I, -D, -std and the like, as for the side on which the code is free of errors; ``-include-pch FILE``
    names a precompiled header made by a clang of the same version. Relative directories, and those below ``root``
    (the directory that the tree was read from), mean places in the tree. ``keep``: how many units stay in memory.
    """

    def __init__(self, args: Sequence[str] = (), root: str = "", keep: int = 8) -> None:
        self.args = tuple(args)
        self._root = root.rstrip("/")
        self._keep = keep
        self._units: OrderedDict[tuple[str, str], CxxUnit] = OrderedDict()
        self._index = cindex.Index.create(excludeDecls=True)
        # A precompiled header is refused unless it was made with the same choice about the preprocessing record.
        record = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
        self._options = [0, record] if "-include-pch" in self.args else [record]

    def parse(self, tree: SourceTree, path: str) -> CxxUnit:
        """The unit of one source. Asking again for equal C++ files costs nothing."""
        key = (path, cxx_digest(tree))
        unit = self._units.get(key)
        if unit is None:
            unit = CxxUnit(path, tree, self._translate(tree, path))
            self._units[key] = unit
            while len(self._units) > self._keep:
                self._units.popitem(last=False)
        self._units.move_to_end(key)
        if unit.tree is not tree:
            unit = CxxUnit(path, tree, unit.tu, unit.root, unit._top)
        return unit

    def _translate(self, tree: SourceTree, path: str) -> Any:
        if path not in tree:
            return None
        arguments = [*_language(path), *self._placed(tree), "-resource-dir", builtin_headers(), "-ferror-limit=0", "-w"]
        files = [(f"{ROOT}/{p}", content.decode("latin-1")) for p, content in in_memory(tree, arguments).items()]
        for options in self._options:
            try:
                tu = _parse(self._index, f"{ROOT}/{path}", arguments, files, options)
            except cindex.TranslationUnitLoadError:
                continue
            self._options.sort(key=lambda o: o != options)  # what worked is tried first from now on
            return tu
        return None

    def _placed(self, tree: SourceTree) -> list[str]:
        """The arguments with the tree's own directories moved below the virtual root."""
        placed: list[str] = []
        previous = ""
        for arg in self.args:
            flag = next(
                (f for f in _PATH_FLAGS if arg.startswith(f) and arg != f and not arg.startswith("-include-")), ""
            )
            if previous in _PATH_FLAGS:
                arg = self._place(arg, tree)
            elif flag:
                arg = flag + self._place(arg[len(flag) :], tree)
            placed.append(arg)
            previous = arg
        return placed

    def _place(self, where: str, tree: SourceTree) -> str:
        if self._root and (where == self._root or where.startswith(self._root + "/")):
            where = where[len(self._root) + 1 :] or "."
        if where.startswith("/"):
            return where
        normal = posixpath.normpath(where)
        inside = normal == "." or normal in tree or any(p.startswith(normal + "/") for p in tree)
        return (ROOT if normal == "." else f"{ROOT}/{normal}") if inside else where


def in_memory(tree: SourceTree, arguments: Sequence[str] = ()) -> dict[str, bytes]:
    """The tree's C++ files as libclang needs them, by path below the root.

    libclang does not resolve ``..`` in a virtual path; each such spelling gets a file that includes the real one, so
    that ``#pragma once`` still sees one file.
    """
    files = {path: tree[path] for path in tree if is_cxx(path)}
    bases = [""]
    for arg in arguments:
        at = arg.find(ROOT)
        if at >= 0:
            bases.append(arg[at + len(ROOT) :].strip("/"))
    forwards: dict[str, bytes] = {}
    for path, content in list(files.items()):
        for match in _INCLUDE.finditer(content):
            spelled = (match[1] or match[2]).decode("utf-8", "surrogateescape")
            for base in (posixpath.dirname(path), *bases):
                raw = f"{base}/{spelled}".lstrip("/")
                normal = posixpath.normpath(raw)
                if normal in tree and normal not in files:
                    files[normal] = tree[normal]
                if raw != normal and normal in tree:
                    forwards[raw] = f'#include "{ROOT}/{normal}"\n'.encode()
    return {**forwards, **files}


def includes_of(content: bytes) -> list[tuple[str, bool, int, int]]:
    """The ``#include`` lines of a file: (name, quoted, start, end) with bytes of the directive up to the name's end."""
    found = []
    for match in _INCLUDE.finditer(content):
        name = (match[1] or match[2]).decode("utf-8", "surrogateescape")
        found.append((name, match[1] is not None, match.start(), match.end()))
    return found


def resolve_include(tree: SourceTree, includer: str, name: str, directories: Sequence[str] = ()) -> str | None:
    """The tree's file that an include names: beside the includer, then in ``directories``, then by a unique ending."""
    for base in (posixpath.dirname(includer), *directories):
        normal = posixpath.normpath(posixpath.join(base, name))
        if normal in tree:
            return normal
    tail = posixpath.normpath(name).lstrip("./")
    matches = [p for p in tree if p == tail or p.endswith("/" + tail)]
    return matches[0] if len(matches) == 1 else None


@lru_cache(maxsize=64)
def cxx_digest(tree: SourceTree) -> str:
    """Hex digest of the C++ files alone, so that a changed Python file does not cost a parse."""
    state = hashlib.sha256()
    for path in tree:
        if is_cxx(path):
            state.update(f"{path}:{len(tree[path])}:".encode("utf-8", "surrogateescape"))
            state.update(tree[path])
    return state.hexdigest()


@cache
def builtin_headers() -> str:
    """clang's resource directory. The libclang wheel has none; the clang-tidy wheel of the same major version does.

    Raises RuntimeError when none is installed.
    """
    spec = find_spec("clang_tidy")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for directory in sorted((Path(place) / "data/lib/clang").glob("*"), reverse=True):
            if (directory / "include/stddef.h").is_file():
                return str(directory)
    for directory in sorted(Path("/usr/lib").glob("llvm-*/lib/clang/*"), reverse=True):
        if (directory / "include/stddef.h").is_file():
            return str(directory)
    raise RuntimeError("clang's own headers are missing: install the clang-tidy wheel (pip install clang-tidy)")


@cache
def _file_location() -> Any:
    """``clang_getFileLocation``, which the binding leaves out; a prototype of its own, as the library is shared."""
    unsigned = POINTER(c_uint)
    prototype = CFUNCTYPE(None, cindex.SourceLocation, POINTER(c_void_p), unsigned, unsigned, unsigned)
    return prototype(("clang_getFileLocation", cindex.conf.lib))


def _local(name: str, root: str) -> str | None:
    if not name.startswith(root + "/"):
        return None
    path = name[len(root) + 1 :]
    return path if posixpath.normpath(path) == path else None  # a spelling with ".." is a forwarding file


def _language(path: str) -> list[str]:
    suffix = posixpath.splitext(path)[1].lower()
    if suffix == ".c":
        return ["-x", "c"]
    return ["-x", "c++"]


def _parse(index: Any, path: str, args: list[str], files: list[tuple[str, str]], options: int) -> Any:
    """``Index.parse`` for contents given as Latin-1 text.

    The binding encodes contents as UTF-8 and so would shift every offset behind a byte that is not valid UTF-8;
    going through the C function with bytes keeps the file as it is.
    """
    library = cindex.conf.lib
    unsaved = (cindex._CXUnsavedFile * max(1, len(files)))()
    keep = []
    for slot, (name, text) in zip(unsaved, files, strict=False):
        raw_name, raw = name.encode("utf-8", "surrogateescape"), text.encode("latin-1")
        keep.append((raw_name, raw))
        slot.name, slot.contents, slot.length = raw_name, raw, len(raw)
    words = [a.encode("utf-8", "surrogateescape") for a in args]
    argv = (cindex.c_char_p * max(1, len(words)))(*words)
    pointer = library.clang_parseTranslationUnit(
        index, path.encode("utf-8", "surrogateescape"), argv, len(words), unsaved, len(files), options
    )
    if not pointer:
        raise cindex.TranslationUnitLoadError(path)
    return cindex.TranslationUnit(pointer, index=index)
