"""What fine-tuning costs: a noised sum of clipped gradients at each step, of all trained weights in
one vector."""

from __future__ import annotations

import math

from dpladder.config.learner_sections import FineTune, StepSizeFreeTuning, Tuning
from dpladder.learn import guide, interface
from dpladder.learn.interface import Constants, Declaration, Hyper, Shape, head_shape

OWN = ("logits", "losses", "ready", "seen_by_head")
"""What train.py tells of weights that are no layers of a perceptron."""


def declare(
    learner: FineTune | StepSizeFreeTuning, hyper: Hyper, constants: Constants
) -> Declaration:
    return guide.beside_look(learner, hyper, constants, (size(learner, constants),))


def size(learner: Tuning, constants: Constants) -> int:
    """Of the vector of all trained weights."""
    return sum(math.prod(shape) for shape in shapes(learner, constants).values())


def shapes(learner: Tuning, constants: Constants) -> dict[str, Shape]:
    """The trained tensors by name, in the order in which they lie in the vector. The head's bias is
    a last column."""
    # the features are the network's last, and the head is all there is
    if constants.network is None:
        return {"head.weight": head_shape(learner, constants)}
    from dpladder.learn.dp_finetune.parts import tuned_of

    return {
        name: tuple(weight.shape) for name, weight in tuned_of(learner, constants).trained.items()
    }


def logit_noise(learner: FineTune, hyper: Hyper, constants: Constants) -> float:
    """As if the head were all: its inputs are about as long as pooled features."""
    # a step moves every weight by eta, whatever the noise is (learn/heads/cost.py)
    if learner.optimizer == "adam":
        return hyper.eta * interface.walked(learner, hyper.steps) * constants.length
    steps = guide.of_steps(learner, hyper)
    return interface.logit_noise(learner, steps, constants, learner.momentum)
