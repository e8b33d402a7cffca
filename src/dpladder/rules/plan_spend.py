"""The plan as files: what this DAG declared it would spend. The reservation itself lives in the ledger alone."""

from __future__ import annotations

from dpladder.job import Task, write_json
from dpladder.privacy.show import plan_table
from dpladder.rules.record import write_record


def plan_spend(task: Task) -> None:
    write_json(task.output["plan"], task.cfg)
    task.output["table"].write_text(f"# Plan\n\n```\n{plan_table(task.cfg)}\n```\n", "utf-8")
    write_record(task, free="computed from the config alone")
