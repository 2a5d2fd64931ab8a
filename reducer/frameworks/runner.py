"""Builds and runs one candidate on one side, for real or cheaply, and reports what was seen."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reducer.frameworks.build_store import BuildStore, extensions
from reducer.frameworks.flags import BASE_HEADERS, covers
from reducer.frameworks.quick import QuickObjects
from reducer.frameworks.shims import read_log
from reducer.frameworks.side import Side, call_log, site_of
from reducer.oracle.candidate import Candidate
from reducer.oracle.observation import Observation, SideName, Step
from reducer.world import recorder, setup_recorder, tracer
from reducer.world.commands import PYTHONS, join_simple, parse_simple
from reducer.world.processes import Limits, run
from reducer.world.warm import WarmInterpreter
from reducer.world.workspace import QueryDirectory, Workspace, listing, remove

PRELOAD: Mapping[SideName, tuple[str, ...]] = {
    "paddle": ("paddle", "pytest", "setuptools"),
    "torch": ("torch", "pytest", "setuptools"),
}
MODULES = {"pytest": "pytest", "py.test": "pytest"}


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds a build and a run may take before they are killed; ``warm`` for a run in a warm interpreter, None: the
    same."""

    build: float = 900.0
    run: float = 300.0
    warm: float | None = None

    def of_run(self, warm: bool) -> float:
        """Seconds for a run."""
        return self.warm if warm and self.warm is not None else self.run


class Runner:
    """Observes candidates on either side; owns the warm interpreters and the store of finished builds.

    ``fast`` observations may reuse a build of equal inputs, compile at -O0 with precompiled headers and fork a warm
    interpreter; the others are what a user would do: a fresh directory, a fresh process, the library's own flags.
    """

    def __init__(
        self, workspace: Workspace, timeouts: Timeouts, limits: Limits, say: Callable[[str], None] = lambda line: None
    ) -> None:
        self._workspace = workspace
        self._say = say
        self.timeouts = timeouts
        self.precompiled = True  # off while includes are reduced: each set of them would need its own
        self.optimised = False  # on for a failure that a build at -O0 does not show
        self._limits = limits
        self.quick: QuickObjects | None = None
        self._stores: dict[tuple[SideName, str], BuildStore] = {}
        self._warm: dict[SideName, WarmInterpreter] = {}
        self._starting = threading.Lock()
        self._stack = ExitStack()

    def close(self) -> None:
        """End the warm interpreters."""
        self._stack.close()
        self._warm.clear()

    def warm_up(self, side: Side) -> None:
        """Start the side's warm interpreter and do not wait for it. Raises WarmStartError."""
        self._interpreter(side)

    def ask(self, side: Side, argv: Sequence[str]) -> Step:
        """Run ``python ARGV...`` on a side, warm and away from any candidate. Raises WarmStartError."""
        env = {**_start_environment(side), "PATH": side.path}
        return self._interpreter(side).run(argv, Path("/"), env, self.timeouts.run, ())

    def observe(self, side: Side, candidate: Candidate, *, fast: bool = False) -> Observation:
        """Build (when the recipe has a build) and run ``candidate`` once; on Paddle, twice in the same place when it
        leaves files there. Raises OSError (a full disk)."""
        return self.observe_runs(side, candidate, 1, fast=fast, again=side.name == "paddle")[0]

    def observe_runs(
        self,
        side: Side,
        candidate: Candidate,
        runs: int,
        *,
        fast: bool = False,
        more: Callable[[list[Observation]], int] = lambda seen: 0,
        command: Callable[[], str | None] | None = None,
        timeouts: Timeouts | None = None,
        again: bool = False,
    ) -> list[Observation]:
        """Build once and run up to ``runs`` times; one observation for each run, or one for a failed build.

        A run that times out is the last. ``more``: how often to run once more, warm, after what was seen. ``command``
        gives what to run when the build has ended (default: the recipe's). ``again``: a run that leaves files in the
        tree is repeated there.
        """
        limits = timeouts or self.timeouts
        with self._workspace.fresh() as places:
            env = self._place(side, candidate, places, fast)
            build, built = self._build(side, candidate, places, env, fast)
            calls = read_log(call_log(places))
            ok = build is None or (build.exit_code == 0 and built and not any(call.exit_code for call in calls))
            wanted = (command or (lambda: candidate.recipe.for_side(side.name)))() if ok else None
            root = str(places.tree)
            seen: list[Observation] = []

            def run_once(warm: bool) -> bool:
                before = listing(places) if again else {}
                ran = self._step(side, wanted or "", places, env, limits.of_run(warm), warm)
                made = read_log(call_log(places))
                repeated = None
                if again and not ran.timed_out and listing(places) != before:
                    repeated = self._step(side, wanted or "", places, env, limits.of_run(warm), warm)
                seen.append(Observation(side.name, root, build, made, ran, None, built, again=repeated))
                return not ran.timed_out

            if wanted is None:
                return [Observation(side.name, root, build, calls, None, None, built)]
            if all(run_once(fast) for _ in range(runs)):
                all(run_once(True) for _ in range(more(seen)))
            return seen

    def record(self, side: Side, candidate: Candidate, *, trace: bool = False) -> dict[str, Any]:
        """What the recorder (``world/recorder.py``) saw in one run; {} when the command cannot be recorded.

        ``trace`` logs the operations of a script (``world/tracer.py``) in place of its lines.
        """
        command = parse_simple(candidate.recipe.for_side(side.name) or "")
        if command is None:
            return {}
        with self._workspace.fresh() as places:
            env = self._place(side, candidate, places, fast=True)
            self._build(side, candidate, places, env, fast=True)
            out = places.tmp / "record.json"
            script = shutil.copy2(recorder.__file__, places.home / "recorder.py")
            shutil.copy2(tracer.__file__, places.home / "tracer.py")
            argv = recorder.command(command.argv, str(script), str(out), str(places.tree), trace)
            if argv is None:
                return {}
            self._step(side, join_simple(command.env, argv), places, env, 2 * self.timeouts.run, fast=True)
            try:
                return recorder.load(str(out))
            except (OSError, ValueError):
                return {}

    def setup_calls(self, side: Side, candidate: Candidate) -> list[dict[str, Any]]:
        """The extensions that the candidate's ``setup.py`` describes on ``side`` (``world/setup_recorder.py``); []
        when it does not get that far."""
        command = parse_simple(candidate.recipe.build or "")
        if command is None or "setup.py" not in candidate.tree:
            return []
        by_script = "setup.py" in command.argv
        given = command.argv[command.argv.index("setup.py") + 1 :] if by_script else ("build_ext", "--inplace")
        with self._workspace.fresh() as places:
            env = self._place(side, candidate, places, fast=True)
            out = places.tmp / "calls.json"
            script = shutil.copy2(setup_recorder.__file__, places.home / "setup_recorder.py")
            argv = ["python", str(script), str(out), "setup.py", *given]
            writable = (places.root,)
            run(argv, places.tree, {**env, **command.env}, self.timeouts.run, writable=writable, limits=self._limits)
            try:
                calls: list[dict[str, Any]] = json.loads(out.read_text(encoding="utf-8"))
                return calls
            except (OSError, ValueError):
                return []

    def _place(self, side: Side, candidate: Candidate, places: QueryDirectory, fast: bool) -> dict[str, str]:
        """Write the candidate; the environment for its processes."""
        candidate.tree.write(places.tree)
        site_of(places).mkdir(parents=True, exist_ok=True)
        env = side.environment(places, fast=fast)
        if not self.precompiled:
            env.pop("REDUCE_SHIM_PCH", None)
        if self.optimised:
            env["REDUCE_SHIM_OPTIMISED"] = "1"
        return env

    def _build(
        self, side: Side, candidate: Candidate, places: QueryDirectory, env: Mapping[str, str], fast: bool
    ) -> tuple[Step | None, bool]:
        """The build step (None when there is none or it was reused) and whether it left something to load."""
        if candidate.recipe.build is None:
            return None, True
        place = "builds-optimised" if self.optimised else "builds"
        store = self._stores.setdefault((side.name, place), BuildStore(side.support / place))
        if not fast:
            return self._by_build_system(side, candidate, places, env, store, fast=False)
        if store.restore(candidate, places):
            return None, True
        fair = self.precompiled or covers(candidate.tree, BASE_HEADERS[side.name])
        objects = self.quick if fair and not self.optimised else None
        settings = objects.settings(side) if objects is not None else None
        if settings is not None:
            quick = {**env, "REDUCE_SHIM_QUICK": str(settings)}
            step, made = self._built(side, candidate, places, quick, store)
            if step.exit_code == 0 and made:
                return step, made
            self._again(candidate, places)  # clang is no judge here: g++ says whether it builds
        return self._built(side, candidate, places, env, store)

    def _built(
        self, side: Side, candidate: Candidate, places: QueryDirectory, env: Mapping[str, str], store: BuildStore
    ) -> tuple[Step, bool]:
        """Build by the compiler calls of an earlier candidate if there are any, else by the build system."""
        replay = store.replay(candidate)
        if replay is not None:
            writable = (places.root, *side.writable)
            command = ["sh", "-c", replay.command(places)]
            build = run(command, places.tree, env, self.timeouts.build, writable=writable, limits=self._limits)
            if build.exit_code == 0:
                replay.finish(places)
                store.keep(candidate, places, ())
                return build, True
            self._again(candidate, places)
        return self._by_build_system(side, candidate, places, env, store, fast=True)

    def _by_build_system(
        self,
        side: Side,
        candidate: Candidate,
        places: QueryDirectory,
        env: Mapping[str, str],
        store: BuildStore,
        *,
        fast: bool,
    ) -> tuple[Step, bool]:
        """A build that succeeds is kept, a real one too: what is built for real serves warm queries just as well."""
        assert candidate.recipe.build is not None
        build = self._step(side, candidate.recipe.build, places, env, self.timeouts.build, fast)
        built = any(extensions(places))
        calls = read_log(call_log(places))
        if build.exit_code == 0 and built and not any(c.exit_code for c in calls):
            store.keep(candidate, places, calls)
        return build, built

    def _again(self, candidate: Candidate, places: QueryDirectory) -> None:
        """The directories as they were before a build."""
        for part in (places.tree, places.home, places.tmp):
            remove(part)
            part.mkdir()
        candidate.tree.write(places.tree)
        site_of(places).mkdir(parents=True, exist_ok=True)

    def _step(
        self, side: Side, command: str, places: QueryDirectory, env: Mapping[str, str], timeout: float, fast: bool
    ) -> Step:
        writable = (places.root, *side.writable)
        simple = parse_simple(command) if fast else None
        if simple is not None and simple.argv:
            program, *rest = simple.argv
            if program in MODULES:
                program, rest = "python", ["-m", MODULES[program], *rest]
            if program in PYTHONS and rest and (not rest[0].startswith("-") or rest[0] in ("-m", "-c")):
                warm = self._interpreter(side)
                own = {**env, **simple.env}
                if "PYTHONPATH" in simple.env:
                    own["PYTHONPATH"] = os.pathsep.join((env["REDUCE_PATHS"], simple.env["PYTHONPATH"]))
                return warm.run(rest, places.tree, own, timeout, writable)
        return run(command, places.tree, env, timeout, writable=writable, limits=self._limits)

    def _interpreter(self, side: Side) -> WarmInterpreter:
        with self._starting:
            if side.name not in self._warm:
                warm = WarmInterpreter(
                    side.python,
                    PRELOAD[side.name],
                    _start_environment(side),
                    on_cold=lambda reason: self._say(f"{side.name}: fresh processes, no forks of a warm one: {reason}"),
                )
                self._warm[side.name] = self._stack.enter_context(warm)
            return self._warm[side.name]


def _start_environment(side: Side) -> dict[str, str]:
    """What a side's warm interpreter starts with: a home that lasts, and nothing of any candidate."""
    home = QueryDirectory(side.support / "warm")
    for part in (home.tree, home.home, home.tmp):
        part.mkdir(parents=True, exist_ok=True)
    env = side.environment(home, fast=True)
    return {k: v for k, v in env.items() if not k.startswith(("PYTHONPATH", "REDUCE_"))}
