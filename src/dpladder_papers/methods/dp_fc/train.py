"""The descent behind DP-FC: W <- W - eta (g / n0) (G / n0 + damping I)^-1, with G and every g
noised. Turning a step is post-processing: its privacy is that of its clipped sum."""

from __future__ import annotations

from dpladder.learn.curator import PublicInputs, Training
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.moments import as_weights, eigen, finite, to_matrix
from dpladder.learn.queries import Query
from dpladder_papers.methods.dp_fc.section import FeatureCovariance


def train(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: FeatureCovariance,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """W <- W - eta (g / n0) (G / n0 + damping I)^-1 at each step (Mehta et al. 2022, DP-FC).

    Guarantee: that of the releases G and g. Turning a step is post-processing.
    """
    covariance, gradient = queries
    values, vectors = eigen(to_matrix((yield covariance.at())) / constants.n0, learner.damping)
    weights = inputs.zeros(constants.classes, constants.dimension)
    for _ in range(hyper.steps):
        mean = (yield gradient.at(weights)) / constants.n0
        weights = finite(weights - hyper.eta * (mean @ vectors / values) @ vectors.T)
    return as_weights(weights)
