"""What each Python pass makes of small programs."""

from __future__ import annotations

import contextlib
import io

import pytest

from reducer.edits.edit import Edit, apply
from reducer.edits.passes import Pass, Proposal
from reducer.edits.py_arguments import PyArguments
from reducer.edits.py_definitions import PyDefinitions
from reducer.edits.py_expressions import PyExpressions
from reducer.edits.py_flatten_classes import PyFlattenClasses
from reducer.edits.py_format import format_python
from reducer.edits.py_imports import PyImports, PyUnusedImports
from reducer.edits.py_inline import PyInline
from reducer.edits.py_inline_functions import PyInlineFunctions
from reducer.edits.py_naming import PyNaming
from reducer.edits.py_signatures import PySignatures
from reducer.edits.py_statements import PyStatements
from reducer.edits.py_unwrap import PyUnwrap
from reducer.tree import SourceTree

PRELUDE = 'import os\nif os.getenv("USE_TORCH") is None: import paddle; paddle.enable_compat()\n'


def script(source: str) -> SourceTree:
    return SourceTree({"a.py": source.encode()})


def results(some_pass: Pass, source: str) -> list[str]:
    """What each edit alone makes of the source."""
    tree = script(source)
    return [apply(tree, [edit]).text("a.py") for edit in some_pass.propose(tree).edits]


def output(source: str) -> str:
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        exec(compile(source, "a.py", "exec"), {"__name__": "__main__"})
    return stream.getvalue()


# -- definitions ----------------------------------------------------------------------------------------------------

PROJECT = SourceTree(
    {
        "lib/__init__.py": b"from .core import used, spare\nfrom . import extra\n__all__ = ['used', 'spare']\n",
        "lib/core.py": b"import math\nfrom .base import Base, other\n\n\ndef helper(x):\n    return math.floor(x)\n\n\n"
        b"def used(x):\n    return helper(x)\n\n\ndef spare():\n    return Base().run()\n",
        "lib/base.py": b"class Base:\n    size = 3\n\n    def run(self):\n        return self.step()\n\n"
        b"    def step(self):\n        return self.size\n\n\ndef other():\n    pass\n",
        "lib/extra.py": b"def unrelated():\n    pass\n",
        "conftest.py": b"import pytest\n\n\n@pytest.fixture\ndef number():\n    return 1.5\n",
        "tests/test_a.py": b"import lib\n"
        b"from lib import used\n\n\ndef test_used(number):\n    assert used(number) == 1\n"
        b"\n\ndef test_spare():\n    assert lib.spare() == 3\n",
    }
)


def closure(proposal: Proposal, label: str) -> frozenset[int]:
    found = {i for i, e in enumerate(proposal.edits) if e.label == label}
    assert len(found) == 1, [e.label for e in proposal.edits]
    todo = list(found)
    while todo:
        for i in proposal.requires[todo.pop()] - found:
            found.add(i)
            todo.append(i)
    return frozenset(found)


def kept_files(label: str) -> dict[str, str]:
    proposal = PyDefinitions().propose(PROJECT)
    keep = closure(proposal, label)
    tree = apply(PROJECT, [e for i, e in enumerate(proposal.edits) if i not in keep])
    return {path: tree.text(path) for path in tree}


def test_closure_of_a_test_is_what_it_imports_and_calls() -> None:
    files = kept_files("function test_used")
    assert "lib/extra.py" not in files and "lib/base.py" not in files
    assert files["tests/test_a.py"].split() == [
        "from",
        "lib",
        "import",
        "used",
        "def",
        "test_used(number):",
        "assert",
        "used(number)",
        "==",
        "1",
    ]
    assert files["lib/__init__.py"].split() == ["from", ".core", "import", "used"]
    assert "def helper" in files["lib/core.py"] and "spare" not in files["lib/core.py"]
    assert "def number" in files["conftest.py"]


def test_closure_follows_module_attributes_methods_and_class_attributes() -> None:
    files = kept_files("function test_spare")
    assert "def step" in files["lib/base.py"] and "size = 3" in files["lib/base.py"]
    assert "other" not in files["lib/base.py"]
    assert "from .core import spare" in files["lib/__init__.py"]
    assert "used" not in files["lib/core.py"]


def test_pinned_definitions_and_their_files_are_not_offered() -> None:
    proposal = PyDefinitions(lambda node, path: getattr(node, "name", "") == "used").propose(PROJECT)
    labels = {e.label for e in proposal.edits}
    assert "function used" not in labels and "module lib/core.py" not in labels
    assert "function spare" in labels


def test_star_imports_lead_to_what_they_bring() -> None:
    tree = SourceTree({"m.py": b"from n import *\nprint(value)\n", "n.py": b"value = 1\nother = 2\n"})
    proposal = PyDefinitions().propose(tree)
    keep = closure(proposal, "line 2")
    after = apply(tree, [e for i, e in enumerate(proposal.edits) if i not in keep])
    assert after.text("n.py") == "value = 1\n"
    assert after.text("m.py") == "from n import *\nprint(value)\n"


# -- statements and imports -----------------------------------------------------------------------------------------


def test_statement_closures_keep_what_the_statement_reads() -> None:
    tree = script("a = 1\nb = 2\nc = a + 1\nif b:\n    print(c)\n")
    proposal = PyStatements(dependencies=True).propose(tree)
    keep = closure(proposal, "expr at line 5")
    assert {proposal.edits[i].label for i in keep} == {
        "assign at line 1",
        "assign at line 2",
        "assign at line 3",
        "if at line 4",
        "expr at line 5",
    }


def test_pinned_statements_keep_their_ancestors() -> None:
    tree = script("x = 1\ndef f():\n    y = 2\n    assert x == 2\nf()\n")
    proposal = PyStatements(lambda node, path: type(node).__name__ == "Assert").propose(tree)
    assert apply(tree, proposal.edits).text("a.py") == "def f():\n    assert x == 2\n"


def test_import_names_go_alone_and_together() -> None:
    source = "from torch import (nn,  # a\n    optim, cuda as c)\nc()\n"
    tree = script(source)
    proposal = PyImports().propose(tree)
    assert [e.label for e in proposal.edits] == ["import of nn", "import of optim", "import of c"]
    assert apply(tree, proposal.edits[:2]).text("a.py").split("\n")[1:] == ["from torch import cuda as c", "c()", ""]
    assert results(PyUnusedImports(), source)[0].strip() == "from torch import cuda as c\nc()"


def test_an_unused_alias_goes_while_its_import_stays() -> None:
    assert "import torch.fx\n" in results(PyUnusedImports(), "import torch.fx as _fx\n")


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("if a:\n    b()\nelse:\n    c()\n", ["b()\n", "c()\n", "if a:\n    b()\n"]),
        ("if a:\n    b()\nelif d:\n    c()\n", ["b()\n", "if d:\n    c()\n"]),
        ("for i in [7, 8]:\n  for j in range(3):\n    f(i, j)\n", ["i = 7\nfor j in range(3):\n  f(i, j)\n"]),
        ("with a() as b, c() as d:\n    e\n", ["b = a()\nd = c()\ne\n"]),
        ("try:\n    a\nexcept E:\n    b\nelse:\n    c\nfinally:\n    d\n", ["a\n", "b\n", "a\nc\n", "d\n"]),
        ("if a:\n    s = '''x\n    y'''\n    t\n", ["s = '''x\n    y'''\nt\n"]),
    ],
)
def test_unwrapping(source: str, wanted: list[str]) -> None:
    found = results(PyUnwrap(), source)
    for text in wanted:
        assert text in found


def test_two_levels_unwrap_at_once() -> None:
    tree = script("if a:\n    x\n    while b:\n        y\n        z\n")
    edits = {e.label: e for e in PyUnwrap().propose(tree).edits}
    both = [edits["body of if at line 1 (if)"], edits["body of loop at line 3 (while)"]]
    assert apply(tree, both).text("a.py") == "x\ny\nz\n"


# -- expressions, arguments, signatures -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("x = f(a + b)\n", "x = a + b\n"),
        ("x = a.t().sum()\n", "x = a.t()\n"),
        ("x = (a + b) * c\n", "x = a + b\n"),
        ("x = f(a if b else c)\n", "x = f(c)\n"),
        ("import torch\nx = torch.randn(64, 128)\n", "import torch\nx = torch.ones(64, 128)\n"),
        ("import torch\nx = torch.randn(64, 128)\n", "import torch\nx = torch.ones(2, 3)\n"),
        ("x = [f(i) for i in (3, 4)]\n", "x = [f(3)]\n"),
        ("assert a == b, (a, b)\n", "assert a == b\n"),
        ("assert f(1)\n", "f(1)\n"),
        ("assert ('x' if c else 'y') == 'y'\n", "assert not (c)\n"),
        ("x = f'{a} b'\n", 'x = "x"\n'),
        ("f(123)\n", "f(2)\n"),
    ],
)
def test_expressions(source: str, wanted: str) -> None:
    assert wanted in [
        text.replace("((", "(").replace("))", ")") if "((" in text else text
        for text in results(PyExpressions(), source)
    ]


def test_modules_are_not_taken_for_values() -> None:
    assert "torch\n" not in results(PyExpressions(), "import torch\ntorch.nn.Linear(1, 1)\n")[0].split("import torch\n")


def test_expression_edits_terminate() -> None:
    """Following any first alternative never comes back to a program that was there before."""
    tree = script(
        "import torch\nx = torch.randn(64, 128) + torch.tensor([2.0, 5.5]).sum() * 17\nassert f(x[1], 'abc')\n"
    )
    seen = {tree.digest}
    for _ in range(200):
        edits = PyExpressions().propose(tree).edits
        if not edits:
            return
        tree = apply(tree, edits[:1])
        assert tree.digest not in seen
        seen.add(tree.digest)
    raise AssertionError("no end")


def test_arguments_any_subset_and_tuples_stay_tuples() -> None:
    tree = script("f((a), *b, k=(1, 2), **c)\n")
    proposal = PyArguments().propose(tree)
    assert "f()\n" in {apply(tree, [e for e in proposal.edits if e.label[9:] not in ("1", "2")]).text("a.py")}
    first = next(e for e in proposal.edits if e.label == "argument 1")
    assert apply(tree, [first]).text("a.py") == "f((a), *b, k=(2,), **c)\n"


def test_a_parameter_goes_with_its_arguments() -> None:
    source = "def f(a, b=2, *, c=3):\n    return a + c\n\n\nf(1, 5)\nf(a=1, b=6, c=4)\n"
    assert "def f(a,  *, c=3):\n    return a + c\n\n\nf(1, )\nf(a=1, c=4)\n" in results(PySignatures(), source)
    used = "def f(a, n):\n    return a * n\n\n\nf(x, 3)\nf(y, n=3)\n"
    assert "def f(a, ):\n    return a * 3\n\n\nf(x, )\nf(y, )\n" in results(PySignatures(), used)


def test_annotations_decorators_bases_and_what_they_evaluate() -> None:
    source = "@lib.wrap(1)\ndef f(a: int, b: 'x' = None) -> str:\n    v: int = 3\n    return v\n"
    found = results(PySignatures(), source)
    assert "@lib.wrap(1)\ndef f(a, b = None):\n    v = 3\n    return v\n" in found
    assert "def f(a: int, b: 'x' = None) -> str:\n    v: int = 3\n    return v\n" in found
    assert "lib.wrap(1)\n" in found
    assert "class A:\n    pass\n" in results(PySignatures(), "class A(lib.B):\n    pass\n")


# -- inlining -------------------------------------------------------------------------------------------------------

PROGRAMS = [
    "a = 2\nb = a + 1\nc = b * b\nprint(c)\n",
    "a = [1]\na = a + [2]\nprint(a)\n",
    "n = 3\nfor i in range(n):\n    print(i, n)\n",
    "a, b = 1, 2\nprint(a - b)\n",
    "def f(x, y=2):\n    z = x * y\n    return z + 1\n\n\nx = 5\nprint(f(x + 1))\n",
    "def f(x):\n    return x - 1\n\n\nprint(f(3) * f(5 - 2))\n",
    "def main():\n    v = 3\n    print(v)\n\n\nmain()\n",
    "def f(*a, **k):\n    return len(a) + len(k)\n\n\nprint(f(1, 2, c=3))\n",
    "class C:\n    k = 2\n\n    def __init__(self, n):\n        self.n = n\n\n    def times(self, m):\n"
    "        return self.n * m * self.k\n\n\nc = C(3)\nprint(c.times(4), c.n)\n",
    "class C:\n    def __init__(self, n):\n        self.n = n\n\n    def __call__(self, m):\n        self.n += m\n"
    "        return self.n\n\n\nprint(C(3)(4))\n",
    "from dataclasses import dataclass, field\n\n\n@dataclass\nclass C:\n    n: int = 1\n"
    "    m: list = field(default_factory=list)\n\n\nc = C(n=4)\nprint(c.n, c.m)\n",
    "class C:\n    def __len__(self):\n        return 3\n\n    def __getitem__(self, i):\n        return i * 2\n\n\n"
    "c = C()\nprint(len(c), c[4])\n",
    "class C:\n    @staticmethod\n    def f(x):\n        return x + 1\n\n\nprint(C.f(1))\n",
]


@pytest.mark.parametrize("source", PROGRAMS)
@pytest.mark.parametrize("some_pass", [PyInline(), PyInlineFunctions(), PyFlattenClasses()], ids=lambda p: p.name)
def test_inlining_keeps_what_the_program_does(source: str, some_pass: Pass) -> None:
    for text in results(some_pass, source):
        assert output(text) == output(source), text


def flattened(source: str) -> str:
    """Apply first edits of the inlining passes until none is left."""
    tree = script(source)
    for _ in range(30):
        edits: list[Edit] = []
        for some_pass in (PyFlattenClasses(), PyInlineFunctions(), PyInline()):
            edits += some_pass.propose(tree).edits
        if not edits:
            break
        tree = apply(tree, edits[:1])
    return format_python(tree["a.py"]).decode()


def test_a_module_class_becomes_straight_code() -> None:
    source = (
        f"{PRELUDE}import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def __init__(self, n):\n"
        "        super().__init__()\n        self.w = torch.ones(n)\n\n    def forward(self, x):\n"
        "        y = self.w * x\n        return y.sum()\n\n\nm = M(3)\nassert m(2) == 6\n"
    )
    assert (
        flattened(source) == f"{PRELUDE}import torch\nfrom torch import nn\n\nassert (torch.ones(3) * 2).sum() == 6\n"
    )


def test_recursion_and_early_returns_are_left_alone() -> None:
    assert results(PyInlineFunctions(), "def f(n):\n    return f(n - 1)\n\n\nf(1)\n") == []
    assert results(PyInlineFunctions(), "def f(n):\n    if n:\n        return 1\n    return 2\n\n\nf(1)\n") == []


def test_a_class_whose_instance_is_passed_on_is_left_alone() -> None:
    assert results(PyFlattenClasses(), "class C:\n    def f(self):\n        return g(self)\n\n\nc = C()\nc.f()\n") == []


def test_locals_do_not_overwrite_the_callers_names() -> None:
    source = "def f(x):\n    t = x + 1\n    t += 1\n    return t\n\n\nt = 10\nprint(f(t), t)\n"
    (text,) = results(PyInlineFunctions(), source)
    assert output(text) == "12 10\n"


# -- names and format -----------------------------------------------------------------------------------------------


def test_renaming_leaves_attributes_keywords_strings_and_imports() -> None:
    source = (
        "import torch\nfrom lib import very_long_name\n\n\nclass PrototypeBankModule(torch.nn.Module):\n"
        "    def long_method(self, the_input):\n        return the_input\n\n\ninput_tensor = torch.ones(2)\n"
        "key_word = 1\nf(key_word=key_word)\nPrototypeBankModule().long_method(input_tensor)\nvery_long_name()\n"
    )
    text = results(PyNaming(), source)[0]
    assert "class Model(torch.nn.Module):\n    def long_method(self, y):\n        return y\n" in text
    assert "x = torch.ones(2)\nkey_word = 1\nf(key_word=key_word)\nModel().long_method(x)\nvery_long_name()\n" in text


def test_format_keeps_the_prelude_and_puts_imports_first() -> None:
    source = f"{PRELUDE}x = ((1))\nimport torch\nfrom torch import nn\nfrom torch import optim\nf( x,)\n"
    wanted = f"{PRELUDE}import torch\nfrom torch import nn, optim\n\nx = 1\nf(x)\n"
    assert format_python(source.encode()).decode() == wanted


def test_format_keeps_long_strings_comments_and_line_ends() -> None:
    source = 's = """\na\n"""  # why\n# above\nf(s)\n'
    assert format_python(source.encode()).decode() == source
    assert format_python(b"x=1\r\ny=(2)\r\n") == b"x = 1\r\ny = 2\r\n"
    assert format_python(b"def f(:\n") == b"def f(:\n"
