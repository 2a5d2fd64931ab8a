"""Asks a running oracle (``reduce oracle start``) about one candidate.

Other reducers run this once a candidate, so it imports next to nothing and none of the tool's own modules. It can be
run as a file: ``python -I -S reducer/oracle_client.py --socket PATH [DIR_OR_FILE] [--file F]... [--base DIR]`` starts
in a quarter of the time of ``reduce oracle ask``, which takes the same words.

A message to the oracle is four bytes of length (big endian) and fields between zero bytes; the first field says what is
wanted: ``ask`` (working directory, candidate, base, "real" or "", files...), ``counts`` or ``stop``. The answer is an
exit code, a space and a line of text, up to the end of the connection.
"""

import os
import socket
import sys

SAME, NOT_SAME, USAGE, NO_ORACLE = 0, 1, 2, 125
_LIMIT = 1 << 20  # bytes of an answer
_HELP = "usage: oracle_client.py --socket PATH [DIR_OR_FILE] [--file F]... [--base DIR] [--real] [--quiet]"


def exchange(path: str, fields: list[str]) -> tuple[int, str]:
    """Send a message and wait for its answer: exit code and text. ``NO_ORACLE`` when there is nobody, or it went."""
    payload = b"\0".join(os.fsencode(field) for field in fields)
    received = b""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(path)
            connection.sendall(len(payload).to_bytes(4, "big") + payload)
            while len(received) < _LIMIT:
                chunk = connection.recv(65536)
                if not chunk:
                    break
                received += chunk
    except OSError as error:
        return NO_ORACLE, f"no oracle at {path} ({error.strerror or error}); start one: reduce oracle start --socket"
    code, _, text = received.decode("utf-8", "replace").partition(" ")
    if not code.isdigit():
        return NO_ORACLE, f"the oracle at {path} ended before it answered"
    return int(code), text.rstrip("\n")


def ask(
    path: str, target: str = "", files: tuple[str, ...] = (), base: str = "", *, real: bool = False
) -> tuple[int, str]:
    """Is the candidate the same failure? ``target``: a directory or one file, "" for the current directory.

    ``files``: paths in the tree that are taken from there, the rest as frozen, or as in ``base``. ``real``: by the
    library's own build and command, with no shortcut.
    """
    return exchange(path, ["ask", os.getcwd(), target, base, "real" if real else "", *files])


def main(words: list[str]) -> int:
    """Read the command line, ask, print the verdict; the exit code."""
    path, target, base, files, real, quiet = "", "", "", [], False, False
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in ("--socket", "--file", "--base"):
            value = value if equals else next(rest, "")
            if name == "--socket":
                path = value
            elif name == "--base":
                base = value
            else:
                files.append(value)
        elif word == "--real":
            real = True
        elif word == "--quiet":
            quiet = True
        elif word.startswith("-") or target:
            print(_HELP, file=sys.stderr)
            return USAGE
        else:
            target = word
    if not path:
        print(_HELP, file=sys.stderr)
        return USAGE
    code, text = ask(path, target, tuple(files), base, real=real)
    if code not in (SAME, NOT_SAME):
        print(text, file=sys.stderr)
    elif not quiet:
        print(text)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
