"""Two things at once: both sides of a case, on machines that have more than one core."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from typing import TypeVar

from reducer.world.processes import stop_all

First = TypeVar("First")
Second = TypeVar("Second")
_POLL = 0.1  # seconds


def together(first: Callable[[], First], second: Callable[[], Second]) -> tuple[First, Second]:
    """Call ``second`` in a thread while ``first`` runs here; both results.

    What ``first`` raises, and Ctrl-C, ends every supervised command of ``second`` and is passed on. What ``second``
    raises is passed on when ``first`` has ended.
    """
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(second)
        try:
            return first(), other.result()
        except BaseException:
            _end(other)
            raise


def _end(other: Future[Second]) -> None:
    """Wait for the thread, ending the commands that it waits for; its own exception is of no interest any more."""
    while not other.cancel() and not other.done():
        stop_all()
        with contextlib.suppress(NotYet):
            other.exception(timeout=_POLL)
