"""The noised mean of the training features: released once, subtracted from train and test alike."""

from __future__ import annotations

from pathlib import Path

from safetensors.numpy import save_file

from dpladder.data import mean
from dpladder.job import Task
from dpladder.privacy import gdp
from dpladder.privacy.meter import Draw, Meter
from dpladder.privacy.spend import Counted, Gaussian
from dpladder.rules.private import constants_of, part_of, read_raw, release_once, reserved


def estimate_mean(task: Task) -> None:
    held, train = reserved(task), part_of(task, "train")
    constants = constants_of(task, train)
    radius, sigma = task.cfg["features.mean"]["radius"], gdp.sigma(held.mu("mean"), 1)
    sd = sigma * radius * constants.cap * constants.doubling

    def produce(meter: Meter, folder: Path) -> None:
        data = read_raw(train)
        found = mean.noised_mean(data.features, data.labels, radius, constants.n0, meter, sd)
        save_file({"mean": found}, folder / "mean.safetensors")

    draws = [Draw("mean", "gaussian", sd, (train.dimension,))]
    spends = held.concrete("mean", [Counted(Gaussian(sigma))])
    release_once(task, held, spends, draws, {"train": train.seal}, ("mean",), produce)
