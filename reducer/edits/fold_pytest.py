"""One pytest node as a plain script: conftest, fixtures, parameters and class folded into statements."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Mapping, Sequence

from reducer.edits.fold_classes import SETUP_CLASS, SETUP_METHOD, FlatClass
from reducer.edits.fold_fixtures import FixtureSetup
from reducer.edits.fold_module import combined, fallback, import_paths, pruned_class
from reducer.edits.fold_params import Axis, axes, choose
from reducer.edits.fold_sources import (
    CannotFold,
    Fixture,
    Node,
    Sources,
    fixtures_in,
    is_mark,
    marks,
    module_marks,
    read_sources,
)
from reducer.edits.fold_statements import Names, called, unfold
from reducer.edits.inline_scopes import arguments, free_globals
from reducer.edits.prelude import with_prelude
from reducer.tree import SourceTree


def fold(
    tree: SourceTree,
    test_file: str,
    node: str,
    script: str = "repro.py",
    *,
    params: Mapping[str, str] | None = None,
    indices: Mapping[str, int] | None = None,
    scope: Collection[str] | None = None,
) -> SourceTree | None:
    """The tree with ``script`` at its root in the place of the test's file; None when that file cannot be read.

    ``node`` is the part of the node id after the file (``TestX::test_y[3-foo]``), or "" for a failure while the file
    is imported: then its module-level code alone is the script. ``params`` (name -> source) and ``indices`` (name ->
    place in its parameter list, as ``reducer.world.recorder`` reports) say what an id stands for; without them it is
    worked out from the text. What plain statements cannot do stays a pytest file that runs itself.
    """
    if test_file not in tree:
        return None
    parsed = Node.parse(node)
    try:
        sources = read_sources(tree, test_file)
    except CannotFold:
        return None
    try:
        body = _Folder(sources, parsed, params or {}, indices).run()
        paths = import_paths(tree, sources, body)
    except CannotFold:
        sources = read_sources(tree, test_file)
        whole = fallback(sources, parsed, node)
        if whole is None:
            return None
        body, paths = whole, import_paths(tree, sources, whole)
    text = with_prelude([*paths, *body], scope).encode("utf-8", "surrogateescape")
    folded = {module.path: None for module in sources.modules if module.path != script}
    return tree.updated({**folded, script: text})


class _Folder:
    """Folds one node. Used once: it takes the sources' syntax trees apart."""

    def __init__(
        self, sources: Sources, node: Node, params: Mapping[str, str], indices: Mapping[str, int] | None
    ) -> None:
        self.sources = sources
        self.node = node
        self.params = {name: ast.parse(text, mode="eval").body for name, text in params.items()}
        self.indices = indices

    def run(self) -> list[ast.stmt]:
        """The script's statements. Raises CannotFold."""
        if not self.node.function:
            return combined(self.sources, [])
        generates = any(getattr(s, "name", "") == "pytest_generate_tests" for m in self.sources.modules for s in m.body)
        if generates and not self.params:
            raise CannotFold("generated tests")
        owner = self._owner()
        statements = self._in_class(owner) if owner is not None else self._alone()
        return combined(self.sources, statements)

    def _owner(self) -> ast.ClassDef | None:
        body: Sequence[ast.stmt] = self.sources.test.body
        found: ast.ClassDef | None = None
        for name in self.node.classes:
            found = next((s for s in body if isinstance(s, ast.ClassDef) and s.name == name), None)
            if found is None:
                raise CannotFold(f"no class {name}")
            body = found.body
        if len(self.node.classes) > 1:
            raise CannotFold("a class inside a class")
        return found

    def _names(self) -> Names:
        taken: set[str] = set()
        for module in self.sources.modules:
            own = {f.name for f in fixtures_in(module.body, 0)}
            kept = [s for s in module.body if getattr(s, "name", None) not in own]
            mentioned = free_globals(copy.deepcopy(kept)) - own
            taken |= {n for n in module.scope.bound if n not in own} | mentioned
        return Names(taken)

    def _alone(self) -> list[ast.stmt]:
        found = [s for s in self.sources.test.body if isinstance(s, ast.FunctionDef) and s.name == self.node.function]
        if not found:
            raise CannotFold(f"no function {self.node.function}")
        names = self._names()
        names.taken.discard(self.node.function)
        setup = FixtureSetup(self.sources, names, self.indices, {}, {})
        before = self._module_setup(names)
        return [*before, *self._test(copy.deepcopy(found[-1]), [], setup, names)]

    def _module_setup(self, names: Names) -> list[ast.stmt]:
        """What pytest calls by name before the test."""
        found: list[ast.stmt] = []
        for name in ("setup_module", "setUpModule", "setup_function"):
            for statement in self.sources.test.body:
                if isinstance(statement, ast.FunctionDef) and statement.name == name:
                    if arguments(statement.args):
                        raise CannotFold(f"{name} that wants the module")
                    found.append(ast.Expr(ast.Call(ast.Name(name, ast.Load()), [], [])))
        return found

    def _in_class(self, owner: ast.ClassDef) -> list[ast.stmt]:
        names = self._names()
        names.taken.discard(owner.name)
        self.sources.fixtures += fixtures_in(owner.body, len(self.sources.modules), owner.name)
        before = self._module_setup(names)
        try:
            flat = FlatClass(owner, self.node.function, names)
        except CannotFold:
            return [*before, *self._instance(owner, names)]
        setup = FixtureSetup(self.sources, names, self.indices, {}, flat.fixtures)
        found: list[ast.stmt] = [*before, *flat.assignments]
        start = [self.node.function, *flat.setup_class, *flat.setup_method]
        found += [_undecorated(flat.functions[n]) for n in flat.called_from(start) if n in flat.functions]
        for name in [*flat.setup_class, *flat.setup_method]:
            found += self._once(_undecorated(flat.functions[name]), names)
        test = flat.functions[self.node.function]
        return [*found, *self._test(test, owner.decorator_list, setup, names)]

    def _once(self, function: ast.FunctionDef, names: Names) -> list[ast.stmt]:
        """A setup method's statements; its parameter (the method or the class) is hardly ever used."""
        used = {n.id for s in function.body for n in ast.walk(s) if isinstance(n, ast.Name)}
        for group in (function.args.posonlyargs, function.args.args):
            if any(a.arg in used for a in group):
                raise CannotFold("a setup method that wants the test")
            group.clear()
        function.args.defaults.clear()
        body = [s for s in function.body if not isinstance(s, ast.Global)]
        shared = {name for s in function.body if isinstance(s, ast.Global) for name in s.names}
        plain = copy.deepcopy(function)
        plain.body = body
        # Attributes of self are shared variables: they are no locals of the setup method.
        found = unfold(plain, {}, _Sharing(names, shared))
        return found if found is not None else called(function, {}, names)

    def _inherited(self, owner: ast.ClassDef) -> tuple[dict[str, ast.FunctionDef], list[str]]:
        """The methods of a class and of its bases in the test's file, nearest first, and all names of its bases."""
        classes = {s.name: s for s in self.sources.test.body if isinstance(s, ast.ClassDef)}
        members: dict[str, ast.FunctionDef] = {}
        bases: list[str] = []
        waiting = [owner]
        while waiting:
            known = waiting.pop(0)
            for statement in known.body:
                if isinstance(statement, ast.FunctionDef):
                    members.setdefault(statement.name, statement)
            named = [ast.unparse(b) for b in known.bases]
            waiting += [classes.pop(name) for name in named if name in classes]
            bases += named
        return members, bases

    def _instance(self, owner: ast.ClassDef, names: Names) -> list[ast.stmt]:
        """The class kept, with one instance and one call."""
        members, bases = self._inherited(owner)
        is_case = any("TestCase" in b for b in bases)
        if any(f.owner for f in self.sources.fixtures):
            raise CannotFold("a class with fixtures that stays one")
        kept, test = pruned_class(owner, self.node.function)
        setup = FixtureSetup(self.sources, names, self.indices, {}, {})
        variable = names.fresh("case")
        argument = f"({self.node.function!r})" if is_case else "()"
        found: list[ast.stmt] = [kept, *ast.parse(f"{variable} = {owner.name}{argument}").body]
        for name in [*SETUP_CLASS, *SETUP_METHOD]:
            if name in members:
                extra = len(arguments(members[name].args)) > 1
                found += ast.parse(f"{variable}.{name}({'None' if extra else ''})").body
        elsewhere = test is None  # inherited: the class has setUp by inheritance too
        if elsewhere and is_case and "setUp" not in members:
            found += ast.parse(f"{variable}.setUp()").body
        if test is None:
            if self.node.parameters is not None:
                raise CannotFold("an inherited parametrised test")
            return [*found, *ast.parse(f"{variable}.{self.node.function}()").body]
        wanted = [a.arg for a in arguments(test.args)][1:]
        bindings, before = self._bind(test, owner.decorator_list, wanted, setup, names)
        given = ", ".join(f"{name}={value}" for name, value in bindings.items())
        return [*before, *found, *ast.parse(f"{variable}.{self.node.function}({given})").body]

    # -- the test -----------------------------------------------------------------------------------------------

    def _test(
        self, test: ast.FunctionDef, outer: Sequence[ast.expr], setup: FixtureSetup, names: Names
    ) -> list[ast.stmt]:
        wanted = [a.arg for a in arguments(test.args)]
        bindings, before = self._bind(test, outer, wanted, setup, names)
        test.decorator_list = [d for d in test.decorator_list if not is_mark(d)]
        if any("given(" in ast.unparse(d) or "patch" in ast.unparse(d) for d in test.decorator_list):
            raise CannotFold("a decorator that passes arguments")
        test.args.defaults.clear()
        shared = {name for s in test.body if isinstance(s, ast.Global) for name in s.names}
        plain = copy.deepcopy(test)
        plain.body = [s for s in test.body if not isinstance(s, ast.Global)]
        found = None if test.decorator_list else unfold(plain, bindings, _Sharing(names, shared))
        return [*before, *(found if found is not None else called(test, bindings, names))]

    def _bind(
        self,
        test: ast.FunctionDef,
        outer: Sequence[ast.expr],
        wanted: Sequence[str],
        setup: FixtureSetup,
        names: Names,
    ) -> tuple[dict[str, str], list[ast.stmt]]:
        """The variables that hold the test's arguments, and the statements that give them their values."""
        every = [*axes(test.decorator_list), *axes(outer), *axes(module_marks(self.sources.test.body))]
        autouse = setup.autouse()
        used = [*_used(test.decorator_list), *_used(outer), *_used(module_marks(self.sources.test.body))]
        direct = {n for axis in every for n in axis.names if n not in axis.indirect}
        fixtures = [*(f.name for f in autouse), *used, *(w for w in wanted if w not in direct)]
        values = self._values([*every, *setup.parameters(fixtures)])
        setup.given = {**values, **self.params}
        self._set_up(setup, autouse, used)
        bindings: dict[str, str] = {}
        assigned: list[ast.stmt] = []
        defaults = _defaulted(test)
        for name in wanted:
            value = setup.given.get(name)
            if value is not None and (name in direct or setup.sources.fixture(name) is None):
                bindings[name] = variable = names.fresh(name)
                assigned.append(ast.Assign([ast.Name(variable, ast.Store())], value, lineno=0))
            elif name in defaults:
                bindings[name] = variable = names.fresh(name)
                assigned.append(ast.Assign([ast.Name(variable, ast.Store())], defaults[name], lineno=0))
            else:
                bindings[name] = setup.variable(name)
        return bindings, [*setup.statements, *assigned]

    def _values(self, every: Sequence[Axis]) -> dict[str, ast.expr]:
        open_axes = [a for a in every if not all(n in self.params for n in a.names)]
        # When a part of the id is accounted for already, it is not known which part.
        text = None if len(open_axes) < len(every) and not self.indices else self.node.parameters
        module = [s for m in self.sources.modules for s in m.body]
        return choose(open_axes, text, self.indices, module)

    def _set_up(self, setup: FixtureSetup, autouse: Sequence[Fixture], used: Sequence[str]) -> None:
        for fixture in autouse:
            setup.variable(fixture.name)
        for name in used:
            setup.variable(name)


class _Sharing(Names):
    """Names for a body in which some assigned names are variables of the script already."""

    def __init__(self, names: Names, shared: set[str]) -> None:
        self.names = names
        self.shared = shared

    def fresh(self, wanted: str) -> str:
        return wanted if wanted in self.shared else self.names.fresh(wanted)


def _used(decorators: Sequence[ast.expr]) -> list[str]:
    """The fixtures named by ``usefixtures`` marks."""
    found = []
    for call in marks(decorators, "usefixtures"):
        found += [str(a.value) for a in call.args if isinstance(a, ast.Constant)]
    return found


def _defaulted(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """The parameters with a default value: pytest leaves them alone."""
    given = [*function.args.posonlyargs, *function.args.args]
    tail = given[len(given) - len(function.args.defaults) :]
    return {a.arg: d for a, d in zip(tail, function.args.defaults, strict=True)}


def _undecorated(function: ast.FunctionDef) -> ast.FunctionDef:
    function.decorator_list = [d for d in function.decorator_list if not is_mark(d)]
    return function
