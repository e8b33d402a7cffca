"""Private gradient descent, Algorithm 1 of Panda et al., on whatever sums clipped gradients.

All noise comes from the meters and is added to the sum, in float64. Everything after that (division
by a public size, weight decay, the update, averages, the free step) is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpladder.config.learner_sections import Descending, Descent, FineTune
from dpladder.errors import BadInput
from dpladder.learn import guide
from dpladder.learn.interface import Constants, Hyper, batch_size, noise_scale, paces
from dpladder.learn.records import Records, Rows
from dpladder.privacy.release.meter import Meter
from dpladder.progress import LONG, progress

EMA = 0.1  # weight of the newest iterate in the moving average

LARGEST = 1e30  # of a released weight: what diverges ends here, and still has finite logits

ClippedSum = Callable[[Tensor, float, list[Rows]], Tensor]
"""Sum of gradients, each clipped to a bound, over some rows, for each of several trials' weights.
"""

Bounded = Callable[[Tensor], Tensor]
"""What is summed up, of each record's losses under several weights: (weights, records) to (sums,
records)."""

SummedLosses = Callable[[Tensor, Bounded, list[Rows]], Tensor]


@dataclass(frozen=True, eq=False)
class Sums:
    """Records, and all that a descent asks of them. `unit`: how wrong about a record is who knows
    nothing, a public figure."""

    records: Records
    gradients: ClippedSum
    losses: SummedLosses
    unit: float


@dataclass(frozen=True, eq=False)
class Guide:
    """Public records whose gradients join each step's (guide.py). `batches`: their rows, which
    steps take in turn."""

    batches: Sequence[list[Rows]]
    gradients: ClippedSum
    directions: float
    units: int
    worth: Callable[[Sequence[Meter]], Sequence[float]]

    def weights(
        self, learner: Descending, hypers: Sequence[Hyper], constants: Constants, like: Tensor
    ) -> Tensor:
        """lambda of each trial, of one public unit."""
        one = [guide.weight(learner, hyper, constants, self.directions) for hyper in hypers]
        return per_trial(one, like)

    def mean(self, weights: Tensor, bound: float, step: int) -> Tensor:
        rows = self.batches[step % len(self.batches)]
        return self.gradients(weights, bound, rows) / (self.units / len(self.batches))


Update = Callable[[Tensor, Tensor], Tensor]
"""From the trials' noised mean gradients, and their weights, to what each subtracts at learning
rate 1. Trials stop at different times, and those still running are always the first ones."""

Begin = Callable[[Tensor, Tensor], Update]
"""From all trials' first weights, and the sd of the noise in each one's mean gradient, to an update
that remembers nothing yet."""


def momentum(learner: Descent | FineTune) -> Begin:
    """The heavy-ball buffer of Algorithm 1."""

    def begin(first: Tensor, _: Tensor) -> Update:
        velocity = torch.zeros_like(first)

        def update(gradient: Tensor, _: Tensor) -> Tensor:
            return velocity[: len(gradient)].mul_(learner.momentum).add_(gradient)

        return update

    return begin


def descend(
    clipped_sum: ClippedSum,
    first: Tensor,
    records: Records,
    hypers: Sequence[Hyper],
    learner: Descending,
    constants: Constants,
    meters: Sequence[Meter],
    begin: Begin,
    units: NDArray[np.uint8] | None = None,
    beside: Guide | None = None,
) -> NDArray[np.float32]:
    """Independent trials from the weights `first`, one meter each: released weights of shape
    (trials, *first)."""
    if learner.sampling_rate < 1.0 and len(hypers) > 1:
        # Each trial has samples of its own, so they share no pass.
        alone = [
            descend(
                clipped_sum,
                first,
                records,
                [hyper],
                learner,
                constants,
                [meter],
                begin,
                units,
                beside,
            )
            for hyper, meter in zip(hypers, meters, strict=True)
        ]
        return np.concatenate(alone)
    # Longest first, so that the trials still running are always the first ones.
    order = sorted(range(len(hypers)), key=lambda trial: -hypers[trial].steps)
    hypers, meters = [hypers[trial] for trial in order], [meters[trial] for trial in order]
    scales = [noise_scale(learner, hyper, constants) for hyper in hypers]
    size = batch_size(learner, constants)
    rates = learning_rates(learner, hypers, first)
    # A unit of `cap` records contributes `clip` at most when each of them contributes clip / cap.
    bound = learner.clip / constants.cap * (1.0 - records.slack)
    weights = first.double().expand(len(hypers), *first.shape).clone()
    direction, average = torch.zeros_like(weights), torch.zeros_like(weights)
    update = begin(weights, per_trial(scales, first) / size)
    if beside is not None:
        worth = per_trial(beside.worth(meters), first)
        weights *= worth > 0
        pull = worth * beside.weights(learner, hypers, constants, first)
        # where public records know more, less of the noise is worth its steps
        rates = [rate / (1.0 + pull).sqrt() for rate in rates]

    with progress("training", hypers[0].steps, "steps", after=LONG) as advance:
        for step in range(hypers[0].steps):
            on = slice(sum(hyper.steps > step for hyper in hypers))
            total = clipped_sum(
                weights[on], bound, sampled_rows(records, learner.sampling_rate, meters[0], units)
            )
            total = published(meters[on], "noise", total)
            gradient = total / size + learner.weight_decay * weights[on]
            if beside is not None:
                gradient += pull[on] * beside.mean(weights[on], bound, step)
            direction[on] = update(gradient, weights[on])
            weights[on] -= rates[step][on] * direction[on]
            average[on] = torch.lerp(average[on], weights[on], _newest(learner, step))
            advance(1)
    if learner.free_step:
        weights -= rates[-1] * direction
        for trial, hyper in enumerate(hypers):
            average[trial] = torch.lerp(
                average[trial], weights[trial], _newest(learner, hyper.steps)
            )
    return released(average[np.argsort(order)])


def learning_rates(learner: Descending, hypers: Sequence[Hyper], like: Tensor) -> Sequence[Tensor]:
    """Of all trials at each step, made before the first one; a trial that has stopped keeps its
    last."""
    longest = max(hyper.steps for hyper in hypers)
    each = [[hyper.eta * pace for pace in paces(learner, hyper.steps)] for hyper in hypers]
    whole = [own + own[-1:] * (longest - len(own)) for own in each]
    return [per_trial(rates, like) for rates in zip(*whole, strict=True)]


def released(weights: Tensor) -> NDArray[np.float32]:
    """Weights as they are published: finite, whatever became of the training."""
    return (
        weights.nan_to_num(0.0, LARGEST, -LARGEST).clamp_(-LARGEST, LARGEST).float().cpu().numpy()
    )


def per_trial(values: Sequence[float], like: Tensor) -> Tensor:
    """One number for each trial, shaped to meet each trial's weights, which are like `like`."""
    return torch.tensor(values, dtype=torch.float64, device=like.device).view(-1, *[1] * like.ndim)


def published(meters: Sequence[Meter], name: str, totals: Tensor) -> Tensor:
    """Each trial's sums with the noise that its meter declares, on the public grid."""
    noises = [meter.noise(name, tuple(totals.shape[1:])) for meter in meters]
    stacked = torch.from_numpy(np.stack([noise.values for noise in noises]))
    if totals.is_cuda:  # from pinned memory the copy runs beside the step's work
        stacked = stacked.pin_memory().to(totals.device, non_blocking=True)
    rows = zip(noises, totals, stacked, strict=True)
    return torch.stack([noise.onto(total, values) for noise, total, values in rows])


def sampled_rows(
    records: Records, rate: float, meter: Meter, units: NDArray[np.uint8] | None
) -> list[Rows]:
    """The rows of this step: all of them, or a Poisson sample of the units."""
    if rate == 1.0:
        return records.chunks()
    if units is None:
        raise BadInput(
            "learner.sampling_rate below 1 samples units by id, and these have none. Set it to 1."
        )
    return records.chosen(meter.mask("sample", units))


def _newest(learner: Descending, step: int) -> float:
    """Weight of this step's iterate in the average that is released. All iterates are as private as
    the last one."""
    return {"none": 1.0, "swa": 1.0 / (step + 1), "ema": max(EMA, 1.0 / (step + 1))}[
        learner.average
    ]
