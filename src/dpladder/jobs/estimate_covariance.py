"""The noised covariance of the training features: released once, used by every training of the
learners that ask for it."""

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
from dpladder.learn.curator import Curator
from dpladder.learn.queries import declared
from dpladder.learn.second_order import covariance
from dpladder.plan.reads import EstimateCovariance
from dpladder.privacy.accounting import gdp
from dpladder.privacy.release.meter import Meter


def estimate_covariance(task: Task[EstimateCovariance]) -> None:
    release_once(release_of(task))


def release_of(task: Task[EstimateCovariance]) -> Release:
    held, train = reserved(task), part_of(task, "train")
    constants, radius = constants_of(task, train), task.reads.radius
    query = covariance(gdp.sigma(held.mu("covariance"), 1), radius)
    costs = declared([query], constants)

    def produce(meter: Meter, folder: Path) -> None:
        found = Curator(read(task, train), constants, task.resources).ask(query.at(), meter)
        save_file({"covariance": found.cpu().numpy()}, folder / "covariance.safetensors")

    spends = held.concrete("covariance", costs.events)
    inputs = {"train": train.map_name, **shared(task)}
    return single(task, held, spends, costs.draws, inputs, ("covariance",), produce)
