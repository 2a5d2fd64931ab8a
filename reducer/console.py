"""Progress lines for people, on standard error, so that standard output stays for results."""

from __future__ import annotations

import sys
import time
from typing import TextIO


class Console:
    """Prints lines stamped with the seconds since its creation. ``quiet`` prints nothing."""

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._start = time.monotonic()
        self._quiet = quiet
        self._stream = stream or sys.stderr

    @property
    def seconds(self) -> float:
        """Seconds since creation."""
        return time.monotonic() - self._start

    def say(self, line: str) -> None:
        """Print one line of progress."""
        if not self._quiet:
            print(f"[{self.seconds:6.1f}s] {line}", file=self._stream, flush=True)
