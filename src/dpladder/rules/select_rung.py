"""A rung's best trial, from noised scores alone."""

from __future__ import annotations

import dataclasses

from dpladder.job import Task, read_json, write_json
from dpladder.rules.record import write_record
from dpladder.search.select import best
from dpladder.search.trial import Trial


def select_rung(task: Task) -> None:
    trials = [Trial(**read_json(path)["trial"]) for path in task.input["scores"]]
    write_json(
        task.output["best"],
        {"best": dataclasses.asdict(best(trials)), "trials": [dataclasses.asdict(trial) for trial in trials]},
    )
    write_record(task, free="computed from released scores alone")
