"""The route of a build that fails before or after the compiler: a few lines of ``setup.py`` and an empty source."""

from __future__ import annotations

from reducer.edits.files import Files
from reducer.edits.literal_setup import builds_source, literal_setups
from reducer.edits.passes import Restricted
from reducer.edits.prelude import replace_prelude
from reducer.edits.py_format import format_python
from reducer.frameworks.build_command import CXX_HEADER, CXX_SOURCE, IN_PLACE
from reducer.oracle.candidate import Candidate, Recipe
from reducer.reduction import Reduction
from reducer.routes.context import Context
from reducer.routes.python import fine_passes, flatten_into

SETUP = "setup.py"


def reduce_setup(context: Context) -> None:
    """Stages setup and link."""
    reduction = context.reduction
    best = reduction.best
    in_place = IN_PLACE if SETUP in best.tree else best.recipe.build
    reduction.accepts(Candidate(best.tree, Recipe(in_place, None)), "the build alone")
    for tree in literal_setups(context.runner.setup_calls(context.torch, reduction.best)):
        if reduction.accepts(Candidate(tree, Recipe(IN_PLACE, None)), "the calls of setup.py, with their values"):
            reduction.oracle.checks += (lambda candidate: builds_source(candidate.tree),)
            reduction.fixpoint([Restricted(p, lambda path: path == SETUP) for p in fine_passes(lambda _: True)])
            _layout(reduction)
            return
    empty = {p: b"" for p in reduction.best.tree if p.endswith((*CXX_SOURCE, *CXX_HEADER))}
    reduction.tree(reduction.best.tree.updated(empty), "empty sources")
    if SETUP not in reduction.best.tree:
        return
    text = replace_prelude(reduction.best.tree.text(SETUP)).encode("utf-8", "surrogateescape")
    reduction.tree(reduction.best.tree.updated({SETUP: text}), "prelude for both frameworks")
    reduction.run(Restricted(Files(), lambda path: path != SETUP))
    flatten_into(context, SETUP)
    reduction.fixpoint([Restricted(p, lambda path: path.endswith(".py")) for p in fine_passes(lambda _: True)])
    reduction.run(Restricted(Files(), lambda path: path != SETUP))
    _layout(reduction)


def _layout(reduction: Reduction) -> None:
    tree = reduction.best.tree
    reduction.tree(tree.updated({SETUP: format_python(tree[SETUP])}), "layout of setup.py")
