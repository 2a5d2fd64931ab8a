"""A case made ready for questions: frozen, run on both sides, and with an oracle that knows its failure."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from reducer import checks
from reducer.baseline import Baseline, establish
from reducer.errors import CaseError, Exit
from reducer.frameworks import build_command, interpreters
from reducer.frameworks.fingerprint import fingerprint
from reducer.frameworks.infra import fault
from reducer.frameworks.quick import QuickObjects
from reducer.frameworks.runner import Runner, Timeouts
from reducer.frameworks.side import Side
from reducer.frameworks.syntax_tier import ClangTier, cache_directory
from reducer.frameworks.toolchain import find_toolchain
from reducer.frameworks.versions import VersionError, arguments, parse, probe
from reducer.oracle.candidate import Candidate, Recipe
from reducer.oracle.memory import Memory
from reducer.oracle.observation import Observation, SideName
from reducer.oracle.oracle import Observer, Oracle
from reducer.oracle.verdict import InfraError
from reducer.tree import SourceTree
from reducer.world.background import Background
from reducer.world.freeze import FreezeError, Frozen, freeze
from reducer.world.processes import Limits, SupervisorLost
from reducer.world.text_store import TextStore
from reducer.world.warm import WarmStartError
from reducer.world.workspace import Workspace

KEPT_VERDICTS = 50_000  # of all cases; a kilobyte each


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user asked for. ``timeout``: seconds of one run, None: from the baseline. ``build_cmd`` None: found by
    itself; "": no build. ``out``: where results are written; what lies there already is no part of the case.
    ``fresh``: take no answer from an earlier run."""

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
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """An established case. ``tree`` is the frozen checkout, ``home`` the run's own directory (removed at the end),
    ``clang`` the compiler front end of both sides, None where nothing was compiled; the oracle does not ask it yet."""

    tree: SourceTree
    match: re.Pattern[str] | None
    baseline: Baseline
    oracle: Oracle
    runner: Runner
    paddle: Side
    torch: Side
    versions: dict[SideName, dict[str, str | None]]
    clang: ClangTier | None
    workspace: Workspace
    limits: Limits
    home: Path


@contextmanager
def opened(settings: Settings, say: Callable[[str], None]) -> Iterator[Case]:
    """Freeze the checkout, run the baseline and wire the tiers; all of it ends with the block.

    Raises CaseError for everything that prevents a reduction.
    """
    match = _regex(settings.match)
    frozen, paddle_python, torch_python = _inputs(settings)
    for note in frozen.notes:
        say(f"note: {note}")
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reduce-", ignore_cleanup_errors=True)))
        workspace = stack.enter_context(Workspace(home / "work"))
        paddle = Side("paddle", paddle_python, home / "paddle", settings.jobs)
        torch = Side("torch", torch_python, home / "torch", settings.jobs)
        for side in (paddle, torch):
            side.prepare()
        limits = Limits(network=False)
        runner = Runner(workspace, Timeouts(), limits, say)
        stack.callback(runner.close)
        versions = _versions(runner, (paddle, torch))
        say(f"{len(frozen.tree)} files; Paddle {versions['paddle']['version']}, PyTorch {versions['torch']['version']}")
        start = Candidate(frozen.tree, _recipe(settings, frozen.tree))
        if start.recipe.build:
            say(f"build command: {start.recipe.build}")
        clang = ClangTier(frozen.tree)
        background = Background()
        stack.callback(background.join)
        stack.callback(clang.close)

        def built(seen: Observation) -> None:
            if clang.learn(seen):
                background.start(partial(clang.prepare, seen.side))

        baseline = establish(start, paddle, torch, runner, say, settings.timeout, built)
        runner.timeouts = baseline.timeouts
        toolchain = find_toolchain()
        if clang.ready and toolchain is not None and baseline.failure.signature.stage in ("import", "run"):
            seen = (baseline.paddle, baseline.control)
            quick = QuickObjects(toolchain, seen, cache_directory().with_name("quick"))
            stack.callback(quick.close)
            runner.quick = quick
            background.start(partial(_prepare_all, quick, (paddle, torch)))
        about = (start.key, baseline.failure.signature, match)
        oracle = Oracle(
            baseline.failure.signature,
            _observer(runner, {"paddle": paddle, "torch": torch}),
            None,
            match,
            checks.for_case(frozen.tree),
            None if settings.fresh else _memory(stack, fingerprint((paddle, torch), versions, about)),
        )
        yield Case(
            frozen.tree,
            match,
            baseline,
            oracle,
            runner,
            paddle,
            torch,
            versions,
            clang if clang.ready else None,
            workspace,
            limits,
            home,
        )


def _prepare_all(quick: QuickObjects, sides: Sequence[Side]) -> None:
    for prepare in (quick.settings, quick.improve):
        for side in sides:
            prepare(side)


def _memory(stack: ExitStack, case: str) -> Memory:
    path = cache_directory().with_name("verdicts.sqlite")
    return Memory(stack.enter_context(TextStore(path, case, KEPT_VERDICTS)))


def _observer(runner: Runner, sides: dict[SideName, Side]) -> Observer:
    """The runner's answers, with the machine's faults told from the candidate's."""

    def observe(name: SideName, candidate: Candidate, /, fast: bool) -> Observation:
        try:
            seen = runner.observe(sides[name], candidate, fast=fast)
        except (OSError, SupervisorLost, WarmStartError) as error:
            raise InfraError(str(error)) from error
        why = fault(seen)
        if why is not None:
            raise InfraError(why)
        return seen

    return observe


def _inputs(settings: Settings) -> tuple[Frozen, Path, Path]:
    if not settings.failing_cmd.strip():
        raise CaseError(Exit.USAGE, "--failing-cmd is empty. Give the command that fails on Paddle.")
    try:
        frozen = freeze(settings.repo, settings.out)
        found = interpreters.find(settings.paddle_python, settings.torch_python)
    except FreezeError as error:
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


def _versions(runner: Runner, sides: Sequence[Side]) -> dict[SideName, dict[str, str | None]]:
    """Both frameworks' versions, from the warm interpreters that are needed soon anyway. Raises CaseError."""
    for side in sides:
        with contextlib.suppress(WarmStartError):  # said below, where it is asked
            runner.warm_up(side)
    return {side.name: _version(runner, side) for side in sides}


def _version(runner: Runner, side: Side) -> dict[str, str | None]:
    try:
        found = parse(runner.ask(side, arguments(side.name)).stdout)
    except WarmStartError:
        found = None
    try:
        return found or probe(side.python, side.name)
    except VersionError as error:
        raise CaseError(
            Exit.ENVIRONMENT,
            f"{side.name} cannot be used with {side.python}: {error}\n"
            f"Name its interpreter with --{side.name}-python, or see what is missing: reduce doctor.",
        ) from None
