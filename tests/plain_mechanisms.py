"""Mechanisms that are nothing but a sum and its noise: what the audit itself is tested on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import Draw, Shape, gaussian
from dpladder.privacy.accounting.events import (
    Composed,
    Counted,
    Gaussian,
    Laplace,
    Sampled,
)
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release.meter import Meter
from dpladder_audit.engine.mechanism import Mechanism, neighbours


def extremes(shape: Shape, radius: float) -> tuple[Floats, ...]:
    """Records that tempt a clip: nothing, exactly the radius either way, far beyond it, almost
    nothing."""
    edge = np.zeros(shape)
    edge.flat[0] = radius
    return np.zeros(shape), edge, -edge, 1e30 * edge, np.full(shape, -1e200), np.full(shape, 5e-324)


def plain_mechanisms() -> tuple[Mechanism, ...]:
    """All of them, made to reach their claims (but for sampling, which
    hides the canary)."""
    return (gaussian_sum(), noised_mean(), noised_count(), laplace_count(), sampled_sum())


def gaussian_sum(
    mu: float = 2.0, steps: int = 3, radius: float = 0.5, shape: Shape = (4, 12)
) -> Mechanism:
    """Clipped sums, one per step, all of them published."""
    sigma = gdp.sigma(mu, steps)
    draw = gaussian("step", sigma, radius, shape, steps)

    def run(data: Sequence[Floats], meter: Meter) -> Floats:
        total = _clipped_sum(data, radius, shape)
        return np.stack([meter.publish("step", total) for _ in range(steps)])

    base = (np.full(shape, -0.1), np.ones(shape))
    return Mechanism(
        "gaussian sum",
        Composed((Counted(Gaussian(sigma), steps),)),
        (draw,),
        draw.scale,
        run,
        neighbours(base, extremes(shape, radius), "add_remove"),
        tight=True,
    )


def noised_mean(mu: float = 2.0, radius: float = 3.0, n0: int = 100, length: int = 16) -> Mechanism:
    """A clipped sum over the public size. One replaced unit moves the sum by up to twice the
    radius."""
    sigma = gdp.sigma(mu, 1)
    draw = gaussian("mean", sigma, 2 * radius, (length,))

    def run(data: Sequence[Floats], meter: Meter) -> Floats:
        return meter.publish("mean", _clipped_sum(data, radius, (length,))) / n0

    pairs = neighbours((), extremes((length,), radius), "replace_one")
    return Mechanism(
        "noised mean",
        Gaussian(sigma),
        (draw,),
        draw.scale / n0,
        run,
        pairs,
        "replace_one",
        tight=True,
    )


def noised_count(mu: float = 2.0) -> Mechanism:
    """A count with Gaussian noise; one unit counts 0 or 1."""
    sigma = gdp.sigma(mu, 1)
    draw = gaussian("count", sigma, 1.0)

    def run(data: Sequence[int], meter: Meter) -> Floats:
        return meter.publish("count", sum(data))

    pairs = neighbours((1, 0, 1), (0, 1), "add_remove")
    return Mechanism("noised count", Gaussian(sigma), (draw,), sigma, run, pairs, tight=True)


def laplace_count(epsilon: float = 2.0) -> Mechanism:
    """A count with Laplace noise; one unit counts 0 or 1."""
    draw = Draw("count", "laplace", 1 / epsilon, sensitivity=1.0)

    def run(data: Sequence[int], meter: Meter) -> Floats:
        return meter.publish("count", sum(data))

    pairs = neighbours((1, 0, 1), (0, 1), "add_remove")
    return Mechanism(
        "laplace count", Laplace(draw.scale), (draw,), draw.scale, run, pairs, tight=True
    )


def sampled_sum(sigma: float = 0.5, probability: float = 0.5, radius: float = 1.0) -> Mechanism:
    """A clipped sum over a Poisson sample. No base records: their part in it would vary from run to
    run."""
    noise = gaussian("sum", sigma, radius, (4,), under="sample", entering=radius)
    draws = (Draw("sample", "mask", probability), noise)

    def run(data: Sequence[Floats], meter: Meter) -> Floats:
        ids = np.arange(16 * len(data), dtype=np.uint8).reshape(-1, 16)
        sample = meter.mask("sample", ids)
        chosen = [record for record, inside in zip(data, sample, strict=True) if inside]
        return meter.publish("sum", _clipped_sum(chosen, radius, (4,)))

    pairs = neighbours((), extremes((4,), radius), "add_remove")
    return Mechanism(
        "sampled sum", Sampled(probability, Gaussian(sigma)), draws, draws[1].scale, run, pairs
    )


def _clipped_sum(records: Sequence[Floats], radius: float, shape: Shape) -> Floats:
    """The sum of the records, each shrunk to a norm of at most `radius`."""
    total = np.zeros(shape)
    for record in records:
        largest = float(np.max(np.abs(record)))
        if largest > 0:  # the norm of record / largest cannot overflow
            norm = largest * float(np.linalg.norm(record / largest))
            total += record * (radius / max(norm, radius))
    return total
