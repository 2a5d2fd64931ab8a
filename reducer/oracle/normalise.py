"""Messages without what changes from run to run, place to place and reduction to reduction."""

from __future__ import annotations

import re

from reducer.oracle.names import demangle

CUT = "..."
"""How pytest's summary ends a message that it had no room for."""

_LONGEST = 2000  # characters of a message that can decide; printed tensors are longer

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_WARNING = re.compile(r"^\S+\.py:\d+: \w*Warning: [^\n]*\n(?:[ \t]+warnings\.warn\([^\n]*(?:\n|\Z))?", re.MULTILINE)
_QUOTES = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "`": "'"})
_HINT = re.compile(
    r"(?:[;,.]?\s*\(?(?:did you (?:mean|forget)|perhaps you meant|maybe you meant)\b[^?\n]*(?:\?|$)\)?\.?)"
    r"|(?:Did you mean to use [^?\n]*\?)",
    re.IGNORECASE,
)
_PADDLE_BLOCK = re.compile(
    r"(?:^-{3,}[ \t]*\n)?^C\+\+ Traceback \(most recent call last\):.*?"
    r"(?:^Error Message Summary:[ \t]*\n-{3,}[ \t]*\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
_SOURCE_TAIL = re.compile(r"\s*(?:\(at [^()\s]+:\d+\)|\[[^\[\]\s]+\.\w+:\d+\]|\[operator < \w+ > error\])")
_COUNTED = re.compile(r"\b(generated_tensor|eager_tmp|tmp|auto|_generated_var)_\d+\b")
_USER_CLASS = re.compile(r"\b(GradNodePyLayer_)\w+|\b\w+(_backward\b)(?=' object)")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")
_TEMPORARY = re.compile(r"\btmp[a-z0-9_]{8}\b")
_PATH = re.compile(
    r"(?<![\w.])~?(?:\.{0,2}/[\w.+@~=-]+)+/?(?::\d+(?::\d+)?)?|(?<![\w./])[\w.+-]+(?:/[\w.+-]+)+\.\w+:\d+"
)
_LIBRARY = re.compile(r"(?<![\w.+-])[\w.+-]+\.(?:so(?:\.\d+)*\b|(?:o|cc|cpp|cu|py):\d+)")
_NUMBER = re.compile(r"(?<![\w.])\d+\.\d+s\b|(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]*\w)")
_LIST = re.compile(r"(?<=[\[({])(?:\s*<n>\s*,?)+(?=[\])}])")
_MANGLED = re.compile(r"\b_Z\w+")
_CONVERSION = re.compile(r"(Cannot convert argument \d+ from \S+ to )(\w+)")
_OPERATOR = re.compile(r"(?:[Oo]perator|schema for) '?([A-Za-z_]\w*::[A-Za-z_]\w*)")
# Every op's C++ exception becomes one RuntimeError with this in front; it says nothing about which.
_WRAPPER = re.compile(r"^(?:\(\w+\) )?Error in operator '<op>': (?:Function call failed: )?")


def strip_ansi(text: str) -> str:
    """``text`` without terminal escape sequences."""
    return _ANSI.sub("", text)


def without_warnings(text: str) -> str:
    """``text`` without warnings as Python prints them: a child process's come first in what an assertion shows."""
    return _WARNING.sub("", text)


def straight(text: str) -> str:
    """``text`` with ASCII quotes only."""
    return text.translate(_QUOTES)


def without_hints(text: str) -> str:
    """``text`` without suggestions, which depend on what else is declared."""
    return _HINT.sub("", text)


def without_paddle_block(text: str) -> str:
    """``text`` without Paddle's C++ traceback and the rulers around its message summary."""
    return _PADDLE_BLOCK.sub("", text)


def decisive_line(message: str) -> str:
    """The first line that says something; when it only announces ("...:"), the next one as well."""
    lines = [line.strip() for line in message.splitlines() if line.strip(" -=\t")]
    if not lines:
        return ""
    if lines[0].endswith(":") and len(lines) > 1:
        return f"{lines[0]} {lines[1]}"[:_LONGEST]
    return lines[0][:_LONGEST]


def operators(message: str) -> tuple[str, ...]:
    """The ``namespace::name`` of each custom op that the message names as such, in order."""
    return tuple(dict.fromkeys(_OPERATOR.findall(straight(message))))


def without_operators(message: str) -> str:
    """``message`` with each op's own name replaced by ``<op>``: reduction renames ops."""
    message = straight(message)
    for name in operators(message):
        for spelling in (name, name.replace("::", ".")):
            message = re.sub(rf"(?<![\w:.]){re.escape(spelling)}(?!\w)", "<op>", message)
    return message


def inner(message: str) -> str:
    """What an op itself said, without the wrapper that Paddle puts around it."""
    return _WRAPPER.sub("", without_operators(message))


def template(message: str) -> str:
    """The part of ``message`` that stays when the case moves, shrinks or runs again."""
    text = straight(strip_ansi(message))
    text = decisive_line(without_paddle_block(text))
    text = without_hints(_SOURCE_TAIL.sub("", text))
    text = without_operators(text)
    text = _CONVERSION.sub(lambda m: m.group(1) + demangle(m.group(2)), text)
    text = _MANGLED.sub(lambda m: demangle(m.group()), text)
    text = _USER_CLASS.sub(r"\1<class>\2", text)
    text = _ADDRESS.sub("<address>", text)
    text = _PATH.sub("<path>", text)
    text = _LIBRARY.sub("<path>", text)
    text = _COUNTED.sub(r"\1_<n>", text)
    text = _TEMPORARY.sub("<temporary>", text)
    text = _NUMBER.sub("<n>", text)
    text = re.sub(r"\s+", " ", _LIST.sub("<n>", text)).strip()
    return text if text.endswith(CUT) else text.strip(" .;,")
