"""From the rungs' releases to r at the final budget. Everything here is post-processing and costs
nothing.

Places are told on the search's axis (search/space.py): kappa, or r itself with `unit: r`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter

import numpy as np
from numpy.polynomial import Polynomial
from scipy.special import log_ndtr

from dpladder.config.sweep_sections import Fit
from dpladder.errors import BadInput
from dpladder.privacy.arrays import Floats
from dpladder.search.space import Space
from dpladder.search.trial import FitResult, Trial, best

# What the response surface assumes, in fractions of correct predictions. Results hardly depend on
# the figures.
# in log r: 60 % of the gain are left a factor e^1.7, about 5, away from the best r
HUMP_WIDTH = 1.7
# Prior scale of what the best r gains over a far one.
HUMP_HEIGHT = 0.2
# How far two trainings at one r may differ, beside the noise of their scores.
TRIAL_SDS = (0.01, 0.03, 0.09)
LIKELY = (0.1, 0.9)  # quantiles of r* that are reported
NEAR = 1e-3  # relative: kappa jumps a little where the steps grow by one


@dataclass(frozen=True)
class Extrapolation:
    """The place at the target as the fit has it, before the search range is imposed.

    Attributes:
        place: on the search's axis.
        method, coefficients, fallback: as `FitResult` has them.
    """

    place: float
    method: str
    coefficients: tuple[float, ...]
    fallback: str | None = None


@dataclass(frozen=True)
class Target:
    """A final training: its budget on both axes, and the space that its r lies in.

    Attributes:
        epsilon: where the fit is against epsilon.
        mu: where it is against mu, and what the training may cost.
        space: the axis of r.
    """

    epsilon: float
    mu: float
    space: Space


def fit_radius(trials: Sequence[Trial], target: Target, fit: Fit) -> FitResult:
    """r* for a final training. Without trials it is the prior's.

    Args:
        trials: releases of all rungs.
        target: the final training.
        fit: how rungs are put together, from the config.

    Returns:
        An r within the search range.
    """
    surface = response_surface(trials, target, fit)
    if not trials:
        extrapolation = Extrapolation(
            _weighted_middle(surface),
            "kappa by the prior, without trials",
            (_weighted_middle(surface),),
        )
    elif fit.using == "best":
        extrapolation = _fit_through_best(trials, target, fit)
    else:
        extrapolation = _fit_pooled(surface, target, fit)
    space = target.space
    low, high = space.range()
    r = space.r(min(max(extrapolation.place, low), high), target.mu)
    kappa = space.kappa(r, target.mu)
    return FitResult(
        r_star=r,
        kappa_star=kappa,
        method=extrapolation.method,
        fallback=extrapolation.fallback,
        clamped=not math.isclose(kappa, extrapolation.place, rel_tol=NEAR),
        coefficients=extrapolation.coefficients,
        uncertainty=_interval(surface, target),
        spread=_spread(trials),
    )


def place_by_prior(space: Space, mu: float) -> tuple[float, float]:
    """The place and r of a training of this mu that no trial comes before.

    Args:
        space: the axis of r.
        mu: that the training may cost.
    """
    fitted = fit_radius([], Target(mu, mu, space), Fit())
    return space.kappa(fitted.r_star, mu), fitted.r_star


def response_surface(trials: Sequence[Trial], target: Target, fit: Fit) -> tuple[Floats, Floats]:
    """The posterior of the best place's logarithm at the target, a grid and its probabilities, from
    every trial's released score.

        score = level of its rung + height * exp(-(log kappa - log kappa*)^2 / (2 width^2)) + noise.

    Here kappa* is one for all budgets. Or r* is proportional to the axis: the linear scaling rule
    of Panda et al., a line through the origin. Accuracy is flat far below the best, where the
    weights' scale does not matter to the argmax. It falls to a plateau far above, where noise wins.
    So it is a bounded hump, not a parabola. Levels and height are Gaussian and integrated out, the
    height over its positive half; so is the trials' own deviation over a few values. Beforehand
    kappa* lies as it does on public data, or anywhere that keeps it in the search range at the
    target and at every rung. Scores that say nothing give the middle of that.
    """
    low, high = np.log(target.space.range())
    growth = np.array([_growth(trial, target, fit) for trial in trials])
    grid = np.linspace(low + growth.max(initial=0.0), high + growth.min(initial=0.0), 201)
    rung = np.array([trial.rung for trial in trials])
    y = np.array([trial.score / trial.counted for trial in trials]) - 0.5
    sd = np.array([trial.sd / trial.counted for trial in trials])
    away = np.log([trial.kappa for trial in trials]) - (grid[:, None] - growth)
    hump = np.exp(-(away**2) / (2 * HUMP_WIDTH**2))
    levels = 0.25 * (rung[:, None] == rung)
    prior = target.space.belief()
    evidence = (
        np.zeros(len(grid))
        if prior is None
        else np.array([prior.log_density(k) for k in np.exp(grid)])
    )
    if trials:
        evidence = evidence + np.logaddexp.reduce(
            [_evidence(y, hump, levels + np.diag(sd**2 + trial_sd**2)) for trial_sd in TRIAL_SDS]
        )
    weights = np.exp(evidence - evidence.max())
    return grid, weights / weights.sum()


def _evidence(y: Floats, hump: Floats, covariance: Floats) -> Floats:
    """log p(y) up to a constant, for each row of hump: y ~ N(height * hump, covariance), height
    half-normal.

    With precision P, let p = hump'Py and q = hump'P hump. The height's Gaussian integral gives
    -log(1 + t^2 q)/2 + t^2 p^2 / (2 (1 + t^2 q)). Its positive half gives log Phi(t p / sqrt(1 +
    t^2 q)).
    """
    precision = np.linalg.inv(covariance)
    p, q = hump @ precision @ y, np.einsum("ij,jk,ik->i", hump, precision, hump)
    scale = 1 + HUMP_HEIGHT**2 * q
    z = HUMP_HEIGHT * p / np.sqrt(scale)
    plain = -0.5 * np.linalg.slogdet(covariance)[1] - 0.5 * y @ precision @ y
    result: Floats = plain - 0.5 * np.log(scale) + 0.5 * z**2 + log_ndtr(z)
    return result


def _growth(trial: Trial, target: Target, fit: Fit) -> float:
    """By how much the logarithm of the best place grows from a trial to the target."""
    if fit.against == "kappa":
        return 0.0
    ratio = _fit_coordinate(target, fit) / _axis(trial, fit)
    r = target.space.clamp(trial.r * ratio)
    return math.log(target.space.kappa(r, target.mu) * (trial.r * ratio / r) / trial.kappa)


def _fit_pooled(surface: tuple[Floats, Floats], target: Target, fit: Fit) -> Extrapolation:
    """The place that all trials' scores speak for together, by the response surface."""
    if fit.degree != 1:
        raise BadInput(
            f"fit.using pooled fits a line through the origin, given fit.degree {fit.degree}. Use "
            "degree 1."
        )
    place = _weighted_middle(surface)
    if fit.against == "kappa":
        return Extrapolation(place, "response surface, one kappa for every budget", (place,))
    slope = target.space.r(place, target.mu) / _fit_coordinate(target, fit)
    return Extrapolation(place, f"response surface, r proportional to {fit.against}", (0.0, slope))


def _weighted_middle(surface: tuple[Floats, Floats]) -> float:
    """The mean of the best place's logarithm, as a place."""
    grid, weights = surface
    return math.exp(float(grid @ weights))


def _fit_through_best(trials: Sequence[Trial], target: Target, fit: Fit) -> Extrapolation:
    """A polynomial through each rung's best (Panda et al., Algorithm 2), of a lower degree where it
    does not rise. The last resort is the line through the origin that the rungs agree on in the
    geometric mean."""
    if fit.against == "kappa":
        place = math.exp(float(np.mean(np.log([trial.kappa for trial in _winners(trials)]))))
        return Extrapolation(place, "mean kappa of each rung's best", (place,))
    line = _line(trials, _fit_coordinate(target, fit), fit)
    r = target.space.clamp(line.place)
    # Beyond what eta and steps reach, kappa goes on as r does, so that the fit is seen to leave the
    # range.
    return replace(line, place=target.space.kappa(r, target.mu) * line.place / r)


def _line(trials: Sequence[Trial], target: float, fit: Fit) -> Extrapolation:
    """A polynomial through each rung's best, of a lower degree where it does not rise."""
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
        # the slope is linear: its ends tell
        if np.all(slope(ends) > 0) and np.isfinite(curve(target)):
            coefficients = tuple(float(c) for c in curve.convert().coef)
            return Extrapolation(
                float(curve(target)), f"{kind} through each rung's best", coefficients, fallback
            )
        fallback = f"the {kind} through each rung's best does not rise with {fit.against}"
    ratio = math.exp(float(np.mean(np.log(r / x))))
    return Extrapolation(ratio * target, f"r proportional to {fit.against}", (0.0, ratio), fallback)


def _winners(trials: Sequence[Trial]) -> list[Trial]:
    """Each rung's best trial, rung by rung."""
    by_rung = groupby(sorted(trials, key=attrgetter("rung", "trial")), key=attrgetter("rung"))
    return [best(list(group)) for _, group in by_rung]


def _axis(trial: Trial, fit: Fit) -> float:
    return trial.epsilon if fit.against == "epsilon" else trial.mu


def _fit_coordinate(target: Target, fit: Fit) -> float:
    return target.epsilon if fit.against == "epsilon" else target.mu


def _interval(surface: tuple[Floats, Floats], target: Target) -> tuple[float, float]:
    """The 80 % interval of r* at the target."""
    grid, weights = surface
    low, high = np.exp(np.interp(LIKELY, np.cumsum(weights), grid))
    return target.space.r(float(low), target.mu), target.space.r(float(high), target.mu)


def _spread(trials: Sequence[Trial]) -> float | None:
    """Root of the scores' variance within rungs over the variance of their noise."""
    rungs = {trial.rung: [t.score for t in trials if t.rung == trial.rung] for trial in trials}
    degrees = len(trials) - len(rungs)
    noise = math.fsum(trial.sd**2 for trial in trials)
    if degrees == 0 or noise == 0:
        return None
    within = math.fsum(len(scores) * float(np.var(scores)) for scores in rungs.values())
    return math.sqrt(within / degrees / (noise / len(trials)))
