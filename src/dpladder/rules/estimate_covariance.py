"""The noised covariance of the training features: released once, used by every training of the learners that ask for it."""

from __future__ import annotations

from pathlib import Path

from safetensors.numpy import save_file

from dpladder.job import Task
from dpladder.learn.interface import releasing
from dpladder.learn.moments import noised_covariance
from dpladder.learn.second_order import declare_covariance
from dpladder.privacy.meter import Meter
from dpladder.rules.private import constants_of, part_of, read, release_once, reserved, shared


def estimate_covariance(task: Task) -> None:
    held, train = reserved(task), part_of(task, "train")
    constants, radius = constants_of(task, train), task.cfg["learner.radius"]
    declared = declare_covariance(held.mu("covariance"), radius, constants)

    def produce(meter: Meter, folder: Path) -> None:
        release = releasing(meter, declared.draws)
        found = noised_covariance(read(task, train), radius, constants, release, task.resources)
        save_file({"covariance": found}, folder / "covariance.safetensors")

    spends = held.concrete("covariance", declared.events)
    inputs = {"train": train.seal, **shared(task)}
    release_once(task, held, spends, declared.draws, inputs, ("covariance",), produce)
