"""How a run ended, in the words of the report and of the command line."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reducer.baseline import Baseline
from reducer.confirm import Confirmation
from reducer.diagnosis.api_name import api_name
from reducer.diagnosis.diagnose import diagnose
from reducer.errors import Exit
from reducer.frameworks.versions import split
from reducer.module_paths import from_here
from reducer.oracle.candidate import Candidate, Recipe
from reducer.oracle.observation import Observation, SideName
from reducer.oracle.oracle import Statistics, output_of
from reducer.oracle.signature import describe
from reducer.report.result import Commands, Confirmed, MreResult, SearchStats
from reducer.report.sizes import measure
from reducer.tree import SourceTree
from reducer.world.commands import parse_simple

CONTROL = "env USE_TORCH=1 "


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: the exit code, where the MRE lies, and lines for the user."""

    code: Exit
    path: Path
    summary: tuple[str, ...]
    result: MreResult

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        result, signature = self.result, self.result.signature
        return {
            "exit_code": int(self.code),
            "path": str(self.path),
            "form": result.form,
            "signature": {
                "stage": signature.stage,
                "kind": signature.kind,
                "type": signature.type,
                "symbol": signature.symbol,
                "message": result.message,
            },
            "layer": result.layer,
            "class": result.gap_class,
            "verdict": result.verdict,
            "size": {"before": dict(result.before), "after": dict(result.after)},
            "queries": result.search.queries,
            "seconds": result.search.seconds,
        }


def commands_of(recipe: Recipe, tree: SourceTree) -> Commands:
    """The command lines of a written recipe, for both sides; none of them needs a shell to be run, or a path to the
    modules of ``tree`` that only the tool's own runs have."""

    def one(command: str | None, variables: str = "") -> str | None:
        if command is None:
            return None
        simple = parse_simple(command)
        if simple is None:
            return f"{variables}bash -c {shlex.quote(command)}"
        if variables or not simple.env or command.startswith("env "):
            return variables + command
        return f"env {command}"

    def run(command: str | None) -> str | None:
        return from_here(command, tree) if command is not None else None

    return Commands(
        one(recipe.build),
        one(run(recipe.run)),
        one(recipe.build, CONTROL),
        one(run(recipe.control_run or recipe.run), CONTROL),
    )


def result_of(
    baseline: Baseline,
    best: Candidate,
    confirmation: Confirmation | None,
    versions: Mapping[SideName, Mapping[str, str | None]],
    statistics: Statistics,
    seconds: float,
    before: SourceTree,
    failing_cmd: str,
) -> MreResult:
    """Everything that the report says. The signature is the baseline's; the message is what the MRE itself printed."""
    shown = confirmation.failure if confirmation is not None and confirmation.failure else baseline.failure
    found = diagnose(shown, best.tree)
    paddle, torch, environment = split(versions["paddle"], versions["torch"])
    also = [describe(signature) for signature in baseline.failure.also]
    return MreResult(
        form="script" if best.recipe.build is None else "extension",
        signature=replace(baseline.failure.signature, symbol=api_name(shown, best.tree)),
        message=shown.message,
        layer=found.layer,
        gap_class=found.klass,
        verdict=found.verdict,
        evidence=tuple(found.evidence),
        advice=(found.advice,),
        paddle=paddle,
        torch=torch,
        environment=environment,
        commands=commands_of(best.recipe, best.tree),
        confirmed=confirmation.counts if confirmation is not None else Confirmed(0, 0, 0, 0),
        before=measure(before),
        after=measure(best.tree),
        search=SearchStats(
            queries=statistics.queries.total(),
            cache_hits=statistics.cache_hits,
            seconds=round(seconds, 1),
            tiers=dict(statistics.queries),
            verdicts=dict(statistics.verdicts),
            slow=statistics.slow,
            disagreements=statistics.disagreements,
            lost=statistics.lost,
        ),
        original_command=failing_cmd,
        also_found=tuple(dict.fromkeys(also)),
        files=best.tree,
        paddle_log=confirmation.paddle_log if confirmation is not None else _log(baseline.paddle),
        torch_log=confirmation.torch_log if confirmation is not None else _log(baseline.control),
    )


def _log(observation: Observation) -> str:
    return output_of(observation).replace(observation.root, ".")


def summary_of(result: MreResult, code: Exit) -> tuple[str, ...]:
    """Lines for the end of a run."""
    before, after, counts = result.before, result.after, result.confirmed
    if code is Exit.REDUCED:
        state = (
            f"confirmed: fails on Paddle in {counts.paddle_same} of {counts.paddle_runs} runs, "
            f"passes under PyTorch in {counts.torch_passed} of {counts.torch_runs}"
        )
    elif counts.paddle_runs:
        state = (
            f"NOT confirmed: fails the same way on Paddle in {counts.paddle_same} of {counts.paddle_runs} runs, "
            f"passes under PyTorch in {counts.torch_passed} of {counts.torch_runs}"
        )
    else:
        state = "NOT confirmed: stopped before the written files were run"
    return (
        describe(result.signature),
        f"{before['files']} files, {before['lines']} lines -> {after['files']} files, {after['lines']} lines, "
        f"{result.search.queries} queries, {result.search.seconds:.0f} s",
        f"layer {result.layer}, class {result.gap_class}: {result.verdict}",
        state,
    )
