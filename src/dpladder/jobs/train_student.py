"""A student of the final model, for nothing: trained on records declared public, by the labels that
the model gives them.

A student costs nothing: the labels that a release gives to public records are post-processing.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from dpladder.jobs.evaluate import class_names
from dpladder.jobs.model_file import save_model
from dpladder.jobs.record import write_record
from dpladder.jobs.seen import seen_part
from dpladder.jobs.task import Task, write_json
from dpladder.learn import student, weights
from dpladder.learn.measures import tables
from dpladder.learn.scorers import ClassScorer
from dpladder.plan.reads import TrainStudent


def train_student(task: Task[TrainStudent]) -> None:
    """Teach a student what the final head says of public records. Free: it reads a release and
    public records alone. It is counted on a public test alone, for a private one would have to
    pay twice.

    Two files are written: the student's weights, and its counts, which are null without a public
    test.
    """
    teacher, _ = weights.load(Path(task.input["weights"]))
    unlabelled = seen_part(task, "unlabelled")
    constants = unlabelled.constants
    head, ridge = student.taught(teacher, unlabelled.read(), constants.classes)
    save_model(Path(task.output["weights"]), (head,), task, unlabelled, {"ridge": ridge})
    tested = None  # a private test part would have to count twice
    if "test" in task.reads.places.features:
        names = class_names(task.reads.classes, constants)
        model = tables.MeasuredModel((head,), ClassScorer(), constants, names)
        tested = asdict(tables.exact(("accuracy",), model, seen_part(task, "test").read()))
    write_json(Path(task.output["metrics"]), tested)
    write_record(task, free="taught by a release on a source that the config declares public")
