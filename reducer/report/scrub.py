"""Keeping private things out of what a reader gets, and noise out of logs."""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_KEY|PRIVATE_KEY|AUTH|COOKIE|WEBHOOK|_(?:PWD|PAT|DSN)$",
    re.IGNORECASE,
)
_SHORTEST_SECRET = 6  # a shorter value ("true", "1", "ssh") is no secret, and replacing it would ruin the text

# Names that many machines share: they identify nobody, and some are words of every log.
_COMMON_NAMES = frozenset(
    """
    root user users admin test tests guest nobody runner build builder ubuntu debian docker container app dev ci git
    home tmp localhost localdomain host server worker node main python paddle torch cuda gpu cpu data work jenkins
    jovyan vscode codespace repro setup csrc reduce
    """.split()  # noqa: SIM905 (forty lines otherwise)
)

# Where an absolute path may begin: not inside another path, but right after a compiler option.
_BEGIN = r"(?:(?<![\w.~<>-])|(?<=-[ILB])|(?<=-isystem)|(?<=-Wl,-rpath))"

_SITE = re.compile(_BEGIN + r"[~.]?/(?:[^\s:;,'\"()<>\[\]=]+/)?(?:site|dist)-packages\b")
_PATTERNS = (
    (
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
        "<secret>",
    ),
    (re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-|hf_|pypi-|sk-|xox[abeprs]-)[\w-]{16,}"), "<secret>"),
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"), "<secret>"),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), "<secret>"),
    (re.compile(r"(?<=Bearer )(?!<secret>)[\w.~+/=-]{8,}"), "<secret>"),
    (re.compile(r"(?<=://)[^\s/@:<>]+(?::[^\s/@<>]*)?@"), ""),
    (
        re.compile(r"\b([A-Z][A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_KEY|ACCESS_KEY)[A-Z0-9_]*=)(?!<secret>)\S+"),
        r"\1<secret>",
    ),
    (re.compile(r"(?<![\w.+-])[\w.+-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}\b"), "<email>"),
    (re.compile(_BEGIN + r"/(?:home|Users)/[^\s/:;,'\"()<>\[\]]+"), "~"),
)


@dataclass(frozen=True, slots=True)
class Private:
    """What must not be seen.

    ``secrets``: values replaced wherever they stand. ``names``: user and host names, replaced as whole words.
    ``directories``: absolute path -> what stands for it ("." for the candidate's directory, "~" for a home).
    """

    secrets: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    directories: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_this_machine(cls, directories: Mapping[str, str] | None = None) -> Private:
        """The user's home, name, host and secret-like environment values, and the ``directories`` of the run."""
        known = {str(Path.home()): "~", os.path.realpath(Path.home()): "~"}
        for path, replacement in (directories or {}).items():
            known[path] = replacement
            known[os.path.realpath(path)] = replacement
        host = socket.gethostname()
        return cls(
            secrets=secret_values(os.environ),
            names=tuple(dict.fromkeys(name for name in (_user(), host, host.split(".")[0]) if name)),
            directories=known,
        )


def secret_values(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values of variables whose name says that they hold a secret."""
    return tuple(v for k, v in environment.items() if _SECRET_NAME.search(k) and len(v.strip()) >= _SHORTEST_SECRET)


def scrub(text: str, private: Private) -> str:
    """``text`` without secrets, mail addresses, tokens, user and host names and absolute home paths.

    Paths into a site-packages directory start with ``<site-packages>``. Secrets of less than 6 characters, names of
    less than 3 and names that many machines share ("root", "runner") stay.
    """
    for _ in range(8):  # a replacement may join what stood apart; then another look is needed
        before = text
        text = _scrub_once(text, private)
        if text == before:
            break
    return _without_secrets(text, private.secrets)


def _scrub_once(text: str, private: Private) -> str:
    text = _without_secrets(text, private.secrets)
    text = _SITE.sub("<site-packages>", text)
    for path in sorted(private.directories, key=len, reverse=True):
        stem = path.rstrip("/")
        if stem.startswith("/"):
            begin = "" if stem.count("/") > 1 else _BEGIN
            found = re.compile(rf"{begin}{re.escape(stem)}(?![\w-]|\.\w)")
            text = found.sub(private.directories[path].replace("\\", r"\\"), text)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    for name in private.names:
        if len(name) > 2 and name.lower() not in _COMMON_NAMES:
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", "<name>", text)
    return text


def _without_secrets(text: str, secrets: Iterable[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        value = secret.strip()
        if len(value) >= _SHORTEST_SECRET and value not in "<secret><site-packages><email><name>":
            text = text.replace(value, "<secret>")
    return text


_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CCACHE = re.compile(r"^.*UserWarning: No ccache found\..*\n(?:[ \t]+warnings\.warn\(.*\n?)?", re.MULTILINE)
_PROGRESS = re.compile(r"^\s*(?:.*\b\d{1,3}%\s*\|.*\|.*|[━█▉-▏╸]{3,}.*|[|/\\-])\s*$")


def trim_log(text: str) -> str:
    """A log without colours, overwritten progress lines, the ccache warning of every Paddle import and blank runs."""
    text = _ANSI.sub("", text).replace("\r\n", "\n")
    text = "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1].rstrip() for line in text.split("\n"))
    text = _CCACHE.sub("", text)
    lines: list[str] = []
    for line in text.split("\n"):
        if _PROGRESS.match(line) and line.strip():
            continue
        if line or (lines and lines[-1]):
            lines.append(line)
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines) + "\n" if lines else ""


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no entry for this uid
        return ""
