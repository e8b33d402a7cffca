"""The noised covariance of the training features: released once, used by every training of the
learners that ask for it."""

from __future__ import annotations

from pathlib import Path

from safetensors.numpy import save_file

from dpladder.jobs.features import constants_of, part_of, read, shared_inputs
from dpladder.jobs.release import Release, single
from dpladder.jobs.reservation import find_reservation
from dpladder.jobs.task import Task
from dpladder.learn.curator import Curator
from dpladder.learn.queries import declared
from dpladder.learn.second_order import covariance
from dpladder.plan.rule_params import EstimateCovariance
from dpladder.privacy.accounting import gdp
from dpladder.privacy.release.meter import Meter


def release_of(task: Task[EstimateCovariance]) -> Release:
    reservation, train = find_reservation(task), part_of(task, "train")
    constants, radius = constants_of(task, train), task.reads.radius
    query = covariance(gdp.sigma(reservation.mu("covariance"), 1), radius)
    costs = declared([query], constants)

    def produce(meter: Meter, folder: Path) -> None:
        total = Curator(read(task, train), constants, task.resources).ask(query.at(), meter)
        save_file({"covariance": total.cpu().numpy()}, folder / "covariance.safetensors")

    spends = reservation.actual_spends("covariance", costs.events)
    inputs = {"train": train.map_name, **shared_inputs(task)}
    return single(task, reservation, spends, costs.draws, inputs, ("covariance",), produce)
