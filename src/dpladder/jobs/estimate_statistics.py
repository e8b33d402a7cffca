"""DP-LS's noised sums: released once, solved by every trial, and made more exact by the final
training."""

from __future__ import annotations

from functools import partial
from pathlib import Path

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
from dpladder.learn.dp_ls.cost import declare_sums
from dpladder.learn.dp_ls.statistics import create
from dpladder.learn.dp_ls.train import release_sums
from dpladder.learn.interface import publish
from dpladder.plan.reads import EstimateStatistics
from dpladder.privacy.release.meter import Meter


def estimate_statistics(task: Task[EstimateStatistics]) -> None:
    release_once(release_of(task))


def release_of(task: Task[EstimateStatistics]) -> Release:
    held, train = reserved(task), part_of(task, "train")
    constants, radius = constants_of(task, train), task.reads.radius
    mu = held.mu("statistics")
    declared = declare_sums(mu, radius, constants)

    def produce(meter: Meter, folder: Path) -> None:
        release = partial(publish, meter)
        with create(folder / "statistics.h5", mu, constants) as keep:
            release_sums(read(task, train), radius, constants, release, keep, task.resources)

    spends = held.concrete("statistics", declared.events, train)
    inputs = {"train": train.known_as, **shared(task)}
    return single(task, held, spends, declared.draws, inputs, ("statistics",), produce)
