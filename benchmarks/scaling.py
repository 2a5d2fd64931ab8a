"""How the time grows with the library: the same gap in 1, 4, 16 and 64 times the code.

    python -m benchmarks.scaling [--sizes 1 4 16 64] [--only compile_gap run_gap python_gap] [--grow file|files]
                                 [--out TABLE.md] [--bench DIR] [--python PYTHON] [--limit S]

The larger library has renamed copies of its own sources that are really part of it: the package imports them, the tests
use them, C++ registers their operators under another library name. Only the gap is taken out of the copies. C++ copies
stand in the same file (``--grow file``) or are further translation units (``--grow files``).

Real builds take longer for more code whatever a tool does, so each row has the floor of that size (see
benchmarks/floor.py) beside the time of ``reduce``, which starts with an empty cache.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.floor import floor
from benchmarks.measured import BENCH, Library, Measured, copy_of, known, main_job
from reducer.report.sizes import measure
from reducer.tree import SourceTree
from reducer.world.freeze import freeze

SIZES = (1, 4, 16, 64)
HEADER = (
    "| case | size × | tokens | floor s | seconds | seconds less floor | queries | final tokens | exit |\n"
    "|---|---|---|---|---|---|---|---|---|\n"
)
_MODULE_INIT = re.compile(r'extern "C" \{\n.*?\n\}\n\}\n', re.DOTALL)
_INCLUDES = re.compile(r"^#include .*\n", re.MULTILINE)
_SCATTER_LOOP = """auto sc = src.contiguous();
  PG_DISPATCH_FLOATING(src.scalar_type(), "scatter_rows", [&] {
    for (int64_t i = 0; i < src.numel(); ++i) {
      const int64_t row = index.data_ptr<int64_t>()[i / src.size(1)];
      out.data_ptr<scalar_t>()[row * src.size(1) + i % src.size(1)] += sc.data_ptr<scalar_t>()[i];
    }
  });"""


class GrowthError(Exception):
    """The library is not the one that its growth was written for. The message says what does not fit."""


@dataclass(frozen=True, slots=True)
class Cut:
    """``gap`` stands once in ``file``; in copies ``without`` stands there, which does the same on both frameworks."""

    file: str
    gap: str
    without: str


@dataclass(frozen=True, slots=True)
class Growth:
    """How copies of a library are made.

    ``package`` names the Python package and, in C++, the namespace and the operator library. The first of ``cuts`` is
    the library's gap; the others would show once that one is gone. ``source`` is the C++ file, None for a library
    without one.
    """

    package: str
    cuts: tuple[Cut, ...]
    source: str | None = None


GROWTHS = {
    "compile_gap": Growth(
        "pointgraph",
        (Cut("csrc/ops.cc", "out.index_add_(0, index, src.contiguous());", _SCATTER_LOOP),),
        "csrc/ops.cc",
    ),
    "run_gap": Growth(
        "seqlab",
        (
            Cut(
                "csrc/ops.cc",
                "rows.slice(0, 0, rows.size(0), step).contiguous()",
                "take_rows(rows, window_starts(rows.size(0), 1, step))",
            ),
        ),
        "csrc/ops.cc",
    ),
    "python_gap": Growth(
        "protolab",
        (
            Cut("protolab/bank.py", "self.prototypes.index_copy_(0, seen, mixed)", "self.prototypes[seen] = mixed"),
            Cut("protolab/losses.py", "F.log_softmax(logits, dim=1)", "F.log_softmax(logits, 1)"),
            Cut(
                "protolab/train.py",
                "parameter -= self.config.lr * parameter.grad",
                "parameter.copy_(parameter - self.config.lr * parameter.grad)",
            ),
        ),
    ),
}


def grown(files: Mapping[str, str], growth: Growth, times: int, grow: str = "file") -> dict[str, str]:
    """The library with ``times - 1`` copies of its sources, package and tests.

    ``grow`` is "file" (C++ copies in the same file) or "files" (each in one of its own). Raises GrowthError when a gap
    does not stand where ``growth`` says.
    """
    sound = dict(files)
    for cut in growth.cuts:
        found = files.get(cut.file, "").count(cut.gap)
        if found != 1:
            raise GrowthError(f"{cut.file} has the gap {found} times instead of once: {cut.gap}")
        sound[cut.file] = sound[cut.file].replace(cut.gap, cut.without)
    marks = [f"part{number}" for number in range(2, times + 1)]
    result = dict(files)
    for mark in marks:
        result.update(_python_copy(sound, growth, mark))
        if growth.source is not None:
            copy = _cxx_copy(sound[growth.source], growth, mark)
            if grow == "file":
                result[growth.source] += "\n" + _INCLUDES.sub("", copy)
            else:
                result[_beside(growth.source, mark)] = copy
    _join(result, files, growth, marks, grow)
    return result


def _beside(path: str, mark: str) -> str:
    """``csrc/ops.cc`` as ``csrc/ops_part2.cc``."""
    stem, _, suffix = path.rpartition(".")
    return f"{stem}_{mark}.{suffix}"


def _is_test(path: str) -> bool:
    return path.startswith("tests/test_") and path.endswith(".py")


def _cxx_copy(text: str, growth: Growth, mark: str) -> str:
    """The C++ source under another namespace, library name and macro names, without the module's init function."""
    text = _MODULE_INIT.sub("", text)
    names = [growth.package, *re.findall(r"^#define (\w+)", text, re.MULTILINE)]
    return re.sub(rf"\b({'|'.join(names)})\b", rf"\1_{mark}", text)


def _python_copy(files: Mapping[str, str], growth: Growth, mark: str) -> dict[str, str]:
    """The package as a package within it, where relative imports still hold, and the tests of that one."""
    package, copies = growth.package, {}
    for path, text in files.items():
        if path.startswith(f"{package}/") and path.endswith(".py"):
            text = text.replace("from . import _C", "from .. import _C")
            text = re.sub(rf"\btorch\.ops\.{package}\b", f"torch.ops.{package}_{mark}", text)
            copies[f"{package}/{mark}{path[len(package) :]}"] = text
        elif _is_test(path):
            text = re.sub(rf"^from {package} import", f"from {package}.{mark} import", text, flags=re.MULTILINE)
            text = re.sub(rf"^import {package}$", f"import {package}.{mark} as {package}", text, flags=re.MULTILINE)
            copies[_beside(path, mark)] = text
    return copies


def _join(result: dict[str, str], files: Mapping[str, str], growth: Growth, marks: list[str], grow: str) -> None:
    """Make the copies part of the library: its package imports them, setup.py and the compat scope name them."""
    package = growth.package
    for mark in marks:
        result[f"{package}/__init__.py"] += f"from . import {mark}\n"
    listed = {package: [f"{package}.{mark}" for mark in marks]}
    if growth.source is not None and grow == "files":
        listed[growth.source] = [_beside(growth.source, mark) for mark in marks]
    for path in filter(_is_test, files):
        stem = Path(path).stem
        listed[stem] = [f"{stem}_{mark}" for mark in marks]
    if "setup.py" in result:
        result["setup.py"] = _listed(result["setup.py"], listed)
    if "conftest.py" in result:
        result["conftest.py"] = _listed(result["conftest.py"], {k: v for k, v in listed.items() if k != package})


def _listed(text: str, more: Mapping[str, list[str]]) -> str:
    """``text`` with further items after each element of a list or set display that is such a string."""
    for item, others in more.items():
        added = "".join(f', "{other}"' for other in others)
        text = re.sub(rf'(?<=[\[{{ ])"{re.escape(item)}"(?=[\]}},])', rf'"{item}"{added}', text)
    return text


def tokens(files: Mapping[str, str]) -> int:
    """Tokens of the Python and C++ files."""
    return measure(SourceTree({path: text.encode() for path, text in files.items()}))["tokens"]


def write(library: Library, times: int, grow: str, place: Path) -> tuple[Library, int]:
    """The library grown in the new directory ``place``, and its tokens. Raises GrowthError, FreezeError."""
    place.mkdir()
    tree = freeze(copy_of(library, place)).tree
    files = grown({path: tree.text(path) for path in tree}, GROWTHS[library.name], times, grow)
    target = place / "grown" / library.name
    for path, text in files.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(text, encoding="utf-8")
    return replace(library, directory=target), tokens(files)


def row(name: str, times: int, size: int, least: float, seen: Measured) -> str:
    """One line of the table."""
    final = seen.data["size"]["after"]["tokens"] if "size" in seen.data else "-"
    cells = [
        name,
        str(times),
        str(size),
        f"{least:.1f}",
        f"{seen.seconds:.1f}",
        f"{seen.seconds - least:.1f}",
        str(seen.search.get("queries", "-")),
        str(final),
        str(seen.exit_code),
    ]
    return "| " + " | ".join(cells) + " |\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure how the time grows with the size of the library.")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="N", help="times its own code")
    parser.add_argument("--only", nargs="+", default=list(GROWTHS), choices=list(GROWTHS), metavar="NAME")
    parser.add_argument("--grow", choices=("file", "files"), default="file", help="where copies of C++ code go")
    parser.add_argument("--out", type=Path, default=Path("scaling.md"), metavar="TABLE.md")
    parser.add_argument("--bench", type=Path, default=BENCH, metavar="DIR", help="has compile_gap and python_gap")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="has reduce and both frameworks")
    parser.add_argument("--limit", type=float, default=3600.0, metavar="S", help="seconds for one run of reduce")
    options = parser.parse_args()
    libraries = known(options.bench.resolve())
    absent = [name for name in options.only if name not in libraries]
    if absent or min(options.sizes) < 1:
        parser.error(f"not there: {', '.join(absent)}" if absent else "--sizes are whole numbers from 1 on")
    python = Path(os.path.abspath(options.python))
    table, good = HEADER, True
    for name in options.only:
        for times in options.sizes:
            with tempfile.TemporaryDirectory(prefix="scaling-", ignore_cleanup_errors=True) as folder:
                place = Path(folder)
                library, size = write(libraries[name], times, options.grow, place / "library")
                (place / "floor").mkdir()
                least = floor(library, place / "floor", python)
                seen = main_job(library, place / "reduce", python, place / "cache", options.limit)
            line = row(name, times, size, least, seen)
            print(line if seen.exit_code == 0 else line + seen.log[-2000:], end="", flush=True)
            table, good = table + line, good and seen.exit_code == 0
            options.out.write_text(table, encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
