"""What one side of one query showed: the raw material that signatures are derived from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

SideName = Literal["paddle", "torch"]


@dataclass(frozen=True, slots=True)
class Step:
    """One finished command. ``exit_code`` is negative for a signal; ``seconds`` is wall time."""

    command: str
    exit_code: int
    stdout: str
    stderr: str
    timed_out: bool = False
    seconds: float = 0.0

    @property
    def output(self) -> str:
        return self.stdout + ("\n" if self.stdout and not self.stdout.endswith("\n") else "") + self.stderr


@dataclass(frozen=True, slots=True)
class CompilerCall:
    """One call of a compiler or linker during a build, as the compiler shim recorded it."""

    argv: tuple[str, ...]
    cwd: str
    exit_code: int
    stderr: str

    @property
    def links(self) -> bool:
        """True for a link step (no -c, -E, -S, ... among the arguments)."""
        return not {"-c", "-E", "-S", "-M", "-MM", "-fsyntax-only", "--version", "-v", "-dumpversion"} & set(self.argv)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One compiler diagnostic. ``line`` and ``column`` count from 1; 0 means unknown.

    ``expansion`` holds, outermost last, the (file, line) of the macros and instantiations it stands in.
    """

    severity: Literal["note", "warning", "error", "fatal"]
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    expansion: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything one side showed for one candidate.

    ``build`` is None when the case has no build or the build was reused; ``run`` is None when the build failed or the
    case ends with its build. ``diagnostics`` is filled by tiers that read a compiler structurally; where it is None
    the text of ``calls`` is parsed. ``root`` is the candidate's directory (paths below it are the library's own).
    ``built`` says whether a build that exited 0 left at least one extension behind. ``again`` is the same command once
    more in the same place, when ``run`` left files there: a reader will not run it once only.
    """

    side: SideName
    root: str
    build: Step | None = None
    calls: tuple[CompilerCall, ...] = ()
    run: Step | None = None
    diagnostics: tuple[Diagnostic, ...] | None = None
    built: bool = True
    roots: dict[str, str] = field(default_factory=dict)  # other directories with an owner: path prefix -> owner
    again: Step | None = None

    @property
    def repeats(self) -> tuple[Observation, ...]:
        """One observation for each run."""
        return (self,) if self.again is None else (self, replace(self, run=self.again, again=None))
