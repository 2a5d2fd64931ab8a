"""Judgements as text: so that a later run of the same case on the same machine need not ask again."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, Protocol

from reducer.oracle.failure import Failure, Signature
from reducer.oracle.verdict import Judgement, Verdict

_LONGEST = 2000  # characters of a message that are kept


class Texts(Protocol):
    """Where texts are kept by key."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, text: str) -> None: ...

    def clear(self) -> None: ...


class Memory:
    """The judgements in ``texts``. Only the cheap tiers' ones belong here: the real thing is asked every time."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    def recall(self, key: str) -> Judgement | None:
        """The judgement kept under ``key``; None also for what cannot be read."""
        text = self._texts.get(key)
        try:
            return None if text is None else _judgement(json.loads(text))
        except (ValueError, TypeError, KeyError):
            return None

    def keep(self, key: str, judgement: Judgement) -> None:
        """Keep a judgement under ``key``."""
        data = {
            "verdict": judgement.verdict.value,
            "tier": judgement.tier,
            "paddle": _data(judgement.paddle),
            "control": _data(judgement.control),
        }
        self._texts.put(key, json.dumps(data))

    def forget(self) -> None:
        """Drop everything: a cheap tier was wrong."""
        self._texts.clear()


def _data(failure: Failure | None) -> dict[str, Any] | None:
    if failure is None:
        return None
    also = [asdict(signature) for signature in failure.also]
    message = failure.message[:_LONGEST]
    return {"signature": asdict(failure.signature), "message": message, "also": also}


def _judgement(data: dict[str, Any]) -> Judgement:
    return Judgement(Verdict(data["verdict"]), data["tier"], _failure(data["paddle"]), _failure(data["control"]))


def _failure(data: dict[str, Any] | None) -> Failure | None:
    if data is None:
        return None
    also = tuple(Signature(**signature) for signature in data["also"])
    return Failure(Signature(**data["signature"]), data["message"], also=also)
