"""The main job on the shipped libraries that show a gap; what it wrote is run again by hand, on both frameworks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.mre import Shape, decisive_words, metadata, rerun, shape, sources
from tests.e2e.jobs import PYTHON, Job, expectations, run_job

pytestmark = pytest.mark.real

GAPS = [name for name, expect in expectations().items() if expect["exit_code"] == 0]
PRELUDE = re.compile(
    r'import os\nif os\.getenv\("USE_TORCH"\) is None: import paddle; paddle\.enable_compat\((scope=\{.+\})?\)\n'
)
JSON = "py_api"  # this one is run with --json, the others show what a person sees


@pytest.fixture(scope="module", params=GAPS)
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    options = ["--json"] if request.param == JSON else []
    yield run_job(request.param, tmp_path_factory.mktemp(request.param), *options)


def test_it_reduces_and_says_where(job: Job) -> None:
    assert job.done.returncode == job.expect["exit_code"], job.story
    if job.done.args[-1] == "--json":
        told = json.loads(job.done.stdout)
        assert (told["exit_code"], told["path"]) == (0, str(job.out))
        assert told["signature"] == metadata(job.out)["signature"]
    else:
        assert job.done.stdout.splitlines()[-1] == str(job.out)


def test_the_failure_is_the_librarys(job: Job) -> None:
    assert job.done.returncode == 0, job.story
    data = metadata(job.out)
    signature = data["signature"]
    assert (signature["stage"], signature["symbol"]) == (job.expect["stage"], job.expect["symbol"])
    assert (data["form"], data["layer"], data["class"]) == (
        job.expect["form"],
        job.expect["layer"],
        job.expect["class"],
    )
    own = sources(job.out)
    text = "\n".join(content for path, content in own.items() if path != "setup.py")
    assert [word for word in job.expect["must_contain"] if word not in text] == []
    assert data["confirmed"] == {"paddle": {"runs": 3, "same": 3}, "torch": {"runs": 1, "passed": 1}}


def test_it_is_small(job: Job) -> None:
    assert job.done.returncode == 0, job.story
    own = sources(job.out)
    expected = {"repro.py"} if job.expect["form"] == "script" else {"setup.py", "csrc/mre.cc", "repro.py"}
    if job.expect["stage"] == "link":  # it fails before there is anything to run
        expected = expected - {"repro.py"}
    assert set(own) == expected
    for script in expected - {"csrc/mre.cc"}:
        assert PRELUDE.match(own[script]), own[script]
    measured = shape(job.out)
    limits = job.expect["limits"]
    over = {key: (_size(measured, key), most) for key, most in limits.items() if _size(measured, key) > most}
    assert not over, f"{over}\n" + "\n".join(own.values())


def _size(measured: Shape, key: str) -> int:
    sizes = {"cxx_lines": "cxx", "includes": "includes", "script_lines": "script", "setup_lines": "setup"}
    return int(getattr(measured, sizes[key]))


def test_a_reader_sees_the_same_failure(job: Job, tmp_path: Path) -> None:
    """The directory alone, copied elsewhere, with its own commands and the interpreter on PATH."""
    assert job.done.returncode == 0, job.story
    seen = rerun(job.out, "paddle", PYTHON, tmp_path)
    assert not seen.passed
    signature = metadata(job.out)["signature"]
    last = signature["symbol"].replace("::", ".").split(".")[-1]
    words = [*decisive_words(signature["message"]), *([last] if signature["stage"] == "compile" else [])]
    assert words and [word for word in words if word not in seen.output] == [], seen.output


def test_pytorch_accepts_it(job: Job, tmp_path: Path) -> None:
    assert job.done.returncode == 0, job.story
    seen = rerun(job.out, "torch", PYTHON, tmp_path)
    assert seen.passed, seen.output
    one_command = job.expect["form"] == "script" or job.expect["stage"] == "link"
    assert len(seen.codes) == (1 if one_command else 2), "the control never ran its script"


def test_nothing_of_the_users_was_touched(job: Job) -> None:
    assert job.after == job.before
    assert job.site_after == job.site_before


def test_the_report_is_complete_and_private(job: Job) -> None:
    assert job.done.returncode == 0, job.story
    readme = (job.out / "README.md").read_text(encoding="utf-8")
    for path, content in sources(job.out).items():
        assert content.strip() in readme, f"{path} is not in the issue text"
    for log in ("paddle.log", "torch.log"):
        assert (job.out / "logs" / log).stat().st_size > 0
    everything = "\n".join(p.read_text(encoding="utf-8") for p in job.out.rglob("*") if p.is_file())
    for private in (f"{Path.home()}/", str(job.out.parent), str(PYTHON.parent)):
        assert private not in everything
