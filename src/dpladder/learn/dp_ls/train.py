"""The sums and solutions behind DP-LS, one class at a time: no more than a few d x d matrices are
held."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from dpladder.config.label_sets import MANY, each_finding, each_label
from dpladder.config.learner_sections import LeastSquares
from dpladder.config.model import Resources
from dpladder.learn.dp_ls import statistics
from dpladder.learn.interface import Constants, Data, Hyper, Publish, Weights, metered
from dpladder.learn.moments import (
    as_weights,
    class_by_class,
    eigen,
    in_ball,
    load_records,
    second_moment,
    solve,
    threads_of,
    to_matrix,
    weighed_sums,
)
from dpladder.learn.records import Records


@torch.inference_mode()
def fit(
    data: Data,
    hyper: Hyper,
    learner: LeastSquares,
    constants: Constants,
    release: Publish,
    resources: Resources,
) -> Weights:
    """From sums of its own, from shared ones, or from both together."""
    records = load_records(data, constants, resources)
    if constants.labels == MANY:
        return _of_findings(records, data, hyper, learner, constants, release)
    observe = (
        partial(_sums, records, _labels(records, constants), learner.radius)
        if hyper.mu
        else _nothing
    )
    known = partial(_known, data.statistics, hyper.mu, records.device)
    if data.covariance is not None:
        together = torch.from_numpy(data.covariance).to(records.device)
    else:
        own = (
            release("covariance", second_moment(records, learner.radius, records.chunks()))
            if hyper.mu
            else None
        )
        together = known("covariance", None, own)

    def head(label: int, own: Mapping[str, Tensor]) -> Tensor:
        moments, target = (known(name, label, own.get(name)) for name in ("moments", "targets"))
        system = to_matrix(moments + learner.alpha * together)
        return solve(system / constants.n0, hyper.ridge, target / constants.n0)

    threads = threads_of(records, resources)
    return as_weights(
        torch.stack(class_by_class(constants.classes, threads, observe, release, head))
    )


def _of_findings(
    records: Records,
    data: Data,
    hyper: Hyper,
    learner: LeastSquares,
    constants: Constants,
    release: Publish,
) -> Weights:
    """The first Newton step of each finding's logistic regression from its public bias: log-odds of
    records as they are, of their public length."""
    if data.covariance is None:
        together = release("covariance", second_moment(records, learner.radius, records.chunks()))
    else:
        together = torch.from_numpy(data.covariance).to(records.device)
    lacking = _lacking(records.labels, constants.classes)
    targets = release("targets", weighed_sums(records, learner.radius, lacking))
    values, vectors = eigen(to_matrix(together) / constants.n0, hyper.ridge)
    heads = (targets / constants.n0 @ vectors / values) @ vectors.T
    shorter = min(1.0, learner.radius / constants.length)
    return as_weights(max(constants.classes, 2) * shorter * heads)


@torch.inference_mode()
def release_sums(
    data: Data,
    radius: float,
    constants: Constants,
    release: Publish,
    keep: statistics.Keep,
    resources: Resources,
) -> None:
    """All noised sums, for trainings to share; each is kept as soon as it is released."""
    records = load_records(data, constants, resources)
    together = release("covariance", second_moment(records, radius, records.chunks()))
    keep("covariance", None, together.cpu().numpy())

    def conclude(label: int, sums: Mapping[str, Tensor]) -> None:
        for name, total in sums.items():
            keep(name, label, total.cpu().numpy())

    observe = partial(_sums, records, _labels(records, constants), radius)
    class_by_class(constants.classes, threads_of(records, resources), observe, release, conclude)


def _known(
    shared: Path | None,
    mu: float,
    device: torch.device,
    name: str,
    label: int | None,
    own: Tensor | None,
) -> Tensor:
    """A sum as well as it is known. Two releases of it, with independent noise of variances
    proportional to mu^-2, weigh as mu^2: that has the least variance, proportional to (mu_own^2 +
    mu_shared^2)^-1, what one release at the mu of both together would have."""
    if shared is None:
        assert own is not None, "a training without shared statistics releases its own"
        return own
    before = torch.from_numpy(statistics.read(shared, name, label)).to(device)
    if own is None:
        return before
    return before.lerp(own, mu**2 / (mu**2 + statistics.mu_of(shared) ** 2))


def _nothing(_: int) -> dict[str, Tensor]:
    return {}


def _labels(records: Records, constants: Constants) -> Tensor:
    """The classes of each record, as (classes of one, records), filled up with -1."""
    return torch.stack([*each_label(records.labels, constants.classes)])


def _sums(records: Records, labels: Tensor, radius: float, label: int) -> dict[str, Tensor]:
    """Of x x^T, as coordinates, and of x, over the records of one class. A record of k classes
    weighs 1/sqrt(k) in each of them, so that it moves the sums of all classes together no further
    than a record of one class moves its own."""
    rows = records.chosen((records.counted & (labels == label).any(0)).cpu().numpy())
    weights = (labels >= 0).sum(0).double().rsqrt().float()
    target = torch.zeros(records.features.shape[-1], dtype=torch.float64, device=records.device)
    for chunk in rows:
        target += (in_ball(records, chunk, radius) * weights[chunk, None]).sum(0)
    moments = second_moment(records, radius, rows, lambda chunk, _: weights[chunk])
    return {"moments": moments, "targets": target}


def _lacking(labels: Tensor, classes: int) -> Tensor:
    """What each finding's public share 1/m lacks, over 1 - 1/m, which is 1 where it is present and
    -1/(m - 1) where not, and nothing where it is unknown: (classes, records). A record's are cut to
    length 1 together, so that it moves all targets no further than a record of one class moves its
    own."""
    absent = -1.0 / max(classes - 1, 1)
    findings = each_finding(labels, classes)
    each = torch.stack([known * torch.where(present, 1.0, absent) for present, known in findings])
    return each / each.norm(dim=0).clamp(min=1.0)


train = metered(fit)
