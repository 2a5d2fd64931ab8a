"""The fine-grained C++ passes in the order that needs fewest queries."""

from __future__ import annotations

from reducer.edits.cxx_expressions import CxxExpressions, CxxQualifiers
from reducer.edits.cxx_module import CxxModule
from reducer.edits.cxx_scopes import CxxScopes
from reducer.edits.cxx_signatures import CxxSignatures
from reducer.edits.cxx_statements import CxxBodies, CxxStatements, CxxUnwrap
from reducer.edits.cxx_variables import CxxVariables
from reducer.edits.passes import Pass
from reducer.syntax.cxx import CxxParser


def cxx_passes(parser: CxxParser | None = None, *, importable: bool = True) -> tuple[Pass, ...]:
    """Passes for a sliced file, to be repeated until nothing changes; the names (``CxxNames``) come once, after them.

    ``parser``: parses as on the side that is free of errors, for types. ``importable``: keep the module importable.
    """
    return (
        CxxModule(importable),
        CxxScopes(),
        CxxBodies(),
        CxxStatements(),
        CxxUnwrap(),
        CxxVariables(parser),
        CxxSignatures(parser),
        CxxExpressions(parser),
        CxxQualifiers(),
    )
