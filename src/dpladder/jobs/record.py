"""The privacy record that every rule writes beside its output: what it cost, or why it cost
nothing.

The statement is composed from these records and the ledger. The statement names each record by its
digest (contract: signed-bytes).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpladder.jobs.task import Task, write_json
from dpladder.plan.follows import digest
from dpladder.privacy.accounting.events import Spend
from dpladder.privacy.statement.records import record_of

FROM_RELEASES = "drawn from releases alone"


def write_record(
    task: Task[Any],
    spends: Sequence[Spend] = (),
    question: str = "",
    *,
    free: str | None = None,
) -> None:
    """Write a job's privacy record. Its `basis` is a digest of what the output was made from, as
    far as it is known before data is read.

    Args:
        task: the job.
        spends: what it was charged.
        question: what the ledger knows the release by.
        free: why it cost nothing, where it did.

    Where `free` is given, `spends` and `question` play no part.
    """
    if free is None:
        record = record_of(task.rule, task.wildcards, spends, question)
    else:
        record = {"rule": task.rule, "wildcards": task.wildcards, "free": free}
    write_json(task.output["privacy"], record | {"basis": digest(task.cfg, task.code)})
