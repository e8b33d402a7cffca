"""Epsilon that trainings on samples are stated at, beside what they cost if nothing else follows.

python tools/price_samples.py

A training on samples is booked as (mu, delta0): but for a probability of delta0 it reveals no more
than a Gaussian mechanism of that mu (privacy/accounting/booking.py), so that anything may follow
from what it released. The price of that is the gap to its own profile. It falls with
`privacy.share`: one final training is booked at a tenth of that share of delta. The last column is
what the share costs: epsilon of many steps, which need none, under a lifetime limit that leaves
the whole share aside.
"""

from __future__ import annotations

import numpy as np
from terminal import print_head, print_row

from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import (
    FINAL,
    SAMPLED_SHARE,
    curve_of,
    delta0_of,
    dominating,
)
from dpladder.privacy.accounting.events import Booked, Counted, Gaussian, Sampled

DELTA = 1e-5
SHARES = (0.1, SAMPLED_SHARE, 0.5)
# Rate, steps and noise multiplier, chosen so that a share of 0.1 states about 1, 1, 1, 8, 8 and 1.
CASES = (
    (0.01, 1, 0.796),
    (0.01, 20, 0.901),
    (0.02, 50, 1.115),
    (0.02, 100, 0.584),
    (0.1, 20, 0.709),
    (0.1, 100, 3.953),
)


def main() -> None:
    shares = [f"stated at share {share:g}" for share in SHARES]
    print_head("samples of", "steps", "sigma", "composed alone", *shares)
    for rate, steps, sigma in CASES:
        sampled = Counted(Sampled(rate, Gaussian(sigma)), steps)
        profile = curve_of(Booked((sampled,), delta0_of(DELTA, FINAL)), "add_remove")
        alone, cells = float(profile.epsilons[int(np.argmax(profile.deltas <= DELTA))]), []
        for share in SHARES:
            delta0 = delta0_of(DELTA, FINAL, share)
            stated = gdp.epsilon(dominating(profile, delta0), DELTA - delta0)
            cells.append(f"{stated:.3f} (+{100 * (stated / alone - 1):.0f} %)")
        print_row(f"{rate:g}", steps, f"{sigma:g}", alone, *cells)
    mu = gdp.mu_from_epsilon(1.0, DELTA)
    aside = {share: gdp.epsilon(mu, DELTA * (1.0 - share)) - 1.0 for share in SHARES}
    words = (f"{share:g}: {100 * part:.1f} %" for share, part in aside.items())
    print("\nOf a lifetime limit of 1, set aside:", *words)


if __name__ == "__main__":
    main()
