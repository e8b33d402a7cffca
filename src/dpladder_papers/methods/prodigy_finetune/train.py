"""DP fine-tuning of a public network from a cut on, with a head, whose step sizes are Prodigy's or
D-Adaptation's. They follow from the noised gradients alone, so they are free."""

from __future__ import annotations

from dataclasses import replace

from dpladder.learn.curator import PublicInputs, Training
from dpladder.learn.finetune.descent import descend_network
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query
from dpladder_papers.methods.dp_prodigy.train import prodigy
from dpladder_papers.methods.prodigy_finetune.section import StepSizeFreeTuning


def train(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: StepSizeFreeTuning,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """A descent on a public network above a cut, whose step sizes are free.

    Guarantee: that of its gradients' releases and, guided, of one noised count.
    """
    whole = replace(hyper, eta=1.0)  # the update is the step, its size included
    return descend_network(prodigy(learner), inputs, queries, learner, whole, constants)
