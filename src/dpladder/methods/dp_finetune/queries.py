"""What fine-tuning asks: a noised sum of clipped gradients at each step, of all trained weights in
one vector."""

from __future__ import annotations

from dpladder.learn import descent_noise, guide
from dpladder.learn.finetune.shapes import model_of
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.queries import Query
from dpladder.methods.dp_finetune.section import FineTune


def queries(learner: FineTune, hyper: Hyper, constants: Constants) -> tuple[Query, ...]:
    """Gradients of all trained weights at each step and, guided, a look.

    Guarantee: mu-GDP for `hyper.mu` on full batches, the look included; on samples, what the steps
    are booked at.
    """
    return guide.queries(learner, hyper, constants, model_of(learner, constants))


def logit_noise(learner: FineTune, hyper: Hyper, constants: Constants) -> float:
    """kappa of one training: the sd of the noise that it puts into a logit.

    It is computed as if the head were all: its inputs are about as long as pooled features.
    """
    if learner.optimizer == "adam":
        return descent_noise.logit_noise_of_adam(learner, hyper, constants)
    steps = guide.hyper_after_look(learner, hyper)
    return descent_noise.logit_noise(learner, steps, constants, learner.momentum)
