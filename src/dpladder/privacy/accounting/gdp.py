"""Gaussian differential privacy in closed form: mu, epsilon, delta and sigma of full-batch Gaussian
releases.

T releases of noise multiplier sigma are exactly sqrt(T)/sigma-GDP (Dong, Roth & Su 2019, Corollary
3.3). And mu-GDP is exactly the curve delta(epsilon, mu) below (Corollary 2.13 there; Balle & Wang
2018, Theorem 8). Every function rounds to the safe side: epsilon, delta and sigma up, a mu that may
be spent down, a mu that was spent up. So epsilon(mu_from_epsilon(e, d), d) <= e, and
mu_from_sigma(sigma(m, T), T) <= m, with a relative slack below 1e-9.

"sigma" is a noise multiplier everywhere: the sd of the noise over the L2 sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from dpladder.errors import BadInput

# Relative error of the computed delta, measured against 60-digit arithmetic: below 1e-13.
_DELTA_SLACK = 5e-13
# delta() adds one slack, epsilon() aims two below its delta, mu() four: each stays inside the
# other.
_EPSILON_AIM = 1 - 2 * _DELTA_SLACK
_MU_AIM = 1 - 4 * _DELTA_SLACK
# A few units in the last place, for formulas of two or three operations.
_UP = 1 + 2.0**-50
_FAR_UP = 1 + 2.0**-48

# Newton's steps square their error: after one this small, only rounding is left.
_LAST_STEP = 1e-9

# Nodes and weights of the six-point Gauss-Legendre rule on [-1, 1] (Abramowitz & Stegun, Table
# 25.4).
_LEGENDRE = (
    (0.2386191860831969, 0.4679139345726910),
    (0.6612093864662645, 0.3607615730481386),
    (0.9324695142031521, 0.1713244923791704),
)


LARGEST_EPSILON = 1e12  # far above every limit that a config takes


def delta(epsilon: float, mu: float) -> float:
    """The delta at which mu-GDP gives epsilon (Dong, Roth & Su 2019, Corollary 2.13).

    Args:
        epsilon: 0 or more.
        mu: 0 or more.

    Returns:
        delta, rounded up: above the exact figure by a factor of 1 + 5e-13.
    """
    _check("epsilon", epsilon, zero=True)
    _check("mu", mu, zero=True)
    if mu == 0:
        return 0.0
    a = epsilon / mu - mu / 2
    density = math.exp(-a * a / 2) / math.sqrt(2 * math.pi)
    if density == 0 and a > 0:
        exact = 0.0
    elif a < -8:  # nearly 1; R(a) would overflow on the way
        exact = _normal_tail(a) - density * _mills(a + mu)
    else:
        exact = density * _mills_drop(a, mu)
    return min(1.0, max(exact * (1 + _DELTA_SLACK), math.ulp(0.0)))


def epsilon(mu: float, delta: float) -> float:
    """The smallest epsilon that mu-GDP gives at delta (Dong, Roth & Su 2019, Corollary 2.13).

    Args:
        mu: 0 or more.
        delta: between 0 and 1, both excluded.

    Returns:
        epsilon, rounded up; 0 where delta alone covers the mechanism.
    """
    _check("mu", mu, zero=True)
    _check_delta(delta)
    aim = delta * _EPSILON_AIM
    if math.erf(mu / math.sqrt(8)) <= aim:  # delta(0, mu): the total variation distance
        return 0.0
    # log delta is concave in a (a convolution of log-concave functions). So Newton's steps descend
    # from the safe side: at the first a, delta <= P(N > a) <= exp(-a^2/2)/2 <= aim.
    a = _tail_point(aim)
    for _ in range(100):
        drop = _mills_drop(a, mu)
        # d delta / d epsilon = -exp(epsilon) P(N > b) = -phi(a) R(b), and epsilon = mu (a + mu/2)
        step = (_log_delta(a, drop) - math.log(aim)) * drop / (mu * _mills(a + mu))
        a += step
        if abs(step) < _LAST_STEP:
            break
    return max(0.0, mu * (a + mu / 2) * _UP)


def mu_from_epsilon(epsilon: float, delta: float) -> float:
    """The largest mu whose epsilon at delta is not above `epsilon`: what a budget buys.

    Args:
        epsilon: above 0.
        delta: between 0 and 1, both excluded.

    Returns:
        mu, rounded down, so that `epsilon(mu_from_epsilon(e, d), d) <= e`.
    """
    _check("epsilon", epsilon)
    if epsilon > LARGEST_EPSILON:
        raise BadInput(
            f"epsilon is {epsilon}. It must be at most {LARGEST_EPSILON:g}: above that it protects "
            "nobody, and figures overflow."
        )
    _check_delta(delta)
    aim = delta * _MU_AIM
    # The first a is that of `epsilon` above, so mu starts below its answer. Newton in log mu, where
    # log delta is all but straight at both ends: slope 1 where delta(0, mu) is near, (epsilon/mu)^2
    # in the tail.
    a = _tail_point(aim)
    mu = 2 * epsilon / (a + math.sqrt(a * a + 2 * epsilon))
    for _ in range(100):
        a = epsilon / mu - mu / 2
        drop = _mills_drop(a, mu)
        # d delta / d mu = phi(a), so d log delta / d log mu = mu / (R(a) - R(b))
        step = (math.log(aim) - _log_delta(a, drop)) * drop / mu
        mu *= math.exp(step)
        if abs(step) < _LAST_STEP:
            break
    return mu / _UP


def sigma(mu: float, steps: int) -> float:
    """The noise multiplier with which `steps` Gaussian releases are mu-GDP together.

    sigma = sqrt(steps) / mu (Dong, Roth & Su 2019, Corollary 3.3).

    Args:
        mu: of all releases together, above 0.
        steps: a whole number, 1 or more.

    Returns:
        Noise sd over L2 sensitivity, of each release, rounded up.
    """
    _check("mu", mu)
    _check_steps(steps)
    return math.sqrt(steps) / mu * _FAR_UP


def mu_from_sigma(sigma: float, steps: int) -> float:
    """The mu of `steps` Gaussian releases together.

    mu = sqrt(steps) / sigma (Dong, Roth & Su 2019, Corollary 3.3).

    Args:
        sigma: noise sd over L2 sensitivity, of each release, above 0.
        steps: a whole number, 1 or more.

    Returns:
        mu, rounded up.
    """
    _check("sigma", sigma)
    _check_steps(steps)
    return math.sqrt(steps) / sigma * _UP


def compose(mus: Iterable[float]) -> float:
    """The mu of releases together: sqrt(sum of mu^2), rounded up (Dong, Roth & Su 2019, Corollary
    3.3). It holds even when later mus depend on earlier releases (Smith & Thakurta 2022).
    """
    return math.sqrt(math.fsum(_squared(m) for m in mus)) * _UP


def remaining(total_mu: float, mus: Iterable[float]) -> float:
    """The mu that may still be spent within `total_mu` after `mus`.

    Args:
        total_mu: that all releases together may come to.
        mus: of the releases before.

    Returns:
        sqrt(total_mu^2 - sum of mu^2), rounded down; 0 when nothing is left.
    """
    _check("total_mu", total_mu, zero=True)
    total = total_mu * total_mu
    left = math.fsum([total, *(-_squared(m) for m in mus)]) - total * 2.0**-47
    return math.sqrt(left) / _UP if left > 0 else 0.0


def mu_of_pure(epsilon: float) -> float:
    """The mu for which every epsilon-DP mechanism is mu-GDP: 2 Phi^-1(e^epsilon / (1 + e^epsilon)).

    The two trade-off curves touch where both errors are 1/(1 + e^epsilon): a Gaussian's errors are
    equal at Phi(-mu/2). The pure curve is two straight lines through that point, and the Gaussian
    one, convex and symmetric, lies below both.

    Args:
        epsilon: 0 or more.

    Returns:
        mu, rounded up.
    """
    _check("epsilon", epsilon, zero=True)
    if epsilon > 700:  # P(N > z) <= exp(-z^2/2)/2 turned around
        return 2 * math.sqrt(2 * epsilon) * _UP
    low, high = 0.0, math.sqrt(2 * epsilon) + epsilon
    while True:
        z = (low + high) / 2
        if not low < z < high:
            return 2 * high * (1 + 1e-13)
        if epsilon < 1:  # P(|N| < z) = tanh(epsilon/2), said where it keeps its digits
            enough = math.erf(z / math.sqrt(2)) >= math.tanh(epsilon / 2)
        else:
            enough = _normal_tail(z) <= 1 / (1 + math.exp(epsilon))
        low, high = (low, z) if enough else (z, high)


def pure_of_mu(mu: float) -> float:
    """The largest epsilon, rounded down, for which every epsilon-DP mechanism is mu-GDP: mu_of_pure
    turned around."""
    _check("mu", mu, zero=True)
    z = mu / math.sqrt(8)
    if z > 20:  # P(N > z) <= exp(-z^2/2)/2, and no probability underflows
        return z * z / _FAR_UP
    # e^epsilon = (1 + erf z) / (1 - erf z) = 1 + 2 erf z / erfc z
    return math.log1p(2 * math.erf(z) / math.erfc(z)) * (1 - 1e-12)


def _log_delta(a: float, drop: float) -> float:
    """log of delta = phi(a) (R(a) - R(b)), where a, b = epsilon/mu -+ mu/2 and R is the Mills
    ratio.

    The usual form P(N > a) - e^epsilon P(N > b), because e^epsilon phi(b) = phi(a).
    """
    return -a * a / 2 - math.log(2 * math.pi) / 2 + math.log(drop)


def _mills_drop(a: float, mu: float) -> float:
    """R(a) - R(a + mu) > 0, for close arguments as the integral of -R'(x) = 1 - x R(x), which does
    not cancel."""
    if mu >= 0.5:
        return _mills(a) - _mills(a + mu)
    half, middle = mu / 2, a + mu / 2
    return half * math.fsum(
        weight * (_mills_slope(middle - half * node) + _mills_slope(middle + half * node))
        for node, weight in _LEGENDRE
    )


def _mills(x: float) -> float:
    """The Mills ratio R(x) = P(N > x) / phi(x)."""
    if x < 3:
        return math.sqrt(2 * math.pi) * math.exp(x * x / 2) * _normal_tail(x)
    return 1 / (x + _mills_fraction(x))


def _mills_slope(x: float) -> float:
    """-R'(x) = 1 - x R(x)."""
    if x < 3:
        return 1 - x * _mills(x)
    tail = _mills_fraction(x)
    return tail / (x + tail)


def _mills_fraction(x: float) -> float:
    """1/(x + 2/(x + 3/(x + ...))), so that R(x) = 1/(x + this) (Laplace's continued fraction); for
    x >= 3."""
    terms = 40 if x < 6 else 15
    tail = (math.sqrt(x * x + 4 * terms) - x) / 2  # where the fraction would settle
    for n in range(terms, 0, -1):
        tail = n / (x + tail)
    return tail


def _normal_tail(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2


def _tail_point(probability: float) -> float:
    """An a with P(N > a) <= probability, from P(N > a) <= exp(-a^2/2)/2 for a >= 0."""
    return math.sqrt(max(0.0, -2 * math.log(2 * probability)))


def _squared(mu: float) -> float:
    _check("mu", mu, zero=True)
    return max(mu * mu, math.ulp(0.0)) if mu else 0.0  # a square that underflows is no zero


def _check(name: str, value: float, zero: bool = False) -> None:
    low_enough = value >= 0 if zero else value > 0  # False for NaN
    if not (low_enough and value < math.inf):
        allowed = "zero or more" if zero else "positive"
        raise BadInput(f"{name} is {value}. It must be {allowed} and finite.")


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise BadInput(
            f"delta is {delta}. It must lie between 0 and 1; well below one over the number of "
            "units."
        )


def _check_steps(steps: int) -> None:
    if not 1 <= steps < math.inf or steps != int(steps):
        raise BadInput(f"steps is {steps}. It must be a whole number, 1 or more.")
