"""Scripts from a recorded failure. The failing programs are real; a small stand-in package plays the framework where
only the record's form matters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reducer.edits.prelude import PRELUDE
from reducer.slicing.recorded import synthesise
from reducer.slicing.recorded_values import Style, source
from reducer.world import recorder


def record(place: Path, program: str) -> dict[str, Any]:
    place.mkdir(exist_ok=True)
    (place / "main.py").write_text(program)
    out = place.parent / "record.json"
    argv = recorder.command(["python", "-W", "ignore", "main.py"], recorder.__file__, str(out), str(place))
    assert argv is not None
    subprocess.run([sys.executable, *argv[1:]], cwd=place, capture_output=True, timeout=120, check=False)
    return recorder.load(str(out))


def test_failing_import_alone(tmp_path: Path) -> None:
    found = synthesise(record(tmp_path / "case", "import json\nfrom json import dumps, no_such_name\n"))
    assert found[0] == PRELUDE + "from json import no_such_name\n"


def test_own_modules_are_never_named(tmp_path: Path) -> None:
    saved = record(tmp_path / "case", "from json import no_such_name\n")
    assert synthesise(saved, own={"json"}) == []


def test_operands_become_values(tmp_path: Path) -> None:
    program = "import json\nclass C: pass\nc = C()\nc.items = [1, 'a']\njson.dumps(c.items, indent=set())\n"
    assert PRELUDE + "import json\njson.dumps([1, 'a'], indent=set())\n" in synthesise(
        record(tmp_path / "case", program)
    )


def test_what_the_recorder_saw_survives_a_crash(tmp_path: Path) -> None:
    saved = record(tmp_path / "case", "x = 1\nimport os\nos.abort()\n")
    assert saved["crashed"] and saved["executed"] == {"main.py": [1, 2, 3]} and saved["last"] == ["main.py", 3]


@pytest.mark.parametrize(
    ("described", "style", "text"),
    [
        ({"kind": "tensor", "shape": [4, 8], "dtype": "float32"}, Style("zeros"), "torch.zeros(4, 8)"),
        ({"kind": "tensor", "shape": [4, 8], "dtype": "float32"}, Style("ones", {4: 2, 8: 3}), "torch.ones(2, 3)"),
        (
            {"kind": "tensor", "shape": [3], "dtype": "int64", "values": [0, 5, 2]},
            Style("zeros", {3: 2}),
            "torch.tensor([0, 1])",
        ),
        (
            {"kind": "tensor", "shape": [2], "dtype": "float32", "values": [0.10000000149011612, 2.0]},
            Style("exact"),
            "torch.tensor([0.1, 2.0])",
        ),
        (
            {"kind": "tensor", "shape": [2], "dtype": "float64", "requires_grad": True},
            Style("zeros"),
            "torch.zeros(2, dtype=torch.float64, requires_grad=True)",
        ),
        ({"kind": "tuple", "items": [{"kind": "literal", "source": "3"}]}, Style("zeros"), "(3,)"),
    ],
)
def test_values_as_source(described: dict[str, Any], style: Style, text: str) -> None:
    assert source(described, style) == text


@pytest.mark.real
def test_a_missing_tensor_method_on_paddle(tmp_path: Path) -> None:
    program = (
        PRELUDE + "import torch\nclass Bank:\n    def __init__(self):\n        self.rows = torch.zeros(4, 8)\n"
        "    def put(self, at, new):\n        self.rows.index_copy_(0, at, new)\n"
        "Bank().put(torch.tensor([0, 3]), torch.ones(2, 8))\n"
    )
    found = synthesise(record(tmp_path / "case", program))
    assert found[0].removeprefix(PRELUDE).splitlines() == [
        "import torch",
        "x = torch.zeros(3, 4)",
        "x.index_copy_(0, torch.tensor([0, 2]), torch.zeros(2, 4))",
    ]
