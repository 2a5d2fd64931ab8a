"""Reads what g++, clang, nvcc and the linkers print into diagnostics and link errors."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reducer.oracle.names import bare, demangle
from reducer.oracle.normalise import straight, strip_ansi
from reducer.oracle.observation import Diagnostic

_GNU = re.compile(r"^\s*((?:[A-Za-z]:)?[^\s:'\"][^:\n]*?):(\d+):(?:(\d+):)? (fatal error|error|note|warning): (.*)$")
_NVCC = re.compile(r"^\s*([^\s:'\"(][^:\n(]*?)\((\d+)\): (catastrophic error|error|warning|remark)(?: #[\w-]+)?: (.*)$")
_CONTEXT = re.compile(r"^\s*(\S[^:\n]*?):(\d+):(?:\d+:)?\s+(?:recursively )?required (?:from|by) (.*)$")
_INCLUDED = re.compile(r"^\s*(?:In file included )?from (\S[^:\n]*?):(\d+)(?::\d+)?[:,]$")
_WITHIN = re.compile(
    r"^\s*\S[^:\n]*: In (?:instantiation of|substitution of|static member function|member function) '(.*)':$"
)
_EXPANSION = re.compile(r"^in expansion of macro |^expanded from (?:macro|here)")
_INSTANTIATION = re.compile(r"^in (?:instantiation of|evaluation of) .*?'(.*)' requested here$")
_NVCC_CONTEXT = re.compile(
    r"^\s*(?:detected during:?)?\s*(?:instantiation of (.*?)\s*(?:\[with .*\])?\s*)?at line (\d+)(?: of (\S+))?$"
)
_ECHO = re.compile(r"^\s*(\d+) \|(.*)$")
_CARET = re.compile(r"^(\s*)\^~*\s*$")
_NVCC_NAMELESS = re.compile(
    r"name followed by '::' must be|explicit type is missing|this declaration has no storage class or type specifier"
)
_MACRO_POSITION = re.compile(r"^expected constructor, destructor, or type conversion before '\('")
_KEPT_NOTE = re.compile(r"^\s*(?:initializing argument \d+ of|in call to|'[^']*' declared here|in instantiation of)")

INSTANTIATED = "in instantiation of "
"""How the note begins that names a template which an error stands in, whichever compiler printed it."""


@dataclass(frozen=True, slots=True)
class LinkError:
    """One thing a linker could not do. ``type`` is undefined-reference, missing-library, missing-input,
    multiple-definition or relocation; ``symbol`` is demangled."""

    type: str
    symbol: str
    message: str


class _Reader:
    """Collects diagnostics line by line; what a compiler prints before an error is kept until the error comes."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []
        self.included: list[tuple[str, int]] = []  # printed and not yet claimed by a diagnostic
        self.chains: dict[str, tuple[tuple[str, int], ...]] = {}  # compilers print a file's chain only when it changes
        self.required: list[tuple[str, int]] = []
        self.templates: list[str] = []
        self.previous = ""
        self.open = False  # whether the last diagnostic is an error that notes may still belong to

    def read(self, line: str) -> None:
        if (match := _GNU.match(line)) is not None:
            self._diagnostic(match[1], int(match[2]), int(match[3] or 0), match[4], match[5].strip())
        elif (match := _NVCC.match(line)) is not None:
            self._diagnostic(match[1], int(match[2]), 0, match[3], match[4].strip().replace('"', "'"))
        elif (match := _INCLUDED.match(line)) is not None:
            if "In file included" in line:
                self.included.clear()
            self.included.append((match[1], int(match[2])))
        elif (match := _CONTEXT.match(line)) is not None:
            self.required.append((match[1], int(match[2])))
            named = re.match(r"'(.*)'", match[3])
            if named:
                self.templates.append(named.group(1))
        elif (match := _WITHIN.match(line)) is not None:
            self.required.clear()
            self.templates[:] = [match[1]]
        elif self.open and (match := _NVCC_CONTEXT.match(line)) is not None:
            self._nvcc_context(match)
        elif self.open and (match := _ECHO.match(line)) is not None:
            self._echo(int(match[1]), match[2])
        elif self.open and (match := _CARET.match(line)) is not None:
            self._caret(len(match[1]))
        self.previous = line

    def _diagnostic(self, file: str, line: int, column: int, word: str, message: str) -> None:
        if self.included:
            self.chains[file] = tuple(self.included)
            self.included = []
        if word in ("note", "remark"):
            if self.open:
                self._note(file, line, column, message)
            return
        self.open = "error" in word
        if not self.open:
            self.required, self.templates = [], []
            return
        expansion = (*self.required, *self.chains.get(file, ()))
        severity = "error" if word == "error" else "fatal"
        self.found.append(Diagnostic(severity, message, file, line, column, expansion))  # type: ignore[arg-type]
        for name in self.templates:
            self.found.append(Diagnostic("note", f"{INSTANTIATED}'{name}'", file, line, column))
        self.required, self.templates = [], []

    def _note(self, file: str, line: int, column: int, message: str) -> None:
        instantiation = _INSTANTIATION.match(message)
        if instantiation is not None:
            message = f"{INSTANTIATED}'{instantiation.group(1)}'"
        if instantiation is not None or _EXPANSION.match(message):
            self._extend(file, line)
        if _KEPT_NOTE.match(message):
            self.found.append(Diagnostic("note", message, file, line, column))

    def _nvcc_context(self, match: re.Match[str]) -> None:
        error = self._error()
        self._extend(match[3] or self.found[error].file, int(match[2]))
        if match[1]:
            name = match[1].replace('"', "'").strip("'")
            self.found.append(Diagnostic("note", f"{INSTANTIATED}'{name}'", match[3] or "", int(match[2])))

    def _echo(self, number: int, text: str) -> None:
        """The source line under an error: names what an unknown macro is called, which g++ does not say."""
        error = self.found[self._error()]
        if number != error.line or not _MACRO_POSITION.match(error.message):
            return
        name = re.search(r"([A-Za-z_]\w*)\s*$", text[1 : error.column])
        if name:
            self._point_at(error, name.group(1))

    def _caret(self, column: int) -> None:
        """The caret line under nvcc's echo of the source: names what its message does not."""
        error = self.found[self._error()]
        if not _NVCC_NAMELESS.search(error.message):
            return
        before = re.search(r"(?:\w+::)*$", self.previous[:column])
        name = re.match(r"(?:::)?((?:\w+::)*\w+)", (before.group() if before else "") + self.previous[column:])
        if name:
            follows = "followed by" in error.message and len(name.group(1).split("::")) > 1
            self._point_at(error, name.group(1).rpartition("::")[0] if follows else name.group(1))

    def _point_at(self, error: Diagnostic, name: str) -> None:
        self.found.append(Diagnostic("note", f"'{name}' is what the compiler points at", error.file, error.line))

    def _error(self) -> int:
        return max(i for i, d in enumerate(self.found) if d.severity != "note")

    def _extend(self, file: str, line: int) -> None:
        """Add a place to the last error's chain, before the includes it was reached through."""
        index = self._error()
        error = self.found[index]
        split = len(error.expansion) - len(self.chains.get(error.file, ()))
        chain = (*error.expansion[:split], (file, line), *error.expansion[split:])
        self.found[index] = Diagnostic(error.severity, error.message, error.file, error.line, error.column, chain)


def diagnostics(text: str) -> list[Diagnostic]:
    """The errors in a compiler's text, each followed by its notes about where it stands and whom it calls.

    ``expansion`` holds the chain from the error outwards: template instantiations and macros, then includes. Text that
    is no diagnostic is skipped, so a whole build log can be given.
    """
    reader = _Reader()
    for line in straight(strip_ansi(text)).splitlines():
        reader.read(line)
    return reader.found


_LINK_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"undefined reference to '([^\n]*)'"), "undefined-reference"),
    (re.compile(r"undefined symbol: ([^\n]+?)(?: >>>.*)?$", re.MULTILINE), "undefined-reference"),
    (re.compile(r"multiple definition of '([^\n']*)'"), "multiple-definition"),
    (re.compile(r"(?:cannot find|unable to find library) -l(\S+?)(?::|$)", re.MULTILINE), "missing-library"),
    (re.compile(r"(?:cannot find|cannot open) ([^\s:]+)"), "missing-input"),
    (re.compile(r"relocation (R_\w+) against"), "relocation"),
)
_LINKER = re.compile(r"\bld(?:\.\w+)?:|\.o: in function|\.o:.*(?:undefined|multiple)|collect2: error|\(\.text[^)]*\):")


def link_errors(text: str) -> list[LinkError]:
    """What a linker's text (GNU ld, gold, lld) complains about, in order, each once."""
    found: dict[tuple[str, str], LinkError] = {}
    lines = straight(strip_ansi(text)).splitlines()
    if not any(_LINKER.search(line) for line in lines):
        return []
    for line in lines:
        for pattern, type_ in _LINK_RULES:
            match = pattern.search(line)
            if match is None:
                continue
            name = match.group(1)
            symbol = bare(demangle(name)) if type_ in ("undefined-reference", "multiple-definition") else name
            if type_ == "missing-input":
                symbol = name.rpartition("/")[2]
            found.setdefault((type_, symbol), LinkError(type_, symbol, line.strip()))
            break
    return list(found.values())
