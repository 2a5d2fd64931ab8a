"""The libraries shipped with the tool, for ``reduce demo``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from reducer.case import Settings
from reducer.resources import directory


@dataclass(frozen=True, slots=True)
class Library:
    """One shipped library: its checkout and the command that fails."""

    name: str
    root: Path
    failing_cmd: str
    build_cmd: str | None
    description: str


def libraries() -> dict[str, Library]:
    """The shipped libraries by name. Raises FileNotFoundError when they were not installed."""
    found: dict[str, Library] = {}
    for path in sorted(directory("fixtures").glob("*/expect.json")):
        stated = json.loads(path.read_text(encoding="utf-8"))
        name = path.parent.name
        found[name] = Library(
            name, path.parent / "library", stated["failing_cmd"], stated.get("build_cmd"), stated.get("description", "")
        )
    return found


def settings_for(
    library: Library, paddle_python: Path | None, torch_python: Path | None, jobs: int, out: Path
) -> Settings:
    """The main job on a shipped library."""
    return Settings(
        failing_cmd=library.failing_cmd,
        repo=library.root,
        build_cmd=library.build_cmd,
        paddle_python=paddle_python,
        torch_python=torch_python,
        jobs=jobs,
        out=out,
    )
