"""metadata.json: the keys that other programs read, the round trip, and refusals."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reducer.oracle.failure import Signature
from reducer.report.metadata import MetadataError, dumps, load, loads
from reducer.report.result import Commands, Confirmed, Facts, SearchStats
from reducer.report.scrub import Private
from tests.report.samples import extension, script

NOTHING = Private()
TEXT = st.text(st.characters(codec="utf-8"), max_size=20).map(lambda s: s.replace("@", " ").replace("/", " "))
COUNT = st.integers(0, 10**6)
VERSIONS = st.dictionaries(TEXT, TEXT | st.none(), max_size=4)
SIZES = st.fixed_dictionaries({"files": COUNT, "lines": COUNT, "tokens": COUNT})
OPTIONAL = TEXT | st.none()


@st.composite
def any_facts(draw: st.DrawFn) -> Facts:
    return Facts(
        form=draw(st.sampled_from(["script", "extension"])),
        signature=Signature(
            draw(st.sampled_from(["setup", "compile", "link", "import", "run"])),
            draw(st.sampled_from(["diagnostic", "link", "exception", "signal", "timeout", "mismatch", "exit"])),
            draw(TEXT),
            draw(TEXT),
            draw(TEXT),
            draw(st.sampled_from(["paddle", "torch", "library", "test", "stdlib", "other", ""])),
        ),
        message=draw(TEXT),
        layer=draw(
            st.sampled_from(["cxx_api", "op_registration", "python_interface", "python_proxy", "build_tooling"])
        ),
        gap_class=draw(st.sampled_from(["A", "B"])),
        verdict=draw(st.sampled_from(["issue", "workaround", "not_a_gap"])),
        evidence=tuple(draw(st.lists(TEXT, max_size=2))),
        advice=tuple(draw(st.lists(TEXT, max_size=2))),
        paddle=draw(VERSIONS),
        torch=draw(VERSIONS),
        environment=draw(VERSIONS),
        commands=Commands(*(draw(OPTIONAL) for _ in range(4))),
        confirmed=Confirmed(*(draw(COUNT) for _ in range(4))),
        before=draw(SIZES),
        after=draw(SIZES),
        search=SearchStats(draw(COUNT), draw(COUNT), draw(COUNT) / 10, draw(st.dictionaries(TEXT, COUNT, max_size=3))),
        original_command=draw(TEXT),
        also_found=tuple(draw(st.lists(TEXT, max_size=2))),
    )


@given(any_facts())
def test_what_is_written_is_read_back(facts: Facts) -> None:
    assert loads(dumps(facts, NOTHING)) == facts


@pytest.mark.parametrize("result", [extension(), script()], ids=["extension", "script"])
def test_a_real_result_round_trips(result: Any) -> None:
    read = loads(dumps(result, NOTHING))
    for field in fields(Facts):
        if field.name != "search":
            assert getattr(read, field.name) == getattr(result, field.name)
    assert read.search.seconds == 61.0


def test_the_keys_are_those_of_the_design() -> None:
    data = json.loads(dumps(extension(), NOTHING))
    assert data["schema"] == 1
    assert data["form"] == "extension"
    assert list(data["signature"]) == ["stage", "kind", "type", "symbol", "message"]
    assert (data["layer"], data["class"], data["verdict"]) == ("cxx_api", "A", "issue")
    assert data["paddle"]["version"] == "3.3.1"
    assert data["torch"]["commit"] == "cf30153"
    assert list(data["commands"]) == ["build", "run", "control_build", "control_run"]
    assert data["commands"]["run"] is None
    assert data["confirmed"] == {"paddle": {"runs": 3, "same": 3}, "torch": {"runs": 1, "passed": 1}}
    assert data["size"]["after"] == {"files": 2, "lines": 14, "tokens": 91}
    assert (data["search"]["queries"], data["search"]["cache_hits"]) == (120, 14)


def _paths(value: object, at: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(value, dict):
        return [at]
    return ([at] if at else []) + [path for key, item in value.items() for path in _paths(item, (*at, key))]


REQUIRED = [
    path
    for path in _paths(json.loads(dumps(extension(), NOTHING)))
    if path[0] not in ("paddle", "torch", "environment")
    and path[:2] not in (("search", "tiers"), ("size", "before"), ("size", "after"))
]


LATER = {("search", "lost")}  # earlier versions did not write it, and their results are results all the same


def test_a_key_of_later_versions_may_be_missing() -> None:
    data = json.loads(dumps(extension(), NOTHING))
    del data["search"]["lost"]
    assert loads(json.dumps(data)).search.lost == 0


@pytest.mark.parametrize("path", REQUIRED, ids=".".join)
def test_a_missing_or_mistyped_key_is_named(path: tuple[str, ...]) -> None:
    for damage in ("mistype",) if path in LATER else ("drop", "mistype"):
        data = json.loads(dumps(extension(), NOTHING))
        inner = data
        for key in path[:-1]:
            inner = inner[key]
        if damage == "drop":
            del inner[path[-1]]
        else:
            inner[path[-1]] = True
        with pytest.raises(MetadataError, match=path[-1]):
            loads(json.dumps(data))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not JSON"),
        ("[]", "not an object"),
        ("{}", "schema is missing"),
        ('{"schema": 2}', "schema 2"),
        (dumps(extension(), NOTHING).replace('"cxx_api"', '"magic"'), "'magic'"),
    ],
)
def test_other_files_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(MetadataError, match=complaint):
        loads(text)


def test_unknown_keys_do_not_hurt() -> None:
    data = json.loads(dumps(extension(), NOTHING)) | {"news": 1}
    assert loads(json.dumps(data)).form == "extension"


def test_a_directory_without_metadata_is_named(tmp_path: Path) -> None:
    with pytest.raises(MetadataError, match=r"metadata\.json"):
        load(tmp_path)


def test_undecodable_text_still_gives_valid_json() -> None:
    message = b"\xff broken".decode("utf-8", "surrogateescape")
    assert "broken" in loads(dumps(extension(message=message), NOTHING)).message
