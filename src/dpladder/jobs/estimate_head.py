"""The private head that trainings of the network start from. It is trained on what the public
network makes of records, and released once for all of them. With it what its public sample was
found to be worth, so that no training of the network has to ask that again. A network that cannot
be trained is refused before its head is paid for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from dpladder.jobs.release import Release, single
from dpladder.jobs.reservation import find_reservation
from dpladder.jobs.seen import seen_part
from dpladder.jobs.task import Task
from dpladder.learn.trainings import weights_of
from dpladder.plan.reads import EstimateHead
from dpladder.privacy.release.meter import Meter
from dpladder.search.first_head import head_of, training_of_head, worth_of


def release_of(task: Task[EstimateHead]) -> Release:
    """A head trained on what the public network makes of records.

    Guarantee: that of its training, mu-GDP for what was reserved, a look at its public head
    included.
    """
    reservation, train, reads = find_reservation(task), seen_part(task, "train"), task.reads
    learner = head_of(reads.bias, reads.link, reads.augment, reads.public, reads.look)
    constants = train.constants
    training = training_of_head(learner, reservation.entry("head"), constants)

    def produce(meter: Meter, folder: Path) -> None:
        # Private records are read here, after COMMIT, and nowhere before.
        data, more = train.read(), {}
        if learner.uses_public_gradient:
            worth = worth_of(training, data, meter, task.resources)
            data, more = replace(data, worth=worth), {"worth": np.array([worth])}
        (head,) = training.run(data, meter, task.resources)
        save_file({"head": head, **more}, folder / "head.safetensors")

    spends = reservation.actual_spends("head", training.declared.events)

    # Both are tried on made-up records, before COMMIT: a network that cannot be trained must cost
    # nothing.
    def ready() -> None:
        training.ready(task.resources)
        weights_of(reads.network).ready(reads.network, constants, task.resources)

    draws, inputs = training.declared.draws, train.inputs("train")
    return single(reservation, spends, draws, inputs, ("head",), produce, ready)
