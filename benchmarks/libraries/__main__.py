"""Runs the tool on released libraries and writes a table of what came out.

    python -m benchmarks.libraries [NAME...] --out TABLE.md [--keep DIR] [--cache DIR]

Every library is fetched with pip from the index that pip is set up for, unpacked, migrated as its entry says (see
``pure_python.py``) and reduced. To add one, add an entry; a new file of entries is listed in ``registry.py``.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cases import Row, mark, run_case
from benchmarks.libraries import prepare
from benchmarks.libraries.library import Expected, Library
from benchmarks.libraries.registry import LIBRARIES

HEADER = (
    "| library | stage | symbol | form | script | C++ | setup | valid on re-run | queries | seconds | exit "
    "| as expected |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n"
)


@dataclass(frozen=True, slots=True)
class Result:
    """One library's row."""

    library: Library
    row: Row

    @property
    def good(self) -> bool:
        """Ended as the entry says, and what was written is true when run again, and small enough."""
        row, expected = self.row, self.library.expected
        if row.exit_code != expected.exit_code:
            return False
        if expected.exit_code != 0:
            return True
        return bool(row.holds) and row.seen == expected.stage and within(row, expected)

    def markdown(self) -> str:
        """One line of the table."""
        row, shape = self.row, self.row.shape
        sizes = [str(shape.script), str(shape.cxx - shape.registration), str(shape.setup)] if shape else ["", "", ""]
        cells = [
            f"{self.library.name} {self.library.version}",
            row.seen,
            row.symbol,
            row.form,
            *sizes,
            "" if row.holds is None else mark(row.holds),
            str(row.queries),
            f"{row.seconds:.0f}",
            str(row.exit_code),
            mark(self.good),
        ]
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def within(row: Row, expected: Expected) -> bool:
    """Whether the result is as small as the entry asks."""
    if row.shape is None:
        return False
    sizes = (
        (row.shape.script, expected.lines),
        (row.shape.cxx - row.shape.registration, expected.cxx),
        (row.shape.setup, expected.setup),
    )
    return all(size <= (limit or 0) for size, limit in sizes)


def run_library(library: Library, place: Path, python: Path, cache: Path, limit: float, keep: Path | None) -> Result:
    """Fetch, prepare and reduce one library below the new directory ``place``. Raises prepare.PrepareError."""
    archive = prepare.fetch(library, cache)
    interpreter = prepare.environment(library, python, cache)
    folder = place / library.name
    prepare.checkout(library, archive, folder)
    work = place / "work"
    work.mkdir()
    return Result(library, run_case(folder, work, interpreter, limit, keep))


def table(results: list[Result]) -> str:
    """The whole table, with a line that sums it up."""
    good = sum(result.good for result in results)
    rows = "".join(result.markdown() for result in results)
    return f"{good} of {len(results)} libraries ended as expected. Sizes are non-blank lines.\n\n{HEADER}{rows}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.libraries", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(LIBRARIES)} (default: all)")
    parser.add_argument("--out", type=Path, default=Path("libraries.md"), metavar="TABLE.md")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep every MRE and log below DIR")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="keep downloads and environments for the next time")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="has reduce and both frameworks")
    parser.add_argument("--limit", type=float, default=900.0, metavar="S", help="seconds for one library")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in LIBRARIES]
    if unknown:
        parser.error(f"no such library: {', '.join(unknown)}")
    python = Path(os.path.abspath(options.python))
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="libraries-", ignore_cleanup_errors=True) as scratch:
        cache = Path(options.cache or scratch).absolute()
        for name in options.names or LIBRARIES:
            place = Path(scratch) / "runs" / name
            place.mkdir(parents=True)
            result = run_library(LIBRARIES[name], place, python, cache, options.limit, options.keep)
            results.append(result)
            print(result.markdown(), end="", flush=True)
            options.out.write_text(table(results), encoding="utf-8")
    good = sum(result.good for result in results)
    print(f"{good} of {len(results)} as expected; the table is in {options.out}")
    return 0 if good == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
