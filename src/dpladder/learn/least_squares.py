"""The sums and solutions behind DP-LS, one class at a time: no more than a few d x d matrices are held."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor

from dpladder.config.learners import LeastSquares
from dpladder.config.model import Resources
from dpladder.learn.interface import Constants, Data, Hyper, Release, Weights
from dpladder.learn.moments import (
    as_weights,
    class_by_class,
    in_ball,
    load_records,
    second_moment,
    solve,
    threads_of,
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

    def head(_: int, sums: Mapping[str, Tensor]) -> Tensor:
        moments = to_matrix(sums["moments"] + learner.alpha * together)
        return solve(moments / constants.n0, hyper.ridge, sums["targets"] / constants.n0)

    observe = partial(_sums, records, learner.radius)
    threads = threads_of(records, resources)
    return as_weights(class_by_class(constants.classes, threads, observe, release, head))


def _sums(records: Records, radius: float, label: int) -> dict[str, Tensor]:
    """Of x x^T, as coordinates, and of x, over the records of one class."""
    rows = records.chosen((records.counted & (records.labels == label)).cpu().numpy())
    target = torch.zeros(records.features.shape[2], dtype=torch.float64, device=records.device)
    for chunk in rows:
        target += in_ball(records, chunk, radius).sum(0)
    return {"moments": second_moment(records, radius, rows), "targets": target}
