"""Where trials look: the range of r = eta * steps, public draws from it, and the way back to (eta, steps)."""

from __future__ import annotations

import hashlib
import math

from dpladder.config.model import Search
from dpladder.errors import BadInput
from dpladder.search.trial import Trial

# How far a proportional prior lets r lie from its centre, either way. Wide, because a few noised scores decide a
# rung, and one wrong choice must not lose the optimum.
PROPORTIONAL_WIDTH = 10.0
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def bounds(search: Search) -> tuple[float, float]:
    """The smallest and largest r."""
    return search.eta[0] * search.steps[0], search.eta[1] * search.steps[1]


def clamp(r: float, search: Search) -> float:
    """The nearest r, by ratio, that some (eta, steps) reaches. Where eta hardly varies there are gaps."""
    low, high = bounds(search)
    r = min(max(r, low), high)
    fewest, most = _steps(r, search)
    if fewest <= most:
        return r
    below, above = search.eta[1] * most, search.eta[0] * fewest
    return below if r * r < below * above else above


def decompose(r: float, search: Search) -> tuple[float, int]:
    """(eta, steps) with eta * steps = r.

    `eta_first` takes the largest eta and so the fewest steps, `steps_first` the most steps and the smallest eta.
    `balanced` moves both through their ranges together: steps grow as a power of r, from the fewest at the smallest
    r to the most at the largest, so that neighbouring r train alike.
    """
    low, high = bounds(search)
    fewest, most = _steps(r, search) if low * (1 - 1e-9) <= r <= high * (1 + 1e-9) else (1, 0)
    if fewest > most:
        raise BadInput(
            f"r = {r:g} is out of reach: eta in {list(search.eta)} and steps in {list(search.steps)} give r from "
            f"{low:g} to {high:g}. Widen sweep.search.eta or sweep.search.steps, or ask for an r that they reach."
        )
    if search.decompose == "eta_first":
        steps = fewest
    elif search.decompose == "steps_first":
        steps = most
    else:
        way = math.log(r / low) / math.log(high / low) if high > low else 0.0
        steps = min(max(round(search.steps[0] * (search.steps[1] / search.steps[0]) ** way), fewest), most)
    return min(max(r / steps, search.eta[0]), search.eta[1]), steps


def draw(search: Search, epsilon: float, rung: int, trial: int, before: Trial | None = None) -> float:
    """A trial's r. `before` is the trial chosen on the rung below; only a prior or `binary` uses it.

    A draw depends on the public seed and on its own place alone: one trial more leaves the others where they are.
    """
    low, high = _interval(search, epsilon, rung, before)
    if search.draw == "uniform":  # Panda et al., Algorithm 3
        r = low + (high - low) * _uniform(search.seed, rung, trial)
    else:
        r = low * (high / low) ** _place(search, rung, trial)
    return clamp(r, search)


def _interval(search: Search, epsilon: float, rung: int, before: Trial | None) -> tuple[float, float]:
    low, high = bounds(search)
    if before is None:
        return low, high
    centre, factor = before.r, math.inf
    if search.prior == "proportional":  # r grows with epsilon: the first version of Panda et al. scales it so
        centre, factor = clamp(before.r * epsilon / before.epsilon, search), PROPORTIONAL_WIDTH
    elif search.prior == "monotone" and epsilon > before.epsilon:
        low = before.r
    elif search.prior == "monotone" and epsilon < before.epsilon:
        high = before.r
    if search.draw == "binary":  # each rung halves what is left, around the best so far
        factor = min(factor, (high / low) ** 0.5 ** (rung + 1))
    return max(low, centre / factor), min(high, centre * factor)


def _place(search: Search, rung: int, trial: int) -> float:
    """Where in the interval of log r a trial lies, between 0 and 1."""
    if search.draw == "log_uniform":
        return _uniform(search.seed, rung, trial)
    if (
        search.draw == "stratified"
    ):  # golden steps from a random start keep the gaps even for any number of trials
        return (_uniform(search.seed, rung) + trial * GOLDEN) % 1.0
    return _van_der_corput(trial + 1)  # grid and binary: 1/2, 1/4, 3/4, 1/8, ...


def _steps(r: float, search: Search) -> tuple[int, int]:
    """The fewest and most steps that reach r; the first exceeds the second where none does."""
    fewest = math.ceil(r / search.eta[1] * (1 - 1e-12))
    most = math.floor(r / search.eta[0] * (1 + 1e-12))
    return max(fewest, search.steps[0]), min(most, search.steps[1])


def _uniform(*place: int) -> float:
    """A public uniform in [0, 1), the same on every machine and for ever."""
    return int.from_bytes(hashlib.sha256(repr(("r", *place)).encode()).digest()[:6], "big") / 2.0**48


def _van_der_corput(index: int) -> float:
    """The binary digits of index mirrored at the point."""
    mirrored = f"{index:b}"[::-1]
    return int(mirrored, 2) / 2.0 ** len(mirrored)
