"""Errors that end a command: one message that says what, why and what to do, and a documented exit code."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of ``reduce`` (DESIGN.md §9)."""

    REDUCED = 0
    USAGE = 2
    NO_FAILURE = 3
    CONTROL_FAILS = 4
    FLAKY = 5
    ENVIRONMENT = 6
    STOPPED_EARLY = 7
    INTERRUPTED = 130


class CaseError(Exception):
    """The case cannot be reduced. The message is for the user; ``code`` is the exit code."""

    def __init__(self, code: Exit, message: str) -> None:
        super().__init__(message)
        self.code = code
