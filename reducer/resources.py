"""Files shipped with the package: templates and fixtures, at the top level of a checkout, inside the package else."""

from __future__ import annotations

from pathlib import Path


def directory(name: str) -> Path:
    """The shipped directory ``name``. Raises FileNotFoundError when the installation lacks it."""
    package = Path(__file__).parent
    for candidate in (package / name, package.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"{name}/ was not installed with the tool: install it again from a whole checkout")


def template(name: str) -> str:
    """The text of a template. Raises FileNotFoundError."""
    return (directory("templates") / name).read_text(encoding="utf-8")
