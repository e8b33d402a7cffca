"""The descent behind DP-FC: W <- W - eta (g / n0) (G / n0 + damping I)^-1, with G and every g
noised."""

from __future__ import annotations

import torch

from dpladder.config.learner_sections import FeatureCovariance
from dpladder.config.model import Resources
from dpladder.learn.bounds import scale_of
from dpladder.learn.interface import Constants, Data, Hyper, Publish, Weights, metered
from dpladder.learn.linear import clipped_sum
from dpladder.learn.links import link_of
from dpladder.learn.moments import (
    as_weights,
    eigen,
    finite,
    load_records,
    second_moment,
    threads_of,
    to_matrix,
)


@torch.inference_mode()
def fit(
    data: Data,
    hyper: Hyper,
    learner: FeatureCovariance,
    constants: Constants,
    release: Publish,
    resources: Resources,
) -> Weights:
    """A descent whose steps are turned by the noised covariance of features, which was released
    once. Turning is post-processing: each step's privacy is that of its clipped sum."""
    records = load_records(data, constants, resources)
    threads = threads_of(records, resources)
    if data.covariance is None:
        covariance = release("covariance", second_moment(records, learner.radius, records.chunks()))
    else:
        covariance = torch.from_numpy(data.covariance).to(records.device)
    values, vectors = eigen(to_matrix(covariance) / constants.n0, learner.damping)
    # A unit of `cap` records contributes `clip` at most when each of them contributes clip / cap.
    bound = learner.clip / constants.cap * (1.0 - records.slack)
    shape = (constants.classes, constants.dimension)
    weights = torch.zeros(shape, dtype=torch.float64, device=records.device)
    scale, link = scale_of(learner.clipping), link_of(learner, constants)
    for _ in range(hyper.steps):
        total = clipped_sum(records, weights[None], bound, records.chunks(), threads, scale, link)[
            0
        ]
        gradient = release("gradient", total) / constants.n0
        weights = finite(weights - hyper.eta * (gradient @ vectors / values) @ vectors.T)
    return as_weights(weights)


train = metered(fit)
