"""The privacy record that every job leaves beside its output."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpladder.privacy.accounting.events import Job, Spend, from_json, to_json

Document = dict[str, Any]


def record_of(
    rule: str, wildcards: Mapping[str, str], spends: Sequence[Spend], static: str | None = None
) -> Document:
    """The record of a job that spent, under what the ledger knows its question by. Nothing in it
    depends on the data."""
    lines = [to_json(replace(spend, query=None)) for spend in spends]
    named = {} if static is None else {"static": static}
    return {"rule": rule, "wildcards": dict(wildcards), "spends": lines, **named}


def job_of(record: Mapping[str, Any]) -> Job:
    """The job that left a record. Its spends name the one that paid, under whichever name its
    experiment had then."""
    paid = spends_of(record)[0].job
    return replace(paid, experiment=record["wildcards"].get("experiment", paid.experiment))


def spends_of(record: Mapping[str, Any]) -> tuple[Spend, ...]:
    return tuple(from_json(spend) for spend in record["spends"])


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
