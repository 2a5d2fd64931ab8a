"""The last word: run the written sources from a clean place, with the reader's commands, on both sides."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from reducer.frameworks.runner import Timeouts
from reducer.frameworks.side import Side
from reducer.oracle.failure import Failure, Signature
from reducer.oracle.observation import Observation, Step
from reducer.oracle.oracle import output_of
from reducer.oracle.signature import derive, same
from reducer.report.result import Commands, Confirmed
from reducer.tree import SourceTree
from reducer.world.processes import Limits, run
from reducer.world.together import together
from reducer.world.workspace import Workspace

PADDLE_RUNS = 3


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Counts of the confirming runs, what they printed, and the last failure seen on each side."""

    counts: Confirmed
    paddle_log: str
    torch_log: str
    failure: Failure | None
    refused: Failure | None

    @property
    def holds(self) -> bool:
        """Every Paddle run failed the same way and every control run passed."""
        c = self.counts
        return c.paddle_same == c.paddle_runs > 0 and c.torch_passed == c.torch_runs > 0


def confirm(
    files: SourceTree,
    commands: Commands,
    expected: Signature,
    match: re.Pattern[str] | None,
    paddle: Side,
    torch: Side,
    workspace: Workspace,
    timeouts: Timeouts,
    limits: Limits,
    say: Callable[[str], None],
) -> Confirmation:
    """Build and run ``files``; a case that fails in its build is built three times, any other is built once and run
    three times."""
    say("confirming: the written files on Paddle, three times, and under PyTorch")
    places = (workspace, timeouts, limits)

    def on_paddle(runs: int) -> list[Observation]:
        seen = _observe(paddle, files, commands.build, commands.run, runs, *places)
        while len(seen) < runs:
            seen += _observe(paddle, files, commands.build, commands.run, 1, *places)
        return seen

    # Without a build all runs cost the same: two on either core.
    beside = 1 if commands.build is None else 0

    def others() -> tuple[list[Observation], list[Observation]]:
        control = _observe(torch, files, commands.control_build, commands.control_run, 1, *places)
        return control, on_paddle(beside) if beside else []

    seen, (control, more) = together(lambda: on_paddle(PADDLE_RUNS - beside), others)
    seen += more
    failures = [derive(observation) for observation in seen]
    alike = [f is not None and same(expected, f, match, output_of(o)) for f, o in zip(failures, seen, strict=True)]
    refused = [derive(observation) for observation in control]
    counts = Confirmed(len(seen), sum(alike), len(control), sum(r is None for r in refused))
    return Confirmation(counts, _log(seen[0]), _log(control[0]), failures[-1], refused[-1])


def _observe(
    side: Side,
    files: SourceTree,
    build: str | None,
    command: str | None,
    runs: int,
    workspace: Workspace,
    timeouts: Timeouts,
    limits: Limits,
) -> list[Observation]:
    with workspace.fresh() as places:
        files.write(places.tree)
        env = side.reader_environment(places)
        writable = (places.root,)
        built: Step | None = None
        if build is not None:
            built = run(build, places.tree, env, timeouts.build, writable=writable, limits=limits)
        outcome = Observation(side.name, str(places.tree), built)
        if command is None or derive(outcome) is not None:
            return [outcome]
        steps = [run(command, places.tree, env, timeouts.run, writable=writable, limits=limits) for _ in range(runs)]
        return [Observation(side.name, str(places.tree), built, (), step) for step in steps]


def _log(observation: Observation) -> str:
    parts = []
    for step in (observation.build, observation.run):
        if step is not None:
            ending = "timed out" if step.timed_out else f"exit code {step.exit_code}"
            parts.append(f"$ {step.command}\n{step.output.rstrip()}\n[{ending}]\n")
    return "\n".join(parts).replace(observation.root, ".")
