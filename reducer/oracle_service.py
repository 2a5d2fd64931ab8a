"""The oracle as a service: another reducer finishes a job by asking it about candidates (``reduce oracle``).

It answers as the main job's oracle does, from the same tiers. What a general reducer does and our edits never do is
minded here: it takes includes away, moves them into code, and makes new errors.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from reducer import checks
from reducer.case import Case, Settings, opened
from reducer.errors import CaseError, Exit
from reducer.oracle.candidate import Candidate
from reducer.oracle.verdict import InfraError, Judgement
from reducer.oracle_candidate import CandidateError, headers, read_candidate
from reducer.oracle_client import NO_ORACLE, NOT_SAME, SAME, USAGE
from reducer.routes.context import ask_front_end

PATIENCE = 10.0  # seconds for a message to arrive once somebody has connected
LONGEST = 1 << 20  # bytes of a message
_LIMIT = 107  # bytes of a socket's path that Linux takes


class Answers(Protocol):
    """Who knows the answers. ``ask``: directory, candidate, base, "real" or "", files. Raises CandidateError,
    InfraError."""

    def ask(self, fields: list[str]) -> tuple[int, str]: ...
    def counts(self) -> str: ...


class CaseAnswers:
    """An established case's oracle, with the tiers that its routes use, proved on the case itself."""

    def __init__(self, case: Case, say: Callable[[str], None]) -> None:
        self._case = case
        self._oracle = case.oracle
        self._start = case.baseline.candidate
        self._real_only = False
        if self._start.recipe.build is not None and case.oracle.expected.stage == "compile":
            self._oracle.checks += (checks.keeps_module(case.tree),)
        ask_front_end(self._oracle, case.clang, self._start)
        self._prove(say)

    def _prove(self, say: Callable[[str], None]) -> None:
        """The untouched case must be the same failure to the tiers that will judge candidates; whatever errors it has
        now are the only ones that a candidate may have."""
        judgement = self._oracle.judge(self._start)
        if not judgement.accepted and self._oracle.syntax is not None:
            say(f"the compiler front end does not see the case as the real build does ({judgement.reason}): not asked")
            self._oracle.syntax = None
            self._oracle.forget_cheap()
            judgement = self._oracle.judge(self._start)
        if not judgement.accepted:
            say(f"the shortcuts do not see the case as the real build does ({judgement.reason}): real builds only")
            self._real_only = True
            self._oracle.forget_cheap()
            judgement = self._oracle.judge(self._start, real=True)
        if not judgement.accepted:
            raise CaseError(Exit.FLAKY, f"the untouched case was judged otherwise the second time: {judgement.reason}")
        self._oracle.settle(judgement)

    def ask(self, fields: list[str]) -> tuple[int, str]:
        """Judge one candidate."""
        directory, target, base, real, *files = fields
        tree = read_candidate(self._case.tree, Path(directory), target, base, tuple(files))
        began = time.monotonic()
        judgement = self._judge(self._start.with_tree(tree), real == "real" or self._real_only)
        if judgement is None:
            return NOT_SAME, "invalid (an #include in the middle of code)"
        text = f"{judgement.reason} ({judgement.tier}, {time.monotonic() - began:.2f} s)"
        return SAME if judgement.accepted else NOT_SAME, text

    def _judge(self, candidate: Candidate, real: bool) -> Judgement | None:
        fair = headers(self._case.tree, candidate.tree)
        if fair == "astray":
            return None
        self._precompiled(fair == "all")
        try:
            return self._oracle.judge(candidate, real=real)
        finally:
            self._precompiled(True)

    def _precompiled(self, on: bool) -> None:
        self._case.runner.precompiled = on
        if self._case.clang is not None:
            self._case.clang.precompiled = on

    def counts(self) -> str:
        """Questions by verdict and by tier."""
        found = self._oracle.statistics
        verdicts = ", ".join(f"{count} {name}" for name, count in found.verdicts.most_common())
        tiers = ", ".join(f"{tier} {count} ({found.seconds[tier]:.1f} s)" for tier, count in found.queries.items())
        return f"verdicts: {verdicts or 'none'}; asked: {tiers or 'none'}; known: {found.cache_hits}"


def run(settings: Settings, path: Path, say: Callable[[str], None], ready: Callable[[str, str], None]) -> str:
    """Establish the case, then answer at ``path`` until told to stop or interrupted; the counts.

    ``ready`` is called once with the failure that is asked about and the socket's absolute path. Raises CaseError.
    """
    place = Path(os.path.abspath(path))
    with listening(place) as listener, opened(settings, say) as case:
        answers = CaseAnswers(case, say)
        ready(case.baseline.failure.message.strip().partition("\n")[0], str(place))
        with contextlib.suppress(KeyboardInterrupt):
            serve(listener, answers, say)
        return answers.counts()


@contextlib.contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """A socket at ``path`` that only this user can connect to; it is gone afterwards. One that an oracle left behind
    when it was killed is replaced. Raises CaseError."""
    if len(os.fsencode(path)) > _LIMIT:
        raise CaseError(Exit.USAGE, f"--socket {path}: longer than {_LIMIT} bytes. Give a shorter path, below /tmp.")
    if path.is_socket():
        if _answers(path):
            raise CaseError(
                Exit.USAGE, f"an oracle answers at {path} already. Give another --socket, or stop it first."
            )
        path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        before = os.umask(0o177)
        try:
            listener.bind(str(path))
            listener.listen(128)  # from here on, who asks too early waits
        except OSError as error:
            raise CaseError(Exit.USAGE, f"--socket {path}: {error.strerror}. Give a path that can be made.") from None
        finally:
            os.umask(before)
        try:
            yield listener
        finally:
            path.unlink(missing_ok=True)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(str(path)) == 0


def serve(listener: socket.socket, answers: Answers, say: Callable[[str], None]) -> None:
    """Answer one question after the other until somebody sends ``stop``."""
    while True:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):  # who asked has gone: nobody waits for the answer
            connection.settimeout(PATIENCE)
            fields = _receive(connection)
            if fields is None or _gone(connection):
                continue
            code, text = _answer(fields, answers, say)
            connection.sendall(f"{code} {text}\n".encode("utf-8", "replace"))
            if fields[0] == "stop":
                return


def _answer(fields: list[str], answers: Answers, say: Callable[[str], None]) -> tuple[int, str]:
    if fields[0] in ("counts", "stop"):
        return 0, answers.counts()
    if fields[0] != "ask" or len(fields) < 5:
        return USAGE, f"no such question: {fields[0]}"
    try:
        return answers.ask(fields[1:])
    except CandidateError as error:
        return USAGE, str(error)
    except InfraError as error:
        return NO_ORACLE, f"this machine cannot answer ({error})"
    except Exception as error:  # what one strange candidate sets off must not end the service for all others
        say(f"a question could not be answered: {error!r}")
        return NO_ORACLE, f"the oracle failed ({error!r})"


def _receive(connection: socket.socket) -> list[str] | None:
    """A message's fields, None when it is none."""
    head = _exactly(connection, 4)
    length = int.from_bytes(head, "big")
    payload = _exactly(connection, length) if head and length <= LONGEST else b""
    return [os.fsdecode(field) for field in payload.split(b"\0")] if payload else None


def _exactly(connection: socket.socket, length: int) -> bytes:
    """``length`` bytes, or none when the connection ends before."""
    received = b""
    while len(received) < length:
        chunk = connection.recv(length - len(received))
        if not chunk:
            return b""
        received += chunk
    return received


def _gone(connection: socket.socket) -> bool:
    """Whether the other end has hung up: reducers kill questions whose answer they need no longer."""
    connection.setblocking(False)  # with a timeout set, Python waits that long before it peeks
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    finally:
        connection.settimeout(PATIENCE)
