"""Compile flags of a real build, read from the compiler calls that the shims recorded."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reducer.frameworks.build_command import CXX_HEADER, CXX_SOURCE
from reducer.oracle.observation import CompilerCall, Observation, SideName
from reducer.tree import SourceTree

_WITH_VALUE = ("-I", "-D", "-U", "-isystem", "-iquote", "-idirafter", "-include", "-std")
# What every extension gets from setuptools and the two frameworks: not the library's own choice.
_STANDARD = re.compile(
    r"-DNDEBUG|-D(PADDLE|TORCH|_GLIBCXX|PYBIND11)_\w+.*|-DTORCH_EXTENSION_NAME=.*|-DPADDLE_EXTENSION_NAME=.*|-fPIC"
    r"|-fwrapv|-fno-strict-overflow|-std=.*|-f[a-z-]*stack.*|-w|-W.*|-O.*|-g\d*|-pipe|-pthread|-M.*|-c|-shared|-m64"
)
# What a result's module is written with. Precompiled once for all cases and candidates, a set for each side: Paddle's
# extension header does not bring the registration macros along.
BASE_HEADERS: Mapping[SideName, tuple[str, ...]] = {
    "paddle": ("torch/extension.h", "torch/library.h"),
    "torch": ("torch/extension.h",),
}
_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*<([^>\n]+)>", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Unit:
    """One translation unit of a build: its path in the tree, its flags, and those that the library chose itself."""

    path: str
    flags: tuple[str, ...]
    own: tuple[str, ...]

    @property
    def common(self) -> tuple[str, ...]:
        """The flags without the library's own macros and include directories: what all cases share."""
        return tuple(f for f in self.flags if f not in self.own or not f.startswith(("-D", "-U", "-I")))


def units(observation: Observation) -> tuple[Unit, ...]:
    """The compiled sources of a build, in order; sources outside the tree (generated ones) are left out."""
    found: dict[str, Unit] = {}
    for call in observation.calls:
        source = _source(call)
        path = _relative(source, call.cwd, observation.root) if source else None
        if path is not None and path not in found:
            flags = tuple(_flags(call, source or "", observation.root))
            own = tuple(f for f in flags if not _STANDARD.fullmatch(f) and not _outside(f))
            found[path] = Unit(path, flags, own)
    return tuple(found.values())


def extension_names(observation: Observation) -> tuple[str, ...]:
    """Dotted names of the extension modules that the build linked."""
    chosen = re.search(r"--build-lib[= ](\S+)", observation.build.command if observation.build else "")
    library = rf"build/lib[^/]*|{re.escape(posixpath.normpath(chosen.group(1)))}" if chosen else r"build/lib[^/]*"
    names: list[str] = []
    for call in observation.calls:
        if call.links and "-o" in call.argv[:-1]:
            output = call.argv[call.argv.index("-o") + 1]
            match = re.search(rf"(?:^|/)(?:{library})/(.+?)\.(?:cpython-[^/]*\.|abi3\.)?so$", output)
            if match and match.group(1).replace("/", ".") not in names:
                names.append(match.group(1).replace("/", "."))
    return tuple(names)


def covers(tree: SourceTree, headers: Iterable[str]) -> bool:
    """Whether every source of the tree includes all of ``headers`` itself: a precompiled form of them, and of no
    others, then forgives nothing."""
    wanted = set(headers)
    sources = [content for path, content in tree.items() if path.endswith(CXX_SOURCE)]
    return all(wanted <= {m.decode("utf-8", "replace").strip() for m in _INCLUDE.findall(text)} for text in sources)


def system_includes(tree: SourceTree) -> tuple[str, ...]:
    """Every ``<header>`` that the C++ files of the tree include, in order of appearance."""
    found: dict[str, None] = {}
    for path, content in tree.items():
        if path.endswith((*CXX_SOURCE, *CXX_HEADER)):
            for match in _INCLUDE.finditer(content):
                found.setdefault(match.group(1).decode("utf-8", "replace").strip())
    return tuple(found)


def _source(call: CompilerCall) -> str | None:
    if "-c" not in call.argv:
        return None
    sources = [word for word in call.argv[1:] if word.endswith(CXX_SOURCE) and not word.startswith("-")]
    return sources[0] if sources else None


def _relative(path: str, cwd: str, root: str) -> str | None:
    full = posixpath.normpath(posixpath.join(cwd, path))
    return posixpath.relpath(full, root) if full.startswith(root.rstrip("/") + "/") else None


def _flags(call: CompilerCall, source: str, root: str) -> Iterable[str]:
    """The call's options without input, output and dependency files; directories of the tree become relative."""
    words = iter(call.argv[1:])
    for word in words:
        if word in ("-o", "-MF", "-MT", "-MQ"):
            next(words, None)
        elif word in _WITH_VALUE:
            value = next(words, "")
            yield word + _inside(value, call.cwd, root) if word in ("-I", "-D", "-U") else word
            if word not in ("-I", "-D", "-U"):
                yield _inside(value, call.cwd, root)
        elif word != source and word != "-c" and not word.startswith("-M"):
            yield "-I" + _inside(word[2:], call.cwd, root) if word.startswith("-I") else word


def _inside(path: str, cwd: str, root: str) -> str:
    """A directory of the candidate relative to it: the next candidate lies elsewhere."""
    full = posixpath.normpath(posixpath.join(cwd, path)) if path.startswith(("/", ".")) else path
    base = root.rstrip("/")
    if full == base:
        return "."
    return full[len(base) + 1 :] if full.startswith(base + "/") else full


def _outside(flag: str) -> bool:
    return flag.startswith(("-I/", "/"))


def includes(flags: Sequence[str]) -> list[str]:
    """The include directories among flags."""
    return [flag[2:] for flag in flags if flag.startswith("-I")]
