"""HyFreeDP on a public network from a cut on, with a head (Bu & Liu 2025): its steps, with the sums
of fine-tuning."""

from __future__ import annotations

from torch import Tensor

from dpladder.config.learner_sections import HyperparameterFreeTuning
from dpladder.config.model import Resources
from dpladder.learn.bounds import normalise
from dpladder.learn.descent import Sums
from dpladder.learn.dp_finetune import train as finetuning
from dpladder.learn.dp_finetune.train import apart, logits, losses, ready, seen_by_head
from dpladder.learn.hyfree_dp.train import descend
from dpladder.learn.interface import Constants, Data, Hyper, Weights
from dpladder.privacy.release.meter import Meter

__all__ = ["begun", "logits", "losses", "ready", "seen_by_head", "train"]


def train(
    data: Data,
    hyper: Hyper,
    learner: HyperparameterFreeTuning,
    constants: Constants,
    meter: Meter,
    resources: Resources,
) -> Weights:
    """How far each trained tensor is from where it started: in the public network, and from zero in
    the head."""
    sums, first = begun(data, learner, constants, resources)
    flat = descend(sums, first, [hyper], learner, constants, [meter], data.units)[0]
    return apart(flat, learner, constants)


def begun(
    data: Data, learner: HyperparameterFreeTuning, constants: Constants, resources: Resources
) -> tuple[Sums, Tensor]:
    """What a training asks of its records, and the vector that it starts from."""
    return finetuning.begun(data, learner, constants, resources, normalise)
