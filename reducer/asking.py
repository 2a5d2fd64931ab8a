"""Several candidates before the oracle at once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Protocol

from reducer.oracle.verdict import Judgement
from reducer.world.processes import stop_all

_POLL = 0.1  # seconds


class Judge(Protocol):
    """Judges one candidate; ``wanted`` turns false when nobody waits for it any more."""

    def __call__(self, *, wanted: Callable[[], bool]) -> Judgement: ...


class Asked:
    """A judgement that is being made; ``take`` turns it into an answer, in the thread that waits for it."""

    def __init__(
        self,
        pool: ThreadPoolExecutor,
        judge: Judge,
        take: Callable[[Judgement], bool],
        lost: Callable[[], None],
    ) -> None:
        self._wanted = True
        self._take = take
        self._lost = lost
        self.future: Future[Judgement] = pool.submit(judge, wanted=lambda: self._wanted)

    def answer(self) -> bool:
        """Wait for the judgement. Raises what the oracle raised."""
        return self._take(self.future.result())

    def drop(self) -> None:
        """Nobody waits any more: it does not begin, or does no more than its present step."""
        self._wanted = False
        if not self.future.cancel() and not self.future.done():
            self._lost()


class Known:
    """An answer that needed no question."""

    def __init__(self, answer: bool) -> None:
        self._answer = answer

    def answer(self) -> bool:
        """The answer."""
        return self._answer

    def drop(self) -> None:
        """Nothing to end."""


class Pool:
    """Threads that ask, ``width`` at a time. Leaving the block ends what they wait for."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._threads = ThreadPoolExecutor(width)
        self._open: set[Future[Judgement]] = set()

    @classmethod
    @contextlib.contextmanager
    def for_jobs(cls, jobs: int) -> Iterator[Pool | None]:
        """As many as there are cores for ``jobs``; none where that is one."""
        width = min(jobs, len(os.sched_getaffinity(0)))
        if width < 2:
            yield None
            return
        pool = cls(width)
        try:
            yield pool
        finally:
            pool.close()

    def ask(
        self,
        judge: Judge,
        take: Callable[[Judgement], bool],
        lost: Callable[[], None],
    ) -> Asked:
        """Have ``judge`` called in a thread, and ``lost`` when it was dropped while it ran."""
        asked = Asked(self._threads, judge, take, lost)
        self._open = {one for one in self._open if not one.done()} | {asked.future}
        return asked

    def close(self) -> None:
        """End all questions, with the commands that they wait for."""
        for one in self._open:
            one.cancel()
        while wait(self._open, _POLL).not_done:
            with contextlib.suppress(OSError):
                stop_all()
        self._threads.shutdown()
