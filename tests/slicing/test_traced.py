"""Failing runs as straight lines. The programs run for real on a small package named torch that plays the framework's
part: only names, identities and the order of operations matter here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from reducer.edits.prelude import PRELUDE
from reducer.slicing.traced import straight_lines
from reducer.world import recorder

TORCH = """
class Tensor:
    dtype, shape, requires_grad, grad = "torch.float32", (2,), False, None
    def __init__(self, value): self.value = value
    def double(self): return Tensor(self.value * 2)
    def add_(self, other): self.value += other; return self
    def item(self): return float(self.value)
    def detach(self): return self
    def tolist(self): return [self.value, self.value]
    def __add__(self, other): return Tensor(self.value + getattr(other, "value", other))
    def __getitem__(self, key): return Tensor(self.value)
    def __setitem__(self, key, value): self.value = value
    def backward(self): LEAF.grad = Tensor(self.value)
LEAF = Tensor(0)
def full(value): global LEAF; LEAF = Tensor(value); return LEAF
def pair(x): return Tensor(x.value), Tensor(-x.value)
def manual_seed(n): return object()
"""


def lines(place: Path, program: str, **modules: str) -> list[str]:
    case, frameworks = place / "case", place / "frameworks"
    case.mkdir()
    frameworks.mkdir()
    (frameworks / "torch.py").write_text(TORCH)
    for name, text in {"repro": program, **modules}.items():
        (case / f"{name}.py").write_text(text)
    out = place / "record.json"
    argv = recorder.command(["python", "repro.py"], recorder.__file__, str(out), str(case), trace=True)
    assert argv is not None
    env = {"PYTHONPATH": f"{frameworks}", "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, *argv[1:]], cwd=case, env=env, capture_output=True, timeout=120, check=False)
    saved: dict[str, Any] = recorder.load(str(out))
    head = PRELUDE + "import torch\n"
    found = straight_lines(saved)
    assert all(text.startswith(head) for text in found)
    return [text[len(head) :] for text in found]


def test_modules_classes_and_control_flow_are_gone(tmp_path: Path) -> None:
    library = (
        "class Model:\n"
        "    def __init__(self, n): self.n = n\n"
        "    def __call__(self, x, name):\n"
        "        for _ in range(self.n):\n"
        "            if name in self.__dict__: x = None\n"
        "            x = getattr(x, name)() + self.n\n"
        "        return x\n"
    )
    program = "import torch\nfrom library import Model\ny = Model(2)(torch.full(3), 'double')\nassert y.item() == 0\n"
    expected = "assert ((torch.full(3).double() + 2).double() + 2).item() == 0\n"
    assert lines(tmp_path, program, library=library)[0] == expected


def test_only_what_the_failure_depends_on(tmp_path: Path) -> None:
    program = "import torch\nx = torch.full(1)\ny = torch.full(2)\nz = y.double()\nx.add_(4)\nassert x.item() == 0\n"
    assert lines(tmp_path, program)[0] == "x = torch.full(1)\nx.add_(4)\nassert x.item() == 0\n"


def test_effects_on_what_is_read_stay(tmp_path: Path) -> None:
    program = "import torch\nx = torch.full(1)\nx[0:1] = 7\nx.double().backward()\nassert x.grad.item() == 0\n"
    expected = "x = torch.full(1)\nx[0:1] = 7\nx.double().backward()\nassert x.grad.item() == 0\n"
    assert lines(tmp_path, program)[0] == expected


def test_parts_of_a_result_and_plain_names_of_the_framework(tmp_path: Path) -> None:
    program = "from torch import full, pair\na, b = pair(full(3))\nn = b.item()\nassert n == 0, n\n"
    assert "assert torch.pair(torch.full(3))[1].item() == 0\n" in lines(tmp_path, program)


def test_a_check_inside_a_helper(tmp_path: Path) -> None:
    program = (
        "import torch\ndef near(a, n): return a.item() == n\nx = torch.full(3)\nassert near(x.double(), 0), 'wrong'\n"
    )
    assert "assert torch.full(3).double().item() == 0\n" in lines(tmp_path, program)


def test_an_exception_of_the_framework_keeps_its_history(tmp_path: Path) -> None:
    program = "import torch\ndef f(t): return t.double().no_such(2)\nf(torch.full(3))\n"
    assert lines(tmp_path, program)[0] == "torch.full(3).double().no_such(2)\n"


def test_settings_are_a_second_choice(tmp_path: Path) -> None:
    found = lines(tmp_path, "import torch\ntorch.manual_seed(0)\nx = torch.full(1)\nassert x.item() == 0\n")
    assert found[0] == "assert torch.full(1).item() == 0\n"
    assert any("torch.manual_seed(0)\n" in text for text in found)


def test_no_trace_no_script(tmp_path: Path) -> None:
    assert lines(tmp_path, "import torch\nassert len('a') == 2\n") == []
