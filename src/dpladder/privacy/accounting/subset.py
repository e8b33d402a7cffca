"""The profile of tuning on a secret Poisson subset and training on the rest, or on everything
(Koskela & Kulkarni 2023).

With probability q the unit that neighbours differ in lies in the subset. Then the tuning sees it,
with a likelihood ratio L1 of its output. Else the final training sees it, with a ratio L2. Nobody
knows which, so what is released has a ratio L of one of two kinds.

    L = q L1 + (1 - q) L2    where the final training sees the rest (their variant 1, `apart`).
    L = (q L1 + 1 - q) L3    where it sees everything (variant 2). L3 is its own ratio.

Given the tuning's output, a Gaussian of its mu dominates the final training's ratio. What remains
is a convex function of L1. So both may be replaced by dominating pairs, independent of each other
(Blackwell; Zhu, Dong & Wang 2022), and

    H_a(P|Q) = E (L - a)+,  H_a(Q|P) = E (1 - a L)+   under the neighbour's law Q

are sums over L1 of closed forms of the Gaussian profile. Koskela & Kulkarni bound Renyi divergences
of the same mixture term by term; this keeps the mixture as it is.

**L1.** The tuning is a private selection: (1) of booking.py, with the e2 and weight w of
selection.py, bounds its profile. The true one is convex in a = e^epsilon, so it lies below the
convex envelope of the bound. The envelope's chords between grid points are the profile of a
discrete distribution of L1. Minus the slopes are its tail probabilities.

Neighbours differ in one unit's presence. Under replace_one a unit and its replacement could lie on
different sides of the split, which this does not bound: booking.py refuses it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpladder.privacy.accounting import selection
from dpladder.privacy.accounting.events import RepeatAndSelect, SubsetSelect, mu
from dpladder.privacy.accounting.profile import SAFE, Curve, gaussian_profile

if TYPE_CHECKING:
    from dpladder.privacy.arrays import Floats

RATIOS = 1_200  # grid points of L1
POINTS = 1_500  # and of epsilon


def curve(event: SubsetSelect) -> Curve:
    """The privacy profile of tuning and final training together, rounded up, in both directions."""
    ratios, masses, beyond = likelihood_ratios(event.tuning)
    final, q = 1.0 / event.final.sigma, event.probability
    epsilons = np.linspace(0.0, _largest_epsilon(ratios, final, q), POINTS)
    deltas = _larger_direction(ratios[None, :], masses, q, q * beyond, final, event.apart, epsilons)
    return Curve(epsilons, deltas)


def likelihood_ratios(tuning: RepeatAndSelect) -> tuple[Floats, Floats, float]:
    """A discrete law of L1 that dominates the tuning, as the proof above makes it.

    Returns:
        Values of L1, rising from 0; their probabilities under Q; and the probability under P that
        L1 is infinite.
    """
    run = mu(tuning.event)
    assert run is not None, "the runs of a selection on a subset are Gaussian"
    runs, lean = selection.Runs(tuning.mean, tuning.shape), selection.Lean(tuning.low, tuning.high)
    loss, weight = selection.loss(run, runs, lean), selection.weight(runs, lean)
    last = loss + run * (8.0 + run) + 1.0
    logs = np.linspace(-last, last, RATIOS)
    bound = np.minimum(1.0, weight * _signed_profile(np.abs(logs) - loss, run))
    a = np.concatenate([[0.0], np.exp(logs)])
    above = np.concatenate([[1.0], np.where(logs >= 0, bound, 1 - np.exp(logs) * (1 - bound))])
    hull = _convex(a, np.maximum(above, np.maximum(0.0, 1.0 - a)))
    a, above = a[hull], above[hull]
    slopes = np.concatenate([[-1.0], np.diff(above) / np.diff(a), [0.0]])
    return a, np.maximum(np.diff(slopes), 0.0), float(above[-1])


def _convex(x: Floats, y: Floats) -> list[int]:
    """The corners of the convex envelope of points in order of x."""
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) > 1:
            one, two = hull[-2], hull[-1]
            if (y[two] - y[one]) * (x[i] - x[one]) < (y[i] - y[one]) * (x[two] - x[one]):
                break
            hull.pop()
        hull.append(i)
    return hull


def _larger_direction(
    ratios: Floats,
    masses: Floats,
    q: float,
    infinite: float,
    final: float,
    apart: bool,
    epsilons: Floats,
) -> Floats:
    """The larger of the two directions at each epsilon."""
    a = np.exp(epsilons)[:, None]
    if apart:
        more = (1 - q) * _expected_excess((a - q * ratios) / (1 - q), final)
        less = a * (1 - q) * _expected_shortfall((1 / a - q * ratios) / (1 - q), final)
    else:
        mixed = q * ratios + 1 - q
        more = mixed * _expected_excess(a / mixed, final)
        less = a * mixed * _expected_shortfall(1 / (a * mixed), final)
    delta: Floats = np.maximum((more * masses).sum(1) + infinite, (less * masses).sum(1))
    return np.minimum(delta * SAFE + 1e-15, 1.0)


def _expected_excess(t: Floats, final: float) -> Floats:
    """E (L - t)+ for the ratio L of a Gaussian pair, rounded up: its mean is 1."""
    positive = np.maximum(t, 1e-300)
    return np.where(t <= 0, 1.0 - t, _hockey_stick(np.log(positive), final))


def _expected_shortfall(t: Floats, final: float) -> Floats:
    """E (t - L)+ = t - 1 + E (L - t)+."""
    return np.where(t <= 0, 0.0, np.maximum(t - 1.0 + _expected_excess(t, final), 0.0))


def _hockey_stick(logs: Floats, final: float) -> Floats:
    """E (L - e^x)+ at any x: delta(-x) = 1 - e^-x (1 - delta(x))."""
    far = _signed_profile(np.abs(logs), final)
    return np.where(logs >= 0, far, 1.0 - np.exp(np.minimum(logs, 0.0)) * (1.0 - far))


def _signed_profile(epsilons: Floats, candidate: float) -> Floats:
    """delta of mu-GDP at any epsilon, rounded up."""
    far = gaussian_profile(np.abs(epsilons), candidate) * (1 + 4e-9) + 4e-16
    flipped = 1.0 - np.exp(np.minimum(epsilons, 0.0)) * (1.0 - far)
    delta: Floats = np.where(epsilons >= 0, far, flipped)
    return delta


def _largest_epsilon(ratios: Floats, final: float, q: float) -> float:
    """Where nothing but the infinite ratio is left, in either direction."""
    return float(np.log(q * ratios[-1] + 1.0)) + final * (9.0 + final) - math.log1p(-q) + 1.0
