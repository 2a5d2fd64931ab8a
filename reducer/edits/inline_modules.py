"""The library's modules pulled into the script, in the order in which Python would run them.

One namespace holds all modules' globals: each import of an inlined module turns into a direct use of what it names,
clashing names get the module's name in front. What cannot be told statically (a module passed around as a value, a
name made at run time) leaves its module, and whatever that one imports, a file.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from reducer.edits.inline_graph import Module, ModuleMap, search_roots
from reducer.edits.inline_names import CannotInline, Capture, Names
from reducer.edits.inline_rewrite import Inliner
from reducer.edits.prelude import scopes, with_prelude
from reducer.tree import SourceTree


def inline(
    tree: SourceTree,
    script: str = "repro.py",
    *,
    executed: Collection[str] | None = None,
    scope: Collection[str] | None = None,
) -> SourceTree | None:
    """The tree with every module that the script needs pulled into it, as far as that can be; None when none can.

    ``executed``: the files that the failing run executed; others are left alone where they are imported lazily.
    ``scope``: the scope for the prelude; by default the layer is switched on globally, which a single script needs
    since its own imports of torch belong to no module's scope.
    """
    main = _main(tree, script)
    if main is None:
        return None
    modules = ModuleMap(tree, search_roots(tree, script))
    reached = _reachable(modules, main, executed)
    return _inlined(tree, script, reached, scope)


def inline_one(
    tree: SourceTree, script: str, module: str, *, scope: Collection[str] | None = None
) -> SourceTree | None:
    """The tree with the one module (by import name) pulled into the script; None when that cannot be."""
    main = _main(tree, script)
    if main is None:
        return None
    modules = ModuleMap(tree, search_roots(tree, script))
    if module not in modules or modules.paths[module] == script:
        return None
    kept = scope if scope is not None else scopes(ast.parse(tree.text(script)).body)
    return _inlined(tree, script, {module}, kept)


def inlinable(tree: SourceTree, script: str = "repro.py") -> list[str]:
    """The import names of the tree's modules that the script imports by itself: what ``inline_one`` may be given."""
    main = _main(tree, script)
    if main is None:
        return []
    modules = ModuleMap(tree, search_roots(tree, script))
    return [n for n in dict.fromkeys(modules.imported(main)) if modules.load(n) is not None]


def _main(tree: SourceTree, script: str) -> Module | None:
    if script not in tree:
        return None
    try:
        return Module("__main__", script, tree.text(script))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _reachable(modules: ModuleMap, main: Module, executed: Collection[str] | None) -> set[str]:
    """The modules to inline: what the script imports, and what these import. Without those that do not parse."""
    found: set[str] = set()
    broken: set[str] = set()
    queue = list(modules.imported(main))
    while queue:
        name = queue.pop()
        if name in found or modules.paths[name] == main.path:
            continue
        if executed is not None and modules.paths[name] not in executed:
            continue
        module = modules.load(name)
        if module is None:
            broken.add(name)
            continue
        found.add(name)
        queue += modules.imported(module)
    return found - _needs(modules, broken)


def _needs(modules: ModuleMap, names: Collection[str]) -> set[str]:
    """The modules with all that must be importable beside them when they stay files."""
    found: set[str] = set()
    queue = [parent for name in names for parent in modules.with_parents(name)]
    while queue:
        name = queue.pop()
        if name not in found:
            found.add(name)
            module = modules.load(name)
            queue += modules.imported(module) if module is not None else ()
    return found


def _inlined(tree: SourceTree, script: str, chosen: set[str], scope: Collection[str] | None) -> SourceTree | None:
    roots = search_roots(tree, script)
    renamed: set[tuple[str, str]] = set()
    chosen = set(chosen)
    while chosen:
        # The syntax trees are rewritten in place: each attempt parses afresh.
        modules = ModuleMap(tree, roots)
        main = _main(tree, script)
        assert main is not None
        try:
            body = Inliner(modules, main, Names(modules, main, chosen, renamed)).run()
        except Capture as capture:
            renamed.add(capture.key)
            continue
        except CannotInline as refused:
            left = chosen - _needs(ModuleMap(tree, roots), [refused.module])
            if left == chosen:
                return None
            chosen = left
            continue
        text = with_prelude(body, scope)
        changed = tree.updated({script: text.encode("utf-8", "surrogateescape")})
        return _without_inlined(changed, script, roots, chosen)
    return None


def _without_inlined(tree: SourceTree, script: str, roots: list[str], chosen: set[str]) -> SourceTree:
    """The tree without the inlined modules' files, but for those that the script still reaches by an import."""
    main = _main(tree, script)
    if main is None:
        return tree
    modules = ModuleMap(tree, roots)
    kept = _needs(modules, list(modules.imported(main)))
    return tree.updated({modules.paths[name]: None for name in chosen if name not in kept})
