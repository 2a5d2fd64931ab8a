"""Nothing private gets out, nothing decisive gets lost."""

from __future__ import annotations

import getpass
import socket
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reducer.report.scrub import Private, scrub, secret_values, trim_log
from tests.report.samples import PADDLE_LOG

WORD = st.text("abcdefghijklmnopqrstuvwxyz", min_size=4, max_size=10)
SECRET = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=20)
PROSE = st.text(max_size=60)
PLACEHOLDERS = "<secret><site-packages><email><name>~."


@given(st.lists(PROSE, min_size=1, max_size=4), st.lists(SECRET, min_size=1, max_size=3))
def test_no_secret_survives_anywhere(prose: list[str], secrets: list[str]) -> None:
    assume(not any(s in PLACEHOLDERS for s in secrets))
    text = "".join(p + s for p, s in zip(prose, secrets, strict=False)) + "".join(secrets)
    out = scrub(text, Private(secrets=tuple(secrets)))
    assert not any(s in out.replace("<secret>", "\0") for s in secrets)


@given(
    PROSE,
    WORD,
    st.sampled_from(["", " ", "-I", "-L", "'", '"', "=", "(", ":", "-isystem ", "-isystem", "file://"]),
    WORD,
)
def test_no_home_survives(prose: str, user: str, before: str, name: str) -> None:
    assume(user not in "secret site packages email name")
    for home in (f"/home/{user}", f"/data/people/{user}", f"/Users/{user}"):
        text = f"{prose} {before}{home}/{name}/x.cc:3: error\n{home}\n{home}: no"
        out = scrub(text, Private(directories={home: "~"}))
        assert home not in out
        assert f"~/{name}/x.cc:3: error" in out


@given(PROSE, st.from_regex(r"[a-z]{1,8}\.[a-z]{1,8}@[a-z]{1,8}\.(com|org|cn)", fullmatch=True))
def test_no_mail_address_survives(prose: str, mail: str) -> None:
    assert mail not in scrub(f"{prose} <{mail}>, {mail}", Private())


@given(PROSE, st.dictionaries(WORD.map(lambda w: f"/srv/{w}"), st.just("."), max_size=2))
def test_scrubbing_twice_changes_nothing(prose: str, directories: dict[str, str]) -> None:
    private = Private(("s3cr3t-value",), ("alice", "box17"), directories)
    text = prose.join(["alice@box17.example.com ", "s3cr3t-value", *directories, "/usr/lib/python3/dist-packages/x"])
    once = scrub(text, private)
    assert scrub(once, private) == once


def test_this_machine() -> None:
    private = Private.of_this_machine({"/srv/run-1/tree": "."})
    text = f"{Path.home()}/lib {Path.home()}: {socket.gethostname()} {getpass.getuser()}x /srv/run-1/tree/csrc/a.cc"
    out = scrub(text, private)
    assert str(Path.home()) not in out
    assert out.startswith("~/lib ~:")
    assert out.endswith("./csrc/a.cc")
    host = socket.gethostname()
    if len(host) > 2 and host != "localhost":  # shorter names identify nobody
        assert host not in out


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/opt/v/lib/python3.11/site-packages/paddle/x.py:3", "<site-packages>/paddle/x.py:3"),
        ("/home/alice/v/lib/python3.11/site-packages/paddle", "<site-packages>/paddle"),
        ("-I/opt/v/lib/python3.11/site-packages/paddle/include", "-I<site-packages>/paddle/include"),
        ('File "/w/run/csrc/a.cc", line 1', 'File "./csrc/a.cc", line 1'),
        ("-I/w/run -c /w/run/a.cc", "-I. -c ./a.cc"),
        ("/w/run2/a.cc", "/w/run2/a.cc"),
        ("/w/run.txt", "/w/run.txt"),
        ("see /w/run.", "see .."),
        ("/home/bob/x", "~/x"),
        ("-L/home/bob/x", "-L~/x"),
        ("by alice on box17", "by <name> on <name>"),
        ("malice", "malice"),
        ("root@box17: git@github.com:a/b", "root@<name>: <email>:a/b"),
        ("https://bob:pass@host.org/simple", "https://host.org/simple"),
        ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "<secret>"),
        ("MY_API_KEY=abc123 python x.py", "MY_API_KEY=<secret> python x.py"),
        ("Authorization: Bearer abcdefghijkl", "Authorization: Bearer <secret>"),
        ("[SignalInfo: *** SIGSEGV (@0x0) received ***]", "[SignalInfo: *** SIGSEGV (@0x0) received ***]"),
        ("undefined symbol: memcpy@GLIBC_2.14", "undefined symbol: memcpy@GLIBC_2.14"),
        ("y = a@b.T", "y = a@b.T"),
        ("#include </usr/include/x.h>", "#include </usr/include/x.h>"),
        ("at /paddle/paddle/fluid/pybind/torch_compat.h:70", "at /paddle/paddle/fluid/pybind/torch_compat.h:70"),
    ],
)
def test_known_texts(text: str, expected: str) -> None:
    private = Private(names=("alice", "box17", "root"), directories={"/w/run": ".", "/home/alice": "~"})
    assert scrub(text, private) == expected


def test_secrets_are_found_by_the_name_of_their_variable() -> None:
    environment = {
        "GITHUB_TOKEN": "0123456789",
        "DB_PASSWORD": "swordfish",
        "OPENAI_API_KEY": "abcdefgh",
        "USE_AUTH": "1",
        "PATH": "/usr/bin",
        "PWD_COUNT": "12345678",
    }
    assert sorted(secret_values(environment)) == ["0123456789", "abcdefgh", "swordfish"]


def test_the_working_directory_is_no_secret() -> None:
    assert secret_values({"PWD": "/home/alice/mre", "OLDPWD": "/home/alice"}) == ()


def test_noise_goes_and_the_rest_stays() -> None:
    out = trim_log(PADDLE_LOG)
    assert "ccache" not in out and "warnings.warn" not in out
    assert "\n\n\n" not in out and not out.startswith("\n")
    kept = [line for line in PADDLE_LOG.splitlines() if line and "warn" not in line.lower()]
    assert [line for line in out.splitlines() if line] == kept


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("\n\n \n", ""),
        ("\x1b[31merror\x1b[0m: x\n", "error: x\n"),
        ("10%\r50%\rdone\n", "done\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        (" 40%|████      | 4/10 [00:01<00:01]\nok\n", "ok\n"),
        ("━━━━━━━━ 1.2/1.2 MB\nok", "ok\n"),
        ("a\n\n\n\nb", "a\n\nb\n"),
        ("      deeply indented\n      |     ^~~\n", "      deeply indented\n      |     ^~~\n"),
    ],
)
def test_trimming(text: str, expected: str) -> None:
    assert trim_log(text) == expected


@given(st.text(max_size=200))
def test_trimming_twice_changes_nothing(text: str) -> None:
    assert trim_log(trim_log(text)) == trim_log(text)
