"""The oracle as a service: what it takes as a candidate, its protocol, and the real commands on a tiny library."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reducer import oracle_client
from reducer.errors import CaseError
from reducer.oracle.verdict import InfraError
from reducer.oracle_candidate import CandidateError, headers, read_candidate
from reducer.oracle_client import NO_ORACLE, NOT_SAME, SAME, USAGE, exchange
from reducer.oracle_service import listening, serve
from reducer.tree import SourceTree

FROZEN = SourceTree({"pkg/ops.py": b"a = 1\n", "pkg/other.py": b"b = 1\n", "test.py": b"import pkg.ops\n"})


# What is asked about


def place(directory: Path, files: dict[str, bytes]) -> Path:
    SourceTree(files).write(directory)
    return directory


def test_a_directory_is_the_whole_tree(tmp_path: Path) -> None:
    place(tmp_path, {"test.py": b"", "build/lib/x.py": b"", "pkg/ops_pd_.so": b""})
    assert dict(read_candidate(FROZEN, tmp_path)) == {"test.py": b""}
    assert dict(read_candidate(FROZEN, tmp_path.parent, tmp_path.name)) == {"test.py": b""}


@pytest.mark.parametrize("lies_at", ["pkg/ops.py", "ops.py"])
def test_files_of_the_current_directory_and_the_rest_as_frozen(tmp_path: Path, lies_at: str) -> None:
    place(tmp_path, {lies_at: b"a = 2\n", "other.py": b"not wanted"})
    assert read_candidate(FROZEN, tmp_path, files=("pkg/ops.py",)) == FROZEN.updated({"pkg/ops.py": b"a = 2\n"})


def test_a_file_stands_for_the_one_of_its_name(tmp_path: Path) -> None:
    place(tmp_path, {"ops.py": b"a = 3\n", "case.txt": b"a = 4\n"})
    assert read_candidate(FROZEN, tmp_path, "ops.py")["pkg/ops.py"] == b"a = 3\n"
    assert read_candidate(FROZEN, Path("/"), str(tmp_path / "ops.py"))["pkg/ops.py"] == b"a = 3\n"
    assert read_candidate(FROZEN, tmp_path, "case.txt", files=("pkg/ops.py",))["pkg/ops.py"] == b"a = 4\n"


def test_what_lacks_comes_from_a_base(tmp_path: Path) -> None:
    place(tmp_path / "base", {"pkg/ops.py": b"base", "more.py": b"base"})
    place(tmp_path / "here", {"pkg/ops.py": b"here"})
    assert dict(read_candidate(FROZEN, tmp_path, "here", "base")) == {"pkg/ops.py": b"here", "more.py": b"base"}
    found = read_candidate(FROZEN, tmp_path, "here/pkg/ops.py", "base")
    assert dict(found) == {"pkg/ops.py": b"here", "more.py": b"base"}


@pytest.mark.parametrize(
    ("target", "files", "words"),
    [
        ("", ("gone.py",), "no such file"),
        ("nowhere", (), "does not exist"),
        ("nobody.py", (), "0 files of the tree"),
        ("", ("pkg/other.py",), "neither pkg/other.py nor other.py"),
        ("ops.py", ("pkg/ops.py", "test.py"), "given 2 times"),
        ("empty", (), "holds no files"),
    ],
)
def test_a_question_that_means_nothing_says_why(
    tmp_path: Path, target: str, files: tuple[str, ...], words: str
) -> None:
    place(tmp_path, {"ops.py": b"", "nobody.py": b""})
    (tmp_path / "empty").mkdir()
    with pytest.raises(CandidateError, match=words):
        read_candidate(FROZEN, tmp_path, target, files=files)


CODE = b"#include <vector>\n#include <torch/extension.h>\n\nint f(int a) { return a; }\nint g(int b);\n"


@pytest.mark.parametrize(
    ("changed", "fair"),
    [
        (CODE, "all"),
        (CODE.replace(b"int g(int b);\n", b""), "all"),
        (b"// c\n" + CODE, "all"),
        (CODE.replace(b"#include <vector>\n", b""), "own"),
        (CODE.replace(b"return a;", b""), "all"),
        (b"int f(\n#include <torch/extension.h>\nint a) { return a; }\n", "astray"),
        (b"int f(int a) {\n#include <torch/extension.h>\nreturn a; }\n", "astray"),
        (b"int\n#include <torch/extension.h>\nf(int a);\n", "astray"),
        (b"int g(int b);\n#include <torch/extension.h>\nint f(int a);\n", "own"),
    ],
)
def test_precompiled_headers_are_used_where_they_forgive_nothing(changed: bytes, fair: str) -> None:
    assert headers(SourceTree({"a.cc": CODE}), SourceTree({"a.cc": changed})) == fair


def test_includes_that_were_astray_at_the_start_may_stay() -> None:
    odd = b'extern "C" {\n#include <math.h>\nint f();\n}\n'
    assert headers(SourceTree({"a.cc": odd}), SourceTree({"a.cc": odd.replace(b"int f();\n", b"")})) == "all"


# The protocol


class Fixed:
    """Answers by the name of the candidate; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def ask(self, fields: list[str]) -> tuple[int, str]:
        _, target, _, _, *_ = fields
        self.asked.append(target)
        if target == "infra":
            raise InfraError("the disk is full")
        if target == "unclear":
            raise CandidateError("no such file")
        if target == "bug":
            raise RecursionError("too deep")
        return (SAME, "same") if target == "good" else (NOT_SAME, "passes")

    def counts(self) -> str:
        return f"{len(self.asked)} questions"


@contextmanager
def serving(answers: Fixed) -> Iterator[str]:
    """A service in a thread; its socket."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s"
        with listening(path) as listener:
            thread = threading.Thread(target=serve, args=(listener, answers, lambda line: None), daemon=True)
            thread.start()
            yield str(path)
            exchange(str(path), ["stop"])
            thread.join(300)
            assert not thread.is_alive()
        assert not path.exists()


def test_every_answer_has_its_exit_code() -> None:
    with serving(Fixed()) as path:
        assert oracle_client.ask(path, "good") == (SAME, "same")
        assert oracle_client.ask(path, "other") == (NOT_SAME, "passes")
        assert oracle_client.ask(path, "unclear") == (USAGE, "no such file")
        assert oracle_client.ask(path, "infra")[0] == NO_ORACLE
        assert oracle_client.ask(path, "bug")[0] == NO_ORACLE
        assert oracle_client.ask(path, "good") == (SAME, "same")  # the service has survived all of them
        assert exchange(path, ["counts"]) == (0, "6 questions")
        assert exchange(path, ["what"])[0] == USAGE
    assert oracle_client.ask(path, "good")[0] == NO_ORACLE


@pytest.mark.parametrize("sent", [b"", b"\0\0", b"\0\0\0\0", b"\0\0\0\x09ask", b"\xff\xff\xff\xffask"])
def test_broken_messages_do_no_harm(sent: bytes) -> None:
    with serving(Fixed()) as path:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(sent)
        assert oracle_client.ask(path, "good") == (SAME, "same")


def test_questions_of_the_dead_are_not_looked_at() -> None:
    answers = Fixed()
    with tempfile.TemporaryDirectory() as folder, listening(Path(folder) / "s") as listener:
        payload = b"ask\0/\0dead\0\0"
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(f"{folder}/s")
            connection.sendall(len(payload).to_bytes(4, "big") + payload)
        thread = threading.Thread(target=serve, args=(listener, answers, lambda line: None), daemon=True)
        thread.start()
        assert oracle_client.ask(f"{folder}/s", "good") == (SAME, "same")
        exchange(f"{folder}/s", ["stop"])
        thread.join(300)
    assert answers.asked == ["good"]


def test_a_socket_has_one_owner_and_only_this_user(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with listening(path):
        assert path.stat().st_mode & 0o077 == 0
        with pytest.raises(CaseError, match="answers at"), listening(path):
            pass
        assert path.exists()
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()  # as a killed oracle leaves it
    with listening(path):
        pass
    with pytest.raises(CaseError, match="shorter path"), listening(tmp_path / ("s" * 120)):
        pass


CLIENT = [sys.executable, "-I", "-S", oracle_client.__file__]


def run_client(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*CLIENT, *words], cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def test_the_client_as_a_file_imports_next_to_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", oracle_client.__file__, "--socket", str(tmp_path / "no")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == NO_ORACLE
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "socket" in loaded
    assert not loaded & {"reducer", "typer", "json", "pathlib", "subprocess", "argparse", "typing", "site"}


@pytest.mark.parametrize("words", [[], ["--what"], ["a", "b", "--socket", "s"], ["--socket"]])
def test_the_client_says_how_it_is_called(words: list[str]) -> None:
    done = run_client(*words)
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert "usage" in done.stderr


def test_the_client_passes_on_what_it_is_asked(tmp_path: Path) -> None:
    with serving(Fixed()) as path:
        done = run_client("--socket", path, "good")
        assert (done.returncode, done.stdout) == (SAME, "same\n")
        assert run_client(f"--socket={path}", "--quiet", "other").stdout == ""
        assert run_client("--socket", path, "unclear").stderr == "no such file\n"


# The real commands

COMMAND = [sys.executable, "-m", "reducer", "oracle"]
TEST = """\
import paddle
paddle.enable_compat()
import torch
from tiny.rows import fill


def test_fill():
    assert fill(torch.zeros(2, 1)).shape[0] == 2
"""
ROWS = (
    "import torch\n\n\ndef fill(x):\n    extra = 1\n    return x.index_copy_(0, torch.tensor([0]), torch.ones(1, 1))\n"
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {"tiny/__init__.py": "", "tiny/rows.py": ROWS, "test_tiny.py": TEST}
    return place(tmp_path_factory.mktemp("library"), {name: text.encode() for name, text in files.items()})


@pytest.fixture(scope="module")
def running(library: Path) -> Iterator[tuple[str, list[str], subprocess.Popen[str]]]:
    """A real oracle on the library: its socket, the command to ask it that it printed, and its process."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/s"
        command = [*COMMAND, "start", "--socket", path, "--repo", str(library)]
        command += ["--failing-cmd", "python -m pytest -q test_tiny.py"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            head, _, told = line.partition(": ")
            assert head == "ready; ask with", line
            yield path, told.rpartition(" [")[0].split(), process
        finally:
            process.terminate()
            process.wait(300)
        assert not os.path.exists(path)


@pytest.mark.real
def test_a_running_oracle_answers(running: tuple[str, list[str], subprocess.Popen[str]], library: Path) -> None:
    _, command, _ = running
    candidate = library.parent / "candidate"
    shorter = ROWS.replace("    extra = 1\n", "")
    place(candidate, {"rows.py": shorter.encode()})

    def asked(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [*command, *words], cwd=candidate, capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stdout + done.stderr

    began = time.monotonic()
    code, text = asked("--file", "tiny/rows.py")
    assert (code, text.split()[0]) == (SAME, "same"), text
    assert time.monotonic() - began < 10  # warm: the library's own command in a fresh process takes seconds
    assert asked("rows.py")[0] == SAME
    assert asked(str(library))[0] == SAME
    assert asked("--file", "tiny/rows.py", "--real")[0] == SAME
    place(candidate, {"rows.py": b"import torch\n\n\ndef fill(x):\n    return x\n"})
    code, text = asked("rows.py")
    assert code == NOT_SAME
    assert text.startswith("passes")
    place(candidate, {"rows.py": b"import torch\n\n\ndef fill(x):\n    return x.index_copy_(0)\n"})
    assert asked("rows.py")[1].startswith("control fails")
    place(candidate, {"rows.py": b"def fill(x:\n"})
    assert asked("rows.py")[1].startswith("invalid")
    assert asked("--file", "tiny/gone.py")[0] == USAGE


@pytest.mark.real
def test_it_answers_the_slow_command_too_and_stops_when_told(
    running: tuple[str, list[str], subprocess.Popen[str]], library: Path
) -> None:
    path, _, process = running
    words = [*COMMAND, "ask", "--socket", path, "--file", "tiny/rows.py"]
    done = subprocess.run(words, cwd=library, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.split()[0]) == (SAME, "same"), done.stderr
    done = subprocess.run([*COMMAND, "stop", "--socket", path], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    assert "same" in done.stdout
    assert process.wait(300) == 0
    assert not os.path.exists(path)
    done = subprocess.run([*COMMAND, "stop", "--socket", path], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == NO_ORACLE


@pytest.mark.real
def test_a_case_that_does_not_fail_has_no_oracle(tmp_path: Path) -> None:
    place(tmp_path / "lib", {"a.py": b"print(1)\n"})
    command = [*COMMAND, "start", "--socket", str(tmp_path / "s"), "--repo", str(tmp_path / "lib")]
    done = subprocess.run(
        [*command, "--failing-cmd", "python a.py"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 3
    assert "does not fail" in done.stderr
    assert "No file of the tree calls paddle.enable_compat()" in done.stderr
    assert not (tmp_path / "s").exists()


@pytest.mark.real
def test_a_killed_oracle_is_replaced(library: Path, tmp_path: Path) -> None:
    command = [*COMMAND, "start", "--socket", str(tmp_path / "s"), "--repo", str(library)]
    command += ["--failing-cmd", "python -m pytest -q test_tiny.py"]
    env = {**os.environ, "TMPDIR": str(tmp_path)}  # a killed process leaves its directory behind
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
    try:
        assert first.stdout is not None and first.stdout.readline()
        first.send_signal(signal.SIGKILL)
        first.wait(300)
        assert run_client("--socket", str(tmp_path / "s")).returncode == NO_ORACLE
        second = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert second.stdout is not None and second.stdout.readline().startswith("ready")
            assert run_client("--socket", str(tmp_path / "s"), str(library)).returncode == SAME
        finally:
            second.send_signal(signal.SIGINT)
            assert second.wait(300) == 0
    finally:
        first.kill()
