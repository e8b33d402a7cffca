"""The direction of every class's noised sum is its row of a linear head, so the nearest by angle
wins (nearest class mean, as in Wahdany et al. 2025, with plain means).

A class's size decides only how noisy its own direction is: small classes are not outvoted, as they
are in a descent.

A finding has a prototype of the records that have it and one of those that lack it. The difference
of their directions is its row: a record is as likely to have it as its public bias says where it is
as near to the one as to the other.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from dpladder.config.label_sets import MANY, each_finding
from dpladder.config.learner_sections import Prototypes
from dpladder.config.model import Resources
from dpladder.learn.interface import Constants, Data, Hyper, Publish, Weights, metered
from dpladder.learn.moments import as_weights, in_ball, load_records, weighed_sums


@torch.inference_mode()
def fit(
    data: Data,
    hyper: Hyper,
    learner: Prototypes,
    constants: Constants,
    release: Publish,
    resources: Resources,
) -> Weights:
    records = load_records(data, constants, resources)
    if constants.labels == MANY:
        weights = _of_findings(records.labels, constants.classes)
        present, absent = normalize(
            release("sums", weighed_sums(records, learner.radius, weights))
        ).chunk(2)
        return as_weights(present - absent)
    sums = torch.zeros(
        constants.classes, constants.dimension, dtype=torch.float64, device=records.device
    )
    for label in range(constants.classes):
        for rows in records.chosen((records.counted & (records.labels == label)).cpu().numpy()):
            sums[label] += in_ball(records, rows, learner.radius).sum(0)
    return as_weights(normalize(release("sums", sums)))


def _of_findings(labels: Tensor, classes: int) -> Tensor:
    """What each record weighs in the sum of each finding that it has, and then of each that it
    lacks: (2 findings, records). Those that it has share its weight out evenly, those that it lacks
    too, and each of both is half of its square, so that a record's weights have length 1 at most,
    whatever it has."""
    present, known = map(torch.stack, zip(*each_finding(labels, classes), strict=True))
    told = torch.stack([present, known & ~present]).double()
    shared = told / told.sum(1, keepdim=True).clamp(min=1.0).sqrt()
    return (shared / shared.norm(dim=(0, 1)).clamp(min=1.0)).flatten(0, 1)


train = metered(fit)
