"""Descent by differences of the loss along public random directions; no gradient is ever taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpladder.config.learner_sections import ZerothOrder
from dpladder.config.model import Resources
from dpladder.learn.bounds import SLACK
from dpladder.learn.descent import published, released
from dpladder.learn.interface import Constants, Data, Hyper, alone, public_random
from dpladder.learn.linear import resident, summed_losses
from dpladder.learn.links import link_of
from dpladder.privacy.release.meter import Meter

DIRECTIONS = 0x5A4F  # keeps the directions' public stream apart from that of a random start


@torch.inference_mode()
def train_many(
    data: Data,
    hypers: Sequence[Hyper],
    learner: ZerothOrder,
    constants: Constants,
    meters: Sequence[Meter],
    resources: Resources,
) -> NDArray[np.float32]:
    """Independent trials, one meter and public directions of its own each: weights of shape
    (trials, classes, width). Trials stop at different times."""
    records, threads = resident(data, constants, resources, bias=learner.bias)
    shape = (constants.classes, constants.dimension + learner.bias)
    public = [directions(constants, trial, learner.bias) for trial in range(len(hypers))]
    order = sorted(range(len(hypers)), key=lambda trial: -hypers[trial].steps)
    weights = torch.zeros(len(hypers), *shape, dtype=torch.float64, device=records.device)
    bound, link = learner.clip / constants.cap * (1.0 - SLACK), link_of(learner, constants)
    rates = torch.tensor(
        [hyper.eta / (2 * learner.smoothing * constants.n0) for hyper in hypers]
    ).to(weights)

    def differences(losses: Tensor) -> Tensor:
        ahead, behind = losses.chunk(2)
        # Where both overflow there is no difference: a rule that looks at this record alone.
        return (ahead - behind).clamp_(-bound, bound).nan_to_num_(nan=0.0)

    for step in range(hypers[order[0]].steps):
        on = [trial for trial in order if hypers[trial].steps > step]
        along = torch.from_numpy(np.stack([next(public[trial]) for trial in on])).to(weights)
        heads = torch.cat(
            [weights[on] + learner.smoothing * along, weights[on] - learner.smoothing * along]
        )
        sums = summed_losses(records, heads, differences, records.chunks(), threads, link)
        sums = published([meters[trial] for trial in on], "noise", sums)
        weights[on] -= (rates[on] * sums)[:, None, None] * along
    return released(weights)


train = alone(train_many)


def directions(
    constants: Constants, trial: int, bias: bool = False
) -> Iterator[NDArray[np.float64]]:
    """A trial's public directions, uniform on the unit sphere."""
    random = public_random(constants, DIRECTIONS, trial)
    while True:
        drawn = random.normal(size=(constants.classes, constants.dimension + bias))
        yield drawn / np.linalg.norm(drawn)
