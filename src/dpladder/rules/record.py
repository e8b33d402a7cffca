"""The privacy record that every rule writes beside its output: what it cost, or why it cost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpladder.job import Task, write_json
from dpladder.privacy.spend import Spend, mu, to_json


def write_record(task: Task, spends: Sequence[Spend] = (), free: str | None = None) -> None:
    """Only public facts: nothing here depends on the data, so two datasets leave the same record."""
    record: dict[str, Any] = {"rule": task.rule, "wildcards": task.wildcards}
    if free is None:
        record["spends"] = [to_json(spend) | {"mu": mu(spend.event, spend.count)} for spend in spends]
    else:
        record["free"] = free
    write_json(task.output["privacy"], record)
