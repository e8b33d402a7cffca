"""The privacy record that every job leaves beside its output.

It is what a statement is composed from, and is held against the ledger there. So a reader may check
a statement without the ledger, the data or the machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpladder.privacy.accounting.events import Job, Spend, from_json, to_json
from dpladder.privacy.ledger.book import OWN_CODE

Document = dict[str, Any]


def record_of(
    rule: str,
    wildcards: Mapping[str, str],
    spends: Sequence[Spend],
    question: str,
) -> Document:
    """The record of a job that spent. Nothing in it depends on the data: it says what was charged,
    which was reserved before data was read.

    Args:
        rule, wildcards: of the job.
        spends: as they were charged; their query digests are left out.
        question: what the ledger knows it by.
    """
    return {
        "rule": rule,
        "wildcards": dict(wildcards),
        "question": question,
        "spends": [to_json(replace(spend, query=None)) for spend in spends],
    }


def job_of(record: Mapping[str, Any]) -> Job:
    """The job that left a record. A record without an experiment is of a mechanism outside
    dpladder."""
    wildcards = record["wildcards"]
    return Job.of(wildcards.get("experiment", OWN_CODE), record["rule"], wildcards)


def spends_of(record: Mapping[str, Any]) -> tuple[Spend, ...]:
    """The spends that a record names, without query digests."""
    return tuple(from_json(spend) for spend in record["spends"])
