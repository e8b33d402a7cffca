"""DP-LS's noised sums: released once, solved by every trial, and made more exact by the final
training."""

from __future__ import annotations

from pathlib import Path

from dpladder.jobs.features import constants_of, part_of, read, shared_inputs
from dpladder.jobs.release import Release, single
from dpladder.jobs.reservation import find_reservation
from dpladder.jobs.task import Task
from dpladder.learn.curator import Curator
from dpladder.learn.queries import declared
from dpladder.methods.dp_ls.queries import sums
from dpladder.methods.dp_ls.statistics import create
from dpladder.methods.dp_ls.train import release_sums
from dpladder.plan.rule_params import EstimateStatistics
from dpladder.privacy.release.meter import Meter


def release_of(task: Task[EstimateStatistics]) -> Release:
    reservation, train = find_reservation(task), part_of(task, "train")
    constants, radius = constants_of(task, train), task.reads.radius
    mu = reservation.mu("statistics")
    queries = sums(mu, radius, constants)
    costs = declared(queries, constants)

    def produce(meter: Meter, folder: Path) -> None:
        curator = Curator(read(task, train), constants, task.resources)
        with create(folder / "statistics.h5", mu, constants) as keep:
            curator.run(
                lambda inputs, asks: release_sums(inputs, asks, constants, keep), [queries], [meter]
            )

    spends = reservation.actual_spends("statistics", costs.events)
    inputs = {"train": train.map_name, **shared_inputs(task)}
    return single(task, reservation, spends, costs.draws, inputs, ("statistics",), produce)
