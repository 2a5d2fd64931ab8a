"""One run, start to end: the only place that wires edits, search and world together."""

from __future__ import annotations

from collections.abc import Callable

from reducer.asking import Pool
from reducer.baseline import Baseline
from reducer.case import Settings, opened
from reducer.confirm import Confirmation, confirm
from reducer.console import Console
from reducer.errors import CaseError, Exit
from reducer.oracle.candidate import Candidate
from reducer.oracle.signature import describe
from reducer.oracle.verdict import InfraError
from reducer.outcome import Outcome, commands_of, result_of, summary_of
from reducer.reduction import Disagreement, Reduction, Shortcut
from reducer.report.scrub import Private
from reducer.report.write import OutputError, check_output, reserved, write_mre
from reducer.resources import template
from reducer.routes.context import SETUP_TEMPLATE, Context
from reducer.routes.cxx import reduce_compile, reduce_extension
from reducer.routes.python import for_both_frameworks, reduce_python
from reducer.routes.setup import reduce_setup
from reducer.search.driver import Budget, Stopped

PATIENCE = 4.0  # times what a real build and run of both sides costs: checkpoints take a fifth of the time at most
LEAST_PATIENCE = 60.0  # seconds; shorter searches are confirmed at their end only


def run(settings: Settings) -> Outcome:
    """The main job. Raises CaseError for everything that prevents a reduction."""
    console = Console(quiet=settings.quiet)
    try:
        check_output(settings.out)
    except OutputError as error:
        raise CaseError(Exit.USAGE, str(error)) from None
    with opened(settings, console.say) as case, Pool.for_jobs(settings.jobs) as pool:
        baseline, oracle = case.baseline, case.oracle
        reduction = Reduction(
            baseline.candidate,
            oracle,
            console.say,
            Budget(),
            pool,
            shortcuts=_shortcuts(baseline),
            patience=max(LEAST_PATIENCE, PATIENCE * _real_seconds(baseline)),
        )
        context = Context(
            baseline,
            reduction,
            case.runner,
            case.paddle,
            case.torch,
            case.clang,
            console.say,
            template(SETUP_TEMPLATE),
        )

        def confirmed(candidate: Candidate) -> Confirmation:
            commands = commands_of(candidate.recipe, candidate.tree)
            places = (case.workspace, baseline.timeouts, case.limits, console.say)
            return confirm(candidate.tree, commands, oracle.expected, case.match, case.paddle, case.torch, *places)

        code, confirmation = _reduce(context, confirmed)
        result = result_of(
            baseline,
            reduction.best,
            confirmation,
            case.versions,
            oracle.statistics,
            console.seconds,
            case.tree,
            settings.failing_cmd,
        )
        private = Private.of_this_machine({str(case.home): ".", str(case.paddle.python.parent.parent): "<venv>"})
        write_mre(settings.out, result, private)
        return Outcome(code, settings.out, summary_of(result, code), result)


def _reduce(context: Context, confirmed: Callable[[Candidate], Confirmation]) -> tuple[Exit, Confirmation | None]:
    """Run the stage's route, then confirm; from where the real thing disagrees it goes on with fewer shortcuts."""
    reduction = context.reduction
    try:
        while True:
            try:
                _route(context)
                for_both_frameworks(context)
            except Disagreement:
                continue
            taken = reserved(reduction.best.tree)
            if taken:
                reduction.tree(
                    reduction.best.tree.updated(dict.fromkeys(taken)), "without files named like the report's"
                )
            confirmation = confirmed(reduction.best)
            if confirmation.holds:
                return (Exit.STOPPED_EARLY if reserved(reduction.best.tree) else Exit.REDUCED), confirmation
            if not reduction.disagree(_disagreement(confirmation)):
                return Exit.STOPPED_EARLY, confirmation
    except InfraError as error:
        context.say(f"stopped, this machine cannot go on ({error}): writing the best result so far")
        return Exit.STOPPED_EARLY, None
    except KeyboardInterrupt:
        context.say("interrupted: writing the best result so far")
        return Exit.INTERRUPTED, None
    except Stopped as stopped:
        context.say(f"stopped ({stopped.reason}): writing the best result so far")
        return (Exit.INTERRUPTED if stopped.reason == "interrupted" else Exit.STOPPED_EARLY), None


def _shortcuts(baseline: Baseline) -> tuple[Shortcut, ...]:
    """What may be wrong about a case, the likeliest first."""
    stage = baseline.failure.signature.stage
    if stage == "compile":
        return ("clang", "warm runs")
    built = baseline.candidate.recipe.build is not None and stage in ("import", "run")
    return ("quick builds", "warm runs") if built else ("warm runs",)


def _real_seconds(baseline: Baseline) -> float:
    """What one real build and run of both sides took, in seconds."""
    sides = (baseline.paddle, baseline.control)
    return sum(step.seconds for seen in sides for step in (seen.build, seen.run) if step is not None)


def _disagreement(confirmation: Confirmation) -> str:
    """One line: what the real build and command showed instead."""
    counts = confirmation.counts
    seen = confirmation.refused if counts.paddle_same == counts.paddle_runs else confirmation.failure
    side = "PyTorch" if counts.paddle_same == counts.paddle_runs else "Paddle"
    return f"the written files behave otherwise under {side} ({describe(seen.signature) if seen else 'no failure'})"


def _route(context: Context) -> None:
    stage = context.baseline.failure.signature.stage
    if stage in ("import", "run"):
        context.check_warm()
    if stage == "compile" and context.baseline.candidate.recipe.build is not None:
        reduce_compile(context)
    elif stage in ("setup", "link") and context.baseline.candidate.recipe.build is not None:
        reduce_setup(context)
    elif context.baseline.candidate.recipe.build is not None:
        reduce_extension(context)
    else:
        reduce_python(context)
