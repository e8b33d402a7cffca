"""From the rungs' releases to r at the final budget. Everything here is post-processing and costs nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray
from scipy.special import log_ndtr

from dpladder.config.model import Fit, Search
from dpladder.errors import BadInput
from dpladder.search.select import best
from dpladder.search.space import bounds, clamp, decompose
from dpladder.search.trial import Trial

Floats = NDArray[np.float64]

# What the response surface assumes, in fractions of correct predictions. Results hardly depend on the figures.
HUMP_WIDTH = 1.7  # in log r: 60 % of the gain are left a factor e^1.7, about 5, away from the best r
HUMP_HEIGHT = 0.2  # prior scale of what the best r gains over a far one
TRIAL_SDS = (0.01, 0.03, 0.09)  # how far two trainings at one r may differ, beside the noise of their scores
LIKELY = (0.1, 0.9)  # quantiles of r* that are reported


@dataclass(frozen=True)
class FitResult:
    """`coefficients` are those of r against the axis, constant first. `uncertainty` is the 80 % interval of r*;
    `spread` compares the scores within rungs with their noise: near 1 they say nothing."""

    r_star: float
    eta: float
    steps: int
    method: str
    fallback: str | None
    clamped: bool
    coefficients: tuple[float, ...]
    uncertainty: tuple[float, float]
    spread: float | None


@dataclass(frozen=True)
class Extrapolation:
    """r at the target as the fit has it, before the search range is imposed."""

    r: float
    method: str
    coefficients: tuple[float, ...]
    fallback: str | None = None


def fit_radius(trials: Sequence[Trial], epsilon: float, mu: float, search: Search, fit: Fit) -> FitResult:
    """r* for a final training of this budget, which is `epsilon` on one axis and `mu` on the other."""
    if not trials:
        raise BadInput("a fit needs at least one trial. Give sweep.rungs a rung with trials.")
    target = epsilon if fit.against == "epsilon" else mu
    surface = response_surface(trials, target, search, fit)
    found = _through_best(trials, target, fit) if fit.using == "best" else _pooled(surface, target, fit)
    r = clamp(found.r, search)
    eta, steps = decompose(r, search)
    return FitResult(
        r_star=r,
        eta=eta,
        steps=steps,
        method=found.method,
        fallback=found.fallback,
        clamped=not math.isclose(r, found.r, rel_tol=1e-9),
        coefficients=found.coefficients,
        uncertainty=_interval(surface),
        spread=_spread(trials),
    )


def response_surface(
    trials: Sequence[Trial], target: float, search: Search, fit: Fit
) -> tuple[Floats, Floats]:
    """The posterior of log r* at the target, a grid and its probabilities, from every trial's released score.

    score = level of its rung + height * exp(-(log r - log r*)^2 / (2 width^2)) + noise, and r* is proportional to
    the axis: the linear scaling rule of Panda et al., a line through the origin. Accuracy is flat far below r*,
    where the weights' scale does not matter to the argmax, and falls to a plateau far above, where noise wins: a
    bounded hump, not a parabola. Levels and height are Gaussian and integrated out, the height over its positive
    half; so is the trials' own deviation over a few values. Beforehand r* is uniform in log over what keeps it in
    the search range at the target and at every rung; scores that say nothing give the middle of that.
    """
    x = np.array([_axis(trial, fit) for trial in trials])
    low, high = np.log(bounds(search))
    growth = np.log(target / x)
    grid = np.linspace(low + growth.max(initial=0.0), high + growth.min(initial=0.0), 201)
    rung = np.array([trial.rung for trial in trials])
    y = np.array([trial.score / trial.counted for trial in trials]) - 0.5
    sd = np.array([trial.sd / trial.counted for trial in trials])
    away = np.log([trial.r for trial in trials]) - (grid[:, None] - growth)
    hump = np.exp(-(away**2) / (2 * HUMP_WIDTH**2))
    levels = 0.25 * (rung[:, None] == rung)
    evidence = np.logaddexp.reduce(
        [_evidence(y, hump, levels + np.diag(sd**2 + own**2)) for own in TRIAL_SDS]
    )
    weights = np.exp(evidence - evidence.max())
    return grid, weights / weights.sum()


def _evidence(y: Floats, hump: Floats, covariance: Floats) -> Floats:
    """log p(y) up to a constant, for each row of hump: y ~ N(height * hump, covariance), height half-normal.

    With precision P, p = hump'Py and q = hump'P hump, the height's Gaussian integral gives
    -log(1 + t^2 q)/2 + t^2 p^2 / (2 (1 + t^2 q)), and its positive half log Phi(t p / sqrt(1 + t^2 q)).
    """
    precision = np.linalg.inv(covariance)
    p, q = hump @ precision @ y, np.einsum("ij,jk,ik->i", hump, precision, hump)
    scale = 1 + HUMP_HEIGHT**2 * q
    z = HUMP_HEIGHT * p / np.sqrt(scale)
    plain = -0.5 * np.linalg.slogdet(covariance)[1] - 0.5 * y @ precision @ y
    result: Floats = plain - 0.5 * np.log(scale) + 0.5 * z**2 + log_ndtr(z)
    return result


def _pooled(surface: tuple[Floats, Floats], target: float, fit: Fit) -> Extrapolation:
    if fit.degree != 1:
        raise BadInput(
            f"fit.using pooled fits a line through the origin, given fit.degree {fit.degree}. Use degree 1."
        )
    grid, weights = surface
    r = math.exp(float(grid @ weights))
    return Extrapolation(r, f"response surface, r proportional to {fit.against}", (0.0, r / target))


def _through_best(trials: Sequence[Trial], target: float, fit: Fit) -> Extrapolation:
    """A polynomial through each rung's best (Panda et al., Algorithm 2), of a lower degree where it does not rise.
    The last resort is the line through the origin that the rungs agree on in the geometric mean."""
    points = [(_axis(trial, fit), trial.r) for trial in _winners(trials)]
    x, r = (np.array(values) for values in zip(*points, strict=True))
    fallback = None
    for degree in range(fit.degree, 0, -1):
        kind = "line" if degree == 1 else "parabola"
        if len(np.unique(x)) <= degree:
            fallback = f"too few distinct values of {fit.against} for a {kind}"
            continue
        curve = Polynomial.fit(x, r, degree)
        slope = curve.deriv()
        ends = np.array([x.min(), max(x.max(), target)])
        if np.all(slope(ends) > 0) and np.isfinite(curve(target)):  # the slope is linear: its ends tell
            coefficients = tuple(float(c) for c in curve.convert().coef)
            return Extrapolation(
                float(curve(target)), f"{kind} through each rung's best", coefficients, fallback
            )
        fallback = f"the {kind} through each rung's best does not rise with {fit.against}"
    ratio = math.exp(float(np.mean(np.log(r / x))))
    return Extrapolation(ratio * target, f"r proportional to {fit.against}", (0.0, ratio), fallback)


def _winners(trials: Sequence[Trial]) -> list[Trial]:
    by_rung = groupby(sorted(trials, key=attrgetter("rung", "trial")), key=attrgetter("rung"))
    return [best(list(group)) for _, group in by_rung]


def _axis(trial: Trial, fit: Fit) -> float:
    return trial.epsilon if fit.against == "epsilon" else trial.mu


def _interval(surface: tuple[Floats, Floats]) -> tuple[float, float]:
    grid, weights = surface
    low, high = np.exp(np.interp(LIKELY, np.cumsum(weights), grid))
    return float(low), float(high)


def _spread(trials: Sequence[Trial]) -> float | None:
    """Root of the scores' variance within rungs over the variance of their noise."""
    rungs = {trial.rung: [t.score for t in trials if t.rung == trial.rung] for trial in trials}
    degrees = len(trials) - len(rungs)
    noise = math.fsum(trial.sd**2 for trial in trials)
    if degrees == 0 or noise == 0:
        return None
    within = math.fsum(len(scores) * float(np.var(scores)) for scores in rungs.values())
    return math.sqrt(within / degrees / (noise / len(trials)))
