"""The weights that fine-tuning trains, as a plan knows them: without torch, where there is no
network."""

from __future__ import annotations

import math

from dpladder.config.learner_sections import Tuning
from dpladder.learn.interface import Constants, Shape
from dpladder.learn.queries import Flat, LinearHead


def model_of(learner: Tuning, constants: Constants) -> Flat:
    """A vector of all trained weights, as queries name it."""
    size = sum(math.prod(shape) for shape in shapes(learner, constants).values())
    return Flat("dpladder.learn.finetune.sums", learner, size, learner.augment)


def shapes(learner: Tuning, constants: Constants) -> dict[str, Shape]:
    """The trained tensors by name, in the order in which they lie in the vector. The head's bias is
    a last column."""
    # the features are the network's last, and the head is all there is
    if constants.network is None:
        return {"head.weight": LinearHead(learner.bias).shape(constants)}
    from dpladder.learn.finetune.parts import tuned_model

    return {
        name: tuple(weight.shape)
        for name, weight in tuned_model(learner, constants).trained.items()
    }
