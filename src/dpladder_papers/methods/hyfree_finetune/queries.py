"""What fine-tuning with step sizes from noised losses asks: HyFreeDP's sums, of all trained weights
in one vector."""

from __future__ import annotations

from dpladder.learn.finetune.shapes import model_of
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.queries import Query
from dpladder_papers.methods.hyfree_dp import queries as hyfree
from dpladder_papers.methods.hyfree_finetune.section import HyperparameterFreeTuning


def queries(
    learner: HyperparameterFreeTuning, hyper: Hyper, constants: Constants
) -> tuple[Query, ...]:
    """Gradients of all trained weights at each step, and losses at every K-th.

    Guarantee: that of HyFreeDP's queries, mu-GDP for `hyper.mu` on full batches.
    """
    return hyfree.queries(learner, hyper, constants, model_of(learner, constants))
