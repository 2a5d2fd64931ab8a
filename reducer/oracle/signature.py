"""From what one side showed to its failure, and whether two failures are the same (DESIGN.md §5)."""

from __future__ import annotations

import re

from reducer.oracle.build_failures import of_build
from reducer.oracle.failure import Failure, Owner, Signature, Stage
from reducer.oracle.names import same_symbol
from reducer.oracle.normalise import CUT
from reducer.oracle.observation import Observation
from reducer.oracle.ownership import Ownership
from reducer.oracle.run_failures import of_run
from reducer.oracle.wording import NAMELESS

_COMPARED = re.compile(r" (?:==|!=|<=|>=|<|>) ")
_LOADED: frozenset[Stage] = frozenset({"import", "run"})
_FRAMEWORKS: frozenset[Owner] = frozenset({"paddle", "torch"})


def derive(observation: Observation) -> Failure | None:
    """The failure that an observation shows; None when this side passes (or nothing of it was run).

    A build that exits 0 though a compile call failed has failed (stale objects are linked then), and so has one that
    left nothing behind. Of a compiler's errors the first by position that names its cause is the failure; the others
    are in ``also``. Of several failing tests the first is.
    """
    owners = Ownership(observation.root, observation.roots)
    return of_build(observation, owners) or of_run(observation, owners)


def same(expected: Signature, failure: Failure, match: re.Pattern[str] | None = None, output: str = "") -> bool:
    """Whether ``failure`` is the one that ``expected`` describes.

    ``match`` (the user's ``--match``), searched in the message and in ``output``, decides in place of type, symbol and
    template; stage and kind must agree all the same. A compiler reports many errors at once, so at the compile stage
    it is enough that the expected one is among them.
    """
    found = failure.signature
    if match is not None:
        if not _same_stage(expected, found) or expected.kind != found.kind:
            return False
        return match.search(failure.message) is not None or match.search(output) is not None
    if _equal(expected, found):
        return True
    return expected.stage == "compile" and any(_equal(expected, other) for other in failure.also)


def _equal(expected: Signature, found: Signature) -> bool:
    if not _same_stage(expected, found) or expected.kind != found.kind or expected.type != found.type:
        return False
    if not _symbols(expected, found) or not _owners(expected, found):
        return False
    if expected.kind == "mismatch":
        return _operands(expected.template, found.template)
    return _templates(expected.template, found.template)


def _same_stage(expected: Signature, found: Signature) -> bool:
    """Import and run are one stage here: flattening a module into the script moves its import-time code to the run."""
    return expected.stage == found.stage or {expected.stage, found.stage} == _LOADED


def _symbols(expected: Signature, found: Signature) -> bool:
    if expected.kind == "mismatch":
        return True
    if same_symbol(expected.symbol, found.symbol):
        return True
    if "" not in (expected.symbol, found.symbol):
        return False
    if expected.template.endswith(CUT) or found.template.endswith(CUT):
        return True  # the name may be in the part that was cut; the templates decide
    # a crash's native traceback is lost under pytest; and some compilers name nothing where others do
    return expected.kind == "signal" or (expected.kind == "diagnostic" and expected.type in NAMELESS)


def _owners(expected: Signature, found: Signature) -> bool:
    """An exception inside a framework is not one in the case; the case's own files merge when it is flattened."""
    if expected.kind != "exception" or not expected.owner or not found.owner:
        return True
    return (expected.owner in _FRAMEWORKS) == (found.owner in _FRAMEWORKS)


def _operands(expected: str, found: str) -> bool:
    """False where pytest shows that a number is compared in one and a tensor in its place in the other: the check that
    a number is right has become one of how tensors compare."""
    pairs = zip(_COMPARED.split(expected), _COMPARED.split(found), strict=False)
    return all({_operand(one), _operand(other)} != {"number", "tensor"} for one, other in pairs)


def _operand(text: str) -> str:
    if re.match(r"(?:assert )?[Tt]ensor\(", text):
        return "tensor"
    return "number" if re.match(r"(?:assert )?(?:np\.\w+\()?<n>", text) else ""


def _templates(expected: str, found: str) -> bool:
    """Equal, or one is the cut-off start of the other (pytest's short summary)."""
    if expected == found:
        return True
    for short, long in ((expected, found), (found, expected)):
        if short.endswith(CUT) and long.startswith(short[: -len(CUT)].rstrip()):
            return True
    return False


_KINDS = {
    "diagnostic": "compiler error",
    "link": "link error",
    "exception": "exception",
    "signal": "crash",
    "timeout": "no end in time",
    "mismatch": "failed check",
    "exit": "failed command",
}


def describe(signature: Signature) -> str:
    """The signature in one line for people, e.g. ``compile: compiler error missing-member at::matmul``."""
    words = [f"{signature.stage}: {_KINDS[signature.kind]}"]
    if signature.type not in ("", "timeout"):
        words.append(signature.type)
    if signature.symbol:
        words.append(signature.symbol)
    line = " ".join(words)
    if signature.template and signature.template != signature.type and signature.kind != "diagnostic":
        line += f": {signature.template}"
    return line if len(line) <= 200 else line[:197] + "..."
