"""The route of Python code: to one script, then as small and plain as it gets."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from reducer import checks
from reducer.edits.edit import apply
from reducer.edits.extension import SCRIPT, has_prelude
from reducer.edits.files import Files
from reducer.edits.fold_pytest import fold
from reducer.edits.inline_modules import inline, inline_one
from reducer.edits.passes import Pass, Restricted
from reducer.edits.prelude import PRELUDE, replace_prelude, scopes, switches_compat
from reducer.edits.py_arguments import PyArguments
from reducer.edits.py_definitions import PyDefinitions
from reducer.edits.py_expressions import PyExpressions
from reducer.edits.py_flatten_classes import PyFlattenClasses
from reducer.edits.py_format import format_python
from reducer.edits.py_imports import PyImports, PySplitImports, PyUnusedImports
from reducer.edits.py_inline import PyInline
from reducer.edits.py_inline_functions import PyInlineFunctions
from reducer.edits.py_naming import PyNaming
from reducer.edits.py_signatures import PySignatures
from reducer.edits.py_statements import PyComments, PyStatements
from reducer.edits.py_unwrap import PyUnwrap
from reducer.frameworks.build_command import CXX_SOURCE
from reducer.frameworks.flags import extension_names
from reducer.oracle.candidate import Candidate, Recipe
from reducer.routes.context import RUN_SCRIPT, Context, pytest_node, script_source
from reducer.slicing.python import executed_slice
from reducer.slicing.recorded import synthesise
from reducer.slicing.traced import straight_lines
from reducer.syntax.python import parse_source
from reducer.tree import SourceTree
from reducer.world.commands import join_simple, parse_simple

REPLAYS = 12  # variants of a replayed call that are tried, plainest values first


def reduce_python(context: Context) -> None:
    """Reduce a case whose failure shows when Python code is imported or run, without touching compiled sources."""
    without_path(context)
    record = context.record()
    if replay(context, record):
        polish(context)
        return
    to_script(context, record)
    without_build(context)
    if traced(context):
        polish(context)
        return
    slices(context)
    fine(context)


def replay(context: Context, record: dict[str, Any]) -> bool:
    """The failing call alone, with the operands that the failing run saw: when it fails the same way, all other Python
    code goes. With a build the script loads the extensions itself."""
    reduction, best = context.reduction, context.reduction.best
    loads = [f"import {name}" for name in extension_names(context.baseline.control)] if best.recipe.build else []
    allowed = python_only(context)
    rest = {path: None for path in best.tree if allowed(path)} if best.recipe.build else dict.fromkeys(best.tree)
    for text in synthesise(record, own=checks.top_level(best.tree))[:REPLAYS]:
        scripts = (text, _loading(text, loads)) if "torch.ops." not in text else (_loading(text, loads),)
        for script in dict.fromkeys(scripts):
            tree = best.tree.updated({**rest, SCRIPT: script.encode()})
            build = best.recipe.build if script != text else None
            tree = tree if build else SourceTree({SCRIPT: script.encode()})
            run = context.run_script if build else RUN_SCRIPT
            if reduction.accepts(Candidate(tree, Recipe(build, run)), "replay of the failing call"):
                return True
    return False


def _loading(text: str, loads: Sequence[str]) -> str:
    """``text`` with the statements that load extensions after its ``import torch``."""
    lines = text.splitlines()
    at = next((i for i, line in enumerate(lines) if line == "import torch"), len(PRELUDE.splitlines()) - 1)
    return "\n".join([*lines[: at + 1], *loads, *lines[at + 1 :]]) + "\n"


def to_script(context: Context, record: dict[str, Any]) -> None:
    """Turn the failing test into ``repro.py`` at the root of the tree, with the prelude that serves both frameworks."""
    for candidate in _scripts(context, record):
        if context.reduction.accepts(candidate, "test as a plain script"):
            return
    context.say("the test could not be turned into a plain script; going on with the command as it is")


def _scripts(context: Context, record: dict[str, Any]) -> Iterator[Candidate]:
    best = context.reduction.best
    script = script_source(best.recipe.run, best.tree)
    test = pytest_node(best.recipe.run)
    trees: list[SourceTree] = []
    if script is not None:
        moved: dict[str, bytes | None] = {script[0]: None} if script[0] is not None else {}
        trees.append(best.tree.updated({**moved, SCRIPT: script[1].encode("utf-8", "surrogateescape")}))
    elif test is not None:
        ran = {n.partition("::")[2]: t for n, t in record.get("tests", {}).items() if n.startswith(test[0])}
        for node in [test[1]] if test[1] else list(ran) or [""]:
            folded = fold(best.tree, test[0], node, SCRIPT, indices=ran.get(node, {}).get("indices"))
            if folded is not None:
                trees.append(folded)
    for tree in trees:
        for variant in _preludes(tree):
            yield Candidate(variant, Recipe(best.recipe.build, context.run_script))


def _preludes(tree: SourceTree) -> Iterator[SourceTree]:
    """The tree with the written prelude in its script: compat for everything, or for the scope that the case names."""
    text = tree.text(SCRIPT)
    module = parse_source(SCRIPT, tree[SCRIPT])
    wanted = scopes(module.tree.body) if module is not None else None
    yield tree.updated({SCRIPT: replace_prelude(text).encode("utf-8", "surrogateescape")})
    if wanted is not None:
        scoped = replace_prelude(text, wanted | {"__main__"}).encode("utf-8", "surrogateescape")
        yield tree.updated({SCRIPT: scoped})
    if module is not None and not switches_compat(module.tree.body):
        yield tree


def traced(context: Context) -> bool:
    """The operations on tensors that lead to the failure, in a straight line: when they fail the same way, all other
    code goes."""
    reduction, best = context.reduction, context.reduction.best
    if best.recipe.build is not None or best.recipe.run not in (RUN_SCRIPT, context.run_script):
        return False
    for text in straight_lines(context.runner.record(context.paddle, best, trace=True))[:REPLAYS]:
        if reduction.tree(SourceTree({SCRIPT: text.encode()}), "the operations that lead to the failure"):
            return True
    return False


def without_path(context: Context) -> None:
    """Put the modules that PYTHONPATH leads to where Python looks anyway, so that the command does without it."""
    best = context.reduction.best
    simple = parse_simple(best.recipe.run or "")
    if simple is None or best.recipe.build is not None or best.recipe.control_run or "PYTHONPATH" not in simple.env:
        return
    files = dict(best.tree.items())
    for folder in simple.env["PYTHONPATH"].split(":"):
        below = posixpath.normpath(folder) + "/"
        for path in [p for p in files if p.startswith(below) and p[len(below) :] not in files]:
            files[path[len(below) :]] = files.pop(path)
    variables = {name: value for name, value in simple.env.items() if name != "PYTHONPATH"}
    command = join_simple(variables, simple.argv)
    context.reduction.accepts(Candidate(SourceTree(files), Recipe(None, command)), "without PYTHONPATH")


def without_variables(context: Context) -> None:
    """Drop the variables in front of the command that the failure does not need: all of them, or one by one."""
    reduction = context.reduction
    build = reduction.best.recipe.build
    if reduction.accepts(Candidate(reduction.best.tree, Recipe(build, RUN_SCRIPT)), "without variables"):
        return
    simple = parse_simple(reduction.best.recipe.run or "")
    env = dict(simple.env) if simple is not None else {}
    for name in tuple(env) if len(env) > 1 else ():
        fewer = {other: value for other, value in env.items() if other != name}
        run = join_simple(fewer, RUN_SCRIPT.split())
        if reduction.accepts(Candidate(reduction.best.tree, Recipe(build, run)), f"without {name}"):
            env = fewer


def without_build(context: Context) -> None:
    """Drop the compiled part altogether when the failure does not need it."""
    best = context.reduction.best
    if best.recipe.build is not None:
        context.reduction.accepts(Candidate(best.tree, Recipe(None, best.recipe.run)), "without the extension")


def slices(context: Context) -> None:
    """What the failing run executed, then files nobody needs, then the library's modules into the script."""
    reduction = context.reduction
    record = context.record()
    executed = {path: set(lines) for path, lines in record.get("executed", {}).items()}
    allowed = python_only(context)
    kept = [path for path in reduction.best.tree if not allowed(path)]
    for edit in executed_slice(reduction.best.tree, executed, keep=kept, frames=_frames(record)):
        if reduction.tree(apply(reduction.best.tree, [edit]), "slice of what was executed"):
            break
    builds = reduction.best.recipe.build is not None
    reduction.run(Restricted(Files(), lambda path: path != SCRIPT and (allowed(path) or not builds)))
    reduction.run(Restricted(PyDefinitions(), allowed))
    flatten(context)
    best = context.reduction.best
    if best.recipe.run == context.run_script != RUN_SCRIPT:
        without_variables(context)


def _frames(record: dict[str, Any]) -> list[tuple[str, int]]:
    """Places of the case's own code that the failure passed through."""
    found: list[tuple[str, int]] = []
    for failure in record.get("failures", [])[:1]:
        for error in failure.get("chain", []):
            found += [(str(frame["file"]), int(frame["line"])) for frame in error.get("frames", [])]
    return found


def flatten(context: Context) -> None:
    """Pull modules of the tree into ``repro.py``."""
    flatten_into(context, SCRIPT)


def flatten_into(context: Context, script: str) -> None:
    """Pull modules of the tree into ``script``: all at once, else one by one."""
    reduction = context.reduction
    if script not in reduction.best.tree:
        return
    whole = inline(reduction.best.tree, script)
    if whole is not None and reduction.tree(whole, "one script"):
        return
    for path in [p for p in reduction.best.tree if p.endswith(".py") and p not in (script, "setup.py")]:
        partly = inline_one(reduction.best.tree, script, path)
        if partly is not None:
            reduction.tree(partly, f"{path} into the script")


def fine(context: Context) -> None:
    """Statements, arguments, expressions, names: to a fixpoint."""
    context.reduction.fixpoint(fine_passes(python_only(context)))
    flatten(context)
    empty_sources(context)
    polish(context)


def empty_sources(context: Context) -> None:
    """C++ that the script builds by itself (JIT) and whose content does not matter: an empty module in its place."""
    tree = context.reduction.best.tree
    sources = [p for p in tree if p.endswith(CXX_SOURCE)] if context.reduction.best.recipe.build is None else []
    if sources:
        module = b"#include <torch/extension.h>\n\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n"
        context.reduction.tree(tree.updated(dict.fromkeys(sources, module)), "empty sources")


def fine_passes(allowed: Callable[[str], bool]) -> list[Pass]:
    """The passes on Python code, from coarse to fine."""
    passes: list[Pass] = [
        PyDefinitions(),
        PyStatements(dependencies=True),
        PyComments(),
        PyStatements(),
        PyUnwrap(),
        PyFlattenClasses(),
        PyInlineFunctions(),
        PyInline(),
        PySignatures(),
        PyUnusedImports(),
        PySplitImports(),
        PyImports(),
        PyArguments(),
        PyExpressions(),
    ]
    return [Restricted(source, allowed) for source in passes]


def polish(context: Context) -> None:
    """Last simplifications, names and layout of the Python files."""
    allowed = python_only(context)
    context.reduction.fixpoint(fine_passes(allowed))
    context.reduction.run(Restricted(PyNaming(), allowed))
    layout(context)


def for_both_frameworks(context: Context) -> None:
    """Whatever still switches compat on by itself does so by the written prelude: where the reader's control has Paddle
    beside PyTorch, it must not be switched on there."""
    changed: dict[str, bytes | None] = {}
    for path, content in context.reduction.best.tree.items():
        module = parse_source(path, content) if path.endswith(".py") and not has_prelude(content) else None
        if module is not None and switches_compat(module.tree.body):
            text = content.decode("utf-8", "surrogateescape")
            changed[path] = replace_prelude(text, scopes(module.tree.body)).encode("utf-8", "surrogateescape")
    if changed:
        context.reduction.tree(context.reduction.best.tree.updated(changed), "prelude for both frameworks")


def layout(context: Context) -> None:
    """Format every Python file; a file whose formatting changes the outcome stays as it is."""
    allowed = python_only(context)
    for path in [p for p in context.reduction.best.tree if p.endswith(".py") and allowed(p)]:
        tree = context.reduction.best.tree
        context.reduction.tree(tree.updated({path: format_python(tree[path])}), f"layout of {path}")


def python_only(context: Context) -> Callable[[str], bool]:
    """Files that Python passes may touch: with a build in the recipe its scripts are out of bounds, as each change of
    them would mean a new build."""
    builds = context.reduction.best.recipe.build is not None
    return lambda path: path.endswith(".py") and not (builds and path == "setup.py")
