"""What each global name of each inlined module is called in the one script."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from reducer.edits.inline_graph import Module, ModuleMap
from reducer.edits.inline_scopes import free_globals, local_names

Key = tuple[str, str]


class CannotInline(ValueError):
    """``module`` has to stay a file."""

    def __init__(self, module: str) -> None:
        super().__init__(f"{module} cannot be inlined")
        self.module = module


class Capture(ValueError):
    """A local variable has the name that was chosen for the global ``key``."""

    def __init__(self, key: Key) -> None:
        super().__init__(f"{key} is hidden by a local name")
        self.key = key


@dataclass(frozen=True)
class Named:
    """A global of the script. ``key`` is (module, name), or ("", dotted name) for what another package provides."""

    key: Key
    wanted: str


@dataclass(frozen=True)
class InModule:
    """An inlined module, which has no value of its own."""

    name: str


Target = Named | InModule


class Names:
    """Resolves names through imports, and gives each global its one name."""

    def __init__(self, modules: ModuleMap, main: Module, chosen: Collection[str], renamed: Collection[Key]) -> None:
        self.modules = modules
        self.main = main
        self.chosen = frozenset(chosen)
        self.renamed = renamed
        self.final: dict[Key, str] = {}
        self.locals: set[str] = set()
        members = [main, *(m for m in map(modules.load, sorted(chosen)) if m is not None)]
        self.taken: set[str] = set(dir(builtins))
        for module in members:
            self.locals |= local_names(module.body)
            # A name that nothing of ours binds (a builtin, a star import) must keep its meaning.
            self.taken |= {n for n in free_globals(module.body) if self.resolve(module, n) is None}

    def allocate(self, module: Module) -> None:
        """Give the module's globals their names; the earlier the call, the better the chance of the own name."""
        for name in sorted(module.scope.bound):
            target = self.resolve(module, name)
            if isinstance(target, Named):
                self.name(target)

    def name(self, target: Named) -> str:
        if target.key not in self.final:
            self.final[target.key] = chosen = self._free(target)
            self.taken.add(chosen)
        return self.final[target.key]

    def _free(self, target: Named) -> str:
        hidden = self.locals if target.key in self.renamed else set()
        for candidate in self._candidates(target):
            if candidate not in self.taken and candidate not in hidden:
                return candidate
        raise AssertionError("the candidates never end")

    def _candidates(self, target: Named) -> Iterator[str]:
        yield target.wanted
        owner = target.key[0] or target.key[1].rpartition(".")[0]
        tail = owner.rpartition(".")[2].strip("_")
        plain = f"{tail}_{target.wanted.lstrip('_')}" if tail else target.wanted
        yield plain
        number = 2
        while True:
            yield f"{plain}_{number}"
            number += 1

    # -- resolution ---------------------------------------------------------------------------------------------

    def inlined(self, name: str) -> bool:
        """True for an inlined module, and for a package without code of its own that holds some."""
        if name in self.chosen:
            return True
        return name not in self.modules and any(c.startswith(name + ".") for c in self.chosen)

    def resolve(self, module: Module, name: str, seen: frozenset[Key] = frozenset()) -> Target | None:
        """What a global name of the module stands for; None for a builtin or an unknown name."""
        key = (module.name, name)
        if key in seen:
            return None
        scope = module.scope
        if name in scope.bound:
            if name not in scope.otherwise:
                targets = {self.import_target(module, node, name, seen | {key}) for node in scope.imports[name]}
                if len(targets) == 1:
                    return targets.pop()
            return Named(key, name)
        for source in self.stars(module):
            exported = source.exported()
            if (name in exported) if exported is not None else not name.startswith("_"):
                target = self.resolve(source, name, seen | {key})
                if target is not None:
                    return target
        return None

    def stars(self, module: Module) -> list[Module]:
        """The inlined modules that the module imports ``*`` from, last first (the last one wins)."""
        found = []
        for node in module.scope.imports.get("*", ()):
            if isinstance(node, ast.ImportFrom) and module.absolute(node) in self.chosen:
                source = self.modules.load(module.absolute(node))
                if source is not None:
                    found.append(source)
        return found[::-1]

    def import_target(
        self, module: Module, node: ast.Import | ast.ImportFrom, name: str, seen: frozenset[Key] = frozenset()
    ) -> Target:
        """What ``name`` stands for when the import statement binds it. Raises CannotInline."""
        if isinstance(node, ast.Import):
            alias = next(a for a in node.names if (a.asname or a.name.split(".")[0]) == name)
            dotted = alias.name if alias.asname else alias.name.split(".")[0]
            return InModule(dotted) if self.inlined(dotted) else Named(("", dotted), name)
        alias = next(a for a in node.names if (a.asname or a.name) == name)
        base = module.absolute(node)
        dotted = f"{base}.{alias.name}" if base else alias.name
        if base in self.chosen:
            return self.attribute(base, alias.name, seen)
        return InModule(dotted) if self.inlined(dotted) else Named(("", dotted), name)

    def attribute(self, module: str, name: str, seen: frozenset[Key] = frozenset()) -> Target:
        """What ``module.name`` stands for, for an inlined module. Raises CannotInline."""
        loaded = self.modules.load(module) if module in self.chosen else None
        target = self.resolve(loaded, name, seen) if loaded is not None else None
        if target is not None:
            return target
        if self.inlined(f"{module}.{name}"):
            return InModule(f"{module}.{name}")
        raise CannotInline(module)
