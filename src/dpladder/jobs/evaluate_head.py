"""How good the released head is by itself, from which trainings of the network start: counted on a
test that is declared public."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from safetensors.numpy import load_file

from dpladder.jobs.evaluate import class_names
from dpladder.jobs.record import write_record
from dpladder.jobs.seen import seen_part
from dpladder.jobs.task import Task, write_json
from dpladder.learn.measures import tables
from dpladder.learn.trainings import scorer_of
from dpladder.plan.rule_params import EvaluateHead
from dpladder.search.first_head import head_of


def evaluate_head(task: Task[EvaluateHead]) -> None:
    """Count what the head that a network starts from gets right on a public test, without noise and
    for nothing."""
    test, reads = seen_part(task, "test"), task.reads
    constants, learner = test.constants, head_of(reads.bias, reads.link, reads.augment)
    head = load_file(Path(task.input["head"]))["head"]
    scorer = scorer_of(learner, constants)
    names = class_names(reads.classes, constants)
    model = tables.MeasuredModel((head,), scorer, constants, names)
    counts = tables.exact("accuracy", model, test.read())
    write_json(task.output["metrics"], asdict(counts))
    write_record(task, free="a release, counted on a source that the config declares public")
