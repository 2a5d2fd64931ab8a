"""Cutting C++ declarations, each with all its pieces, in dependency-closed sets."""

from __future__ import annotations

from collections.abc import Sequence

from reducer.edits.edit import Edit, Splice
from reducer.edits.passes import Proposal, nothing
from reducer.slicing.cxx_dependencies import dependency_graph
from reducer.slicing.cxx_graph import CxxGraph, Element
from reducer.syntax.cxx import CxxParser
from reducer.tree import SourceTree


class CxxDeclarations:
    """Functions, types, variables, macros, members, registration lines and the blocks around them.

    Edit i of a proposal cuts element i of ``dependency_graph(parser, tree, include_dirs)``, so that a slice of that
    graph names the edits to leave out. ``parser`` may be None: names alone decide then.
    """

    name = "C++ declarations"

    def __init__(self, parser: CxxParser | None, include_dirs: Sequence[str] = ()) -> None:
        self._parser = parser
        self._include_dirs = tuple(include_dirs)

    def propose(self, tree: SourceTree) -> Proposal:
        return proposal_of(dependency_graph(self._parser, tree, self._include_dirs))


def proposal_of(graph: CxxGraph) -> Proposal:
    """The edits of a graph, index by index."""
    if not graph.elements:
        return nothing()
    return Proposal(tuple(map(cut_of, graph.elements)), "closures", graph.requires)


def cut_of(element: Element) -> Edit:
    """The edit that removes one element with all its pieces."""
    weight = sum(span.end - span.start for span in element.spans)
    return Edit(tuple(Splice(s.path, s.start, s.end) for s in element.spans), element.label, max(1, weight))
