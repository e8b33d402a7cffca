"""DP-LS's noised sums: released once, solved by every trial, and made more exact by the final training."""

from __future__ import annotations

from pathlib import Path

from dpladder.job import Task
from dpladder.learn.dp_ls import declare_sums
from dpladder.learn.interface import releasing
from dpladder.learn.least_squares import release_sums
from dpladder.learn.statistics import create
from dpladder.privacy.meter import Meter
from dpladder.rules.private import constants_of, part_of, read, release_once, reserved, shared


def estimate_statistics(task: Task) -> None:
    held, train = reserved(task), part_of(task, "train")
    constants, radius = constants_of(task, train), task.cfg["learner.radius"]
    mu = held.mu("statistics")
    declared = declare_sums(mu, radius, constants)

    def produce(meter: Meter, folder: Path) -> None:
        release = releasing(meter, declared.draws)
        with create(folder / "statistics.h5", mu, constants) as keep:
            release_sums(read(task, train), radius, constants, release, keep, task.resources)

    spends = held.concrete("statistics", declared.events)
    inputs = {"train": train.seal, **shared(task)}
    release_once(task, held, spends, declared.draws, inputs, ("statistics",), produce)
