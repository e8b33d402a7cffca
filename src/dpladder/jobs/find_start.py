"""The head that a descent starts from, for nothing: trained without noise on a sample declared
public."""

from __future__ import annotations

import numpy as np

from dpladder.jobs.features import save_found
from dpladder.jobs.record import write_record
from dpladder.jobs.seen import SAMPLE, seen_part
from dpladder.jobs.task import Task
from dpladder.learn import public_head
from dpladder.learn.trainings import weights_of
from dpladder.plan.reads import FindStart


def find_start(task: Task[FindStart]) -> None:
    """Fit a head to public records, for private descents to start from, with what a look may hold
    it to. No private record is read, so it costs nothing.

    The claim, where there is one, is what the head gets right of the sample beside what luck would.
    Private trainings check it by a noised look before they rely on it (learn/guide.py).
    """
    sample = seen_part(task, SAMPLE)
    constants = sample.constants
    seen = weights_of(task.reads.learner).seen_by_head(task.reads.learner, constants)
    data, classes = sample.read(), constants.classes
    head, claim = public_head.fit_public_head(data, classes, seen)
    arrays = {"head": head}
    if task.reads.learner.uses_public_gradient:
        arrays["claim"] = np.array([claim.right, claim.baseline])
    save_found(task, "head", arrays)
    write_record(task, free="trained on a source that the config declares public")
