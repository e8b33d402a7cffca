"""DP fine-tuning: a public network from a cut on, with a head, under Algorithm 1."""

from __future__ import annotations

from dpladder.learn.curator import PublicInputs, Training
from dpladder.learn.descent import adam, momentum
from dpladder.learn.finetune.descent import descend_network
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query
from dpladder.methods.dp_finetune.section import FineTune


def train(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: FineTune,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """A descent on a public network above a cut, with momentum or Adam's moments.

    Guarantee: that of its gradients' releases and, guided, of one noised count.
    """
    by_adam = learner.optimizer == "adam"
    update = adam(learner.betas, learner.stability) if by_adam else momentum(learner.momentum)
    return descend_network(update, inputs, queries, learner, hyper, constants)
