"""From a name on the package index to a checkout that the tool can be run on."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path, PurePosixPath

from benchmarks.libraries.library import Change, Library


class PrepareError(Exception):
    """A library cannot be fetched, unpacked or changed as its entry says."""


def checkout(library: Library, archive: Path, target: Path) -> None:
    """Unpack ``archive`` to the new directory ``target``, migrate it, and state the case in ``case.json``.

    Raises PrepareError.
    """
    unpack(archive, target)
    for change in library.changes:
        apply(change, target)
    for name, text in library.files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    stated = {"stage": library.expected.stage, "symbol": library.expected.symbol, "failing_cmd": library.failing_cmd}
    if library.build_cmd is not None:
        stated["build_cmd"] = library.build_cmd
    (target / "case.json").write_text(json.dumps(stated, indent=2), encoding="utf-8")


def unpack(archive: Path, target: Path) -> None:
    """Write the members of a wheel or of a source distribution below ``target``; a single outer folder is left out.

    Raises PrepareError for an archive of another kind and for members that would lie elsewhere.
    """
    target.mkdir(parents=True)
    members = _members(archive)
    outer = {PurePosixPath(name).parts[0] for name in members}
    strip = 1 if archive.suffix != ".whl" and len(outer) == 1 else 0
    for name, content in members.items():
        parts = PurePosixPath(name).parts[strip:]
        if not parts or ".." in parts or PurePosixPath(name).is_absolute():
            raise PrepareError(f"{archive.name} has a member outside of itself: {name}")
        path = target.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _members(archive: Path) -> dict[str, bytes]:
    """Regular files by name."""
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as opened:
            return {info.filename: opened.read(info) for info in opened.infolist() if not info.is_dir()}
    if not archive.name.endswith((".tar.gz", ".tgz", ".tar.bz2")):
        raise PrepareError(f"{archive.name} is neither a wheel nor a source distribution")
    found = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            stream = tar.extractfile(member) if member.isfile() else None
            if stream is not None:
                found[member.name] = stream.read()
    return found


def apply(change: Change, target: Path) -> None:
    """Make one change in the unpacked files. Raises PrepareError when the text is not there as often as it says."""
    path = target / change.path
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if text.count(change.old) != change.times:
        raise PrepareError(f"{change.path}: {text.count(change.old)} times instead of {change.times}: {change.old!r}")
    path.write_text(text.replace(change.old, change.new), encoding="utf-8")


def fetch(library: Library, place: Path) -> Path:
    """Download the distribution with pip into ``place`` (kept for the next time). Raises PrepareError."""
    folder = place / f"{library.project}-{library.version}-{library.form}"
    if not folder.is_dir() or not any(folder.iterdir()):
        choice = ["--only-binary", ":all:"] if library.form == "wheel" else ["--no-binary", ":all:"]
        wanted = f"{library.project}=={library.version}"
        # A source distribution would be asked for its metadata, which runs a setup.py that may need the frameworks.
        options = ["--no-deps", *choice, *(["--no-build-isolation"] if library.form == "sdist" else [])]
        _pip([sys.executable], "download", "-q", *options, "-d", str(folder), wanted)
    return next(iter(sorted(folder.iterdir())))


def environment(library: Library, python: Path, place: Path) -> Path:
    """The interpreter for ``library``: ``python`` itself, or one that sees its packages and what the library needs.

    Raises PrepareError.
    """
    if not library.needs:
        return python
    folder = place / ("needs-" + "-".join(sorted(library.needs)).replace("==", "_"))
    interpreter = folder / "bin" / "python"
    done = folder / "complete"
    if not done.exists():
        script = "import sys, sysconfig; print(sysconfig.get_path('purelib'), sys.base_prefix, sep='\\n')"
        asked = subprocess.run([str(python), "-c", script], capture_output=True, text=True, check=True)
        packages, base = asked.stdout.split("\n")[:2]
        if base != sys.base_prefix:
            raise PrepareError(f"{python} is of another Python than the one that runs the benchmark")
        venv.create(folder, clear=True, symlinks=True)
        site = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        (site / "frameworks.pth").write_text(f"import site; site.addsitedir({packages!r})\n", encoding="utf-8")
        _pip([sys.executable], "--python", str(interpreter), "install", "-q", "--no-deps", *library.needs)
        done.touch()
    return interpreter


def _pip(interpreter: list[str], *arguments: str) -> None:
    command = [*interpreter, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise PrepareError(f"{' '.join(command)}\n{done.stdout}")
