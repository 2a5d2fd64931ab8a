"""The client of ``clang_worker.py``: starts it, waits for it with a limit, and starts it again."""

from __future__ import annotations

import json
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

_WORKER = Path(__file__).with_name("clang_worker.py")
_MAX_MEMORY = 4 << 30  # bytes; beyond it, a new process is cheaper than swapping


class ClangFailed(RuntimeError):
    """libclang crashed, hung, or could not do what it was asked; nothing is known about the source."""


class ClangProcess:
    """One worker below ``scratch``, started when first needed. Safe to share between threads; one request at a time."""

    def __init__(self, scratch: Path) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self.directory = Path(tempfile.mkdtemp(prefix="clang-", dir=scratch)).resolve()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        """The worker's answer. Raises ClangFailed; the next request then gets a new worker."""
        with self._lock:
            process = self._running()
            try:
                answer = _exchange(process, json.dumps(request).encode() + b"\n", timeout)
            except BaseException:
                self._end()
                raise
            if "error" in answer:
                self._end()  # libclang has recovered from a crash of its own: do not trust its memory
                raise ClangFailed(answer["error"])
            if _memory(process.pid) > _MAX_MEMORY:
                self._end()
            return answer

    def close(self) -> None:
        """End the worker, and with it a request that another thread waits for, and remove its directory."""
        process = self._process
        if process is not None:
            process.kill()
        with self._lock:
            self._end()
            shutil.rmtree(self.directory, ignore_errors=True)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, _WORKER, str(self.directory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
            for leftover in self.directory.iterdir():  # a new worker starts with an empty directory
                if leftover.is_dir():
                    shutil.rmtree(leftover, ignore_errors=True)
                else:
                    leftover.unlink()


def _exchange(process: subprocess.Popen[bytes], line: bytes, timeout: float) -> dict[str, Any]:
    assert process.stdin is not None and process.stdout is not None
    deadline = time.monotonic() + timeout
    try:
        process.stdin.write(line)  # the worker reads a whole request before it answers: this cannot block for long
        process.stdin.flush()
    except BrokenPipeError as error:
        raise ClangFailed("the worker has died") from error
    received = bytearray()
    while not received.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            raise ClangFailed(f"no answer within {timeout:.0f} s")
        part = process.stdout.read1(1 << 16)  # type: ignore[attr-defined]
        if not part:
            raise ClangFailed(f"libclang died with exit code {process.wait()}")
        received += part
    answer: dict[str, Any] = json.loads(received)
    return answer


def _memory(pid: int) -> int:
    """Resident bytes of a process; 0 when it is gone."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * 4096
