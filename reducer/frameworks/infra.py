"""Faults of the machine, told apart from what a candidate does."""

from __future__ import annotations

import re

from reducer.oracle.observation import Observation

_KILLED = (-9, 137)
_TEXT = re.compile(
    r"No space left on device|Disk quota exceeded|Cannot allocate memory|out of memory allocating|std::bad_alloc"
    r"|Killed signal terminated program|Resource temporarily unavailable|Too many open files"
)


def fault(observation: Observation) -> str | None:
    """Why this observation says nothing about the candidate (killed from outside, out of memory, full disk), or None.

    A compiler call that was killed counts, and the system's own message in a failed step's output.
    """
    for call in observation.calls:
        if call.exit_code in _KILLED:
            return f"{call.argv[0]} was killed from outside (out of memory?)"
    for step in (observation.build, observation.run):
        if step is None or step.timed_out or step.exit_code == 0:
            continue
        if step.exit_code in _KILLED:
            return f"'{step.command}' was killed from outside (out of memory?)"
        found = _TEXT.search(step.stderr[-20_000:])
        if found:
            return f"'{step.command}' failed with: {found.group(0)}"
    return None
