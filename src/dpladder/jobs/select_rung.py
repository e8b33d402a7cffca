"""A rung's best trial, from noised scores alone."""

from __future__ import annotations

from dataclasses import asdict

from dpladder.jobs.record import write_record
from dpladder.jobs.task import Task, read_json, write_json
from dpladder.plan.reads import SelectRung
from dpladder.search.trial import Trial, best


def select_rung(task: Task[SelectRung]) -> None:
    """Choose a rung's best trial by its noised score. Free, since scores are released; that the
    winner depends on private data was paid for with them.

    The output has the best trial, and all trials with their scores, in the order of the trials.
    `learns` has the public facts of their training, for rules that read no features.
    """
    scores = [read_json(path) for path in task.input["scores"]]
    trials = [Trial(**one["trial"]) for one in scores]
    document = {
        "best": asdict(best(trials)),
        "trials": [asdict(trial) for trial in trials],
    }
    write_json(task.output["best"], document | {"learns": scores[0]["learns"]})
    write_record(task, free="computed from released scores alone")
