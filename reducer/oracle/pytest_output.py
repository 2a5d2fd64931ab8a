"""Reads pytest's reports: every --tb style, collection errors, conftest errors and the short summary."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Literal

from reducer.oracle import tracebacks
from reducer.oracle.failure import Frame
from reducer.oracle.tracebacks import Raised

Where = Literal["collection", "setup", "call"]

_REGION = re.compile(r"^=+ (.+?) =+$")
_ITEM = re.compile(r"^_{2,} (.*?) _{2,}$")
_SEPARATOR = re.compile(r"^(?:_ )+_?\s*$")
_CAPTURED = re.compile(r"^-+ Captured .* -+$")
_SHORT_FRAME = re.compile(r"^(?P<file>\S.*?):(?P<line>\d+): in (?P<function>.+)$")
_LONG_FRAME = re.compile(r"^(?P<file>\S.*?):(?P<line>\d+): ?(?P<type>[A-Za-z_][\w.]*)?$")
_LINE_STYLE = re.compile(r"^(?P<file>(?!E  )\S.*?):(?P<line>\d+): (?P<rest>.+)$")
_SUMMARY = re.compile(r"^(FAILED|ERROR) (\S+(?:\[.*?\])?)(?: - (.*))?$")
_SUMMARY_REGION = "short test summary info"
_CONFTEST = re.compile(r"^(?:ImportError while loading conftest|ConftestImportFailure)")
_MARKS = re.compile(r"^\s+[\^~ ]+$")


@dataclass(frozen=True, slots=True)
class Report:
    """One failure in a pytest report: what was raised (first raised first), during what, in which test."""

    test: str
    where: Where
    chain: tuple[Raised, ...]
    captured: str = ""


@dataclass(slots=True)
class _Item:
    title: str
    body: list[str] = field(default_factory=list)
    captured: list[str] = field(default_factory=list)


def is_report(text: str) -> bool:
    """Whether the text is pytest's."""
    return any(
        (region := _REGION.match(line)) is not None
        and (region.group(1) in ("FAILURES", "ERRORS", _SUMMARY_REGION, "test session starts"))
        for line in text.splitlines()
    ) or any(_CONFTEST.match(line) for line in text.splitlines())


def reports(text: str) -> list[Report]:
    """All failures that a pytest run printed, in the order of the report (errors before failures, as pytest does)."""
    items, single, summary = _split(text)
    found = [report for item in items if (report := _report(item)) is not None]
    found = found or _line_reports(single)
    return found or [report for line in summary if (report := _from_summary(line)) is not None]


def _split(text: str) -> tuple[list[_Item], list[str], list[str]]:
    """The failures' texts, each with its title; the lines of ``--tb=line``; the lines of the short summary."""
    items: list[_Item] = []
    single: list[str] = []
    summary: list[str] = []
    region = ""
    captured = False
    for line in text.splitlines():
        header = _REGION.match(line)
        if header is not None:
            region, captured = header.group(1), False
        elif _CONFTEST.match(line):
            region = "ERRORS"
            items.append(_Item("ERROR collecting conftest.py"))
        elif region in ("FAILURES", "ERRORS"):
            title = None if _SEPARATOR.match(line) else _ITEM.match(line)
            if title is not None:
                items.append(_Item(title.group(1)))
                captured = False
            elif not items:
                single.append(line)
            elif _CAPTURED.match(line):
                captured = True
            else:
                (items[-1].captured if captured else items[-1].body).append(line)
        elif region == _SUMMARY_REGION:
            summary.append(line)
    return items, single, summary


def _where(item: _Item) -> Where:
    if "ERROR collecting" in item.title:
        return "collection"
    return "setup" if item.title.startswith("ERROR at") else "call"


def _report(item: _Item) -> Report | None:
    name = re.sub(r"^ERROR (?:collecting|at (?:setup|teardown) of) ", "", item.title)
    body = "\n".join(item.body)
    native = tracebacks.chains(body)
    chain = native[0] if native else _chain(item.body, name)
    return Report(name, _where(item), chain, "\n".join(item.captured)) if chain else None


def _chain(body: list[str], test: str) -> tuple[Raised, ...]:
    """The exceptions of a report in pytest's own styles (long, short, auto)."""
    raised: list[Raised] = []
    frames: list[Frame] = []
    errors: list[str] = []
    type_ = ""
    function = test.rpartition(".")[2].partition("[")[0]
    code = ""
    link: tracebacks.Link = ""

    def close() -> None:
        nonlocal frames, errors, type_
        if errors or type_:
            name, message = _exception(errors, type_)
            raised.append(Raised(name, message, tuple(frames), link if raised else ""))
        frames, errors, type_ = [], [], ""

    for line in body:
        linked = tracebacks.link_in(line)
        if linked:
            close()
            link = linked
        elif line.startswith("E ") or line == "E":
            errors.append(line[1:])
        elif (short := _SHORT_FRAME.match(line)) is not None:
            frames.append(Frame(short["file"], int(short["line"]), short["function"]))
        elif (long := _LONG_FRAME.match(line)) is not None and (long["type"] or not errors):
            frames.append(Frame(long["file"], int(long["line"]), function, code))
            type_ = long["type"] or type_
            code = ""
        elif line.startswith(">"):
            code = line[1:].strip()
        elif (defined := re.match(r"^\s*(?:async )?def (\w+)\(", line)) is not None:
            function = defined.group(1)
        elif frames and not frames[-1].text and line.startswith("    ") and not _MARKS.match(line) and not errors:
            frames[-1] = replace(frames[-1], text=line.strip())
    close()
    return tuple(raised)


def _exception(errors: list[str], type_: str) -> tuple[str, str]:
    """Class and message from the ``E`` lines, and the class that the place line repeats, when there is one."""
    shortest = min((len(line) - len(line.lstrip()) for line in errors if line.strip()), default=0)
    lines = [line[shortest:] for line in errors]
    head = lines[0] if lines else ""
    named = tracebacks.EXCEPTION.match(head)
    if named is not None and (not type_ or named["type"].rpartition(".")[2] == type_.rpartition(".")[2]):
        return named["type"], "\n".join([named["message"] or "", *lines[1:]]).rstrip()
    if not type_ and (head.startswith("assert ") or named is None):
        type_ = "AssertionError" if head.startswith("assert ") else "Exception"
    return type_, "\n".join(lines).rstrip()


def _line_reports(lines: list[str]) -> list[Report]:
    """The failures of ``--tb=line``: the ``E`` lines of each, what it captured, and one line with its place."""
    found: list[Report] = []
    item = _Item("")
    captured = False
    for line in lines:
        place = _LINE_STYLE.match(line)
        if captured and place is not None and place["rest"] not in [error[1:].strip() for error in item.body]:
            place = None  # what a program printed in the same form, such as a warning
        captured = (captured or _CAPTURED.match(line) is not None) and place is None
        if captured:
            item.captured.append(line)
        elif place is None:
            item.body.append(line)
        else:
            frame = Frame(place["file"], int(place["line"]), "")
            type_, message = _exception([place["rest"]], "")
            chain = _chain(item.body, "") or (Raised(type_, message, ()),)
            chain = (*chain[:-1], replace(chain[-1], frames=(frame,)))
            found.append(Report("", "call", chain, "\n".join(item.captured)))
            item = _Item("")
    return found


def _from_summary(line: str) -> Report | None:
    """A failure from one line of the short summary; pytest cuts such lines to the terminal's width with "..."."""
    match = _SUMMARY.match(line)
    if match is None:
        return None
    where: Where = "call" if "::" in match.group(2) else "collection"
    file = match.group(2).partition("::")[0]
    message = match.group(3) or ""
    if not message:
        return Report(match.group(2), where, ()) if where == "collection" else None
    type_, text = _exception([message], "")
    return Report(match.group(2), where, (Raised(type_, text, (Frame(file, 0, ""),)),))
