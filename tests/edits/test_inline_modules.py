"""Inlining: one script that prints what the modules printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reducer.edits.inline_modules import inlinable, inline, inline_one
from reducer.edits.prelude import PRELUDE
from reducer.tree import SourceTree

PADDLE = {"paddle.py": b"def enable_compat(scope=None):\n    pass\n"}  # the prelude's import, without a framework


def run(tree: SourceTree, place: Path) -> str:
    tree.updated(PADDLE).write(place)
    done = subprocess.run([sys.executable, "repro.py"], cwd=place, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr + tree.text("repro.py")
    return done.stdout


CASES = {
    "from_and_attribute": {
        "repro.py": "from pkg.a import f as g\nimport pkg.b as m\nimport pkg\n"
        "print(g(1), m.f(2), pkg.a.LIMIT, m.__name__)\n",
        "pkg/__init__.py": "",
        "pkg/a.py": "LIMIT = 3\ndef f(x):\n    return x + LIMIT\n",
        "pkg/b.py": "from .a import LIMIT as top\ndef f(x):\n    f_local = top\n    return x * f_local\n__name__\n",
    },
    "clashes": {
        "repro.py": "from p import one, two\nhelper = 'mine'\nprint(one.go(), two.go(), helper)\n",
        "p/__init__.py": "",
        "p/one.py": "def helper():\n    return 1\ndef go():\n    return helper()\n",
        "p/two.py": "def helper():\n    return 2\ndef go():\n    one_helper = 5\n    return helper() + one_helper\n",
    },
    "reexports_and_star": {
        "repro.py": "from p import Thing, make\nprint(make().name, Thing.kind)\n",
        "p/__init__.py": "from .things import *\nfrom .make import make\n__all__ = ['Thing', 'make']\n",
        "p/things.py": "import math as m\nclass Thing:\n    kind = m.floor(2.5)\n"
        "    def __init__(self, name): self.name = name\n",
        "p/make.py": "from . import things\ndef make():\n    return things.Thing(__name__)\n",
    },
    "lazy_and_circular": {
        "repro.py": "from p.a import start\nprint(start(3))\n",
        "p/__init__.py": "",
        "p/a.py": "from . import b\ndef start(n):\n    return b.down(n)\ndef stop():\n    return 'end'\n",
        "p/b.py": "def down(n):\n    from .a import start, stop\n    return start(n - 1) if n else stop()\n",
    },
    "shadowed": {
        "repro.py": "import q\ndef use(value):\n    return q.value + value\nprint(use(1))\n",
        "q.py": "value = 10\n",
    },
    "annotations": {
        "repro.py": "from q import Q, f\nprint(f(), Q().x)\n",
        "q.py": "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Q:\n    x: Missing = 1\ndef f(a: Absent = 2):\n    return a\n",
    },
    "guarded": {
        "repro.py": "import q\nif __name__ == '__main__':\n    print(q.found)\n",
        "q.py": "try:\n    import no_such_module as found\nexcept ImportError:\n    found = None\n"
        "if __name__ == '__main__':\n    raise SystemExit(9)\n",
    },
}


@pytest.mark.parametrize("name", CASES)
def test_the_script_prints_the_same(name: str, tmp_path: Path) -> None:
    tree = SourceTree({path: text.encode() for path, text in CASES[name].items()})
    expected = run(tree, tmp_path / "before")
    result = inline(tree)
    assert result is not None and result.text("repro.py").startswith(PRELUDE)
    after = run(result, tmp_path / "after")
    assert list(result) == ["repro.py"]
    assert after == expected


def test_a_module_used_as_a_value_stays_with_what_it_imports(tmp_path: Path) -> None:
    tree = SourceTree(
        {
            "repro.py": b"import data, plain\nprint(sorted(vars(data))[-1], plain.f())\n",
            "data.py": b"import deep\nz = deep.x\n",
            "deep.py": b"x = 1\n",
            "plain.py": b"def f():\n    return 7\n",
        }
    )
    result = inline(tree)
    assert result is not None and sorted(result) == ["data.py", "deep.py", "repro.py"]
    assert run(result, tmp_path / "after") == "z 7\n"


def test_one_module_at_a_time(tmp_path: Path) -> None:
    tree = SourceTree({path: text.encode() for path, text in CASES["clashes"].items()})
    assert inlinable(tree) == ["p", "p.one", "p.two"]
    result = inline_one(tree, "repro.py", "p.two")
    assert result is not None and "p/one.py" in result and "p/two.py" not in result
    assert run(result, tmp_path / "after") == "1 7 mine\n"
