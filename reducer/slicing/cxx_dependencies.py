"""What needs what among a tree's C++ declarations.

Elements are what ``reducer.syntax.cxx_chunks`` finds in all sources and headers, with the pieces of one thing
(declaration, definition, out-of-line members) united. Edges come from names; where libclang resolved a name, from
what it resolved it to. What libclang cannot resolve (dependent names, macros, inactive code, broken files) counts
for everything of that name that the place can see: an edge too many only makes a slice larger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from reducer.slicing.cxx_elements import MERGED_KINDS, FileMap, Groups, Node, Units, nodes_of, scope_key
from reducer.slicing.cxx_graph import CxxGraph, Element
from reducer.slicing.cxx_references import Place, References, references
from reducer.syntax.cxx import CxxParser
from reducer.syntax.cxx_chunks import Chunk
from reducer.syntax.cxx_registrations import Binding, OpRegistration, registrations_of
from reducer.syntax.cxx_tokens import Word
from reducer.tree import SourceTree

_FOREIGN_NAMESPACES = frozenset({"std", "at", "c10", "torch", "paddle", "phi", "pybind11", "py"})


def dependency_graph(parser: CxxParser | None, tree: SourceTree, include_dirs: Sequence[str] = ()) -> CxxGraph:
    """The graph of a tree. Without a parser names alone decide. ``include_dirs`` are paths in the tree."""
    units = Units(tree, include_dirs)
    nodes = nodes_of(tree, units.files)
    found = references(parser, tree, units.sources) if parser is not None else References()
    return _Builder(tree, units, nodes, found).graph()


class _Builder:
    def __init__(self, tree: SourceTree, units: Units, nodes: list[Node], found: References) -> None:
        self.tree, self.units, self.nodes, self.found = tree, units, nodes, found
        numbers: dict[str, list[int]] = {path: [] for path in units.files}
        for number, node in enumerate(nodes):
            numbers[node.path].append(number)
        self.maps = {path: FileMap(nodes, some) for path, some in numbers.items()}
        self.namespaces = {n for node in nodes if node.chunk.kind == "namespace" for n in node.chunk.names}
        self.namespaces |= _FOREIGN_NAMESPACES
        self.element_of = self.unite()
        self.size = max(self.element_of, default=-1) + 1
        self.requires: list[set[int]] = [set() for _ in range(self.size)]
        self.brings: list[set[int]] = [set() for _ in range(self.size)]

    def node_at(self, place: Place) -> int | None:
        return self.maps[place[0]].at(place[1]) if place[0] in self.maps else None

    def unite(self) -> list[int]:
        """The element number of each node."""
        groups = Groups(len(self.nodes))
        known: set[int] = set()
        for places in self.found.pieces.values():
            some = sorted({n for p in places if (n := self.named_node(p)) is not None})
            known.update(some)
            for other in some[1:]:
                groups.unite(some[0], other)
        by_name: dict[tuple[object, ...], list[int]] = {}
        for number, node in enumerate(self.nodes):
            if node.chunk.kind in MERGED_KINDS and node.chunk.names and not node.chunk.specialised:
                by_name.setdefault((node.chunk.kind == "function", scope_key(node)), []).append(number)
        for some in by_name.values():
            if all(n in known for n in some) or all(self.nodes[n].chunk.defines for n in some):
                continue
            first = next((n for n in some if self.nodes[n].chunk.defines), some[0])
            for other in some:
                if other not in known or first not in known:
                    groups.unite(first, other)
        leaders = sorted({groups.find(n) for n in range(len(self.nodes))})
        rank = {leader: index for index, leader in enumerate(leaders)}
        return [rank[groups.find(n)] for n in range(len(self.nodes))]

    def named_node(self, place: Place) -> int | None:
        """The node that declares the name written at a place, rather than one that merely surrounds it."""
        number = self.node_at(place)
        if number is None:
            return None
        chunk = self.nodes[number].chunk
        operator = chunk.names[:1] == ("operator",) and place[1] in chunk.name_offsets
        named = operator or any(place[1] in (o, o - 1) for o in chunk.name_offsets)
        return number if named and chunk.kind in MERGED_KINDS and not chunk.specialised else None

    def graph(self) -> CxxGraph:
        registered = self.registrations()
        self.containers()
        self.names()
        self.resolved()
        self.using()
        self.operators(registered)
        self.silent()
        self.tangled()
        for index in range(self.size):
            self.requires[index].discard(index)
            self.brings[index].discard(index)
        return CxxGraph(
            tuple(self.elements(registered)),
            tuple(map(frozenset, self.requires)),
            tuple(map(frozenset, self.brings)),
            self.tree,
            self.maps,
            tuple(self.element_of),
        )

    def require(self, node: int, target: int) -> None:
        self.requires[self.element_of[node]].add(self.element_of[target])

    def bring(self, node: int, target: int) -> None:
        self.brings[self.element_of[node]].add(self.element_of[target])

    def registrations(self) -> dict[int, list[OpRegistration | Binding]]:
        """By node."""
        found: dict[int, list[OpRegistration | Binding]] = {}
        first: dict[str, int] = {}
        for number, node in enumerate(self.nodes):
            first.setdefault(node.path, number)
        for path, base in first.items():
            for item in registrations_of(path, self.tree[path]):
                found.setdefault(base + item.chunk, []).append(item)
        return found

    def containers(self) -> None:
        for number, node in enumerate(self.nodes):
            if node.parent is not None:
                self.require(number, node.parent)

    def names(self) -> None:
        """Edges from words that libclang did not resolve, and from all uses of macros."""
        table: dict[str, list[int]] = {}
        macros: dict[str, list[int]] = {}
        for number, node in enumerate(self.nodes):
            if node.chunk.kind == "macro":
                macros.setdefault(node.chunk.names[0], []).append(number)
            elif _may_be_named(node.chunk):
                for name in node.chunk.names:
                    table.setdefault(name, []).append(number)
        for number, node in enumerate(self.nodes):
            declared = set(node.chunk.name_offsets) if not node.chunk.specialised else set()
            for word in node.own:
                if word.start in declared:
                    continue
                for target in macros.get(word.text, ()):
                    if self.units.visible(node.path, self.nodes[target].path):
                        self.require(number, target)
                if (node.path, word.start) in self.found.words:
                    continue
                for target in table.get(word.text, ()):
                    if self.may_mean(node, word, target):
                        self.require(number, target)

    def may_mean(self, node: Node, word: Word, target: int) -> bool:
        other = self.nodes[target]
        if not self.units.visible(node.path, other.path):
            return False
        parent = other.parent
        if parent is not None and self.nodes[parent].chunk.kind in ("module", "registration", "function"):
            return node.parent == parent or self.inside(node, parent)
        member = parent is not None and self.nodes[parent].chunk.kind == "class"
        if word.before in (".", "->", "->*"):
            return member
        if not member:
            return True
        owner = other.chunk.scope[-1:]
        if word.before == "::":
            return word.before_that in owner or word.before_that not in self.namespaces
        return self.in_class(node) or bool({*node.chunk.scope} & {*owner})

    def inside(self, node: Node, container: int) -> bool:
        parent = node.parent
        while parent is not None and parent != container:
            parent = self.nodes[parent].parent
        return parent == container

    def in_class(self, node: Node) -> bool:
        return node.parent is not None and self.nodes[node.parent].chunk.kind == "class"

    def resolved(self) -> None:
        for place, targets in self.found.words.items():
            self.link(place, targets)
        for place, target in self.found.implicit:
            self.link(place, (target,))
        for method, overridden in self.found.overrides:
            own, base = self.node_at(method), self.node_at(overridden)
            if own is not None and base is not None:
                self.require(own, base)
                parent = self.nodes[own].parent
                if parent is not None:
                    self.bring(parent, own)

    def link(self, place: Place, targets: Iterable[Place]) -> None:
        number = self.node_at(place)
        for target in targets if number is not None else ():
            other = self.node_at(target)
            if other is not None and number is not None and self.nodes[other].chunk.kind != "namespace":
                self.require(number, other)

    def using(self) -> None:
        """libclang looks through using-declarations and directives: the code behind them needs them by name."""
        users: dict[str, set[int]] = {}
        for number, node in enumerate(self.nodes):
            for word in node.own:
                if word.before not in (".", "->"):
                    users.setdefault(word.text, set()).add(number)
        for number, node in enumerate(self.nodes):
            if node.chunk.kind == "using":
                for name in node.chunk.names:
                    for user in users.get(name, ()):
                        if self.units.visible(self.nodes[user].path, node.path):
                            self.require(user, number)
            elif node.chunk.kind in ("using-namespace", "alias"):
                self.require_namespace(number)
            if node.chunk.kind == "using-namespace":
                for user, other in enumerate(self.nodes):
                    if self.reads(other, node) and other.chunk.kind not in (
                        "namespace",
                        "linkage",
                        "macro",
                        "using-namespace",
                    ):
                        self.require(user, number)

    def require_namespace(self, number: int) -> None:
        """``using namespace a::b;`` and ``namespace c = a::b;`` need one earlier block of each namespace."""
        node = self.nodes[number]
        for word in node.own:
            blocks = [
                (other.path != node.path, other.path, other.chunk.start, index)
                for index, other in enumerate(self.nodes)
                if other.chunk.kind == "namespace"
                and word.text in other.chunk.names
                and self.units.visible(node.path, other.path)
                and (other.path != node.path or other.chunk.start < word.start)
            ]
            if blocks:
                self.require(number, min(blocks)[-1])

    def reads(self, node: Node, directive: Node) -> bool:
        """True when a using-directive in force at its place is in force at ``node`` too."""
        if node.path == directive.path:
            within = directive.parent is None or self.inside(node, directive.parent)
            return within and node.chunk.start > directive.chunk.start
        return directive.path in self.units.closure(node.path)

    def operators(self, registered: dict[int, list[OpRegistration | Binding]]) -> None:
        """An ``impl`` needs the ``def`` of its op."""
        definitions: dict[tuple[str, str], list[int]] = {}
        for number, items in registered.items():
            for item in items:
                if isinstance(item, OpRegistration) and not item.implements:
                    definitions.setdefault((item.namespace, item.name), []).append(number)
        for number, items in registered.items():
            for item in items:
                if isinstance(item, OpRegistration) and item.implements:
                    for target in definitions.get((item.namespace, item.name), ()):
                        self.require(number, target)
                        self.bring(target, number)

    def silent(self) -> None:
        """What a class, template or type uses without a name: for slices."""
        foreign = {self.node_at(place) for place in self.found.foreign_bases}
        primaries: dict[tuple[str, ...], list[int]] = {}
        for number, node in enumerate(self.nodes):
            if not node.chunk.specialised and node.chunk.names:
                primaries.setdefault((*node.chunk.scope, node.chunk.names[0]), []).append(number)
        for number, node in enumerate(self.nodes):
            chunk = node.chunk
            parent = node.parent
            if parent is not None and self.nodes[parent].chunk.kind == "class":
                if (
                    parent in foreign
                    or self.has_unparsed_base(parent)
                    or _silent_member(chunk, self.nodes[parent].chunk)
                ):
                    self.bring(parent, number)
            elif chunk.specialised and chunk.names:
                for target in primaries.get((*chunk.scope, chunk.names[0]), ()):
                    self.bring(target, number)
                    self.require(number, target)
            if chunk.names == ("operator",) or chunk.specialised:
                for target in self.requires[self.element_of[number]] & self.classes:
                    self.brings[target].add(self.element_of[number])

    def has_unparsed_base(self, number: int) -> bool:
        """True for a class with bases in a file that libclang did not read."""
        node = self.nodes[number]
        body = node.chunk.body
        head = self.tree[node.path][node.chunk.start : body[0]] if body else b""
        return node.path not in self.found.parsed and b":" in head.replace(b"::", b"")

    @cached_property
    def classes(self) -> set[int]:
        """The elements that are classes, by any of their pieces."""
        return {self.element_of[n] for n, node in enumerate(self.nodes) if node.chunk.kind == "class"}

    def tangled(self) -> None:
        """A cut that had to grow over an #if takes others with it: those need it."""
        for number, node in enumerate(self.nodes):
            content, wide, chunk = self.tree[node.path], node.span, node.chunk
            if b"#" not in content[wide.start : chunk.start] + content[chunk.end : wide.end]:
                continue
            for other_number, other in enumerate(self.nodes):
                apart = other.path != wide.path or other.chunk.end <= wide.start or other.chunk.start >= wide.end
                around = other.chunk.start <= wide.start and wide.end <= other.chunk.end
                if not apart and not around:
                    self.require(other_number, number)

    def elements(self, registered: dict[int, list[OpRegistration | Binding]]) -> Iterator[Element]:
        pieces: list[list[int]] = [[] for _ in range(self.size)]
        for number, element in enumerate(self.element_of):
            pieces[element].append(number)
        for some in pieces:
            main = max(some, key=lambda n: (self.nodes[n].chunk.defines, -n))
            chunk = self.nodes[main].chunk
            parents = {self.element_of[p] for n in some if (p := self.nodes[n].parent) is not None}
            items = tuple(item for n in some for item in registered.get(n, ()))
            spans = tuple(sorted({self.nodes[n].span for n in some}))
            yield Element(
                chunk.kind, _label(self.nodes[main], self.tree), chunk.names, spans, frozenset(parents), items
            )


def _may_be_named(chunk: Chunk) -> bool:
    """False for what no use names: specialisations, constructors, namespaces; using-declarations are handled apart."""
    if chunk.kind in ("using", "other", "namespace") or (chunk.specialised and chunk.defines):
        return False
    return not (chunk.kind == "function" and chunk.scope and chunk.names[:1] == chunk.scope[-1:])


def _silent_member(chunk: Chunk, owner: Chunk) -> bool:
    """Fields, constructors, destructors, operators and unnamed members: used without being named."""
    if chunk.kind == "variable" or not chunk.names:
        return True
    return chunk.names[0] in owner.names[:1] or chunk.names[0] == "operator" or chunk.names[0].startswith("~")


def _label(node: Node, tree: SourceTree) -> str:
    chunk = node.chunk
    if chunk.names:
        return f"{chunk.kind} {'::'.join([s for s in chunk.scope if s] + [', '.join(chunk.names)])}"
    end = chunk.end if chunk.body is None else chunk.body[0] - 1
    text = tree[node.path][chunk.start : end].decode("utf-8", "replace")
    return f"{chunk.kind} {' '.join(text.split())[:60]}"
