"""The privacy record that every rule writes beside its output: what it cost, or why it cost nothing."""

from __future__ import annotations

from collections.abc import Sequence

from dpladder import stages
from dpladder.job import Task, write_json
from dpladder.privacy.spend import Spend
from dpladder.privacy.statement import record_of


def write_record(task: Task, spends: Sequence[Spend] = (), free: str | None = None) -> None:
    """`basis` is what the output was made from, as far as it is known before data is read."""
    if free is None:
        record = record_of(task.rule, task.wildcards, spends)
    else:
        record = {"rule": task.rule, "wildcards": task.wildcards, "free": free}
    write_json(task.output["privacy"], record | {"basis": stages.digest(task.cfg, task.code)})
