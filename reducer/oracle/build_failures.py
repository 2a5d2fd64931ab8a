"""Failures of a build: which error of many is the one, and of what stage."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reducer.oracle.compiler_text import INSTANTIATED, LinkError, diagnostics, link_errors
from reducer.oracle.exceptions import decisive, failure_of
from reducer.oracle.failure import Failure, Signature
from reducer.oracle.names import bare, in_framework
from reducer.oracle.normalise import straight, strip_ansi, template
from reducer.oracle.observation import CompilerCall, Diagnostic, Observation, Step
from reducer.oracle.ownership import Ownership
from reducer.oracle.tracebacks import chains
from reducer.oracle.wording import CASCADE, classify, message_template

# Build scripts compile small files of their own to see what a compiler can do; that one fails says nothing.
_PROBE = re.compile(
    r"(?:^|/)(?:flagcheck|_configtest|conftest|CMakeCXXCompilerId|testCXXCompiler)[^/]*$|CMakeTmp|CMakeScratch"
)
_SOURCE = re.compile(r"\.(?:c|cc|cpp|cxx|cu|c\+\+|C|hip|mm)$")


@dataclass(frozen=True, slots=True)
class _Error:
    """One compiler error with its notes, where it stands in the case, and its place in the order of errors."""

    diagnostic: Diagnostic
    notes: tuple[str, ...]
    signature: Signature
    file: str
    line: int
    order: tuple[int, ...]


def of_build(observation: Observation, owners: Ownership) -> Failure | None:
    """The build's failure, or None. See ``signature.derive``."""
    step = observation.build
    if observation.diagnostics is not None:
        return _choose(_errors(observation.diagnostics, 0, "", owners))
    if step is None:
        return None
    failure = compile_failure(observation.calls, owners, step.exit_code == 0)
    if failure is not None:
        return failure
    if step.timed_out:
        return Failure(Signature("compile", "timeout", "timeout"), f"the build ran longer than {step.seconds:.0f} s")
    if step.exit_code == 0:
        if observation.built:
            return None
        return Failure(Signature("link", "exit", "built-nothing"), "the build ended well but left no extension behind")
    return (
        text_failure(step.output, owners)
        or _link(_failing_links(observation.calls))
        or _setup(step, owners)
        or _exit(step, observation.calls)
    )


def compile_failure(calls: Sequence[CompilerCall], owners: Ownership, went_on: bool) -> Failure | None:
    """The failure that the recorded compiler calls show, if one failed to compile a source of the case.

    ``went_on``: the build as a whole ended well, so that calls which were repeated with success do not count.
    """
    errors: list[_Error] = []
    silent: CompilerCall | None = None
    for number, call in enumerate(calls):
        if call.exit_code == 0 or call.links or _probe(call) or (went_on and _repeated(call, calls)):
            continue
        found = _errors(diagnostics(call.stderr), number, call.cwd, owners)
        errors += found
        if not found and silent is None and _sources(call):
            silent = call
    failure = _choose(errors)
    if failure is None and silent is not None:
        lines = [line for line in silent.stderr.splitlines() if line.strip()]
        message = next(
            (line for line in lines if "error" in line.lower()), lines[-1] if lines else "the compiler failed"
        )
        return Failure(Signature("compile", "exit", f"exit {silent.exit_code}", "", template(message)), message)
    return failure


def text_failure(text: str, owners: Ownership) -> Failure | None:
    """The compiler's or else the linker's failure that a build log shows in its text, if any."""
    return _choose(_errors(diagnostics(text), 0, "", owners)) or _link(link_errors(text))


def link_failure(calls: Sequence[CompilerCall]) -> Failure | None:
    """The failure of the first linker call that failed, if any."""
    return _link(_failing_links(calls))


def _failing_links(calls: Iterable[CompilerCall]) -> list[LinkError]:
    return [error for call in calls if call.links and call.exit_code for error in link_errors(call.stderr)]


def _sources(call: CompilerCall) -> list[str]:
    return [word for word in call.argv if _SOURCE.search(word) and not word.startswith("-")]


def _probe(call: CompilerCall) -> bool:
    return any(_PROBE.search(source) for source in _sources(call))


def _repeated(call: CompilerCall, calls: Sequence[CompilerCall]) -> bool:
    return any(other.exit_code == 0 and not other.links and _sources(other) == _sources(call) for other in calls)


def _errors(found: Sequence[Diagnostic], call: int, cwd: str, owners: Ownership) -> list[_Error]:
    errors: list[_Error] = []
    units: dict[str, int] = {}  # outermost file of the case -> its turn
    for index, diagnostic in enumerate(found):
        if diagnostic.severity not in ("error", "fatal"):
            continue
        notes: list[str] = []
        for later in found[index + 1 :]:
            if later.severity != "note":
                break
            notes.append(later.message)
        places = [(diagnostic.file, diagnostic.line), *diagnostic.expansion]
        ours = [place for place in places if place[0] and owners.ours(place[0], cwd)]
        # a framework's header is judged where the case instantiates it, a header of the case where it is included
        unit, line = (ours[-1] if ours[0] == places[0] else ours[0]) if ours else ("", diagnostic.line)
        position = (call, units.setdefault(unit, len(units)), line)
        errors.append(_error(diagnostic, tuple(notes), ours, position, cwd, owners))
    return errors


def _error(
    diagnostic: Diagnostic,
    notes: tuple[str, ...],
    ours: Sequence[tuple[str, int]],
    position: tuple[int, ...],
    cwd: str,
    owners: Ownership,
) -> _Error:
    message = straight(strip_ansi(diagnostic.message))
    type_, symbol = classify(message, notes)
    file, line = ours[0] if ours else ("", 0)
    if diagnostic.file and not owners.ours(diagnostic.file, cwd):
        symbol = _entry(notes) or symbol
    signature = Signature("compile", "diagnostic", type_, symbol, message_template(message, notes))
    own_place = (file, line) == (diagnostic.file, diagnostic.line)
    order = (*position, line, diagnostic.column if own_place else 0)
    return _Error(diagnostic, notes, signature, owners.relative(file, cwd) if file else "", line, order)


def _entry(notes: Sequence[str]) -> str:
    """What the user's code called when the error stands in a framework's header: the outermost framework template."""
    for note in reversed(notes):
        if note.startswith(INSTANTIATED):
            name = bare(re.sub(r"^[^']*'|'[^']*$", "", note))
            if in_framework(name.replace("template", "").strip()):
                return name
    return ""


def _choose(errors: Sequence[_Error]) -> Failure | None:
    """The first error by position in the sources; one that names its cause goes before the wake of another."""
    if not errors:
        return None
    ordered = sorted(errors, key=lambda error: (error.order[0], _is_wake(error), error.order[1:]))
    first = ordered[0]
    signatures = list(dict.fromkeys(error.signature for error in ordered))
    return Failure(
        first.signature,
        strip_ansi(first.diagnostic.message),
        first.file,
        first.line,
        also=tuple(signature for signature in signatures if signature != first.signature),
    )


def _is_wake(error: _Error) -> bool:
    return error.signature.type in CASCADE and error.diagnostic.severity != "fatal"


def _link(errors: Sequence[LinkError]) -> Failure | None:
    """The link failure; a missing object file is only the wake of a compile error that is told elsewhere."""
    if not errors:
        return None
    ordered = sorted(errors, key=lambda error: error.type == "missing-input")
    signatures = [Signature("link", "link", error.type, error.symbol, error.type) for error in ordered]
    return Failure(signatures[0], ordered[0].message, also=tuple(dict.fromkeys(signatures[1:])))


def _setup(step: Step, owners: Ownership) -> Failure | None:
    """An exception in setup.py, or in what it calls."""
    found = chains(strip_ansi(step.stderr)) or chains(strip_ansi(step.stdout))
    if not found:
        return None
    # pip and build print the child's traceback first and their own after it
    ours = [chain for chain in found if any(owners.ours(frame.file) for raised in chain for frame in raised.frames)]
    chain = (ours or found)[0]
    return failure_of(decisive(chain, owners), owners, "setup")


def _exit(step: Step, calls: Sequence[CompilerCall]) -> Failure:
    """A build that failed without saying why in a form that is known: its last ``error:`` line, or its last line."""
    failed_link = next((call for call in calls if call.links and call.exit_code), None)
    text = strip_ansi(failed_link.stderr if failed_link is not None else step.output)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(?:fatal )?error\b", line, re.IGNORECASE)]
    message = (errors or lines or [f"exit code {step.exit_code}"])[-1]
    stage = "link" if failed_link is not None else "setup"
    signature = Signature(stage, "exit", f"exit {step.exit_code}", "", template(message))  # type: ignore[arg-type]
    return Failure(signature, message)
