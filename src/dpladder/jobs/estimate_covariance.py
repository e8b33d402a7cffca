"""The noised covariance of the training features: released once, used by every training of the
learners that ask for it."""

from __future__ import annotations

from functools import partial
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
from dpladder.learn.interface import publish
from dpladder.learn.moments import noised_covariance
from dpladder.learn.second_order import declare_covariance
from dpladder.plan.reads import EstimateCovariance
from dpladder.privacy.release.meter import Meter


def estimate_covariance(task: Task[EstimateCovariance]) -> None:
    release_once(release_of(task))


def release_of(task: Task[EstimateCovariance]) -> Release:
    held, train = reserved(task), part_of(task, "train")
    constants, radius = constants_of(task, train), task.reads.radius
    declared = declare_covariance(held.mu("covariance"), radius, constants)

    def produce(meter: Meter, folder: Path) -> None:
        release = partial(publish, meter)
        found = noised_covariance(read(task, train), radius, constants, release, task.resources)
        save_file({"covariance": found}, folder / "covariance.safetensors")

    spends = held.concrete("covariance", declared.events, train)
    inputs = {"train": train.known_as, **shared(task)}
    return single(task, held, spends, declared.draws, inputs, ("covariance",), produce)
