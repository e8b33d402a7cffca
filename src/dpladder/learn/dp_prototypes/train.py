"""The direction of every class's noised sum is its row of a linear head, so the nearest by angle
wins (nearest class mean, as in Wahdany et al. 2025, with plain means).

A class's size decides only how noisy its own direction is: small classes are not outvoted, as they
are in a descent.
"""

from __future__ import annotations

import torch

from dpladder.config.learner_sections import Prototypes
from dpladder.config.model import Resources
from dpladder.learn.interface import Constants, Data, Hyper, Release, Weights, metered
from dpladder.learn.moments import as_weights, in_ball, load_records


@torch.inference_mode()
def fit(
    data: Data,
    hyper: Hyper,
    learner: Prototypes,
    constants: Constants,
    release: Release,
    resources: Resources,
) -> Weights:
    records = load_records(data, constants, resources)
    sums = torch.zeros(
        constants.classes, constants.dimension, dtype=torch.float64, device=records.device
    )
    for label in range(constants.classes):
        for rows in records.chosen((records.counted & (records.labels == label)).cpu().numpy()):
            sums[label] += in_ball(records, rows, learner.radius).sum(0)
    return as_weights(torch.nn.functional.normalize(release("sums", sums)))


train = metered(fit)
