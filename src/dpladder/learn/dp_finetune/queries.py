"""What fine-tuning asks: a noised sum of clipped gradients at each step, of all trained weights in
one vector."""

from __future__ import annotations

import math

from dpladder.config.learner_sections import FineTune, StepSizeFreeTuning, Tuning
from dpladder.learn import descent_noise, guide
from dpladder.learn.interface import Constants, Hyper, Shape
from dpladder.learn.queries import Flat, LinearHead, Query

OWN = ("logits", "scorer", "ready", "seen_by_head")
"""What train.py tells of weights that are no layers of a perceptron."""


def queries(
    learner: FineTune | StepSizeFreeTuning, hyper: Hyper, constants: Constants
) -> tuple[Query, ...]:
    return guide.queries(learner, hyper, constants, model_of(learner, constants))


def model_of(learner: Tuning, constants: Constants) -> Flat:
    """A vector of all trained weights."""
    size = sum(math.prod(shape) for shape in shapes(learner, constants).values())
    return Flat("dpladder.learn.dp_finetune.sums", learner, size, learner.augment)


def shapes(learner: Tuning, constants: Constants) -> dict[str, Shape]:
    """The trained tensors by name, in the order in which they lie in the vector. The head's bias is
    a last column."""
    # the features are the network's last, and the head is all there is
    if constants.network is None:
        return {"head.weight": LinearHead(learner.bias).shape(constants)}
    from dpladder.learn.dp_finetune.parts import tuned_of

    return {
        name: tuple(weight.shape) for name, weight in tuned_of(learner, constants).trained.items()
    }


def logit_noise(learner: FineTune, hyper: Hyper, constants: Constants) -> float:
    """As if the head were all: its inputs are about as long as pooled features."""
    # a step moves every weight by eta, whatever the noise is (learn/heads/queries.py)
    if learner.optimizer == "adam":
        return hyper.eta * descent_noise.walked(learner, hyper.steps) * constants.length
    steps = guide.of_steps(learner, hyper)
    return descent_noise.logit_noise(learner, steps, constants, learner.momentum)
