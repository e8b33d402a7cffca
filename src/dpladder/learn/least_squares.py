"""The sums and solutions behind DP-LS, one class at a time: no more than a few d x d matrices are held."""

from __future__ import annotations

import torch
from torch import Tensor

from dpladder.config.learners import LeastSquares
from dpladder.config.model import Resources
from dpladder.learn.interface import Constants, Data, Hyper, Release, Weights
from dpladder.learn.moments import (
    as_weights,
    in_ball,
    load_records,
    second_moment,
    solve,
    to_matrix,
)
from dpladder.learn.records import Records


@torch.inference_mode()
def fit(
    data: Data,
    hyper: Hyper,
    learner: LeastSquares,
    constants: Constants,
    release: Release,
    resources: Resources,
) -> Weights:
    records = load_records(data, constants, resources)
    if data.covariance is None:
        together = release("covariance", second_moment(records, learner.radius, records.chunks()))
    else:
        together = torch.from_numpy(data.covariance).to(records.device)
    heads = []
    for label in range(constants.classes):
        own, target = _sums(records, label, learner.radius)
        moments = release("moments", own) + learner.alpha * together
        right = release("targets", target) / constants.n0
        heads.append(solve(to_matrix(moments) / constants.n0, hyper.ridge, right))
    return as_weights(torch.stack(heads))


def _sums(records: Records, label: int, radius: float) -> tuple[Tensor, Tensor]:
    """Of x x^T, as coordinates, and of x, over the records of one class."""
    rows = records.chosen((records.counted & (records.labels == label)).cpu().numpy())
    target = torch.zeros(records.features.shape[2], dtype=torch.float64, device=records.device)
    for chunk in rows:
        target += in_ball(records, chunk, radius).sum(0)
    return second_moment(records, radius, rows), target
