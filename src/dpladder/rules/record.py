"""The privacy record that every rule writes beside its output: what it cost, or why it cost nothing."""

from __future__ import annotations

from collections.abc import Sequence

from dpladder.job import Task, write_json
from dpladder.privacy.spend import Spend
from dpladder.privacy.statement import record_of


def write_record(task: Task, spends: Sequence[Spend] = (), free: str | None = None) -> None:
    if free is None:
        write_json(task.output["privacy"], record_of(task.rule, task.wildcards, spends))
    else:
        write_json(task.output["privacy"], {"rule": task.rule, "wildcards": task.wildcards, "free": free})
