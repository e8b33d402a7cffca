"""Private gradient descent, Algorithm 1 of Panda et al., on whatever sums clipped gradients.

All noise comes from the meters and is added to the sum, in float64. Everything after that (division by a public size,
momentum, weight decay, averages, the free step) is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpladder.config.learners import Descent
from dpladder.errors import BadInput
from dpladder.learn.interface import Constants, Hyper, batch_size, noise_scale
from dpladder.learn.records import Records, Rows
from dpladder.privacy.meter import Meter

EMA = 0.1  # weight of the newest iterate in the moving average

# Records are clipped this far inside the bound. That pays for float32: the rounding of a record's own contribution,
# and that of the other records' sum, which moves when a neighbour enters their chunk.
SLACK = 2.0**-10

ClippedSum = Callable[[Tensor, float, list[Rows]], Tensor]
"""Sum of gradients, each clipped to a bound, over some rows, for each of several trials' weights."""


def descend(
    clipped_sum: ClippedSum,
    first: Tensor,
    records: Records,
    hypers: Sequence[Hyper],
    learner: Descent,
    constants: Constants,
    meters: Sequence[Meter],
    units: NDArray[np.uint8] | None = None,
) -> NDArray[np.float32]:
    """Independent trials from the weights `first`, one meter each: released weights of shape (trials, *first)."""
    if learner.sampling_rate < 1.0 and len(hypers) > 1:
        # Each trial has samples of its own, so they share no pass.
        alone = [
            descend(clipped_sum, first, records, [hyper], learner, constants, [meter], units)
            for hyper, meter in zip(hypers, meters, strict=True)
        ]
        return np.concatenate(alone)
    # Longest first, so that the trials still running are always the first ones.
    order = sorted(range(len(hypers)), key=lambda trial: -hypers[trial].steps)
    hypers, meters = [hypers[trial] for trial in order], [meters[trial] for trial in order]
    scales = [noise_scale(learner, hyper, constants) for hyper in hypers]
    eta = torch.tensor([hyper.eta for hyper in hypers], dtype=torch.float64, device=first.device)
    eta = eta.view(-1, *[1] * first.ndim)
    # A unit of `cap` records contributes `clip` at most when each of them contributes clip / cap.
    bound = learner.clip / constants.cap * (1.0 - SLACK)
    weights = first.double().expand(len(hypers), *first.shape).clone()
    velocity, average = torch.zeros_like(weights), torch.zeros_like(weights)

    for step in range(hypers[0].steps):
        on = slice(sum(hyper.steps > step for hyper in hypers))
        total = clipped_sum(weights[on], bound, _rows(records, learner, meters[0], units))
        total += _noise(meters[on], scales[on], first)
        gradient = total / batch_size(learner, constants) + learner.weight_decay * weights[on]
        velocity[on] = learner.momentum * velocity[on] + gradient
        weights[on] -= eta[on] * velocity[on]
        average[on] = torch.lerp(average[on], weights[on], _newest(learner, step))
    if learner.free_step:
        weights -= eta * velocity
        for trial, hyper in enumerate(hypers):
            average[trial] = torch.lerp(average[trial], weights[trial], _newest(learner, hyper.steps))
    return average[np.argsort(order)].float().cpu().numpy()


def _noise(meters: Sequence[Meter], scales: Sequence[float], like: Tensor) -> Tensor:
    shape = tuple(like.shape)
    drawn = [meter.gaussian("noise", scale, shape) for meter, scale in zip(meters, scales, strict=True)]
    noise = torch.from_numpy(np.stack(drawn))
    # From pinned memory the copy runs beside the step's work.
    return noise.pin_memory().to(like.device, non_blocking=True) if like.is_cuda else noise


def _rows(records: Records, learner: Descent, meter: Meter, units: NDArray[np.uint8] | None) -> list[Rows]:
    """The rows of this step: all of them, or a Poisson sample of the units."""
    if learner.sampling_rate == 1.0:
        return records.chunks()
    if units is None:
        raise BadInput("learner.sampling_rate below 1 samples units by id, and these have none. Set it to 1.")
    return records.chosen(meter.mask("sample", learner.sampling_rate, units))


def _newest(learner: Descent, step: int) -> float:
    """Weight of this step's iterate in the average that is released. All iterates are as private as the last one."""
    return {"none": 1.0, "swa": 1.0 / (step + 1), "ema": max(EMA, 1.0 / (step + 1))}[learner.average]
