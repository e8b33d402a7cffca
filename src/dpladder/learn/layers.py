"""What weights mean that are layers of a perceptron: nothing that their shapes do not say. A method
whose weights are something else names a module with the same functions (config/method.py)."""

from __future__ import annotations

from functools import partial

import numpy as np

from dpladder.config.learner_sections import LearnerSection
from dpladder.config.model import Resources
from dpladder.learn import public_head
from dpladder.learn.interface import Constants, Logits, Weights
from dpladder.learn.public_head import SeenByHead
from dpladder.learn.scorers import Scorer
from dpladder.privacy.arrays import Floats


def ready(
    learner: LearnerSection,
    constants: Constants,
    resources: Resources,
    trainings: int = 1,
    parts: bool = False,
) -> None:
    """Refuse what cannot be trained on this machine, before a training is charged.

    Args:
        learner: its section in the config.
        constants: public sizes.
        resources: threads, memory and device.
        trainings: how many may share a pass.
        parts: whether some are on parts of the records.

    Raises:
        Refused: the machine rounds a record by its place among others.
    """
    from dpladder.learn import linear  # which starts torch

    bias, views = learner.constant_feature, learner.views
    linear.refuse_places(constants, resources, bias, views, trainings, parts)


def tensors(learner: LearnerSection, constants: Constants) -> tuple[str, ...]:
    """Names of the weights in a file, where they have some of their own."""
    return ()


def logits(learner: LearnerSection, constants: Constants) -> Logits | None:
    """What weights make of features; None where they are layers (learn/score.py)."""
    return None


def scorer(learner: LearnerSection, constants: Constants) -> Scorer | None:
    """What its task counts of each record, where weights name no class."""
    return None


def seen_by_head(learner: LearnerSection, constants: Constants) -> SeenByHead:
    """What the weights of the last layer are multiplied with, its constant feature included."""
    return partial(public_head.linear_head_inputs, learner.constant_feature)


def turn_head(
    learner: LearnerSection, constants: Constants, weights: Weights, slope: float, shifts: Floats
) -> Weights:
    """Weights whose logits are `slope` times as large, with `shifts` (classes,) added.

    A head without a bias gets one where something is added.
    """
    *below, head = weights
    inputs = below[-1].shape[0] if below else constants.dimension
    turned = slope * head.astype(np.float64)
    if shifts.any():
        turned = np.pad(turned, ((0, 0), (0, inputs + 1 - turned.shape[1])))
        turned[:, -1] += shifts
    return (*below, turned.astype(np.float32))
