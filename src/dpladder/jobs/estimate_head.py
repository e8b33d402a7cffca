"""The private head that trainings of the network start from: trained on what the public network
makes of records, and released once for all of them."""

from __future__ import annotations

from pathlib import Path

from safetensors.numpy import save_file

from dpladder.jobs.private import (
    Release,
    constants_of,
    part_of,
    read,
    release_once,
    reserved,
    shared,
    single,
)
from dpladder.jobs.task import Task
from dpladder.plan.reads import EstimateHead
from dpladder.privacy.release.meter import Meter
from dpladder.search.first_head import head_of, training_of_head


def estimate_head(task: Task[EstimateHead]) -> None:
    release_once(release_of(task))


def release_of(task: Task[EstimateHead]) -> Release:
    held, train, reads = reserved(task), part_of(task, "train"), task.reads
    learner = head_of(reads.bias, reads.link, reads.augment)
    found = training_of_head(learner, held.entry("head"), constants_of(task, train))

    def produce(meter: Meter, folder: Path) -> None:
        (head,) = found.run(read(task, train), meter, task.resources)
        save_file({"head": head}, folder / "head.safetensors")

    spends = held.concrete("head", found.declared.events, train)
    inputs = {"train": train.known_as, **shared(task)}
    return single(task, held, spends, found.declared.draws, inputs, ("head",), produce)
