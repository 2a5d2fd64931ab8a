"""Failures of the failing command: timeouts, crashes, exceptions, test reports, plain exit codes."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import replace

from reducer.oracle import pytest_output, python_errors
from reducer.oracle.build_failures import compile_failure, link_failure, text_failure
from reducer.oracle.exceptions import at_import, decisive, failure_of
from reducer.oracle.failure import Failure, Frame, Signature, Stage
from reducer.oracle.names import bare, in_framework
from reducer.oracle.normalise import strip_ansi, template
from reducer.oracle.observation import Observation, Step
from reducer.oracle.ownership import Ownership
from reducer.oracle.tracebacks import Raised, chains

_LOOKUP = re.compile(r"symbol lookup error: .*?: (undefined symbol: (\w+).*)")
_SIGNAL_INFO = re.compile(r"\[SignalInfo: \*\*\* (SIG[A-Z]+)")
_NATIVE_FRAME = re.compile(r"^\d+\s+(\S.*)$", re.MULTILINE)
_NATIVE_BLOCK = re.compile(
    r"C\+\+ Traceback \(most recent call last\):\s*-*\n(.*?)(?:\n\s*\n|Error Message Summary)", re.DOTALL
)
_TERMINATE = re.compile(r"terminate called after throwing an instance of '([^']+)'(?:\s+what\(\):\s*(.*))?")
_FAULT = re.compile(r'^  File "(.*?)", line (\d+) in (.*)$', re.MULTILINE)
_JIT = re.compile(
    r"Failed to run command: <built-in function compile>|Error building extension|Error compiling objects"
    r"|returned non-zero exit status|Command '.*(?:setup\.py|ninja|nvcc|g\+\+|gcc|clang)|command '.*' failed"
)
_TOLD = (
    re.compile(r"(?<!\w)error: "),
    re.compile(r"can't open file|command not found|No such file|not found:", re.IGNORECASE),
)
_UNITTEST = re.compile(r"^(ERROR|FAIL): \w+.*$", re.MULTILINE)
_RAN = re.compile(r"^Ran \d+ tests? in ", re.MULTILINE)


def of_run(observation: Observation, owners: Ownership) -> Failure | None:
    """The failing command's failure, or None when it did not run or exited 0. See ``signature.derive``."""
    step = observation.run
    if step is None or (step.exit_code == 0 and not step.timed_out):
        return None
    if step.timed_out:
        return Failure(Signature("run", "timeout", "timeout"), f"no end after {step.seconds:.0f} s")
    output = strip_ansi(step.output)
    crash = _lookup_error(output) or _signal(step, output, owners)
    if crash is not None:
        return crash
    if re.search(r"^INTERNALERROR>", output, re.MULTILINE):
        return _exit(step, output)
    found = _raised(step, owners)
    if (found and _JIT.search(found[0].message)) or not found:
        built = _jit(observation, output, owners)
        if built is not None:
            return built
    if not found:
        return _exit(step, output)
    first = found[0]
    others = dict.fromkeys(failure.signature for failure in found[1:] if failure.signature != first.signature)
    return replace(first, also=tuple(others))


def _jit(observation: Observation, output: str, owners: Ownership) -> Failure | None:
    """A build that the failing command itself started; the exception in Python says nothing about it."""
    return (
        compile_failure(observation.calls, owners, went_on=False)
        or text_failure(output, owners)
        or link_failure(observation.calls)
    )


def _lookup_error(output: str) -> Failure | None:
    """The dynamic linker ended the process: a lazily bound symbol is missing."""
    match = _LOOKUP.search(output)
    if match is None:
        return None
    symbol, text = python_errors.undefined_symbol(match.group(2))
    return Failure(Signature("run", "link", "undefined-symbol", symbol, text), match.group(1))


def _signal(step: Step, output: str, owners: Ownership) -> Failure | None:
    """The process died from a signal, by its exit code (also a shell's 128+n) or by what Paddle's handler printed."""
    number = -step.exit_code if step.exit_code < 0 else step.exit_code - 128
    info = _SIGNAL_INFO.search(output)
    try:
        name = signal.Signals(number).name if number > 0 else ""
    except ValueError:
        name = ""
    if not name and (info is None or chains(output)):
        return None
    name = name or (str(info.group(1)) if info else "")
    symbol = _native_place(output)
    text = ""
    thrown = _TERMINATE.search(output)
    if thrown is not None:
        symbol, text = bare(thrown.group(1)), template(thrown.group(2) or "")
    frames = tuple(
        Frame(file, int(line), function, owner=owners.owner(file))
        for file, line, function in reversed(_FAULT.findall(output))
    )
    stage: Stage = "import" if frames and at_import(Raised(name, "", frames), owners) else "run"
    place = next((frame for frame in reversed(frames) if frame.owner in ("library", "test")), None)
    return Failure(
        Signature(stage, "signal", name, symbol, text),
        thrown.group().strip() if thrown is not None else name,
        owners.relative(place.file) if place is not None else "",
        place.line if place is not None else 0,
        frames,
    )


def _native_place(output: str) -> str:
    """The innermost function of a framework in Paddle's C++ traceback, "" when none is shown."""
    block = _NATIVE_BLOCK.search(output)
    if block is None:
        return ""
    names = [bare(text) for text in _NATIVE_FRAME.findall(block.group(1))]
    return names[-1] if names and in_framework(names[-1]) else ""


def _raised(step: Step, owners: Ownership) -> list[Failure]:
    """The exceptions that decide a failing run: the failure first."""
    stdout, stderr = strip_ansi(step.stdout), strip_ansi(step.stderr)
    for text in (stdout, stderr, stdout + "\n" + stderr):
        if pytest_output.is_report(text):
            found = [f for report in pytest_output.reports(text) if (f := _reported(report, owners)) is not None]
            if found:
                return found
    output = stderr if chains(stderr) else stdout
    blocks = chains(output)
    if not blocks:
        return []
    tests = bool(_UNITTEST.search(output) and _RAN.search(output))
    failures = [_plain(chain, owners) for chain in blocks]
    if tests:
        return failures
    return _outermost(blocks, failures)


def _outermost(blocks: Sequence[Sequence[Raised]], failures: list[Failure]) -> list[Failure]:
    """The failure of a plain script among several tracebacks: the last, which ended it.

    A group's own members are printed right after it, and a child process's traceback before that of the parent, which
    then says only that a command failed.
    """
    index = len(blocks) - 1
    group = next((i for i, chain in enumerate(blocks) if chain[-1].type.endswith("ExceptionGroup")), None)
    if group is not None and group + 1 < len(blocks):
        index = group + 1
    elif blocks[index][-1].type.rpartition(".")[2] == "CalledProcessError" and index > 0:
        index -= 1
    return [failures[index], *failures[:index], *failures[index + 1 :]]


def _plain(chain: Sequence[Raised], owners: Ownership) -> Failure:
    raised = decisive(chain, owners)
    # a cause is printed with the frames below the handler only; the last one shows how the script got there
    stage: Stage = "import" if at_import(chain[-1], owners) or at_import(raised, owners) else "run"
    return failure_of(raised, owners, stage)


def _reported(report: pytest_output.Report, owners: Ownership) -> Failure | None:
    """A failure in pytest's report. One during collection happened at import."""
    stage: Stage = "import" if report.where == "collection" else "run"
    if not report.chain:
        return Failure(Signature("import", "exit", "collection-error"), f"cannot collect {report.test}", report.test)
    raised = decisive(report.chain, owners)
    if raised.type.rpartition(".")[2] == "CalledProcessError":
        children = chains(report.captured)
        if children:
            return _plain(children[-1], owners)
    return failure_of(raised, owners, stage)


def _exit(step: Step, output: str) -> Failure:
    """The command failed and said nothing that is known."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    message = lines[-1] if lines else f"exit code {step.exit_code}"
    told = next((line for pattern in _TOLD for line in lines if pattern.search(line)), message)
    return Failure(Signature("run", "exit", f"exit {step.exit_code}", "", template(told)), told)
