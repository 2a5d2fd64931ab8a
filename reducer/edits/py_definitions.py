"""Cut definitions of a whole Python tree together with what imports, re-exports and uses them.

Every module, top-level statement, imported name, class member and ``__all__`` entry is an element; an element requires
what it names. The graph is by names (as in class hierarchy analysis, a method call reaches every class of the tree that
alone defines such a method), so it is a guide for the search and not a proof: the oracle decides.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from reducer.edits.edit import Drop, Edit, Op, Splice
from reducer.edits.passes import Proposal, nothing
from reducer.edits.py_imports import imported_names
from reducer.syntax.python import FUNCTIONS, PyModule, pinned_nodes, python_modules
from reducer.syntax.python_names import attribute_names, bound_names, dotted, free_names, parameters
from reducer.syntax.python_project import ModuleIndex
from reducer.tree import SourceTree

Pinned = Callable[[ast.AST, str], bool]


def pin_nothing(node: ast.AST, path: str) -> bool:
    """The default of the passes' ``pinned``: everything may go."""
    return False


@dataclass(slots=True)
class _Element:
    """Something that can go. ``node`` is what its references are read from; None for a whole file."""

    module: PyModule
    node: ast.AST | None
    ops: tuple[Op, ...]
    label: str
    weight: int
    needs: set[int] = field(default_factory=set)


class PyDefinitions:
    """The elements of the tree and what each requires; ``pinned`` says what must not be offered."""

    name = "py_definitions"

    def __init__(self, pinned: Pinned = pin_nothing, files: bool = True) -> None:
        """``files``: offer whole files as elements too."""
        self._pinned = pinned
        self._files = files

    def propose(self, tree: SourceTree) -> Proposal:
        graph = _Graph(python_modules(tree), self._pinned, self._files)
        if not graph.elements:
            return nothing()
        edits = tuple(Edit(e.ops, e.label, max(1, e.weight)) for e in graph.elements)
        requires = tuple(frozenset(e.needs - {i}) for i, e in enumerate(graph.elements))
        return Proposal(edits, "closures", requires)


class _Graph:
    def __init__(self, modules: list[PyModule], pinned: Pinned, files: bool) -> None:
        self.elements: list[_Element] = []
        self._modules = {m.path: m for m in modules}
        self._index = ModuleIndex(self._modules)
        self._files: dict[str, int] = {}
        self._bindings: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        self._methods: dict[str, dict[int, int]] = defaultdict(dict)  # method name -> class element -> method element
        self._members: dict[int, dict[str, int]] = {}  # class element -> member name -> element
        self._classes: dict[str, list[int]] = defaultdict(list)
        self._entries: dict[str, set[int]] = defaultdict(set)  # path -> its __all__ entries
        self._pinned = pinned
        self._imports: dict[int, tuple[ast.alias, ast.Import | ast.ImportFrom]] = {}
        self._inside: dict[int, int] = {}  # member element -> class element
        for module in modules:
            self._collect(module, files)
        for number in range(len(self.elements)):
            self._link(number)
        for number, (alias, statement) in self._imports.items():
            self._link_import(self.elements[number], alias, statement)

    # -- elements -----------------------------------------------------------------------------------------------

    def _add(self, module: PyModule, node: ast.AST | None, ops: Iterable[Op], label: str, weight: int) -> int:
        element = _Element(module, node, tuple(ops), label, weight)
        if module.path in self._files:
            element.needs.add(self._files[module.path])
        self.elements.append(element)
        return len(self.elements) - 1

    def _collect(self, module: PyModule, files: bool) -> None:
        kept = pinned_nodes(module)
        free = not kept and not any(self._pinned(n, module.path) for n in ast.walk(module.tree))
        if files and free:
            number = self._add(module, None, [Drop(module.path)], f"module {module.path}", len(module.source))
            self._files[module.path] = number
        body = module.tree.body
        for position, statement in enumerate(body):
            before = body[position - 1] if position else None
            after = body[position + 1] if position + 1 < len(body) else None
            if statement in kept:
                continue
            if isinstance(statement, ast.Import | ast.ImportFrom):
                self._collect_import(module, statement)
                continue
            start, end = module.statement_span(statement, before, after)
            held = any(self._pinned(n, module.path) for n in ast.walk(statement))
            number = -1
            if not held:
                label = _label(statement)
                number = self._add(module, statement, [Splice(module.path, start, end)], label, end - start)
                for name in bound_names(statement):
                    self._bindings[module.path][name].add(number)
            if isinstance(statement, ast.ClassDef):
                self._collect_members(module, statement, number)
            elif number >= 0 and _is_all(statement):
                self._collect_all(module, statement, number)

    def _collect_import(self, module: PyModule, statement: ast.Import | ast.ImportFrom) -> None:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            return
        for item in imported_names(module, statement, module.tree.body, top=True):
            if self._pinned(statement, module.path):
                continue
            start, end = module.span(item.alias)
            number = self._add(module, item.alias, item.ops, f"import of {item.binds}", end - start + 8)
            self._imports[number] = (item.alias, statement)
            self._bindings[module.path][item.binds].add(number)

    def _collect_members(self, module: PyModule, owner: ast.ClassDef, number: int) -> None:
        """Each statement of a class body; one of them turns into ``pass`` so that the body is never empty."""
        members = [s for s in owner.body if not any(self._pinned(n, module.path) for n in ast.walk(s))]
        self._members[number] = {}
        self._classes[owner.name].append(number)
        anchored = len(members) < len(owner.body)
        for position, statement in enumerate(owner.body):
            if statement not in members or isinstance(statement, ast.Pass):
                continue
            before = owner.body[position - 1] if position else None
            after = owner.body[position + 1] if position + 1 < len(owner.body) else None
            start, end = module.statement_span(statement, before, after)
            if anchored:
                splice = Splice(module.path, start, end)
            else:
                anchored = True
                splice = Splice(module.path, *module.span(statement), b"pass")
            label = f"{_label(statement)} of {owner.name}"
            member = self._add(module, statement, [splice], label, end - start)
            if number >= 0:
                self.elements[member].needs.add(number)
            self._inside[member] = number
            for name in bound_names(statement):
                self._members[number][name] = member
                if isinstance(statement, FUNCTIONS):
                    self._methods[name][number] = member

    def _collect_all(self, module: PyModule, statement: ast.stmt, number: int) -> None:
        value = getattr(statement, "value", None)
        if not isinstance(value, ast.List | ast.Tuple):
            return
        strings = [e for e in value.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
        if len(strings) != len(value.elts) or isinstance(value, ast.Tuple):
            return
        for position, item in enumerate(strings):
            start, end = module.span(item)
            if position + 1 < len(strings):
                end = module.start(strings[position + 1])
            entry = self._add(
                module, None, [Splice(module.path, start, end)], f"__all__ entry {item.value!r}", end - start
            )
            self.elements[entry].needs.add(number)
            self._entries[module.path].add(entry)
            for binding in self._bindings[module.path].get(str(item.value), ()):
                self.elements[entry].needs.add(binding)

    # -- edges --------------------------------------------------------------------------------------------------

    def _link(self, number: int) -> None:
        element = self.elements[number]
        node = element.node
        if node is None or isinstance(node, ast.alias):
            return
        read: list[ast.AST] = [node]
        if isinstance(node, ast.ClassDef):  # its members speak for themselves
            read = [*node.decorator_list, *node.bases, *node.keywords]
        for part in read:
            self._link_part(element, part, self._inside.get(number))
        if isinstance(node, FUNCTIONS):
            self._link_fixtures(element, node)

    def _link_part(self, element: _Element, node: ast.AST, owner: int | None) -> None:
        path = element.module.path
        for name in free_names(node):
            for binding in self._lookup(path, name):
                element.needs.add(binding)
                init = self._members.get(binding, {}).get("__init__")
                if init is not None:
                    element.needs.add(init)
            if owner is not None and name in self._members.get(owner, {}) and not isinstance(node, FUNCTIONS):
                element.needs.add(self._members[owner][name])
        for inner in ast.walk(node):
            if isinstance(inner, ast.Attribute):
                self._link_attribute(element, inner, owner)
            elif isinstance(inner, ast.Import | ast.ImportFrom):  # a late import, or one inside a try
                for alias in inner.names:
                    self._link_import(element, alias, inner)

    def _link_attribute(self, element: _Element, node: ast.Attribute, owner: int | None) -> None:
        chain = dotted(node)
        if chain is not None and chain[0] in ("self", "cls") and owner is not None:
            found = self._inherited(owner, chain[1])
            if found is not None:
                element.needs.add(found)
            return
        if chain is not None and self._link_chain(element, chain):
            return
        definers = self._methods.get(node.attr, {})
        if len(definers) == 1 and not node.attr.startswith("__"):
            element.needs.update(definers.values())

    def _link_chain(self, element: _Element, chain: list[str]) -> bool:
        """``package.module.name``: follow modules of the tree; False when the chain does not start at one."""
        path = self._module_named(element.module, chain[0])
        if path is None:
            return False
        for name in chain[1:]:
            element.needs.update(self._lookup(path, name))
            below = self._index.submodule(path, name)
            if below is None:
                return True
            if below in self._files:
                element.needs.add(self._files[below])
            path = below
        return True

    def _module_named(self, module: PyModule, name: str) -> str | None:
        for number in self._bindings[module.path].get(name, ()):
            if number not in self._imports:
                continue
            alias, statement = self._imports[number]
            if isinstance(statement, ast.Import):
                dotted_name = alias.name if alias.asname else alias.name.split(".")[0]
                return self._index.imported(module.path, dotted_name, 0)
            package = self._index.imported(module.path, statement.module, statement.level)
            return self._index.submodule(package, alias.name) if package else None
        return None

    def _inherited(self, owner: int, name: str, depth: int = 0) -> int | None:
        found = self._members.get(owner, {}).get(name)
        if found is not None or depth > 8 or owner < 0:
            return found
        node = self.elements[owner].node
        for base in node.bases if isinstance(node, ast.ClassDef) else ():
            chain = dotted(base)
            for candidate in self._classes.get(chain[-1], ()) if chain else ():
                found = self._inherited(candidate, name, depth + 1)
                if found is not None:
                    return found
        return None

    def _lookup(self, path: str, name: str, depth: int = 0) -> set[int]:
        """What binds a module-level name, through star imports of the tree."""
        found = self._bindings[path].get(name)
        if found:
            return found
        if depth > 8:
            return set()
        for number in self._bindings[path].get("*", ()):
            _, statement = self._imports.get(number, (None, None))
            if not isinstance(statement, ast.ImportFrom):
                continue
            target = self._index.imported(path, statement.module, statement.level)
            behind = self._lookup(target, name, depth + 1) if target is not None else set()
            if behind:
                return behind | {number}
        return set()

    def _link_import(self, element: _Element, alias: ast.alias, statement: ast.Import | ast.ImportFrom) -> None:
        path = element.module.path
        targets: list[str] = []
        if isinstance(statement, ast.Import):
            target = self._index.imported(path, alias.name, 0)
            if target is not None:
                targets.append(target)
        else:
            target = self._index.imported(path, statement.module, statement.level)
            if target is not None:
                targets.append(target)
                element.needs.update(self._lookup(target, alias.name))
                below = self._index.submodule(target, alias.name)
                if below is not None:
                    targets.append(below)
                if alias.name == "*":
                    element.needs.update(self._entries.get(target, ()))
        for target in targets:
            for file in (target, *self._index.packages(target)):
                if file in self._files:
                    element.needs.add(self._files[file])

    def _link_fixtures(self, element: _Element, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """pytest passes fixtures by parameter name: from the module itself or a conftest.py above it."""
        marks = {n.attr for d in node.decorator_list for n in ast.walk(d) if isinstance(n, ast.Attribute)}
        if not (node.name.startswith("test") or "fixture" in marks):
            return
        wanted = {p.arg for p in parameters(node)}
        for decorator in node.decorator_list:
            if "usefixtures" in attribute_names(decorator):
                wanted |= {str(n.value) for n in ast.walk(decorator) if isinstance(n, ast.Constant)}
        folders = element.module.path.split("/")[:-1]
        above = ["/".join([*folders[:n], "conftest.py"]) for n in range(len(folders), -1, -1)]
        for name in wanted:
            for path in (element.module.path, *above):
                found = self._bindings[path].get(name) if path in self._modules else None
                if found:
                    element.needs.update(found)
                    break


def _is_all(statement: ast.stmt) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets)


def _label(statement: ast.stmt) -> str:
    if isinstance(statement, ast.ClassDef):
        return f"class {statement.name}"
    if isinstance(statement, FUNCTIONS):
        return f"function {statement.name}"
    names = ", ".join(sorted(bound_names(statement)))
    return f"assignment of {names}" if names else f"line {statement.lineno}"
