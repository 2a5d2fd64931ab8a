"""A sweep over a directory of cases (see benchmarks/cases.py), named by the environment variable REDUCE_CASES."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from benchmarks.cases import cases, run_case

pytestmark = pytest.mark.slow

DIRECTORY = os.environ.get("REDUCE_CASES")
FOLDERS = cases(Path(DIRECTORY), []) if DIRECTORY else []


@pytest.mark.skipif(not FOLDERS, reason="set REDUCE_CASES to a directory of cases (folders with a case.json)")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_case(folder: Path, tmp_path: Path) -> None:
    row = run_case(folder, tmp_path, Path(sys.executable), limit=1200)
    assert row.exit_code == 0, row.log[-5000:]
    assert row.holds, "the written directory does not fail on Paddle and pass under PyTorch"
    assert row.named, "the symbol is not in the MRE"
    assert row.within, row.markdown()
