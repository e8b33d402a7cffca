"""The mean that centres features for nothing, of a sample declared public or the network's own.
Beside it stand the depths of the network that a sample's labels choose.

Both are free because no private record is read. What a sample gives is kept in home as it was found
first, for trainings' questions name it by its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from dpladder.config.depths import alternatives
from dpladder.config.features_sections import Features
from dpladder.data import centre
from dpladder.data.centre import Map, Mapped, plain_mean
from dpladder.data.depths import LAYERS, Depths, depths_by_name, depths_taken
from dpladder.jobs.features import Part, part_of, read_raw, save_found
from dpladder.jobs.record import write_record
from dpladder.jobs.seen import SAMPLE
from dpladder.jobs.task import Task
from dpladder.learn.data import Data, unaugmented
from dpladder.learn.public_head import cross_validated
from dpladder.plan.reads import FindMean
from dpladder.privacy.arrays import Floats

STANDARD_ERRORS_AHEAD = 1.0  # standard errors by which another choice must beat the default


def find_mean(task: Task[FindMean]) -> None:
    """Find the mean that features lose, from public records or a public network. No private record
    is read, so it costs nothing."""
    if task.reads.centre == "public":
        save_found(task, "mean", _mean_of_sample(task, part_of(task, SAMPLE)))
        free = "the mean of a source that the config declares public"
    else:
        network = task.reads.features.model_copy(update={"layers": task.reads.layers})
        save_file({"mean": centre.network_mean(network)}, task.output["mean"])
        free = "computed from a public network alone"
    write_record(task, free=free)


def _mean_of_sample(task: Task[FindMean], sample: Part) -> dict[str, NDArray[Any]]:
    """Its mean. Where the config leaves depths open and the sample is labelled, also those that it
    chose, by their places among those that were kept."""
    data, reads = read_raw(sample), task.reads
    depths = depths_taken(reads, sample.depths, {})
    length = None if isinstance(reads.length, str) else reads.length
    choices: dict[str, NDArray[Any]] = {}
    if depths is not None and reads.layers == "auto" and reads.labels == 1:
        names = [name for name, _ in sample.depths]
        among = alternatives(names, reads.features.takes, reads.model)
        candidates = [depths_by_name(one, sample.depths, depths.length) for one in among]
        depths = best_depths(data, candidates, length, sample.classes)
        choices[LAYERS] = np.array([names.index(name) for name in depths.names])
    mean = centred_sample(data, depths, length).map.mean
    assert mean is not None
    return {"mean": mean, **choices}


def centred_sample(data: Data, depths: Depths | None, length: float | None) -> Mapped:
    """A sample's features at these depths, less their mean.

    Args:
        data: public records.
        depths: that are kept of each row; None keeps the whole row.
        length: that features are scaled to; None leaves them as they are.
    """
    features = unaugmented(data.features)
    mean = plain_mean(Mapped(features, Map(depths=depths)))
    return Mapped(features, Map(mean, None, length, Features().constant, depths=depths))


def best_depths(
    sample: Data, candidates: Sequence[Depths], length: float | None, classes: int
) -> Depths:
    """The candidate whose public heads lose least on records that they were not fitted to. The
    default stays unless one beats it by more than chance.

    Args:
        sample: public records, with labels.
        candidates: depths; the first are the default.
        length: that features are scaled to; None as they are.
        classes: of labels.

    "More than chance" is STANDARD_ERRORS_AHEAD standard errors of the mean difference in loss,
    record by record.

    Returns:
        One of the candidates; the first where the sample cannot be cross-validated at all.
    """
    losses: list[Floats] = []
    for depths in candidates:
        # One loss for each record, or None where there are too few of a class.
        accuracy = cross_validated(
            replace(sample, features=centred_sample(sample, depths, length)), classes
        )
        if accuracy is None:
            return candidates[0]
        losses.append(accuracy)
    best = int(np.argmin([loss.sum() for loss in losses]))
    gains = losses[0] - losses[best]
    error = float(gains.std(ddof=1)) / len(gains) ** 0.5
    return candidates[best if gains.mean() > STANDARD_ERRORS_AHEAD * error else 0]
