"""Private gradient descent, Algorithm 1 of Panda et al. 2024, on any model whose clipped gradients
are summed.

All after a noised sum is post-processing: division by a public size, weight decay, the update,
averages, the free step. So nothing here has to be proved private, and nothing here sees a record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpladder.config.learner_sections import Descending
from dpladder.learn import guide, public_head
from dpladder.learn.curator import PublicInputs, Training
from dpladder.learn.descent_noise import batch_size, head_of, relative_rates
from dpladder.learn.interface import Constants, Hyper, Shape, Weights, public_random
from dpladder.learn.queries import GradientSum, Query
from dpladder.learn.scorers import ClassScorer

EMA = 0.1  # weight of the newest iterate in the moving average

LARGEST = 1e30  # of a released weight: what diverges ends here, and still has finite logits

Update = Callable[[Tensor, Tensor], Tensor]
"""From a noised mean gradient, and the weights, to what is subtracted at learning rate 1."""

UpdateFactory = Callable[[Tensor, float], Update]
"""From the first weights, and the sd of the noise in a mean gradient, to an update that remembers
nothing yet."""


def momentum(decay: float) -> UpdateFactory:
    """Heavy-ball steps along released gradients (Panda et al. 2024, Algorithm 1): v = decay v + g.
    A step of momentum counts 1 / (1 - decay) times in the end, which kappa takes into account
    (descent_noise.py)."""

    def begin(first: Tensor, _: float) -> Update:
        velocity = torch.zeros_like(first)

        def update(gradient: Tensor, _: Tensor) -> Tensor:
            return velocity.mul_(decay).add_(gradient)

        return update

    return begin


def adam(betas: tuple[float, float], stability: float) -> UpdateFactory:
    """Kingma & Ba 2015, Algorithm 1, on the noised mean gradient. The noise is divided by the size
    like the gradient: Mehta et al. do so in Eq. 3, and forget it in their Algorithm 1.

    Args:
        betas: decay of the mean gradient and of the mean square, a step.
        stability: added to the root of the mean square.
    """
    decay, decay_of_squares = betas

    def begin(first: Tensor, _: float) -> Update:
        mean, square = torch.zeros_like(first), torch.zeros_like(first)
        step = 0

        def update(gradient: Tensor, _: Tensor) -> Tensor:
            nonlocal step
            step += 1
            mean.lerp_(gradient, 1.0 - decay)
            square.lerp_(gradient.square(), 1.0 - decay_of_squares)
            root = (square / (1.0 - decay_of_squares**step)).sqrt_()
            return mean / (1.0 - decay**step) / root.add_(stability)

        return update

    return begin


def descend(
    gradients: GradientSum,
    first: Tensor,
    hyper: Hyper,
    learner: Descending,
    constants: Constants,
    begin: UpdateFactory,
    public_weight: float | None = None,
) -> Training[NDArray[np.float32]]:
    """Noisy descent: steps along released sums of clipped gradients.

    Guarantee: that of the gradients' releases. All else is post-processing, averages and free steps
    included (Abadi et al. 2016, Algorithm 1; Panda et al. 2024, Algorithm 1).

    Args:
        gradients: the query that is asked at each step.
        first: the weights to start from, of any shape.
        hyper: eta, the number of steps, and mu.
        learner: schedule, weight decay, average and free step.
        constants: public sizes; a sum is divided by the declared one, never by the data's own.
        begin: makes the update, such as `momentum`.
        public_weight: of the public sample's mean gradient in each step; None: no guide.

    Returns:
        Released weights, in the shape of `first`.
    """
    size = batch_size(learner, constants)
    rates = [hyper.eta * factor for factor in relative_rates(learner, hyper.steps)]
    weights = first.double().clone()
    update = begin(weights, gradients.scale(constants) / size)
    if public_weight is not None:
        # where public records know more, less of the noise is worth its steps
        rates = [rate / (1.0 + public_weight) ** 0.5 for rate in rates]
    direction, average = torch.zeros_like(weights), torch.zeros_like(weights)
    for step, rate in enumerate(rates):
        if public_weight is None:
            total = yield gradients.at(weights)
        else:
            total, public = yield [gradients.at(weights), gradients.public(weights, step)]
        gradient = total / size + learner.weight_decay * weights
        if public_weight is not None:
            gradient += public_weight * public
        direction = update(gradient, weights)
        weights = weights - rate * direction
        average = average.lerp(weights, _averaging_weight(learner, step))
    if learner.free_step:
        weights = weights - rates[-1] * direction
        average = average.lerp(weights, _averaging_weight(learner, hyper.steps))
    return released(average)


def descend_head(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: Descending,
    hyper: Hyper,
    constants: Constants,
    begin: UpdateFactory,
) -> Training[Weights]:
    """A linear head's descent by any update.

    Guarantee: that of its gradients' releases and, where public records guide it, of one noised
    count (`learner.look`). The public gradient costs nothing.

    Args:
        inputs: public inputs, the public head among them.
        queries: the gradients' and, where there is one, the look's.
        learner: its section in the config.
        hyper: eta, steps and mu.
        constants: public sizes.
        begin: makes the update, such as `momentum`.

    Returns:
        One layer of weights, (classes, width).
    """
    gradients, first = queries[0], initial_head(learner, constants, inputs)
    assert isinstance(gradients, GradientSum)
    if inputs.units is None or inputs.directions is None:
        return ((yield from descend(gradients, first, hyper, learner, constants, begin)),)
    worth = float(inputs.units)
    if guide.asks_for_look(learner):
        assert inputs.claim is not None, "the head comes with what it claims (jobs/find_start.py)"
        look = queries[1]
        right = float((yield look.at((inputs.start,), ClassScorer())))
        worth = guide.effective_sample_size(
            inputs.units, right, inputs.claim, look.scale(constants), constants
        )
    public_weight = worth * guide.weight(learner, gradients, constants, inputs.directions)
    first = first * (worth > 0)
    return (
        (yield from descend(gradients, first, hyper, learner, constants, begin, public_weight)),
    )


def initial_head(learner: Descending, constants: Constants, inputs: PublicInputs) -> Tensor:
    """Zeros, the public head, or what a linear layer starts from by custom, drawn from the public
    seed."""
    shape = head_of(learner).shape(constants)
    if learner.starts_from_public_head:
        return torch.from_numpy(public_head.initial_head_of_shape(inputs.start, shape)).to(
            inputs.device
        )
    if learner.init == "zero":
        return inputs.zeros(*shape)
    radius = constants.dimension**-0.5
    drawn = public_random(constants).uniform(-radius, radius, shape)
    return torch.from_numpy(drawn).to(inputs.device)


def released(weights: Tensor) -> NDArray[np.float32]:
    """Weights as they are published: finite, whatever became of the training."""
    return (
        weights.nan_to_num(0.0, LARGEST, -LARGEST).clamp_(-LARGEST, LARGEST).float().cpu().numpy()
    )


def split_into_shapes(flat: NDArray[np.float32], shapes: Iterable[Shape]) -> Weights:
    """One vector of weights as the tensors that it is made of.

    Args:
        flat: (numbers,).
        shapes: of the tensors, in the vector's order.
    """
    each = [*shapes]
    ends = np.cumsum([math.prod(shape) for shape in each])
    parts = zip(np.split(flat, ends[:-1]), each, strict=True)
    return tuple(part.reshape(shape) for part, shape in parts)


def _averaging_weight(learner: Descending, step: int) -> float:
    """Weight of this step's iterate in the average that is released. All iterates are as private as
    the last one."""
    return {"none": 1.0, "swa": 1.0 / (step + 1), "ema": max(EMA, 1.0 / (step + 1))}[
        learner.average
    ]
