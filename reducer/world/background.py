"""Work that somebody will need soon, done beside the work at hand."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable


class Background:
    """Threads that make something ready. Who needs it asks for it again, and waits, or meets the error, there."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []

    def start(self, work: Callable[[], object]) -> None:
        """Do ``work`` in a thread."""

        def quietly() -> None:
            with contextlib.suppress(Exception):
                work()

        thread = threading.Thread(target=quietly, daemon=True)
        self._threads.append(thread)
        thread.start()

    def join(self) -> None:
        """Wait for all; end what they wait for first."""
        for thread in self._threads:
            thread.join()
