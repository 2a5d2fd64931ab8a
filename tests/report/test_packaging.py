"""The templates reach an installed package, and no package is forgotten."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_wheel_holds_every_package_and_every_template(tmp_path: Path) -> None:
    for name in ("reducer", "templates", "fixtures"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "README.md").write_text("not this test's matter\n")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", "out", "."]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert built.returncode == 0, built.stderr
    (wheel,) = (tmp_path / "out").glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {p.relative_to(ROOT).as_posix() for p in (ROOT / "reducer").rglob("*.py")}
    expected |= {f"reducer/templates/{p.name}" for p in (ROOT / "templates").iterdir() if p.is_file()}
    assert expected <= names, expected - names

    wheel_dir = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(wheel_dir)
    script = "import reducer; from reducer.resources import template; "
    script += "print(reducer.__file__, template('issue.md'))"
    shown = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(wheel_dir)},
        cwd=tmp_path / "out",
        capture_output=True,
        text=True,
    )
    assert shown.stdout.startswith(str(wheel_dir)), shown.stderr
    assert "$title" in shown.stdout
