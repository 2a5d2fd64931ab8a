"""The route of C++ code: a slice into one source, then declarations, statements, expressions and includes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from reducer import checks
from reducer.edits.cxx_declarations import CxxDeclarations, proposal_of
from reducer.edits.cxx_flatten import merge_sources
from reducer.edits.cxx_format import format_cxx
from reducer.edits.cxx_includes import CxxConditionals, CxxIncludes, only_includes
from reducer.edits.cxx_naming import CxxNames
from reducer.edits.cxx_passes import cxx_passes
from reducer.edits.edit import apply
from reducer.edits.extension import NAME, SCRIPT, SOURCE, loader_script, module_imports, module_source, setup_script
from reducer.edits.passes import Pass
from reducer.frameworks.build_command import CXX_HEADER, CXX_SOURCE, IN_PLACE
from reducer.frameworks.flags import extension_names, includes, units
from reducer.oracle.candidate import Candidate, Recipe
from reducer.routes.context import RUN_SCRIPT, Context
from reducer.routes.python import polish, reduce_python
from reducer.search.widen import confirm_slice
from reducer.slicing.cxx_dependencies import dependency_graph
from reducer.slicing.cxx_slice import Root, cxx_slice
from reducer.syntax.cxx import CxxParser, is_cxx
from reducer.syntax.cxx_text import strip_comments
from reducer.tree import SourceTree


def reduce_compile(context: Context) -> None:
    """A build that fails in the compiler: the failing declaration and what it needs, in the extension form."""
    context.use_front_end()
    failure = context.baseline.failure
    roots: list[Root] = [(failure.file, failure.line)] if failure.file else []
    to_extension(context, roots, None)
    fine(context)


def reduce_extension(context: Context) -> None:
    """A failure that shows when the built extension is imported or called."""
    reduction = context.reduction
    reduce_python(context)
    if reduction.best.recipe.build is None:
        return
    context.check_warm(rebuilt=True)
    context.use_front_end()
    script = reduction.best.tree.get(SCRIPT)
    if script is not None:
        to_extension(context, used_names(script), script)
    if context.runner.optimised and reduction.run(CxxConditionals()):
        context.check_warm(rebuilt=True)  # `#ifdef __OPTIMIZE__` is gone, and quick builds may do again
    fine(context)
    polish(context)


def used_names(script: bytes) -> list[Root]:
    """Operators that a script calls (``ns::op``), and names that it takes from modules: where a slice starts."""
    text = script.decode("utf-8", "replace")
    found: dict[Root, None] = {}
    for space, op in re.findall(r"\bops\.(\w+)\.(\w+)", text):
        found[f"{space}::{op}"] = None
    for space in re.findall(r"=\s*torch\.ops\.(\w+)\s*$", text, re.MULTILINE):
        found.update({f"{space}::{name}": None for name in re.findall(r"\.(\w+)\s*\(", text)})
    for name in re.findall(r"\.(\w+)\b", text):
        found[name] = None
    return list(found)


def to_extension(context: Context, roots: Sequence[Root], script: bytes | None) -> None:
    """Bring the candidate into ``setup.py`` + one source + ``repro.py``, with as little C++ as the roots need.

    ``script`` None: the failure is in the build, and the script only imports what was built. A slice that is refused
    lacks something: it is widened by bisecting what was dropped.
    """
    reduction = context.reduction
    tree = reduction.best.tree
    forms = _forms(context, script)
    graph = dependency_graph(parser(context), tree, include_dirs(context)) if roots else None
    offer = proposal_of(graph) if graph is not None else None
    keep = frozenset(cxx_slice(graph, roots)) if graph is not None else frozenset()

    def sliced(kept: frozenset[int]) -> SourceTree:
        assert offer is not None
        return apply(tree, (edit for i, edit in enumerate(offer.edits) if i not in kept))

    if offer is None or not keep or not _accepted(context, forms, sliced(keep), "slice into one source"):
        form = _accepted(context, forms, tree, "all sources in one")
        if form is None:
            context.say("the sources could not be brought into one file; reducing them where they are")
            return
        if offer is not None and keep:
            weights = [edit.weight for edit in offer.edits]
            plan = partial(confirm_slice, len(weights), keep, weights, offer.requires)
            reduction.search(plan, lambda kept: form(sliced(kept)), "slice, widened")
    reduction.oracle.checks += (checks.keeps_module(reduction.best.tree),)


Form = Callable[[SourceTree], Candidate | None]


def _accepted(context: Context, forms: Sequence[Form], tree: SourceTree, label: str) -> Form | None:
    """The first form in which the tree is accepted."""
    for form in forms:
        candidate = form(tree)
        if candidate is not None and context.reduction.accepts(candidate, label):
            return form
    return None


def _forms(context: Context, script: bytes | None) -> list[Form]:
    """The ways to write a tree as an extension of one source: under each name of a module that was built, without and
    with the library's own compiler flags."""
    names = extension_names(context.baseline.control)
    own = list(dict.fromkeys(flag for unit in units(context.baseline.control) for flag in unit.own))
    main = loader_script() if script is None else module_imports(script, names)
    layouts = dict.fromkeys([(IN_PLACE, RUN_SCRIPT)])
    if context.run_script != RUN_SCRIPT and script is not None:  # what matters may be where the module lies
        layouts[(context.reduction.best.recipe.build or IN_PLACE, context.run_script)] = None

    def form(name: str, flags: Sequence[str], commands: tuple[str, str]) -> Form:
        def written(tree: SourceTree) -> Candidate | None:
            directories = include_dirs(context)
            merged = merge_sources(tree, parser(context), SOURCE, include_dirs=directories, comments=False)
            if SOURCE not in merged:
                return None
            source = module_source(strip_comments(merged[SOURCE]), name.rsplit(".", 1)[-1])
            files = {"setup.py": setup_script(context.setup_template, flags), SOURCE: source, SCRIPT: main}
            others = (p for p in tree if p.endswith(".py") and p not in files) if script is not None else ()
            rest = {path: module_imports(tree[path], names) for path in others}
            return Candidate(SourceTree({**rest, **files}), Recipe(*commands))

        return written

    choices = itertools.product(layouts, names or (NAME,), [(), own] if own else [()])
    return [form(name, flags, commands) for commands, name, flags in choices]


def parser(context: Context) -> CxxParser | None:
    """A parser with the control's flags: on that side the code is free of errors."""
    return context.clang.parser() if context.clang is not None else None


def include_dirs(context: Context) -> list[str]:
    """Include directories of the build that lie in the tree."""
    found = [d for unit in units(context.baseline.control) for d in includes(unit.flags) if not d.startswith("/")]
    return list(dict.fromkeys(found))


def fine(context: Context) -> None:
    """All C++ passes to a fixpoint, then the includes with honest parses, then names and layout."""
    reduction = context.reduction
    runs = reduction.oracle.expected.stage in ("import", "run")
    reduction.fixpoint(fine_passes(context), defer_control=runs)
    without_headers(context)
    reduction.run(CxxNames(), defer_control=runs)
    layout(context)


def fine_passes(context: Context) -> list[Pass]:
    """The passes on C++ code, from coarse to fine."""
    own = parser(context)
    return [CxxDeclarations(own, include_dirs(context)), CxxConditionals(), *cxx_passes(own)]


def without_headers(context: Context) -> None:
    """Reduce the includes: a precompiled header would forgive every missing one, so none is used here."""
    context.runner.precompiled = False
    if context.clang is not None:
        context.clang.precompiled = False
    try:
        context.reduction.first(_few_headers(context.reduction.best.tree), "few headers")
        context.reduction.run(CxxIncludes())
    finally:
        context.runner.precompiled = True
        if context.clang is not None:
            context.clang.precompiled = True


def _few_headers(tree: SourceTree) -> Iterator[SourceTree]:
    """The usual outcomes first, as an honest parse costs seconds: two extension headers, all framework headers."""
    for keep in (lambda name: name in ("torch/extension.h", "torch/library.h"), lambda name: "/" in name):
        changed = {path: only_includes(content, keep) for path, content in tree.items() if is_cxx(path)}
        if any(changed[path] != tree[path] for path in changed):
            yield tree.updated(changed)


def layout(context: Context) -> None:
    """Format every C++ file; one whose formatting changes the outcome stays as it is."""
    for path in [p for p in context.reduction.best.tree if p.endswith((*CXX_SOURCE, *CXX_HEADER))]:
        tree = context.reduction.best.tree
        context.reduction.tree(tree.updated({path: format_cxx(tree[path])}), f"layout of {path}")
