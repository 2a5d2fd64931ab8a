"""C++ functions with the types of what is in them, and the one way in which passes go through them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from reducer.edits.cxx_functions import cxx_files, is_registration, plain_type
from reducer.edits.edit import Edit
from reducer.edits.passes import Proposal, proposal
from reducer.syntax.cxx import CxxParser, is_cxx_source
from reducer.syntax.cxx_outline import Function, Outline, Parameter
from reducer.syntax.cxx_statements import Block
from reducer.syntax.cxx_tokens import TokenFile
from reducer.syntax.cxx_types import TypesByPlace, types_of
from reducer.tree import SourceTree

ARITHMETIC = {
    "int", "long", "short", "char", "bool", "float", "double", "unsigned int", "unsigned long", "long long",
    "unsigned long long", "signed char", "unsigned char", "unsigned short", "size_t", "int64_t", "int32_t", "uint8_t",
    "std::size_t", "unsigned", "auto",
}  # fmt: skip


def all_types(parser: CxxParser | None, tree: SourceTree) -> TypesByPlace:
    """The types of all sources of the tree; empty without a parser."""
    found: TypesByPlace = {}
    if parser is not None:
        for path in tree:
            if is_cxx_source(path):
                found.update(types_of(parser.parse(tree, path)))
    return found


def same_type(left: str | None, right: str | None) -> bool:
    """True unless both types are known and neither equal nor both arithmetic."""
    if left is None or right is None:
        return True
    a, b = plain_type(left), plain_type(right)
    return a == b or (a in ARITHMETIC and b in ARITHMETIC) or "auto" in (a, b)


@dataclass(frozen=True, slots=True)
class TypedFunction:
    """A function that has a body, with the types of the tree that it stands in."""

    path: str
    view: Outline
    function: Function
    body: Block
    types: TypesByPlace

    @property
    def file(self) -> TokenFile:
        return self.view.file

    def type_of(self, first: int, last: int) -> str | None:
        """The type of the expression or variable that the tokens ``first`` to ``last`` spell, where it is known."""
        return self.types.get((self.path, *self.file.extent(first, last)))

    def parameter_type(self, parameter: Parameter) -> str:
        """The plain type of a parameter; as written where none is known."""
        known = self.type_of(parameter.name, parameter.name) if parameter.name is not None else None
        return plain_type(known or self.file.source(parameter.first, parameter.type_last))


def largest_first(
    parser: CxxParser | None, tree: SourceTree, edits_in: Callable[[TypedFunction], Iterable[Edit]]
) -> Proposal:
    """A sweep over what ``edits_in`` offers for each function, the largest gain first. The code that makes a module
    importable is not offered. Without a parser no types are known."""
    types = all_types(parser, tree)
    edits: list[Edit] = []
    for path, view in cxx_files(tree):
        for function in view.functions:
            if function.body is not None and is_registration(view, function) != "module":
                edits += edits_in(TypedFunction(path, view, function, function.body, types))
    return proposal(sorted(dict.fromkeys(edits), key=lambda e: -e.weight), "sweep")
