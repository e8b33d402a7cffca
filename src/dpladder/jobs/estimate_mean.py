"""The noised mean of the training features: released once, subtracted from train and test alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from dpladder.data import centre
from dpladder.data.centre import Map, Mapped
from dpladder.jobs.private import (
    Release,
    depths_of,
    part_of,
    read_raw,
    release_once,
    reserved,
    single,
    stored_constants,
)
from dpladder.jobs.task import Task
from dpladder.learn.interface import plain
from dpladder.plan.reads import EstimateMean
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import gaussian
from dpladder.privacy.accounting.events import Counted, Gaussian
from dpladder.privacy.release.meter import Meter


def estimate_mean(task: Task[EstimateMean]) -> None:
    release_once(release_of(task))


def release_of(task: Task[EstimateMean]) -> Release:
    held, train = reserved(task), part_of(task, "train")
    # a unit's records are one record's worth of the mean together
    constants = replace(stored_constants(task, train), cap=1)
    assert task.reads.mean is not None, "a rule of configs that buy a mean"
    radius, exact = centre.ball(task.reads.mean.radius, task.reads.length)
    sigma = gdp.sigma(held.mu("mean"), 1)
    moved = constants.moves(radius)
    seen = Map(depths=depths_of(task, train))

    several = task.reads.unit.cap > 1

    def produce(meter: Meter, folder: Path) -> None:
        data = read_raw(train)
        found = centre.noised_mean(
            Mapped(plain(data.features), seen),
            data.labels,
            radius,
            constants.n0,
            meter,
            exact,
            data.units if several else None,
        )
        told = {"mean": found, "noise": np.array([sigma * moved / constants.n0])}
        save_file(told, folder / "mean.safetensors")

    draws = [gaussian("mean", sigma, moved, (seen.width(train.dimension),))]
    spends = held.concrete("mean", [Counted(Gaussian(sigma))], train)
    return single(task, held, spends, draws, {"train": train.known_as}, ("mean",), produce)
