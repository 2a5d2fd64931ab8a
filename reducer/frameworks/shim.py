"""Compiler shim: stands first on PATH under a compiler's name, records the call, and runs the real one.

Stand-alone (standard library only, started with ``-I -S``): it runs inside builds of either framework. It is driven by
the environment: ``REDUCE_SHIM_LOG`` (JSON lines are appended), ``REDUCE_SHIM_FAST`` (compile at -O0 without debug
information; with ``REDUCE_SHIM_OPTIMISED`` only without debug information) and, only with that, ``REDUCE_SHIM_CACHE``
(directory of objects by content), ``REDUCE_SHIM_PCH`` (directory for g++'s precompiled headers) and, in place of it,
``REDUCE_SHIM_QUICK`` (see frameworks/quick.py).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
from typing import Any

SOURCE = (".c", ".cc", ".cpp", ".cxx", ".C")
HEADER = (".h", ".hh", ".hpp", ".hxx", ".inl", ".ipp", ".tpp", ".inc", ".cuh", *SOURCE)
STDERR_LIMIT = 4_000_000
WITH_VALUE = ("-I", "-D", "-U", "-isystem", "-iquote", "-idirafter", "-include")
# Flags that change what is valid C++ and that clang 16 to 18 know. All others only matter to code generation.
LANGUAGE = (
    r"-std=.+|-ansi|-pthread|-fopenmp|-fwrapv|-f(no-)?(rtti|exceptions|char8_t|signed-char|unsigned-char|ms-extensions"
    r"|coroutines|short-enums|aligned-new|sized-deallocation|gnu-keywords|operator-names)"
    r"|-m(avx|sse|fma|f16c|bmi|lzcnt|popcnt).*"
)


def real_compiler(name: str) -> str | None:
    """The program of that name that comes after this shim's directory on PATH."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if not folder or os.path.realpath(folder) == os.path.realpath(here):
            continue
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def source_of(argv: list[str]) -> str | None:
    sources = [a for a in argv if a.endswith(SOURCE) and not a.startswith("-")]
    return sources[0] if len(sources) == 1 else None


def output_of(argv: list[str]) -> str | None:
    return argv[argv.index("-o") + 1] if "-o" in argv[:-1] else None


def fast(argv: list[str]) -> list[str]:
    """The same call without optimisation and debug information: a -O0 object behaves the same unless the case is
    undefined behaviour, which the real build finds out at the next checkpoint, or asks for the optimisation."""
    if os.environ.get("REDUCE_SHIM_OPTIMISED"):
        return [a for a in argv if not re.fullmatch(r"-g[0-9]?|-ggdb[0-9]?", a)]
    return [a for a in argv if not re.fullmatch(r"-O[0-3sgz]?|-Ofast|-g[0-9]?|-ggdb[0-9]?", a)] + ["-O0", "-g0"]


def local_state(source: str) -> tuple[str, Any]:
    """A hash over what a compile of ``source`` may read below the candidate's directory: the file itself, headers, and
    sources that some file may include (any whose name stands in an include line; all, when one is computed)."""
    root = os.environ.get("REDUCE_TREE") or os.path.dirname(os.path.abspath(source))
    found: dict[str, bytes] = {}
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in ("build", ".git"))
        for name in sorted(files):
            if name.endswith(HEADER):
                path = os.path.join(folder, name)
                with open(path, "rb") as stream:
                    found[path] = stream.read()
    lines = b"\n".join(line for text in found.values() for line in re.findall(rb"^[ \t]*#[ \t]*include.*", text, re.M))
    computed = re.search(rb"include[ \t]*[^ \t<\"]", lines)
    own = os.path.realpath(source)
    state = hashlib.sha256()
    for path, text in found.items():
        other = path.endswith(SOURCE) and os.path.realpath(path) != own
        if not other or computed or os.path.basename(path).encode("utf-8", "surrogateescape") in lines:
            state.update(os.path.relpath(path, root).encode("utf-8", "surrogateescape") + b"\0%d\0" % len(text) + text)
    return root, state


def object_key(argv: list[str], source: str) -> str:
    root, state = local_state(source)
    for word in argv:
        state.update(word.replace(root, "<root>").encode("utf-8", "surrogateescape") + b"\0")
    state.update(os.path.relpath(os.getcwd(), root).encode("utf-8", "surrogateescape"))
    return str(state.hexdigest())


def includes_of(source: str) -> list[str]:
    """The leading block of ``#include <...>`` lines: what a precompiled header may stand for."""
    found = []
    with open(source, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            text = line.strip()
            match = re.match(r"#\s*include\s*<([^>]+)>", text)
            if match:
                found.append(match.group(1))
            elif text.startswith("#") and not re.match(r"#\s*(include|pragma)", text):
                break  # a macro or condition may change what later headers mean
    return [h for h in found if "/" in h]  # framework headers; the standard ones cost little


def precompiled(compiler: str, argv: list[str], source: str) -> list[str]:
    """Arguments that use a precompiled header for this unit's framework includes, building it when it is not there."""
    store = os.environ["REDUCE_SHIM_PCH"]
    headers = includes_of(source)
    if not headers or not os.path.basename(compiler).endswith("++"):
        return []
    flags = []
    words = iter(argv)
    for word in words:
        if word in ("-o", "-MF", "-MT", "-MQ"):
            next(words, None)
        elif word not in (source, "-c") and not word.startswith("-M"):
            flags.append(word)
    key = hashlib.sha256("\0".join([compiler, *flags, *headers]).encode("utf-8", "surrogateescape")).hexdigest()
    header = os.path.join(store, key[:24], "pch.h")
    failed = os.path.join(store, key[:24], "failed")
    if not os.path.exists(os.path.dirname(header)):
        os.makedirs(os.path.dirname(header), exist_ok=True)
        return []  # pays only for a set of headers that comes back
    if not os.path.exists(header + ".gch") and not os.path.exists(failed):
        with open(header, "w", encoding="utf-8") as stream:
            stream.write("".join(f"#include <{h}>\n" for h in headers))
        part = f"{header}.gch.{os.getpid()}"
        done = subprocess.run(
            [compiler, *flags, "-x", "c++-header", header, "-o", part], capture_output=True, check=False
        )
        if done.returncode == 0:
            os.replace(part, header + ".gch")
        else:  # a header is missing on this side: the compile itself will tell
            with open(failed, "wb") as stream:
                stream.write(done.stderr)
    return ["-include", header] if os.path.exists(header + ".gch") else []


def quick() -> dict[str, Any] | None:
    """What stands in the file that REDUCE_SHIM_QUICK names."""
    path = os.environ.get("REDUCE_SHIM_QUICK")
    if not path:
        return None
    with open(path, encoding="utf-8") as stream:
        return dict(json.load(stream))


def quick_compile(settings: dict[str, Any], argv: list[str], source: str, output: str) -> list[str]:
    """clang's command for an object like the one that g++ makes with ``argv``, with the framework precompiled."""
    kept: list[str] = []
    words = iter(argv)
    for word in words:
        if word in ("-MF", "-MT", "-MQ", *WITH_VALUE):
            kept += [word, next(words, "")]
        elif word.startswith((*WITH_VALUE, "-M")) or re.fullmatch(LANGUAGE, word):
            kept.append(word)
    use = ["-include-pch", settings["pch"]] if settings["pch"] else []
    return [*settings["compiler"], *settings["code"], *kept, *use, "-x", "c++", "-c", source, "-o", output]


def quick_link(settings: dict[str, Any], argv: list[str]) -> list[str]:
    """The arguments of the link call with the code of the precompiled header beside the objects."""
    objects = [position for position, word in enumerate(argv) if word.endswith(".o") and not word.startswith("-")]
    if "-shared" not in argv or not objects:
        return argv
    place = objects[-1] + 1
    return [*argv[:place], *settings["library"], *argv[place:], *settings["link"]]


def main() -> int:
    name, argv = sys.argv[1], sys.argv[2:]
    compiler = real_compiler(name)
    if compiler is None:
        sys.stderr.write(f"{name}: command not found\n")
        return 127
    source, output = source_of(argv), output_of(argv)
    command = [compiler, *argv]
    cached = None
    if os.environ.get("REDUCE_SHIM_FAST") and "-c" not in argv and compiler.endswith("++"):
        settings = quick()
        command = [compiler, *(quick_link(settings, argv) if settings else argv)]
    if "-c" in argv and source and output and os.environ.get("REDUCE_SHIM_FAST"):
        settings = quick() if source.endswith(SOURCE[1:]) else None
        command = quick_compile(settings, argv, source, output) if settings else [compiler, *fast(argv)]
        if os.environ.get("REDUCE_SHIM_CACHE"):
            cached = os.path.join(os.environ["REDUCE_SHIM_CACHE"], object_key(command, source))
            if os.path.exists(cached):
                with open(cached, "rb") as stream, open(output, "wb") as target:
                    target.write(stream.read())
                record(name, argv, 0, b"")
                return 0
        if os.environ.get("REDUCE_SHIM_PCH") and not settings:
            command[1:1] = precompiled(compiler, fast(argv), source)
    done = subprocess.run(command, stderr=subprocess.PIPE, check=False)
    os.write(2, done.stderr[:STDERR_LIMIT])
    code = done.returncode
    if cached and output and code == 0:
        part = f"{cached}.{os.getpid()}"
        with contextlib.suppress(OSError):  # a full cache only costs time
            with open(output, "rb") as stream, open(part, "wb") as target:
                target.write(stream.read())
            os.replace(part, cached)
    if "-c" in argv or output is not None:
        record(name, argv, code, done.stderr)
    return code if code >= 0 else 128 - code


def record(name: str, argv: list[str], code: int, stderr: bytes) -> None:
    log = os.environ.get("REDUCE_SHIM_LOG")
    if not log:
        return
    entry = {
        "argv": [name, *argv],
        "cwd": os.getcwd(),
        "exit_code": code,
        "stderr": stderr[:STDERR_LIMIT].decode("utf-8", "replace"),
    }
    with open(log, "ab") as stream:
        stream.write(json.dumps(entry).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
