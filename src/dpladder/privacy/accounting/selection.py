"""What it costs to publish the best of a random number of runs, and nothing else (Liu & Talwar
2019; Papernot & Steinke 2022).

A run puts out y (weights and score) with law Q, which is mu-GDP in the data. So for neighbours Q
and Q', Q'(S) <= g(Q(S)) with g(u) = Phi(Phi^-1(u) + mu). Runs are ordered by score, ties by a
random rank. K runs are made, K drawn from a public law with generating function f(x) = E[x^K], and
the best is put out. It has the law

    A(dy) = Q(dy) f'(Q(<= y)),                                                                   (1)

because k runs put out y with k Q(dy) Q(<= y)^(k-1). Two facts bound A by A':

**The weight moves little.** With u = Q(> y) and u' = Q'(> y) <= g(u),

    f'(Q(<= y)) / f'(Q'(<= y)) <= e^e2,  e2 = sup over u of log f'(1 - u) - log f'(1 - g(u)).    (2)

**The weight is at most f'(1) = E[K].** So for every e1 and S, with delta the profile of mu-GDP,

    integral over S of f'(Q(<= y)) (Q - e^e1 Q')(dy) <= E[K] delta(e1).                          (3)

Together A(S) <= e^(e1 + e2) A'(S) + E[K] delta(e1): the selection is (e1 + e2, E[K] delta(e1))-DP
for every e1.

For a truncated negative binomial K, f'(x) is proportional to (1 - (1 - gamma) x)^(-1-eta); for a
Poisson K to e^(mx).

**Beside other mechanisms** the same proof holds, because w = f' only multiplies. Let B be mu_B-GDP
and B' its law on the neighbour, published with the winner, each free to look at the other. With w
<= e^e2 w' and w <= E[K], and delta the profile of sqrt(mu^2 + mu_B^2)-GDP,

    integral over S of w Q B - e^(e1 + e2) w' Q' B' <= E[K] delta(e1).                           (4)

So mus add in squares, e2 adds, and E[K] multiplies. Where there may be no run at all, with
probability p, B stands alone with that probability and adds p delta_B(e1): weights are E[K] + p.

**K is cut off at a limit**: above it, it becomes the least there may be. (2) to (4) stay as they
are. Each coefficient k p_k of f' changes by a factor that falls with k. The factor is above 1 at
the least k, 1 up to the limit, and 0 beyond. So the mean of k - 1 under weights k p_k x^(k-1),
which is d log f' / d log x, falls at every x. Between two ranks log f' grows by no more than
before, and f'(1) = E[K] falls. So does its sum with the chance of no run, which weights a Poisson
law. A leaning law's arguments below 0 only help: its true f' there is that at 0.

None of this holds when somebody learns K, a loser, or how long the job took to make them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

from dpladder.errors import BadInput
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.profile import SAFE

MOST_MEAN = 500.0  # exp(-mean), where a Poisson law starts, is exact up to here
RARE = 1e-3  # probability of more runs than the limit
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Runs:
    """The law of the number of runs, K. It is public; the number itself stays secret.

    Attributes:
        mean: E[K] before it is cut off.
        shape: eta of the truncated negative binomial (Papernot & Steinke 2022, Definition 1). 0 is
            logarithmic, 1 geometric (stop with probability gamma after each run). inf is Poisson,
            which may make no run at all.
    """

    mean: float
    shape: float

    def __post_init__(self) -> None:
        least = 0.0 if self.shape == math.inf else 1.0
        if not (least < self.mean <= MOST_MEAN and self.shape >= 0):
            raise BadInput(
                f"runs have mean {self.mean} and shape {self.shape}. Their mean must exceed "
                f"{least:g} and be at most {MOST_MEAN:g}; the shape is 0 (logarithmic), 1 "
                "(geometric), another positive number, or inf (Poisson)."
            )


@dataclass(frozen=True)
class Lean:
    """How far an adaptive proposal may lean away from its prior: its density over the prior's lies
    in [low, high]. The search holds its proposals to that by construction; no draw shows it."""

    low: float = 1.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.low <= 1 <= self.high < math.inf:
            raise BadInput(
                f"a proposal leans from {self.low} to {self.high}. It needs 0 < low <= 1 <= high, "
                "finite."
            )


STRAIGHT = Lean()


def epsilon(mu: float, runs: Runs, delta: float, lean: Lean = STRAIGHT) -> float:
    """Epsilon at delta of publishing the best of K runs, and nothing else.

    The bound is (2) and (3) above, at the best e1. Proposals may adapt to earlier runs (DP-HyPO:
    Wang et al. 2023, Framework 1). Then each run's law lies in [low Q, high Q] whatever came
    before. That bounds (1) by low Q(dy) f'(1 - high u) and high Q(dy) f'(1 - low u). Then (2)
    compares high u' with low u, and the step from Q to Q' costs log(high/low) and high E[K]
    delta(e1). The best e1 is the smallest at which high E[K] delta(e1) is within delta.

    Args:
        mu: of one run, its score included.
        runs: the law of K.
        delta: of the guarantee.
        lean: how far a proposal may lean away from its prior.

    Returns:
        epsilon, rounded up.
    """
    return joint(mu, loss(mu, runs, lean), weight(runs, lean), delta)


def joint(mu: float, loss: float, weight: float, delta: float) -> float:
    """Epsilon at delta of (4): selections beside other releases.

    Args:
        mu: of all mus together, sqrt(sum of mu^2).
        loss: sum of the losses e2.
        weight: product of the weights E[K].
        delta: of the guarantee.

    Returns:
        epsilon, rounded up.
    """
    return gdp.epsilon(mu, delta / weight) + loss


def loss(mu: float, runs: Runs, lean: Lean) -> float:
    """e2 of (2), leaning included: the pure loss that a selection adds beside its runs' mu."""
    return math.log(lean.high / lean.low) + rank_loss(mu, runs, lean)


@cache
def rank_loss(mu: float, runs: Runs, lean: Lean = STRAIGHT) -> float:
    """e2 of (2): how much the weight of a rank may move.

    Poisson: f'(1 - low u) / f'(1 - high g(u)) = exp(m (high g(u) - low u)). Where nothing leans,
    the largest g(u) - u is the total variation distance 2 Phi(mu/2) - 1. Truncated negative
    binomial: (1 + eta) log of (1 + b high g(u)) / (1 + b low u), b = (1 - gamma) / gamma. That is
    concave over linear, so it has one peak. It lies where b high g'(u) (1 + b low u) = b low (1 + b
    high g(u)), which is bisected.
    """
    if runs.shape == math.inf:
        # high g(u) - low u is concave: its peak is where g'(u) = exp(-z mu - mu^2/2) = low/high.
        z = -mu / 2 + math.log(lean.high / lean.low) / mu
        return runs.mean * (lean.high * _NORMAL.cdf(z + mu) - lean.low * _NORMAL.cdf(z)) * SAFE
    odds = continuation_odds(runs)

    def moved(z: float) -> float:
        u, other = lean.low * _NORMAL.cdf(z), lean.high * _NORMAL.cdf(z + mu)
        return math.log1p(odds * (other - u) / (1 + odds * u))

    left, right = -40.0 - mu, 40.0
    while right - left > 1e-12:
        z = (left + right) / 2
        rises = math.log(lean.high / lean.low) - z * mu - mu * mu / 2 > moved(z)
        left, right = (z, right) if rises else (left, z)
    return (1 + runs.shape) * moved(left) * SAFE


def largest(
    cost: Callable[[float], float], epsilon: float, high: float, close: float = 1e-9
) -> float:
    """The largest mu, at most `high`, whose cost does not exceed epsilon.

    It takes secants between the two costs that enclose epsilon, and a bisection wherever those do
    not halve what is open (Dekker 1969). For each cost takes a while to compute.

    Args:
        cost: epsilon of a mu; it grows with mu.
        epsilon: that may not be exceeded.
        high: a mu that is looked no further than.
        close: how near the answer comes to the largest, relative to `high`.

    Returns:
        mu whose cost was computed, and does not exceed epsilon.

    Raises:
        BadInput: even the smallest mu that was tried costs more.
    """
    low, least = 0.0, close * high
    below, above = -epsilon, math.inf  # the costs at both ends, less epsilon
    halve = True
    while high - low > close * high and high > least:
        open_before = high - low
        middle = (
            (low + high) / 2
            if halve or above == math.inf
            else _secant(low, high, below, above, close)
        )
        excess = cost(middle) - epsilon
        low, below, high, above = (
            (middle, excess, high, above) if excess <= 0 else (low, below, middle, excess)
        )
        halve = not halve and high - low > open_before / 2
    if not low:
        raise BadInput(
            f"no training is cheap enough for epsilon {epsilon:g}. Raise it, or ask for less."
        )
    return low


def _secant(low: float, high: float, below: float, above: float, close: float) -> float:
    """Where a straight line meets epsilon, a little to the side of its farther end, so that both
    ends come near."""
    step = (high - low) * below / (below - above)
    beside = close * high / 2
    return min(
        max(low + step + (beside if step < (high - low) / 2 else -beside), low + beside),
        high - beside,
    )


@cache
def continuation_odds(runs: Runs) -> float:
    """(1 - gamma) / gamma of a truncated negative binomial of this mean (Papernot & Steinke 2022,
    Definition 1). The odds keep their digits where gamma is too near 1 to be told from it."""
    low, high = 0.0, MOST_MEAN**2
    while True:
        odds = (low + high) / 2
        if not low < odds < high:
            return high
        low, high = (odds, high) if odds / _scale(odds, runs.shape) < runs.mean else (low, odds)


def _scale(odds: float, shape: float) -> float:
    """(1 - gamma^eta) / eta, or its limit -log gamma."""
    stopped = math.log1p(odds)
    return -math.expm1(-shape * stopped) / shape if shape else stopped


def weight(runs: Runs, lean: Lean = STRAIGHT) -> float:
    """The factor on the Gaussian's delta: the bound on f' of (3), and the chance of no run at all,
    which counts beside other releases. It is 1 or more."""
    return lean.high * runs.mean + (math.exp(-runs.mean) if runs.shape == math.inf else 0.0)


@cache
def largest_count(runs: Runs) -> int:
    """The limit that K is cut off at: the least with probability `RARE` or less above it. It bounds
    how long a search may take, and costs nothing (above)."""
    total = 0.0
    for k, probability in _law(runs):
        total += probability
        if total >= 1 - RARE:
            return k
    raise AssertionError("the law has no end")


def number(uniform: float, runs: Runs, limit: int) -> int:
    """K for a secret uniform, by inversion of its law.

    Args:
        uniform: in (0, 1], from the meter.
        runs: the law of K.
        limit: above which K becomes the least there may be.

    Returns:
        1 or more; with a Poisson law 0 or more.
    """
    total = 0.0
    for k, probability in _law(runs):
        total += probability
        if total >= uniform:
            return k
        if k == limit:
            return 0 if runs.shape == math.inf else 1
    raise AssertionError("the law has no end")


def _law(runs: Runs) -> Iterator[tuple[int, float]]:
    """Each k with its probability. P(k+1)/P(k) is (1 - gamma)(k + eta)/(k + 1), and m/(k + 1) for
    Poisson."""
    if runs.shape == math.inf:
        k, probability = 0, math.exp(-runs.mean)
    else:
        odds, eta = continuation_odds(runs), runs.shape
        stopped = math.exp(-eta * math.log1p(odds))  # gamma^eta
        k, probability = 1, odds / (1 + odds) * stopped / _scale(odds, eta)
    while True:
        yield k, probability
        ratio = runs.mean if runs.shape == math.inf else odds / (1 + odds) * (k + eta)
        k, probability = k + 1, probability * ratio / (k + 1)
