"""The baseline: does the case fail on Paddle, in which way, every time, and does it pass under PyTorch?"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace

from reducer.cd_command import from_the_top, places
from reducer.errors import CaseError, Exit
from reducer.frameworks.runner import Runner, Timeouts
from reducer.frameworks.side import STAND_IN_USED, Side
from reducer.oracle.candidate import Candidate
from reducer.oracle.failure import Failure
from reducer.oracle.observation import Observation, Step
from reducer.oracle.signature import derive, describe, same
from reducer.unittest_command import as_pytest
from reducer.world.commands import join_simple, parse_simple
from reducer.world.together import together

REAL_RUNS = 3
QUICK_RUNS = 7  # more repeats when they are cheap: a case that fails half of the time shows itself in 999 of 1000
FIRST_TIMEOUT = 60.0  # seconds for the very first run, when nothing is known: also the price of a case that hangs
CONTROL_TIMEOUT = 900.0
NARROWED = 4  # failing tests that are looked at for the one whose failure was chosen
HANGING = 3.0  # times the control's run
COMPAT_SWITCHES = (b"enable_compat", b"enable_torch_proxy", b"paddle.utils")
ENDLESS = 2.0  # times the longer side's run: a warm run that takes more has lost the end of a loop
HEADROOM = 8.0  # times what the control took: below that a run is slow, above it hangs


@dataclass(frozen=True, slots=True)
class Baseline:
    """The case as it stood before reduction: narrowed to one failing test, with both sides' observations."""

    candidate: Candidate
    failure: Failure
    paddle: Observation
    control: Observation
    timeouts: Timeouts


def establish(
    candidate: Candidate,
    paddle: Side,
    torch: Side,
    runner: Runner,
    say: Callable[[str], None],
    timeout: float | None,
    built: Callable[[Observation], None] = lambda seen: None,
    *,
    as_given: bool = False,
) -> Baseline:
    """Run the case on both sides, at the same time. Raises CaseError: no failure, flaky, or a control that fails too.

    ``built`` is told of each side's first observation as soon as there is one, also from another thread. The control's
    build needs nothing of Paddle's answer; its run waits for the command that Paddle's side is narrowed to.
    ``as_given``: a command that needs a shell is left as it is.
    """
    first_limit = Timeouts(run=timeout or FIRST_TIMEOUT)
    control_limit = Timeouts(run=timeout or CONTROL_TIMEOUT)
    decided: Future[Candidate] = Future()
    given = candidate

    def control() -> Observation:
        def command() -> str | None:
            return decided.result().recipe.for_side("torch")

        seen = runner.observe_runs(torch, given, 1, command=command, timeouts=control_limit)[0]
        built(seen)
        return seen

    def on_paddle() -> tuple[Candidate, Failure, Observation]:
        try:
            return _on_paddle(given, paddle, runner, say, first_limit, built, decided.set_result, as_given)
        finally:
            decided.cancel()  # without effect on a result

    runner.timeouts = first_limit
    say("baseline: building and running on Paddle, and under PyTorch as the control")
    (candidate, first, seen), passed = together(on_paddle, control)
    refused = derive(passed)
    if refused is not None and _in_a_folder(given) and candidate != given:
        say("PyTorch fails from the top of the tree: once more with the command as it was given")
        return establish(given, paddle, torch, runner, say, timeout, built, as_given=True)
    if refused is not None:
        raise CaseError(Exit.CONTROL_FAILS, _control_message(candidate, passed, refused))
    if first.signature.kind == "timeout" and timeout is None and passed.run is not None:
        wanted = HEADROOM * passed.run.seconds
        if wanted > FIRST_TIMEOUT:
            say(f"Paddle was stopped after {FIRST_TIMEOUT:.0f} s, but PyTorch takes {passed.run.seconds:.0f} s: again")
            return establish(candidate, paddle, torch, runner, say, wanted, built, as_given=as_given)
    say("PyTorch: passes")
    return Baseline(candidate, first, seen, passed, timeouts_after(seen, passed, timeout))


def _on_paddle(
    candidate: Candidate,
    paddle: Side,
    runner: Runner,
    say: Callable[[str], None],
    limit: Timeouts,
    built: Callable[[Observation], None],
    decided: Callable[[Candidate], None],
    as_given: bool,
) -> tuple[Candidate, Failure, Observation]:
    """The case narrowed to one failing test, its failure, and the first run. Raises CaseError.

    ``decided`` is told what the case was narrowed to, before it is known whether all runs agree.
    """

    def observe(runs: int) -> list[Observation]:
        repeats = QUICK_RUNS if runs > 1 else 0
        return runner.observe_runs(
            paddle, candidate, runs, more=lambda seen: repeats if _quick(seen) else 0, timeouts=limit
        )

    def once() -> tuple[list[Observation], tuple[Candidate, Failure] | None]:
        seen = observe(1)
        failure = derive(seen[0])
        return seen, narrowed(failure) if failure is not None else None

    def narrowed(failure: Failure) -> tuple[Candidate, Failure]:
        found = (candidate, failure) if as_given else _narrowed(candidate, paddle, runner, failure)
        decided(found[0])
        return found

    if candidate.recipe.build is None:  # nothing is built twice: the repeats run beside the first run
        (seen, found), repeats = together(once, lambda: observe(REAL_RUNS - 1))
        seen += repeats
    else:
        seen, found = observe(REAL_RUNS), None
        built(seen[0])
    first = _steady([derive(observation) for observation in seen], candidate)
    if first is None:
        raise CaseError(
            Exit.NO_FAILURE,
            "the command does not fail on Paddle, so there is nothing to reduce.\n"
            f"Command: {candidate.recipe.run or candidate.recipe.build} (passed all of {len(seen)} runs)\n"
            + _is_it_switched_on(candidate),
        )
    if first.signature.kind == "exit" and any(o.run is not None and o.run.exit_code in (126, 127) for o in seen):
        raise CaseError(
            Exit.USAGE,
            f"the failing command cannot be run: {first.message.strip() or describe(first.signature)}\n"
            f"Command: {candidate.recipe.run}\n"
            "Give a command that works in the library's checkout; the side's python and pytest are first on PATH.",
        )
    say(f"Paddle: {describe(first.signature)}")
    for other in first.also[:8]:
        say(f"  also: {describe(other)}")
    chosen, failure = found or narrowed(first)
    if chosen != candidate:
        say(f"narrowed to: {chosen.recipe.run}")
    return chosen, failure, seen[0]


def _narrowed(candidate: Candidate, paddle: Side, runner: Runner, first: Failure) -> tuple[Candidate, Failure]:
    """The case with the first test alone that fails in this way, or as it is."""
    narrower = _narrow(candidate, paddle, runner, first)
    for narrowed in narrower if len(narrower) <= NARROWED else (*narrower[: NARROWED - 1], narrower[-1]):
        failure = derive(runner.observe(paddle, narrowed, fast=True))
        if failure is not None and same(first.signature, failure):
            return narrowed, failure
    return candidate, first


def _steady(failures: list[Failure | None], candidate: Candidate) -> Failure | None:
    """The failure that all runs share, or None when all pass. Raises CaseError (flaky) otherwise."""
    failed = [failure for failure in failures if failure is not None]
    if not failed:
        return None
    first = failed[0]
    alike = sum(same(first.signature, failure) for failure in failed)
    if alike == len(failures):
        return first
    kinds = {describe(failure.signature) for failure in failed}
    raise CaseError(
        Exit.FLAKY,
        f"the case is flaky: {len(failed)} of {len(failures)} runs failed on Paddle"
        f"{', in different ways' if len(kinds) > 1 else ''}.\n"
        f"Command: {candidate.recipe.run or candidate.recipe.build}\n"
        + "".join(f"  seen: {kind}\n" for kind in sorted(kinds))
        + "Fix its randomness first (seed it, fix the order of its tests), so that every run fails the same way.",
    )


def _quick(seen: list[Observation]) -> bool:
    return all(o.run is not None and not o.run.timed_out and o.run.seconds < 10.0 for o in seen)


def _narrow(candidate: Candidate, paddle: Side, runner: Runner, failure: Failure) -> list[Candidate]:
    """The same case with one failing test each, when the command is a pytest or unittest run of several; then, when
    it was `cd DIR && COMMAND`, with the command run from the top."""
    if candidate.recipe.control_run is not None:
        return []
    moved = _in_a_folder(candidate)
    if moved:
        candidate = replace(candidate, recipe=replace(candidate.recipe, run=moved))
        return [*_single_tests(candidate, paddle, runner, failure), candidate]
    return _single_tests(candidate, paddle, runner, failure)


def _in_a_folder(candidate: Candidate) -> str | None:
    return from_the_top(candidate.recipe.run or "", candidate.tree)


def _single_tests(candidate: Candidate, paddle: Side, runner: Runner, failure: Failure) -> list[Candidate]:
    command = parse_simple(candidate.recipe.run or "")
    if command is None:
        return []
    argv = as_pytest(command.argv, candidate.tree)
    if argv is not None:
        run = join_simple(command.env, argv)
        candidate = replace(candidate, recipe=replace(candidate.recipe, run=run))
    else:
        argv = list(command.argv)
    if "pytest" not in " ".join(argv[:3]) or failure.signature.stage not in ("import", "run"):
        return []
    record = runner.record(paddle, candidate)
    failed = [node for node, test in record.get("tests", {}).items() if test["outcome"] == "failed"]
    nodes = failed or [str(f["node"]) for f in record.get("failures", []) if f.get("node")]
    files = {word for word in argv if word.split("::")[0].rstrip("/") in places(candidate.tree)}
    kept = [word for word in argv if word not in files]
    runs = [join_simple(command.env, [*kept, node]) for node in nodes]
    return [replace(candidate, recipe=replace(candidate.recipe, run=run)) for run in runs]


def _is_it_switched_on(candidate: Candidate) -> str:
    texts = (*candidate.tree.values(), (candidate.recipe.run or "").encode())
    if any(name in text for text in texts for name in COMPAT_SWITCHES):
        return "Check that the test switches the compat layer on (paddle.enable_compat()) and --paddle-python is right."
    return (
        "No file of the tree calls paddle.enable_compat(), so `import torch` is PyTorch here: put\n"
        "`import paddle; paddle.enable_compat()` before the first import of torch, for example in conftest.py."
    )


def _control_message(candidate: Candidate, control: Observation, refused: Failure) -> str:
    steps = [step for step in (control.build, control.run) if step is not None]
    text = "\n".join(step.output for step in steps)
    used = STAND_IN_USED.search(text)
    if used:
        return (
            f"the control cannot run: the case uses paddle.{used.group(1)}, Paddle's own API, which PyTorch lacks.\n"
            "Give a command that does the same with PyTorch alone: --control-cmd CMD."
        )
    return (
        f"the case fails under PyTorch too, so it is not a compat gap: {describe(refused.signature)}\n"
        f"Control: {candidate.recipe.for_side('torch') or candidate.recipe.build}\n{_tail(steps)}"
        "Mend the case so that it passes under PyTorch, or choose a test that does."
    )


def _tail(steps: list[Step]) -> str:
    lines = [line for line in (steps[-1].output if steps else "").splitlines() if line.strip()]
    return "".join(f"  | {line[:200]}\n" for line in lines[-6:])


def timeouts_after(paddle: Observation, control: Observation, timeout: float | None) -> Timeouts:
    """The limits of all further runs, with head-room over what the baseline took: reduced cases only get quicker, but
    the machine may get busier. ``timeout``: what the user set, in seconds."""
    builds = [o.build.seconds for o in (paddle, control) if o.build is not None]
    runs = [o.run.seconds for o in (paddle, control) if o.run is not None and not o.run.timed_out]
    run = timeout or max(15.0, HEADROOM * max(runs, default=0.0))
    # A warm run has no start-up, which is most of what short runs took. A "yes" to a hang costs the whole limit, and
    # so does every candidate of any case whose loop has no end any more.
    hangs = paddle.run is not None and paddle.run.timed_out
    least, times = (3.0, HANGING) if hangs else (5.0, ENDLESS)
    warm = min(run, max(least, times * max(runs, default=0.0))) if timeout is None else None
    return Timeouts(max(120.0, HEADROOM * max(builds, default=0.0)), run, warm)
