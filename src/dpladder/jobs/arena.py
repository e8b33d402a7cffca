"""Public data for a comparison. Every job of research asks here for its data first, and is refused
where the data is not declared public."""

from __future__ import annotations

from typing import Any

from dpladder.errors import Refused
from dpladder.jobs.evaluate import groups_of
from dpladder.jobs.seen import seen_part
from dpladder.jobs.task import Task
from dpladder.plan.reads import SeenReads, TrainOpen
from dpladder.privacy.ledger.state import Terms
from dpladder.research.arena import Arena


def arena_of(task: Task[Any]) -> Arena:
    """Training and test part of data declared public, as the first experiment sees them.

    Raises:
        Refused: the run is not `mode: research`, or its records have several classes, which only a
            training without noise takes.

    Args:
        task: a job of research. Its `train` and `test` parts must be among the features that it
            reads.

    Returns:
        The training part, and the test part with records of other groups than the trained ones
        counting as nothing.
    """
    reads: SeenReads = task.reads
    if reads.mode != "research":
        raise Refused(
            f"{task.rule} trains and tests as often as it likes, which only data declared public "
            "allows. Compare on such data with mode: research; on private data, give each way an "
            "experiment and its own budget."
        )
    if reads.labels != 1 and not isinstance(reads, TrainOpen):
        raise Refused(
            f"{task.rule} sets learners beside each other that take one class for each record, and "
            f"dataset.labels is {reads.labels}. Run the experiment itself instead."
        )
    terms = Terms(
        reads.lineage,
        reads.relation,
        reads.unit.by,
        reads.unit.cap,
        reads.delta,
        reads.split.rule,
        mode=reads.mode,
    )
    train, test = seen_part(task, "train"), seen_part(task, "test")
    return Arena(
        train.read(),
        groups_of(reads.group, ("accuracy",)).restrict(test.read()),
        train.constants,
        terms,
        task.resources,
        reads.research.seed,
    )
