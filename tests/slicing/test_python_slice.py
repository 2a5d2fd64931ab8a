"""The dynamic slice: what goes, what stays importable and runnable."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from reducer.edits.edit import apply
from reducer.slicing.python import executed_slice
from reducer.tree import SourceTree
from reducer.world import recorder

LIBRARY = {
    "main.py": b"from lib import used, unused\nfrom lib.shapes import Box\n\n"
    b"b = Box(2)\nprint(used(b))\nraise KeyError('gap')\n",
    "lib/__init__.py": b"from .core import used, unused\n__all__ = ['used', 'unused']\n",
    "lib/core.py": (
        b"def used(box):\n    if box.side > 5:\n        return 0\n    return box.area()\n\n\n"
        b"def unused(x):\n    return helper(x)\n\n\ndef helper(x):\n    return x\n"
    ),
    "lib/shapes.py": (
        b"class Box:\n    def __init__(self, side):\n        self.side = side\n\n    def area(self):\n"
        b"        return self.side * self.side\n\n    def __len__(self):\n        return self.side\n\n"
        b"    def volume(self):\n        return self.side ** 3\n"
    ),
    "lib/never.py": b"import lib\n",
}


def run(tree: SourceTree, place: Path) -> tuple[dict[str, list[int]], subprocess.CompletedProcess[str]]:
    tree.write(place)
    out = place.parent / f"{place.name}.json"
    argv = recorder.command(["python", "main.py"], recorder.__file__, str(out), str(place))
    assert argv is not None
    done = subprocess.run([sys.executable, *argv[1:]], cwd=place, capture_output=True, text=True, timeout=60)
    return recorder.load(str(out))["executed"], done


def test_every_slice_still_fails_the_same_way(tmp_path: Path) -> None:
    tree = SourceTree(LIBRARY)
    executed, before = run(tree, tmp_path / "whole")
    assert before.returncode == 1 and "KeyError: 'gap'" in before.stderr
    edits = executed_slice(tree, executed)
    assert len(edits) == 3
    sizes = []
    for number, edit in enumerate(edits):
        sliced = apply(tree, [edit])
        _, after = run(sliced, tmp_path / f"slice{number}")
        assert (after.returncode, after.stdout) == (1, "4\n"), after.stderr
        assert after.stderr.splitlines()[-1] == "KeyError: 'gap'"
        sizes.append(sum(len(content) for content in sliced.values()))
    assert sizes == sorted(sizes) and sizes[-1] < sum(map(len, LIBRARY.values()))


def test_the_boldest_slice_drops_definitions_with_their_imports(tmp_path: Path) -> None:
    tree = SourceTree(LIBRARY)
    executed, _ = run(tree, tmp_path / "whole")
    sliced = apply(tree, executed_slice(tree, executed)[:1])
    assert "lib/never.py" not in sliced
    everything = "\n".join(sliced.text(path) for path in sliced)
    assert "unused" not in everything and "helper" not in everything and "volume" not in everything
    assert "return 0" not in everything
    assert "__len__" in everything  # called by len(), which no name tells


def test_frames_keep_what_their_functions_would_go_on_with() -> None:
    source = b"def f():\n    g()\n    return later()\n\n\ndef g():\n    raise KeyError\n\n\n"
    source += b"def later():\n    return 1\n\n\nf()\n\n\ndef idle():\n    pass\n"
    tree = SourceTree({"main.py": source})
    executed = {"main.py": [1, 2, 6, 7, 10, 14, 17]}
    strict, going_on = (
        apply(tree, [e]).text("main.py") for e in executed_slice(tree, executed, frames=[("main.py", 2)])[:2]
    )
    assert "later" not in strict
    assert "return later()" in going_on and "return 1" in going_on and "idle" not in going_on
