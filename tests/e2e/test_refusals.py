"""Libraries that show no gap: each ends with its own exit code, a message, and nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.jobs import expectations, run_job

pytestmark = pytest.mark.real

WORDS = {3: "does not fail", 4: "under PyTorch too", 5: "flaky"}
REFUSED = [name for name, expect in expectations().items() if expect["exit_code"] != 0]


@pytest.mark.parametrize("fixture", REFUSED)
def test_a_case_that_is_no_gap(fixture: str, tmp_path: Path) -> None:
    job = run_job(fixture, tmp_path, "--json")
    code = job.expect["exit_code"]
    assert job.done.returncode == code, job.story
    told = json.loads(job.done.stdout)
    assert told["exit_code"] == code
    assert WORDS[code] in told["error"]
    assert not job.out.exists()
    assert job.after == job.before
    assert job.site_after == job.site_before
