"""What trainings on samples are stated at, beside what they cost when composed with nothing else.

python tools/price_samples.py

A training on samples is booked as (mu, delta0): but for a probability of delta0 it reveals no more
than a Gaussian mechanism of that mu (privacy/accounting/booking.py), so that anything may follow
from what it released. The price of that is the gap to its own profile. Printed for a total of
epsilon at delta = 1e-5, of which a tenth is for ten trainings' delta0.
"""

from __future__ import annotations

import numpy as np

from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import FINAL, curve_of, delta0_of, price
from dpladder.privacy.accounting.events import Booked, Counted, Gaussian, Sampled

DELTA = 1e-5
CASES = ((0.01, 1, 1.0), (0.01, 20, 1.0), (0.02, 50, 1.0), (0.1, 20, 8.0), (0.1, 100, 1.0))


def booked(rate: float, steps: int, sigma: float) -> Booked:
    sampled = Counted(Sampled(rate, Gaussian(sigma)), steps)
    return Booked((sampled,), delta0_of(DELTA, FINAL))


def stated(rate: float, steps: int, sigma: float) -> float:
    entry = price(booked(rate, steps, sigma), "add_remove")
    return gdp.epsilon(entry.mu, DELTA - entry.delta0)


def alone(rate: float, steps: int, sigma: float) -> float:
    """Epsilon of the training's own profile."""
    curve = curve_of(booked(rate, steps, sigma), "add_remove")
    return float(curve.epsilons[int(np.argmax(curve.deltas <= DELTA))])


def sigma_of(rate: float, steps: int, epsilon: float) -> float:
    """The noise multiplier that is stated at epsilon, within a thousandth."""
    low, high = 0.2, 20.0
    while high / low > 1.001:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if stated(rate, steps, middle) > epsilon else (low, middle)
    return high


def main() -> None:
    print("| samples of | steps | stated | alone | above it by |\n|---|---|---|---|---|")
    for rate, steps, epsilon in CASES:
        sigma = sigma_of(rate, steps, epsilon)
        told, own = stated(rate, steps, sigma), alone(rate, steps, sigma)
        row = f"| {rate:g} | {steps} | {told:.3f} | {own:.3f} | {100 * (told / own - 1):.0f} % |"
        print(row, flush=True)


if __name__ == "__main__":
    main()
