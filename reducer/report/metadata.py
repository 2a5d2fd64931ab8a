"""metadata.json: the part of an MRE that programs read (DESIGN.md §8)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from reducer.oracle.failure import Kind, Owner, Signature, Stage
from reducer.report.result import Advice, Commands, Confirmed, Facts, Form, GapClass, Layer, SearchStats
from reducer.report.scrub import Private, scrub

SCHEMA = 1
FILE = "metadata.json"

_T = TypeVar("_T")


class MetadataError(ValueError):
    """The file is not the metadata of an MRE, or not one that this version can read."""


def dumps(facts: Facts, private: Private) -> str:
    """The text of metadata.json, scrubbed of what is private."""
    signature = facts.signature
    confirmed = facts.confirmed
    data: dict[str, object] = {
        "schema": SCHEMA,
        "form": facts.form,
        "signature": {
            "stage": signature.stage,
            "kind": signature.kind,
            "type": signature.type,
            "symbol": signature.symbol,
            "message": facts.message,
        },
        "match": {"template": signature.template, "owner": signature.owner},
        "layer": facts.layer,
        "class": facts.gap_class,
        "verdict": facts.verdict,
        "evidence": list(facts.evidence),
        "advice": list(facts.advice),
        "paddle": dict(facts.paddle),
        "torch": dict(facts.torch),
        "environment": dict(facts.environment),
        "commands": {
            "build": facts.commands.build,
            "run": facts.commands.run,
            "control_build": facts.commands.control_build,
            "control_run": facts.commands.control_run,
        },
        "confirmed": {
            "paddle": {"runs": confirmed.paddle_runs, "same": confirmed.paddle_same},
            "torch": {"runs": confirmed.torch_runs, "passed": confirmed.torch_passed},
        },
        "size": {"before": dict(facts.before), "after": dict(facts.after)},
        "search": {
            "queries": facts.search.queries,
            "cache_hits": facts.search.cache_hits,
            "seconds": round(facts.search.seconds, 1),
            "tiers": dict(facts.search.tiers),
            "verdicts": dict(facts.search.verdicts),
            "slow": facts.search.slow,
            "disagreements": facts.search.disagreements,
            "lost": facts.search.lost,
        },
        "original_command": facts.original_command,
        "also_found": list(facts.also_found),
    }
    return json.dumps(_scrubbed(data, private), indent=2, ensure_ascii=False) + "\n"


def loads(text: str) -> Facts:
    """The facts in the text of a metadata.json. Keys that it does not know are skipped. Raises MetadataError."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise MetadataError(f"not JSON: {error}") from None
    top = _Reader(data, "")
    schema = top.get("schema", int)
    if schema != SCHEMA:
        raise MetadataError(
            f"schema {schema} is not {SCHEMA}, which this version of reduce reads: use the matching version"
        )
    signature, match = top.part("signature"), top.part("match")
    commands, size, search = top.part("commands"), top.part("size"), top.part("search")
    paddle, torch = top.part("confirmed").part("paddle"), top.part("confirmed").part("torch")
    return Facts(
        form=cast(Form, top.one_of("form", Form)),
        signature=Signature(
            stage=cast(Stage, signature.one_of("stage", Stage)),
            kind=cast(Kind, signature.one_of("kind", Kind)),
            type=signature.get("type", str),
            symbol=signature.get("symbol", str),
            template=match.get("template", str),
            owner=cast(Owner, match.one_of("owner", Owner)),
        ),
        message=signature.get("message", str),
        layer=cast(Layer, top.one_of("layer", Layer)),
        gap_class=cast(GapClass, top.one_of("class", GapClass)),
        verdict=cast(Advice, top.one_of("verdict", Advice)),
        evidence=top.texts("evidence"),
        advice=top.texts("advice"),
        paddle=top.part("paddle").mapping(_text_or_none),
        torch=top.part("torch").mapping(_text_or_none),
        environment=top.part("environment").mapping(_text_or_none),
        commands=Commands(*(commands.optional(key) for key in ("build", "run", "control_build", "control_run"))),
        confirmed=Confirmed(
            paddle.get("runs", int), paddle.get("same", int), torch.get("runs", int), torch.get("passed", int)
        ),
        before=size.part("before").mapping(_is_int),
        after=size.part("after").mapping(_is_int),
        search=SearchStats(
            search.get("queries", int),
            search.get("cache_hits", int),
            search.number("seconds"),
            search.part("tiers").mapping(_is_int),
            search.part("verdicts").mapping(_is_int),
            search.get("slow", int),
            search.get("disagreements", int),
            search.count("lost"),
        ),
        original_command=top.get("original_command", str),
        also_found=top.texts("also_found"),
    )


def load(directory: Path) -> Facts:
    """The facts of the MRE in ``directory``. Raises MetadataError when there is none or it cannot be read."""
    path = directory / FILE
    try:
        return loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, MetadataError) as error:
        raise MetadataError(f"{path} does not describe an MRE: {error}") from error


def _scrubbed(value: object, private: Private) -> object:
    if isinstance(value, str):
        # Text that came from undecodable bytes holds lone surrogates, which no JSON reader accepts.
        return scrub(value.encode("utf-8", "backslashreplace").decode(), private)
    if isinstance(value, Mapping):
        return {key: _scrubbed(item, private) for key, item in value.items()}
    if isinstance(value, list):
        return [_scrubbed(item, private) for item in value]
    return value


def _text_or_none(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class _Reader:
    """Typed access to one JSON object; every complaint names the key."""

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise MetadataError(f"{where or 'the top level'} is not an object")
        self._data: dict[str, Any] = value
        self._where = where

    def get(self, key: str, kind: type[_T]) -> _T:
        value = self._value(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise MetadataError(f"{self._name(key)} is not of type {kind.__name__}")
        return value

    def count(self, key: str) -> int:
        """A number that earlier versions did not write: 0 then."""
        return self.get(key, int) if key in self._data else 0

    def optional(self, key: str) -> str | None:
        return None if self._value(key) is None else self.get(key, str)

    def number(self, key: str) -> float:
        return float(self.get(key, int) if _is_int(self._value(key)) else self.get(key, float))

    def one_of(self, key: str, literal: object) -> str:
        value = self.get(key, str)
        if value not in get_args(literal):
            raise MetadataError(f"{self._name(key)} is {value!r}, none of {', '.join(map(repr, get_args(literal)))}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        values = self.get(key, list)
        if not all(isinstance(v, str) for v in values):
            raise MetadataError(f"{self._name(key)} is not a list of strings")
        return tuple(values)

    def part(self, key: str) -> _Reader:
        return _Reader(self._value(key), self._name(key))

    def mapping(self, fits: Callable[[object], bool]) -> dict[str, Any]:
        for key, value in self._data.items():
            if not fits(value):
                raise MetadataError(f"{self._name(key)} has the wrong type")
        return dict(self._data)

    def _value(self, key: str) -> Any:
        if key not in self._data:
            raise MetadataError(f"{self._name(key)} is missing")
        return self._data[key]

    def _name(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where else key
