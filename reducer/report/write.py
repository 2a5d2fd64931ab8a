"""Writing the output directory (DESIGN.md §8)."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from reducer.report import metadata
from reducer.report.readme import readme
from reducer.report.result import MreResult
from reducer.report.scrub import Private, scrub, trim_log
from reducer.tree import SourceTree

_OURS = ("README.md", metadata.FILE, "logs")


def reserved(files: SourceTree) -> list[str]:
    """Sources whose names the report uses itself: they cannot be part of a confirmed result."""
    return [path for path in files if path.split("/")[0] in _OURS]


class OutputError(Exception):
    """The output directory cannot be written. The message says what, why and what to do."""


def check_output(out: Path) -> None:
    """Raise OutputError unless ``out`` may be (over)written; call it before the work starts.

    It may when it does not exist, is an empty directory, or holds an earlier MRE of ours and no checkout.
    """
    target = out.resolve()
    if not target.exists():
        return
    if not target.is_dir():
        raise OutputError(f"cannot write the result to {out}: it is a file. Name another place with --out DIR.")
    if not any(target.iterdir()):
        return
    try:
        metadata.load(target)
    except metadata.MetadataError:
        earlier = False
    else:
        earlier = not (target / ".git").exists()
    if not earlier:
        raise OutputError(
            f"cannot write the result to {out}: it is not empty and does not hold an earlier result of reduce. "
            "Empty it, or name another place with --out DIR."
        )


def write_mre(out: Path, result: MreResult, private: Private | None = None) -> None:
    """Write the MRE to ``out``, whole or not at all; an earlier MRE there is replaced.

    The sources are written byte for byte, except for those with a name of ours (``reserved``); all other text is
    scrubbed of ``private`` (default: what is private on this machine). Raises OutputError (see check_output) and
    OSError as the system does.
    """
    check_output(out)
    private = Private.of_this_machine() if private is None else private
    target = out.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-new-"))
    try:
        result.files.write(fresh)
        _documents(result, private).write(fresh)
        fresh.chmod(0o755)
        _replace(target, fresh)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)  # gone already when it was renamed


def _documents(result: MreResult, private: Private) -> SourceTree:
    texts = {
        "README.md": readme(result, private),
        metadata.FILE: metadata.dumps(result, private),
        "logs/paddle.log": scrub(trim_log(result.paddle_log), private),
        "logs/torch.log": scrub(trim_log(result.torch_log), private),
    }
    return SourceTree({path: text.encode("utf-8", "backslashreplace") for path, text in texts.items()})


def _replace(target: Path, fresh: Path) -> None:
    """Put ``fresh`` in the place of ``target``; what stood there comes back when that fails."""
    if not target.exists():
        os.rename(fresh, target)
        return
    aside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-old-"))
    os.rename(target, aside)  # rename(2) replaces an empty directory
    try:
        os.rename(fresh, target)
    except BaseException:
        os.rename(aside, target)
        raise
    shutil.rmtree(aside, ignore_errors=True)
