"""The plan as files: what this DAG declared it would spend. The reservation itself lives in the
ledger alone.

What the ledgers had room for is left out (`plan_without_ledger`), for it changes while the plan is
carried out.
"""

from __future__ import annotations

from dataclasses import asdict

from dpladder.jobs.record import write_record
from dpladder.jobs.task import Task, write_json
from dpladder.plan.table import plan_table
from dpladder.privacy.statement.documents import PlanDocument


def plan_spend(task: Task[PlanDocument]) -> None:
    """Write the plan for programs and for people. The ledgers were asked when Snakemake parsed, and
    nothing is reserved here."""
    write_json(task.output["plan"], asdict(task.reads))
    task.output["table"].write_text(f"# Plan\n\n```\n{plan_table(task.reads)}\n```\n", "utf-8")
    write_record(task, free="computed from the config alone")
