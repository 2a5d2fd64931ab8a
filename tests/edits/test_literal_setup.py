"""A setup.py made from the calls that a real one made."""

from __future__ import annotations

import ast
from typing import Any

from reducer.edits.literal_setup import builds_source, literal_setups


def call(*args: Any, function: str = "CppExtension", **kwargs: Any) -> dict[str, Any]:
    return {"function": function, "args": list(args), "kwargs": kwargs}


def written(text: bytes) -> list[str]:
    """The extension calls, as expressions."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return [ast.unparse(node) for node in calls if ast.unparse(node.func).endswith("Extension")]


def test_arguments_keep_their_places_and_values() -> None:
    (tree,) = literal_setups([call("a._C", ["x.cc", "y.cc"], libraries=["c10"], language="c++")])
    assert written(tree["setup.py"]) == ["CppExtension('mre_ext', ['csrc/mre.cc'], libraries=['c10'], language='c++')"]
    assert b"import paddle; paddle.enable_compat()" in tree["setup.py"]
    assert set(tree) == {"setup.py", "csrc/mre.cc"}
    assert builds_source(tree)


def test_names_and_sources_given_by_name_are_replaced() -> None:
    (tree,) = literal_setups([call(sources=["x.cu"], name="a._C", function="CUDAExtension")])
    assert written(tree["setup.py"]) == ["CUDAExtension(sources=['csrc/mre.cc'], name='mre_ext')"]
    assert b"import BuildExtension, CUDAExtension" in tree["setup.py"]


def test_each_extension_alone_comes_before_all_together() -> None:
    calls = [call(name="a", sources=["a.cc"]), call(name="b", sources=["b.cc"], libraries=["m"])]
    trees = list(literal_setups(calls))
    assert [len(written(tree["setup.py"])) for tree in trees] == [1, 1, 2]
    assert (
        written(trees[2]["setup.py"])[1] == "CppExtension(name='mre_ext_2', sources=['csrc/mre.cc'], libraries=['m'])"
    )


def test_nothing_was_seen() -> None:
    assert not list(literal_setups([]))


def test_a_setup_script_that_builds_nothing_is_not_whole() -> None:
    (tree,) = literal_setups([call(name="a", sources=["a.cc"])])
    text = tree["setup.py"]
    assert not builds_source(tree.updated({"setup.py": text.replace(b"csrc/mre.cc", b"x")}))
    assert not builds_source(tree.updated({"setup.py": text.replace(b'"build_ext": BuildExtension', b"")}))
    assert not builds_source(tree.updated({"setup.py": None}))
