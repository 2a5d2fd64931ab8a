"""The peers benchmark without frameworks: its scripts run by a real shell, the reading of counts and consoles, the
table, and the ending of a peer with all that it started, whichever session that went to."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from benchmarks.peer_runs import MARK, end_all, run_peer
from benchmarks.peer_scripts import FILE, Sources, accepted, calls, cheap, user
from benchmarks.peer_table import OWN, Curve, Row, Size, curve, faster, statistics, table
from benchmarks.peer_tools import PEERS, Job, Layout, Plan, Step, files_of, find, version

LOG = """\
[   0.8s] 12 files; Paddle 3.3.1, PyTorch 2.13.0
[   8.0s] Paddle: run exception AttributeError index_copy_
[   9.5s] PyTorch: passes
[  10.5s] one test: refused, other
[  11.0s] script: 9 files, 400 lines, 3000 tokens (4 queries)
[  12.5s] modules: 2 files, 40 lines, 300 tokens (9 queries)
[  14.0s] statements: 1 files, 8 lines, 35 tokens (30 queries)
[  15.0s] confirming: the written files on Paddle, three times, and under PyTorch
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    frozen = tmp_path / "frozen"
    (frozen / "pkg").mkdir(parents=True)
    (frozen / "pkg" / "a.py").write_text("a = 1\ngap = 2\n")
    (frozen / "pkg" / "b.py").write_text("b = 3\n")
    return frozen


def sources(library: Path, layout: Layout, *files: str) -> Sources:
    tree = library.parent / "tree"
    shutil.copytree(library, tree)
    return Sources(library, tree, files, layout, library.parent)


def run_script(text: str, place: Path, *words: str, cwd: Path, file: str = "") -> subprocess.CompletedProcess[str]:
    script = place / "interesting.sh"
    script.write_text(text)
    script.chmod(0o755)
    env = {**os.environ, "TMPDIR": str(place), FILE: file}
    return subprocess.run([str(script), *words], cwd=cwd, env=env, capture_output=True, text=True, check=False)


def fake_python(place: Path) -> Path:
    """Stands for the interpreter: fails with the gap where pkg/a.py has it, unless the stand-in is on the path."""
    program = place / "bin" / "python"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n"
        '[ -f "$PYTHONPATH/paddle/__init__.py" ] && [ "$USE_TORCH" = 1 ] && grep -q "b = 3" pkg/b.py && exit 0\n'
        'grep -q gap pkg/a.py && echo "AttributeError: no gap"\nexit 1\n'
    )
    program.chmod(0o755)
    return program


def stand_in(place: Path) -> Path:
    (place / "stand_in" / "paddle").mkdir(parents=True)
    (place / "stand_in" / "paddle" / "__init__.py").touch()
    return place / "stand_in"


@pytest.mark.parametrize(
    ("text", "other", "code"),
    [("gap = 2\n", "b = 3\n", 0), ("a = 1\n", "b = 3\n", 1), ("gap = 2\n", "b = 4\n", 1)],
    ids=["the failure", "no failure of the words", "the control fails"],
)
def test_the_users_script_asks_both_sides(library: Path, tmp_path: Path, text: str, other: str, code: int) -> None:
    given = sources(library, "files", "pkg/a.py", "pkg/b.py")
    script = user(["python -m pytest"], "Error:.*gap", fake_python(tmp_path), stand_in(tmp_path), given)
    flat = tmp_path / "flat"
    flat.mkdir()
    (flat / "a.py").write_text(text)
    (flat / "b.py").write_text(other)
    done = run_script(script, tmp_path, cwd=flat)
    assert done.returncode == code, done.stderr
    assert [call.code for call in calls(tmp_path)] == [code]
    assert ("interesting" in done.stdout) == (code == 0)
    states = accepted(tmp_path)
    assert [dict(state) for _, state in states] == (
        [{"pkg/a.py": text.encode(), "pkg/b.py": other.encode()}] if code == 0 else []
    )
    assert not list(tmp_path.glob("tmp.*"))


def test_one_file_stands_in_the_peers_tree(library: Path, tmp_path: Path) -> None:
    given = sources(library, "file", "pkg/a.py", "pkg/b.py")
    script = user(["python x"], "gap", fake_python(tmp_path), stand_in(tmp_path), given)
    (given.tree / "pkg" / "b.py").write_text("b = 3 # done\n")  # what an earlier command of the peer came to
    candidate = tmp_path / "candidate"
    candidate.write_text("gap\n")
    assert run_script(script, tmp_path, str(candidate), cwd=tmp_path, file="pkg/a.py").returncode == 0
    assert [dict(state) for _, state in accepted(tmp_path)] == [{"pkg/a.py": b"gap\n", "pkg/b.py": b"b = 3 # done\n"}]


@pytest.mark.parametrize("by_argument", [True, False])
def test_a_whole_tree_may_lack_files(library: Path, tmp_path: Path, by_argument: bool) -> None:
    given = sources(library, "tree", "pkg/a.py", "pkg/b.py")
    (given.tree / "pkg" / "b.py").unlink()
    script = cheap("sh -c '[ ! -e $2/pkg/b.py ]' --", given)
    words = [str(given.tree)] if by_argument else []
    done = run_script(script, tmp_path, *words, cwd=tmp_path if by_argument else given.tree)
    assert done.returncode == 0, done.stderr
    assert [set(state) for _, state in accepted(tmp_path)] == [{"pkg/a.py"}]


@pytest.mark.parametrize(
    ("layout", "files", "wanted"),
    [
        ("files", ("pkg/a.py", "pkg/b.py"), "--quiet --file pkg/a.py --file pkg/b.py"),
        ("tree", ("pkg/a.py", "pkg/b.py"), "--quiet ."),
        ("file", ("pkg/a.py",), "--quiet --file pkg/a.py cand.py"),
        ("file", ("pkg/a.py", "pkg/b.py"), "--quiet --base TREE --file pkg/a.py cand.py"),
    ],
)
def test_the_cheap_script_asks_as_the_layout_needs(
    library: Path, tmp_path: Path, layout: Layout, files: tuple[str, ...], wanted: str
) -> None:
    given = sources(library, layout, *files)
    words = ["cand.py"] if layout == "file" else []
    done = run_script(cheap("echo", given) + "\n", tmp_path, *words, cwd=given.tree, file="pkg/a.py")
    assert done.stdout.splitlines()[0] == wanted.replace("TREE", str(given.tree))


def test_a_refusal_keeps_nothing_and_passes_the_code_on(library: Path, tmp_path: Path) -> None:
    given = sources(library, "tree", "pkg/a.py")
    assert run_script(cheap("exit 125 #", given), tmp_path, cwd=given.tree).returncode == 125
    assert [call.code for call in calls(tmp_path)] == [125]
    assert accepted(tmp_path) == []


def test_counts_of_an_oracle() -> None:
    seen = statistics("verdicts: 30 other failure, 9 same; asked: syntax 35 (3.5 s), real 4 (80.0 s); known: 7\n")
    assert seen.verdicts == {"other failure": 30, "same": 9}
    assert seen.tiers == {"syntax": (35, 3.5), "real": (4, 80.0)}
    assert seen.known == 7
    assert str(seen) == "35 syntax, 4 real; 7 known; 30 other failure, 9 same"
    assert str(statistics("verdicts: none; asked: none; known: 0")) == "-"
    with pytest.raises(ValueError, match="not the counts"):
        statistics("no oracle at s")


def test_time_to_a_size() -> None:
    found = curve(LOG)
    assert found == Curve(9.5, 15.0, ((11.0, 3000), (12.5, 300), (14.0, 35)))
    assert found.until(2999) == found.until(300) == pytest.approx(3.0)
    assert found.until(34) is None
    assert curve("[   9.5s] PyTorch: passes\n") is None


def test_what_the_confirmation_took_back_was_not_reached() -> None:
    again = (
        "[  17.0s] the written files behave otherwise under Paddle (none): again, with real builds and commands only\n"
        "[  40.0s] statements: 1 files, 8 lines, 60 tokens (90 queries)\n"
        "[  41.0s] confirming: the written files on Paddle, three times, and under PyTorch\n"
    )
    found = curve(LOG + again)
    assert found is not None
    assert found.until(60) == pytest.approx(30.5)
    assert found.until(35) is None
    assert found.ended == 41.0


def row(**changed: object) -> Row:
    values: dict[str, object] = {
        "case": "python_gap",
        "peer": "cvise",
        "oracle": "cheap",
        "wall": 240.0,
        "search": 200.0,
        "queries": 100,
        "answers": "100 run",
        "per_query": 0.25,
        "before": Size(500, 4000, 3900),
        "after": Size(30, 290, 200),
        "valid": "yes",
    }
    return Row(**{**values, **changed})  # type: ignore[arg-type]


def test_rows_compare_at_the_size_that_the_peer_reached() -> None:
    found = curve(LOG)
    cells = [cell.strip() for cell in row().text(found).strip().strip("|").split("|")]
    assert cells[3:11] == ["240.0", "200.0", "100", "100 run", "0.25", "4000 → 290", "3900 → 200", "500 → 30"]
    assert cells[12:14] == [
        "44.4 (4.5 s)",
        "44.4 (4.5 s)",
    ]  # 200 s by the 4.5 s to 35 tokens, the first size below either
    smaller = row(after=Size(30, 40, 20)).text(found)
    assert "| 44.4 (4.5 s) | - |" in smaller
    assert "| - | - |" in row(search=None, after=Size(500, 4000, 3900)).text(found)
    assert "| - | - |" in row(oracle=OWN).text(found)
    assert faster(10.0, 0.0) == "100.0 (0.0 s)"


def test_the_table_says_which_peers_there_are() -> None:
    text = table([row(note="a|b")], {}, {"cvise": "2.7", "shrinkray": "not installed"})
    assert "- shrinkray: not installed\n" in text
    assert "a\\|b" in text
    assert "none asked for" in table([], {}, {})


def job(tmp_path: Path, cxx: bool, *files: str) -> Job:
    tree, place = tmp_path / "tree", tmp_path / "place"
    place.mkdir()
    for file in files:
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        (tree / file).write_text(file)
    return Job(tmp_path / "program", tmp_path / "script", tree, files, cxx, place)


def plan(name: str, given: Job) -> Plan:
    return PEERS[name].plan(given)


@pytest.mark.parametrize(("cxx", "file"), [(True, "csrc/ops.cc"), (False, "pkg/mod.py")])
def test_cvise_works_on_bare_names(tmp_path: Path, cxx: bool, file: str) -> None:
    made = plan("cvise", job(tmp_path, cxx, file))
    (step,) = made.steps
    assert made.layout == "files"
    assert step.argv[-1] == Path(file).name
    assert (step.cwd / step.argv[-1]).read_text() == file
    assert ("--not-c" in step.argv) is not cxx


def test_picire_takes_one_file_after_the_other(tmp_path: Path) -> None:
    made = plan("picire", job(tmp_path, False, "pkg/a.py", "pkg/b.py"))
    assert [step.file for step in made.steps] == ["pkg/a.py", "pkg/b.py"]
    assert len({step.result for step in made.steps}) == 2


def test_shrink_ray_takes_a_folder_where_there_are_several_files(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    assert plan("shrinkray", job(tmp_path / "one", True, "csrc/ops.cc")).layout == "file"
    assert plan("shrinkray", job(tmp_path, False, "a.py", "b.py")).layout == "tree"


def test_files_of_a_library() -> None:
    texts = {
        "setup.py": "x",
        "conftest.py": "x",
        "pkg/__init__.py": "",
        "pkg/a.py": "x",
        "pkg/gap.py": "x.gap_()",
        "tests/a.py": "x",
        "csrc/x.cc": "gap_",
    }
    assert files_of(texts, frozenset({".py"}), "gap_") == ("pkg/gap.py", "pkg/a.py")


def program(place: Path, text: str) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    found = place / "cvise"
    found.write_text(f"#!/bin/sh\n{text}\n")
    found.chmod(0o755)
    return found


def test_a_program_that_cannot_run_is_said_so(tmp_path: Path) -> None:
    assert find("cvise", [tmp_path / "there"]) != tmp_path / "there" / "cvise"
    made = program(tmp_path / "there", "echo cvise 9.9")
    assert find("cvise", [tmp_path / "there"]) == made
    assert version(PEERS["cvise"], made) == ("cvise 9.9", True)
    made = program(tmp_path / "broken", "echo needs more >&2; exit 1")
    assert version(PEERS["cvise"], made) == ("needs more", False)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"  # who waits for a process that lost its parent is not ours to say


TREE = """
sleep 600 & echo $! >> pids
setsid sh -c 'sleep 600 & echo $! >> pids; wait' &
(setsid sleep 600 & echo $! >> pids) &
wait $!
while [ "$(wc -l < pids)" != 3 ]; do sleep 0.05; done
touch all
"""


def none_alive(pids: Path) -> bool:
    """Whether the three of TREE are gone; what was killed may take a moment."""
    found = [int(pid) for pid in pids.read_text().split()]
    assert len(found) == 3
    until = time.monotonic() + 30
    while any(map(alive, found)) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(alive, found))


def test_a_peer_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    """Also with what runs in another session, and with what lost its parent."""
    script = program(tmp_path / "bin", f"{TREE}sleep 600")
    mark = f"test-{os.getpid()}-{tmp_path.name}"
    process = subprocess.Popen([str(script)], cwd=tmp_path, env={**os.environ, MARK: mark}, start_new_session=True)
    try:
        while not (tmp_path / "all").exists() and process.poll() is None:
            time.sleep(0.05)
    finally:
        left = end_all(process, mark)
    assert none_alive(tmp_path / "pids")
    assert left >= 1  # at least the one without a parent is no descendant


def test_what_a_peer_leaves_behind_is_ended_and_counted(tmp_path: Path) -> None:
    script = program(tmp_path / "bin", f"{TREE}exit 3")
    seen = run_peer([Step((str(script),), tmp_path)], tmp_path, tmp_path, 600.0, None)
    assert none_alive(tmp_path / "pids")
    assert (seen.codes, seen.over) == ((3,), False)
    assert seen.left >= 3


def test_no_command_starts_after_the_limit(tmp_path: Path) -> None:
    steps = [Step(("sleep", "600"), tmp_path), Step(("touch", "second"), tmp_path)]
    seen = run_peer(steps, tmp_path, tmp_path, 0.2, None)
    assert (seen.codes, seen.over, seen.left) == ((), True, 0)
    assert not (tmp_path / "second").exists()


def test_a_result_goes_into_the_tree_for_the_next_command(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.py").write_text("long\n")
    result = tmp_path / "result"
    first = Step(
        ("sh", "-c", f'echo "$REDUCE_PEER $PEER_FILE" > seen; echo short > {result}'), tmp_path, "a.py", result
    )
    second = Step(("cp", str(tree / "a.py"), "then"), tmp_path)
    seen = run_peer([first, second], tree, tmp_path, 60.0, None)
    assert (seen.codes, seen.over, seen.left) == ((0, 0), False, 0)
    assert (tmp_path / "then").read_text() == "short\n"
    assert (tmp_path / "seen").read_text().split()[1] == "a.py"
