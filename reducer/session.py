"""One run, start to end: the only place that wires edits, search and world together."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from reducer import checks
from reducer.baseline import establish
from reducer.confirm import Confirmation, confirm
from reducer.console import Console
from reducer.errors import CaseError, Exit
from reducer.frameworks import build_command, interpreters
from reducer.frameworks.infra import fault
from reducer.frameworks.quick import QuickObjects
from reducer.frameworks.runner import Runner, Timeouts
from reducer.frameworks.side import Side
from reducer.frameworks.syntax_tier import ClangTier, cache_directory
from reducer.frameworks.toolchain import find_toolchain
from reducer.frameworks.versions import VersionError, probe
from reducer.oracle.candidate import Candidate, Recipe
from reducer.oracle.observation import Observation, SideName
from reducer.oracle.oracle import Oracle
from reducer.oracle.signature import describe
from reducer.oracle.verdict import InfraError
from reducer.outcome import Outcome, commands_of, result_of, summary_of
from reducer.reduction import Reduction
from reducer.report.scrub import Private
from reducer.report.write import OutputError, check_output, reserved, write_mre
from reducer.resources import template
from reducer.routes.context import SETUP_TEMPLATE, Context
from reducer.routes.cxx import reduce_compile, reduce_extension
from reducer.routes.python import for_both_frameworks, reduce_python
from reducer.routes.setup import reduce_setup
from reducer.search.driver import Budget, Stopped
from reducer.tree import SourceTree
from reducer.world.background import Background
from reducer.world.freeze import FreezeError, Frozen, freeze
from reducer.world.processes import Limits, SupervisorLost
from reducer.world.warm import WarmStartError
from reducer.world.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user asked for. ``timeout``: seconds of one run, None: from the baseline. ``build_cmd`` None: found by
    itself; "": no build."""

    failing_cmd: str
    repo: Path = field(default_factory=Path)
    build_cmd: str | None = None
    paddle_python: Path | None = None
    torch_python: Path | None = None
    control_cmd: str | None = None
    match: str | None = None
    timeout: float | None = None
    jobs: int = 2
    out: Path = field(default_factory=lambda: Path("mre"))
    quiet: bool = False


def run(settings: Settings) -> Outcome:
    """The main job. Raises CaseError for everything that prevents a reduction."""
    console = Console(quiet=settings.quiet)
    match = _regex(settings.match)
    frozen, paddle_python, torch_python = _inputs(settings)
    for note in frozen.notes:
        console.say(f"note: {note}")
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reduce-", ignore_cleanup_errors=True)))
        workspace = stack.enter_context(Workspace(home / "work"))
        paddle = Side("paddle", paddle_python, home / "paddle", settings.jobs)
        torch = Side("torch", torch_python, home / "torch", settings.jobs)
        for side in (paddle, torch):
            side.prepare()
        versions = _versions(paddle, torch)
        console.say(
            f"{len(frozen.tree)} files; Paddle {versions['paddle']['version']}, PyTorch {versions['torch']['version']}"
        )
        limits = Limits(network=False)
        runner = Runner(workspace, Timeouts(), limits)
        stack.callback(runner.close)
        case = Candidate(frozen.tree, _recipe(settings, frozen.tree))
        if case.recipe.build:
            console.say(f"build command: {case.recipe.build}")
        clang = ClangTier(frozen.tree)
        background = Background()
        stack.callback(background.join)
        stack.callback(clang.close)

        def built(seen: Observation) -> None:
            if clang.learn(seen):
                background.start(partial(clang.prepare, seen.side))

        baseline = establish(case, paddle, torch, runner, console.say, settings.timeout, built)
        runner.timeouts = baseline.timeouts
        toolchain = find_toolchain()
        if clang.ready and toolchain is not None and baseline.failure.signature.stage in ("import", "run"):
            quick = QuickObjects(
                toolchain, (baseline.paddle, baseline.control), frozen.tree, cache_directory().with_name("quick")
            )
            stack.callback(quick.close)
            runner.quick = quick
            background.start(lambda: [quick.settings(side) for side in (paddle, torch)])
        sides: dict[SideName, Side] = {"paddle": paddle, "torch": torch}

        def observe(name: SideName, candidate: Candidate, /, fast: bool) -> Observation:
            try:
                seen = runner.observe(sides[name], candidate, fast=fast)
            except (OSError, SupervisorLost, WarmStartError) as error:
                raise InfraError(str(error)) from error
            why = fault(seen)
            if why is not None:
                raise InfraError(why)
            return seen

        signature = baseline.failure.signature
        oracle = Oracle(signature, observe, None, match, checks.for_case(frozen.tree))
        reduction = Reduction(baseline.candidate, oracle, console.say, Budget())
        context = Context(
            baseline,
            reduction,
            runner,
            paddle,
            torch,
            clang if clang.ready else None,
            console.say,
            template(SETUP_TEMPLATE),
        )

        def confirmed(candidate: Candidate) -> Confirmation:
            commands = commands_of(candidate.recipe)
            places = (workspace, baseline.timeouts, limits, console.say)
            return confirm(candidate.tree, commands, signature, match, paddle, torch, *places)

        code, confirmation = _reduce(context, confirmed)
        result = result_of(
            baseline,
            reduction.best,
            confirmation,
            versions,
            oracle.statistics,
            console.seconds,
            frozen.tree,
            settings.failing_cmd,
        )
        private = Private.of_this_machine({str(home): ".", str(paddle_python.parent.parent): "<venv>"})
        write_mre(settings.out, result, private)
        return Outcome(code, settings.out, summary_of(result, code), result)


def _reduce(context: Context, confirmed: Callable[[Candidate], Confirmation]) -> tuple[Exit, Confirmation | None]:
    """Run the stage's route, then confirm; what cannot be confirmed is searched again with the real thing only."""
    reduction = context.reduction
    try:
        while True:
            _route(context)
            for_both_frameworks(context)
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


def _disagreement(confirmation: Confirmation) -> str:
    """One line: what the real build and command showed instead."""
    counts = confirmation.counts
    seen = confirmation.refused if counts.paddle_same == counts.paddle_runs else confirmation.failure
    side = "PyTorch" if counts.paddle_same == counts.paddle_runs else "Paddle"
    return f"the written files behave otherwise under {side} ({describe(seen.signature) if seen else 'no failure'})"


def _route(context: Context) -> None:
    stage = context.baseline.failure.signature.stage
    if stage == "compile" and context.baseline.candidate.recipe.build is not None:
        reduce_compile(context)
    elif stage in ("setup", "link") and context.baseline.candidate.recipe.build is not None:
        reduce_setup(context)
    elif context.baseline.candidate.recipe.build is not None:
        reduce_extension(context)
    else:
        reduce_python(context)


def _inputs(settings: Settings) -> tuple[Frozen, Path, Path]:
    if not settings.failing_cmd.strip():
        raise CaseError(Exit.USAGE, "--failing-cmd is empty. Give the command that fails on Paddle.")
    try:
        check_output(settings.out)
        frozen = freeze(settings.repo, settings.out)
        found = interpreters.find(settings.paddle_python, settings.torch_python)
    except (OutputError, FreezeError) as error:
        raise CaseError(Exit.USAGE, str(error)) from None
    except interpreters.InterpreterError as error:
        raise CaseError(Exit.ENVIRONMENT, str(error)) from None
    return frozen, found.paddle, found.torch


def _regex(text: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(text) if text is not None else None
    except re.error as error:
        raise CaseError(Exit.USAGE, f"--match {text!r} is not a regular expression: {error}.") from None


def _recipe(settings: Settings, tree: SourceTree) -> Recipe:
    build = build_command.find(tree) if settings.build_cmd is None else settings.build_cmd.strip() or None
    return Recipe(build, settings.failing_cmd, settings.control_cmd)


def _versions(paddle: Side, torch: Side) -> dict[SideName, dict[str, str | None]]:
    found: dict[SideName, dict[str, str | None]] = {}
    for side in (paddle, torch):
        try:
            found[side.name] = probe(side.python, side.name)
        except VersionError as error:
            raise CaseError(
                Exit.ENVIRONMENT,
                f"{side.name} cannot be used with {side.python}: {error}\n"
                f"Name its interpreter with --{side.name}-python, or see what is missing: reduce doctor.",
            ) from None
    return found
