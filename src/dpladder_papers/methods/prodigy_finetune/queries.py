"""What fine-tuning with Prodigy's step sizes asks: a noised sum of clipped gradients at each step,
of all trained weights in one vector."""

from __future__ import annotations

from dpladder.learn import guide
from dpladder.learn.finetune.shapes import model_of
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.queries import Query
from dpladder_papers.methods.prodigy_finetune.section import StepSizeFreeTuning


def queries(learner: StepSizeFreeTuning, hyper: Hyper, constants: Constants) -> tuple[Query, ...]:
    """Gradients of all trained weights at each step and, guided, a look.

    Guarantee: mu-GDP for `hyper.mu` on full batches; on samples, what the steps are booked at.
    """
    return guide.queries(learner, hyper, constants, model_of(learner, constants))
