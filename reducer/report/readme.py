"""README.md of an MRE: an English issue body that can be pasted as it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from string import Template

from reducer.report.result import Confirmed, MreResult
from reducer.report.scrub import Private, scrub, trim_log
from reducer.report.wording import CLASSES, LAYERS, VERDICTS, code, summary, title
from reducer.resources import template

_LANGUAGES = {".py": "python", ".cu": "cuda", ".cuh": "cuda", ".toml": "toml", ".cfg": "ini", ".json": "json"}
_CXX = frozenset({".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx"})

# A build echoes its compiler and linker calls, hundreds of characters each.
_COMMAND_ECHO = re.compile(
    r"(?:^|\s)(?:\S*/)?(?:x86_64-linux-gnu-)?(?:gcc|g\+\+|cc|c\+\+|nvcc)'?,? .*(?:\s|')-(?:c|shared)\b"
)

_SWITCH = (
    "The first two lines of each script switch Paddle's torch-compat layer on; with `USE_TORCH=1` in the environment "
    "they do nothing, and the same files run with PyTorch."
)


def readme(result: MreResult, private: Private) -> str:
    """The text of README.md. All of it is scrubbed except the sources, which stand as they are."""
    paddle, torch = (side.get("version") or "(version unknown)" for side in (result.paddle, result.torch))
    paddle_log, torch_log = trim_log(result.paddle_log), trim_log(result.torch_log)
    parts = {
        "title": title(result.signature, result.message, result.form),
        "summary": summary(result.signature, result.form, paddle, torch),
        "setup": _setup(result),
        "commands": _commands(result),
        "paddle_version": paddle,
        "torch_version": torch,
        "actual": "the failure shows in these lines of the output.",
        "paddle_output": fenced(decisive_lines(paddle_log, result.message) or result.message, "text"),
        "expected": "every command ends with exit code 0.",
        "torch_output": fenced("\n".join(torch_log.splitlines()[-3:]) or "(nothing is printed)", "text"),
        "versions": _versions(result),
        "diagnosis": _diagnosis(result),
        "making": _making(result),
    }
    clean = {key: scrub(text, private) for key, text in parts.items()}
    return Template(template("issue.md")).substitute(clean, files=_files(result))


def decisive_lines(log: str, message: str, limit: int = 14) -> str:
    """The lines of ``log`` that show the failure: the traceback or the compiler's complaint with its echo.

    Without the message's first line in the log: its last lines.
    """
    lines = [line for line in log.splitlines() if not _COMMAND_ECHO.search(line)]
    first = next((line.strip() for line in message.splitlines() if line.strip()), "")
    at = next((k for k, line in enumerate(lines) if first and first in line), None)
    if at is None:
        return "\n".join(lines[-limit:])
    start = at
    for k in range(at, -1, -1):
        if lines[k].startswith("Traceback (most recent call last)"):
            start = k
            break
        if k < at and lines[k] and not lines[k].startswith((" ", "\t")):
            break
    if re.search(r": (?:fatal )?error: ", lines[at]):
        return "\n".join(_complaints(lines, limit))
    end = at + max(1, len(message.strip().splitlines()))
    while end < len(lines) and lines[end].startswith((" ", "\t")) and end - at < 6:
        end += 1
    chosen = lines[start:end]
    if len(chosen) > limit:
        chosen = [chosen[0], "  ...", *chosen[2 - limit :]]
    return "\n".join(chosen)


def _complaints(lines: list[str], limit: int) -> list[str]:
    """The compiler's errors with the code that they echo, first ones first."""
    chosen: list[str] = []
    shown = False
    for line in lines:
        if re.search(r": (?:fatal )?error: ", line):
            shown = True
        elif not line.startswith((" ", "\t")):
            shown = False
        if shown and len(chosen) < limit:
            chosen.append(line)
    return chosen


def fenced(text: str, language: str) -> str:
    """A fenced Markdown block whose fence is longer than any run of backticks inside."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def _files(result: MreResult) -> str:
    def rank(path: str) -> tuple[int, str]:
        return (0 if path == "setup.py" else 2 if path == "repro.py" else 1, path)

    blocks: list[str] = []
    for path in sorted(result.files, key=rank):
        suffix = PurePosixPath(path).suffix.lower()
        language = "cpp" if suffix in _CXX else _LANGUAGES.get(suffix, "text")
        content = result.files[path].decode("utf-8", "replace")
        blocks.append(f"`{path}`\n\n{fenced(content, language)}" if content.strip() else f"`{path}` (an empty file)")
    return "\n\n".join(blocks)


def _setup(result: MreResult) -> str:
    count = len(result.files)
    what = "the file above" if count == 1 else f"the {count} files above"
    needs = " and a C++ compiler" if result.commands.build else ""
    text = f"Put {what} into an empty directory. Needs only the two frameworks{needs}."
    switched = any(b"USE_TORCH" in content for content in result.files.values())
    return f"{text} {_SWITCH}" if switched else text


def _commands(result: MreResult) -> str:
    commands = result.commands
    paddle = [c for c in (commands.build, commands.run) if c]
    torch = [c for c in (commands.control_build, commands.control_run) if c]
    lines = ["# Paddle: fails", *paddle]
    if torch:
        lines += [
            "",
            "# PyTorch, in a fresh copy of the directory: works" if commands.build else "# PyTorch: works",
            *torch,
        ]
    return "\n".join(lines)


def _versions(result: MreResult) -> str:
    keys = [k for k in dict.fromkeys([*result.paddle, *result.torch]) if result.paddle.get(k) or result.torch.get(k)]
    table = ["| | Paddle | PyTorch |", "|---|---|---|"]
    table += [f"| {_label(k)} | {_cell(result.paddle, k)} | {_cell(result.torch, k)} |" for k in keys]
    shared = [f"{_label(k)}: {v}" for k, v in result.environment.items() if v]
    return "\n".join(table) + ("\n\n" + "; ".join(shared) if shared else "")


def _label(key: str) -> str:
    return {"cuda": "CUDA", "cudnn": "cuDNN", "cxx11_abi": "C++11 ABI", "os": "OS", "cpu": "CPU"}.get(
        key, key.replace("_", " ")
    )


def _cell(values: Mapping[str, str | None], key: str) -> str:
    return (values.get(key) or "–").replace("|", "\\|").replace("\n", " ")


def _diagnosis(result: MreResult) -> str:
    signature = result.signature
    lines = [
        f"- Where: {LAYERS[result.layer]}; first failing stage: {signature.stage}.",
        f"- What: {CLASSES[result.gap_class]}; {VERDICTS[result.verdict]}.",
        *_bullets(result.evidence),
    ]
    return "\n".join([*lines, *(["", *result.advice] if result.advice else [])])


def _making(result: MreResult) -> str:
    before, after, search = result.before, result.after, result.search
    lines = [
        f"Reduced automatically by `reduce` from {_size(before)} to {_size(after)} in {search.queries} queries and "
        f"{search.seconds:.0f} s, starting from {code(result.original_command)}. In every step the failure on Paddle "
        "stayed the same and the code went on working with PyTorch.",
        "",
        _confirmation(result.confirmed),
    ]
    if result.also_found:
        lines += ["", "Other failures seen on the way, not covered here:", "", *_bullets(result.also_found)]
    return "\n".join(lines)


def _confirmation(confirmed: Confirmed) -> str:
    if not confirmed.paddle_runs:
        return "The reduction was stopped before the files above were run as they stand."
    paddle = f"with Paddle {_times(confirmed.paddle_same, confirmed.paddle_runs)} failed in this way"
    torch = f"with PyTorch {_times(confirmed.torch_passed, confirmed.torch_runs)} passed"
    return (
        f"The files above were run as they stand: {paddle}, {torch if confirmed.torch_runs else 'PyTorch was not run'}."
    )


def _size(size: Mapping[str, int]) -> str:
    return ", ".join(
        f"{size[unit]:,} {unit[:-1] if size[unit] == 1 else unit}"
        for unit in ("files", "lines", "tokens")
        if unit in size
    )


def _times(hits: int, runs: int) -> str:
    return f"{hits} of {runs} run{'' if runs == 1 else 's'}"


def _bullets(items: Iterable[str]) -> list[str]:
    return [f"- {' '.join(item.split())}" for item in items]
