"""All libraries of the benchmark by name."""

from __future__ import annotations

from benchmarks.libraries import pure_python
from benchmarks.libraries.library import Library

LIBRARIES: dict[str, Library] = {library.name: library for library in (*pure_python.LIBRARIES,)}
