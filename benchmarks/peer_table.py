"""What the peers benchmark counts, and its table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_POINT = re.compile(r"\[ *(\d+\.\d+)s\] .*: \d+ files, \d+ lines, (\d+) tokens \(\d+ queries\)")
_STAMP = re.compile(r"\[ *(\d+\.\d+)s\] (.*)")
_AGAIN = re.compile(r".*: again, with(out)? .*")
_TIER = re.compile(r"(.+) (\d+) \((\d+\.\d+) s\)")
HEADER = (
    "| case | peer | oracle | wall s | search s | queries | answers | s / query | tokens | of its files | lines"
    " | valid | × faster | strictly | note |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
)


@dataclass(frozen=True, slots=True)
class Statistics:
    """What an oracle was asked: questions by verdict; by tier with their seconds; ``known``: answered from memory."""

    verdicts: dict[str, int] = field(default_factory=dict)
    tiers: dict[str, tuple[int, float]] = field(default_factory=dict)
    known: int = 0

    def __str__(self) -> str:
        tiers = ", ".join(f"{count} {name}" for name, (count, _) in self.tiers.items())
        verdicts = ", ".join(f"{count} {name}" for name, count in self.verdicts.items())
        return "; ".join(part for part in (tiers, f"{self.known} known" if self.known else "", verdicts) if part) or "-"


def statistics(text: str) -> Statistics:
    """Read the line that ``reduce oracle stop`` prints. Raises ValueError when it is another one."""
    match = re.fullmatch(r"verdicts: (.*); asked: (.*); known: (\d+)", text.strip())
    if match is None:
        raise ValueError(f"not the counts of an oracle: {text!r}")
    verdicts = {name: int(count) for count, name in (part.split(" ", 1) for part in _parts(match[1]))}
    tiers = {}
    for part in _parts(match[2]):
        found = _TIER.fullmatch(part)
        if found is None:
            raise ValueError(f"not the count of a tier: {part!r}")
        tiers[found[1]] = (int(found[2]), float(found[3]))
    return Statistics(verdicts, tiers, int(match[3]))


def _parts(text: str) -> list[str]:
    return [] if text == "none" else text.split(", ")


@dataclass(frozen=True, slots=True)
class Curve:
    """Our search as the console told it, in seconds since the start of the command: when the baseline ended, when the
    last search ended, and the points (seconds, tokens of the whole tree)."""

    began: float
    ended: float
    points: tuple[tuple[float, int], ...]

    def until(self, tokens: int) -> float | None:
        """Seconds of search, less the baseline, until the size was first at most ``tokens``; None: never."""
        return next((seconds - self.began for seconds, size in self.points if size <= tokens), None)


def curve(log: str) -> Curve | None:
    """Read the console's lines; None when they do not tell of a search. Where the confirmation sent the search back to
    the start, what came before does not count as reached."""
    began = ended = None
    points: list[tuple[float, int]] = []
    for line in log.splitlines():
        stamp, point = _STAMP.match(line), _POINT.match(line)
        if stamp is None:
            continue
        if stamp[2] == "PyTorch: passes":
            began = float(stamp[1])
        elif stamp[2].startswith("confirming:"):
            ended = float(stamp[1])
        elif _AGAIN.match(stamp[2]):
            points.clear()
        elif point is not None:
            points.append((float(point[1]), int(point[2])))
    if began is None or not points:
        return None
    return Curve(began, ended if ended is not None else points[-1][0], tuple(points))


@dataclass(frozen=True, slots=True)
class Size:
    """``lines`` and ``tokens`` of a whole tree, ``files`` the tokens of those files that the peer could reduce."""

    lines: int
    tokens: int
    files: int | None = None


def faster(search: float | None, ours: float | None) -> str:
    """How many times less our search took, and its seconds; "-" when one of them did not get there."""
    if search is None or ours is None:
        return "-"
    return f"{search / max(ours, 0.1):.1f} ({ours:.1f} s)"  # the console tells tenths of seconds


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table. ``search``: seconds until the best state was reached (peers: since their start, their
    baseline is nobody's; ours: less the baseline and the final builds), None: nothing was gained."""

    case: str
    peer: str
    oracle: str
    wall: float
    search: float | None
    queries: int
    answers: str
    per_query: float | None
    before: Size
    after: Size
    valid: str
    note: str = ""

    def text(self, ours: Curve | None) -> str:
        """As Markdown. ``ours``: our curve on this case, for the comparison with a peer."""
        whole = strict = "-"
        if ours is not None and self.oracle != OWN and self.after.tokens < self.before.tokens:
            whole = faster(self.search, ours.until(self.after.tokens))
            strict = faster(self.search, ours.until(self.after.files)) if self.after.files is not None else "-"
        cells = [
            self.case,
            self.peer,
            self.oracle,
            f"{self.wall:.1f}",
            "-" if self.search is None else f"{self.search:.1f}",
            str(self.queries),
            self.answers,
            "-" if self.per_query is None else f"{self.per_query:.2f}",
            f"{self.before.tokens} → {self.after.tokens}",
            "-" if self.after.files is None else f"{self.before.files} → {self.after.files}",
            f"{self.before.lines} → {self.after.lines}",
            self.valid,
            whole,
            strict,
            self.note,
        ]
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |\n"


OWN = "own"  # the oracle of our main job
NOTES = """
Tokens and lines are those of the whole tree, counted as in metadata.json; *of its files*: only those that the peer was
given. *search s*: until the smallest accepted state. *valid*: the end state, by the real build and command on both
sides. *× faster*: the peer's search time by ours (in brackets) until our whole tree was as small as its whole tree;
*strictly*: until our whole tree was as small as the peer's files alone. Ours includes what is left to do of the
precompiled headers after the baseline, which the peers get ready from the oracle.
"""


def table(rows: Sequence[Row], curves: dict[str, Curve], versions: dict[str, str]) -> str:
    """The whole Markdown text. ``versions``: what was found of each peer."""
    lines = "".join(row.text(curves.get(row.case)) for row in rows)
    peers = "".join(f"- {name}: {said}\n" for name, said in versions.items())
    return f"{HEADER}{lines}{NOTES}\nPeers:\n\n" + (peers or "- none asked for\n")
