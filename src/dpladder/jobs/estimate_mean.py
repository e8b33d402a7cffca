"""The noised mean of the training features: released once, subtracted from train and test alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from dpladder.config.curves import curves_of
from dpladder.data import centre
from dpladder.data.centre import Map, Mapped
from dpladder.data.depths import depths_taken
from dpladder.jobs.features import part_of, read_raw, stored_constants
from dpladder.jobs.release import Release, single
from dpladder.jobs.reservation import find_reservation
from dpladder.jobs.task import Task
from dpladder.learn import counts
from dpladder.learn.data import unaugmented
from dpladder.learn.queries import UnitMean, declared
from dpladder.plan.reads import EstimateMean
from dpladder.privacy.accounting import gdp
from dpladder.privacy.release.meter import Meter


def release_of(task: Task[EstimateMean]) -> Release:
    """The noised sum of units' mean features, over the public size.

    Sensitivity: the public radius, twice that where a unit is replaced (`queries.UnitMean`).

    Guarantee: mu-GDP for what was reserved as `mean`. The mean is float64, of the width of the
    depths that trainings see. Beside it stands the sd of its noise in each coordinate.
    """
    reservation, train = find_reservation(task), part_of(task, "train")
    constants = stored_constants(task, train)
    assert task.reads.mean is not None, "a rule of configs that buy a mean"
    radius, exact = centre.ball(task.reads.mean.radius, task.reads.length)
    depths = depths_taken(task.reads, train.depths, {})
    curves = curves_of(task.reads.columns, task.reads.curves, task.reads.crosses)
    seen = Map(depths=depths, curves=curves)
    sigma = gdp.sigma(reservation.mu("mean"), 1)
    width = seen.width(train.dimension)
    mean = UnitMean(name="mean", multiplier=sigma, radius=radius, width=width, exact=exact)
    costs = declared([mean], constants)

    def produce(meter: Meter, folder: Path) -> None:
        data = read_raw(train)
        data = replace(data, features=Mapped(unaugmented(data.features), seen))
        total = counts.ask(mean.at(), data, constants, meter)
        arrays = {
            # Sums are divided by the declared size, never by the number of records (contract:
            # public-sizes).
            "mean": total / constants.n0,
            "noise": np.array([mean.scale(constants) / constants.n0]),
        }
        save_file(arrays, folder / "mean.safetensors")

    spends = reservation.actual_spends("mean", costs.events)
    inputs = {"train": train.map_name}
    return single(reservation, spends, costs.draws, inputs, ("mean",), produce)
