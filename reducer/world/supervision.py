"""This process's end of one supervised command: its pipes, its clock, and its end (see ``jail.py`` for the other)."""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
import time
from collections import deque
from dataclasses import dataclass

from reducer.oracle.observation import Step

_GRACE = 10.0  # seconds for the supervisor to kill and reap what was stopped
_INTERRUPT_GRACE = 2.0  # the same when a person waits at the keyboard
_CHUNK = 1 << 16
_FLOOD = 32  # a command that prints this many times its cap is stopped


@dataclass(frozen=True, slots=True)
class Limits:
    """What a command may use; None means unlimited.

    ``address_space`` is off by default because CUDA and both frameworks reserve far more than they use. ``processes``
    counts all of the user's processes (the kernel's rule; it does not bind root). ``output`` bounds what is kept of
    each stream (half head, half tail); a command that prints 32 times as much is stopped like one out of time.
    ``network``: False leaves only the loopback device, where the kernel allows that.
    """

    address_space: int | None = None
    processes: int | None = None
    file_size: int | None = None
    cpu_seconds: int | None = None
    output: int = 16 << 20
    network: bool = True

    def for_jail(self) -> dict[str, int]:
        """The resource limits by the names that ``jail.py`` knows."""
        names = ("address_space", "processes", "file_size", "cpu_seconds")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class Stopped(RuntimeError):
    """The command was ended by ``stop_all``."""


class SupervisorLost(RuntimeError):
    """Not the command but its supervision failed: it could not be confined, or the supervisor ended without a word."""


class Capture:
    """The head and the tail of a stream, in bounded memory."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total = 0

    def feed(self, data: bytes) -> None:
        """Append ``data`` to the stream."""
        self.total += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail.append(data)
            self._tail_size += len(data)
            while self._tail_size - len(self._tail[0]) >= self._half:
                self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        """What was kept, decoded; what was left out is named where it was."""
        tail = b"".join(self._tail)[-self._half :]
        missing = self.total - len(self._head) - len(tail)
        gap = f"\n[... {missing} bytes left out ...]\n".encode() if missing else b""
        return (bytes(self._head) + gap + tail).decode("utf-8", "replace")


_live: set[Supervised] = set()
_live_lock = threading.Lock()


def stop_all() -> None:
    """End every supervised command of this process, in whatever thread it is waited for (those raise Stopped)."""
    with _live_lock:
        for one in _live:
            one.stopped = True
            one.kill()


class Supervised:
    """The pipes of one command. Use as a context manager: leaving it kills what still runs.

    ``child_ends`` are stdout, stderr, control and status, to be handed to the supervisor; call ``handed_over`` then.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.stopped = False
        self._lock = threading.Lock()
        self._mine: set[int] = set()
        self._theirs: list[int] = []
        self._out, out = self._pipe()
        self._err, err = self._pipe()
        self._status, status = self._pipe()
        control, self._control = os.pipe()
        self._theirs.append(control)
        self._mine.add(self._control)
        self.child_ends = (out, err, control, status)
        with _live_lock:
            _live.add(self)

    def _pipe(self) -> tuple[int, int]:
        mine, theirs = os.pipe()
        self._mine.add(mine)
        self._theirs.append(theirs)
        os.set_blocking(mine, False)
        return mine, theirs

    def __enter__(self) -> Supervised:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.handed_over()
        try:
            self._await_end(_INTERRUPT_GRACE)
        finally:
            with _live_lock:
                _live.discard(self)
            for handle in self._mine:
                os.close(handle)
            self._mine.clear()

    def handed_over(self) -> None:
        """Close this process's copies of ``child_ends``."""
        while self._theirs:
            os.close(self._theirs.pop())

    def kill(self) -> None:
        """Have the command and all its descendants killed; returns at once."""
        with self._lock:
            if self._control in self._mine:
                self._mine.discard(self._control)
                os.close(self._control)

    def _await_end(self, seconds: float) -> None:
        """Wait until the supervisor has closed its status pipe."""
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._status, selectors.EVENT_READ)
            while (left := deadline - time.monotonic()) > 0:
                if selector.select(left) and not os.read(self._status, _CHUNK):
                    return

    def wait(self, command: str, timeout: float) -> Step:
        """Collect output until the command and its descendants are gone; kill them after ``timeout`` seconds.

        Raises SupervisorLost, or Stopped after ``stop_all``.
        """
        began = time.monotonic()
        streams = {self._out: Capture(self._limits.output), self._err: Capture(self._limits.output)}
        words = bytearray()
        deadline = began + timeout
        late = False
        with selectors.DefaultSelector() as selector:
            for handle in (*streams, self._status):
                selector.register(handle, selectors.EVENT_READ)
            finished = False
            while not finished:
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                for key, _ in ready:
                    data = os.read(key.fd, _CHUNK)
                    if key.fd == self._status:
                        words += data
                        finished = not data
                    elif data:
                        streams[key.fd].feed(data)
                    else:
                        selector.unregister(key.fd)
                flood = any(c.total > self._limits.output * _FLOOD for c in streams.values())
                if not finished and (time.monotonic() >= deadline or (flood and not late)):
                    if late:
                        break  # a process that even SIGKILL does not end (in the kernel); leave it
                    late = True
                    deadline = time.monotonic() + _GRACE
                    self.kill()
        for handle, capture in streams.items():  # all writers are dead: what is in the pipes is all there is
            with contextlib.suppress(BlockingIOError):
                while data := os.read(handle, _CHUNK):
                    capture.feed(data)
        if self.stopped:
            raise Stopped(command)
        stdout, stderr = (capture.text() for capture in streams.values())
        told = dict(line.partition(" ")[::2] for line in words.decode(errors="replace").splitlines())
        if "broken" in told:
            raise SupervisorLost(f"cannot confine {command!r}: {told['broken']}")
        if "exit" in told:
            code, seconds = told["exit"].split()
            return Step(command, int(code), stdout, stderr, timed_out=late, seconds=float(seconds))
        if not late:
            raise SupervisorLost(f"no exit status for {command!r}: {stderr[-2000:]}")
        return Step(command, -9, stdout, stderr, timed_out=True, seconds=time.monotonic() - began)
