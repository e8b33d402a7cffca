"""Where trials look: public draws of the total step size r = eta * steps, and the way back to (eta,
steps).

The unit of the search is kappa, the sd of the noise that a training puts into a logit. The best
kappa hardly depends on the number of records, epsilon or the data, where the best r moves over four
decades. What kappa is of an r is the learner's to say (`METHOD.logit_noise`). With `unit: r` a
place is r itself, as in the paper.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

from dpladder.config.learners import method
from dpladder.config.sweep_sections import Search
from dpladder.errors import BadInput
from dpladder.learn.interface import Constants, Hyper
from dpladder.search.prior import Belief, belief
from dpladder.search.trial import Trial

# How far a proportional prior lets r lie from its centre, either way. Wide, because a few noised
# scores decide a rung, and one wrong choice must not lose the optimum.
PROPORTIONAL_WIDTH = 10.0
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
# trials are placed over a prior so much wider than it is: differences tell where the best is
SPREAD = 2.0
RIDGES = (1e-6, 1e9)  # the r of a ridge, 1 / lambda, that kappa may ask for


@dataclass(frozen=True)
class Space:
    """The axis that r is searched on, for one learner under the public facts of a training. All
    that it says is public.

    Attributes:
        search: the range of r, its unit and how it is drawn.
        learner: its section in the config.
        constants: public sizes.
    """

    search: Search
    learner: Any
    constants: Constants

    def reach(self) -> tuple[float, float]:
        """The smallest and largest r. A ridge has no steps that could limit it."""
        if self.search.unit == "kappa" and self.learner.searches == "ridge":
            return RIDGES
        return bounds(self.search)

    def clamp(self, r: float) -> float:
        """The nearest r that a training can have."""
        low, high = self.reach()
        if self.learner.searches == "ridge":
            return min(max(r, low), high)
        return clamp(r, self.search)

    def kappa(self, r: float, mu: float) -> float:
        """The place of r on the search's axis, for a training of this mu."""
        if self.search.unit == "r":
            return r
        hyper = hyper_of(self.learner, self.search, r, mu)
        law = method(self.learner.name).logit_noise
        assert law is not None, "what is tuned has one (config/method.py)"
        kappa: float = law(self.learner, hyper, self.constants)
        return kappa

    def r(self, kappa: float, mu: float) -> float:
        """The r of a place: the other way round, by halving, because kappa grows with r."""
        if self.search.unit == "r":
            return self.clamp(kappa)
        low, high = self.reach()
        for _ in range(60):
            middle = self.clamp(math.sqrt(low * high))
            low, high = (low, middle) if self.kappa(middle, mu) > kappa else (middle, high)
        return self.clamp(math.sqrt(low * high))

    def range(self) -> tuple[float, float]:
        """The smallest and largest place."""
        return self.search.kappa if self.search.unit == "kappa" else self.reach()

    def belief(self) -> Belief | None:
        """Where the best place lies on public data."""
        if self.search.prior != "lognormal" or self.search.unit == "r":
            return None
        return belief(self.learner.name, self.search)


def bounds(search: Search) -> tuple[float, float]:
    """The smallest and largest r that some (eta, steps) reaches."""
    return search.eta[0] * search.steps[0], search.eta[1] * search.steps[1]


def clamp(r: float, search: Search) -> float:
    """The nearest r, by ratio, that some (eta, steps) reaches. Where eta hardly varies there are
    gaps."""
    low, high = bounds(search)
    r = min(max(r, low), high)
    fewest, most = _steps(r, search)
    if fewest <= most:
        return r
    below, above = search.eta[1] * most, search.eta[0] * fewest
    return below if r * r < below * above else above


def hyper_of(
    learner: Any, search: Search, r: float | None, mu: float, delta0: float = 0.0
) -> Hyper:
    """One training's hyperparameters.

    What r stands for, and which fields its section has, is the learner's to say
    (config/learner_sections.py): eta * steps, or 1 / lambda of a ridge.

    Args:
        learner: its section in the config.
        search: how r falls into eta and steps.
        r: None where the learner has its own eta and steps.
        mu: that the training may cost.
        delta0: that it is booked at, where it samples.
    """
    if r is None:
        return Hyper(learner.eta, learner.steps, mu, delta0)
    if learner.searches == "ridge":
        return Hyper(r / learner.steps, learner.steps, mu, delta0)
    return Hyper(*decompose(r, search), mu, delta0)


def decompose(r: float, search: Search) -> tuple[float, int]:
    """(eta, steps) with eta * steps = r.

    `eta_first` takes the largest eta and so the fewest steps, `steps_first` the most steps and the
    smallest eta. `balanced` moves both through their ranges together, so that neighbouring r train
    alike. Steps grow as a power of r, from the fewest at the smallest r to the most at the largest.
    `random` takes any of the possible steps, by a public number that hangs on r alone (Panda et
    al., Algorithm 3).
    """
    low, high = bounds(search)
    fewest, most = _steps(r, search) if low * (1 - 1e-9) <= r <= high * (1 + 1e-9) else (1, 0)
    if fewest > most:
        raise BadInput(
            f"r = {r:g} is out of reach: eta in {list(search.eta)} and steps in "
            f"{list(search.steps)} give r from {low:g} to {high:g}. Widen sweep.search.eta or "
            "sweep.search.steps, or ask for an r that they reach."
        )
    if search.decompose == "eta_first":
        steps = fewest
    elif search.decompose == "steps_first":
        steps = most
    elif search.decompose == "random":
        steps = fewest + math.floor((most - fewest + 1) * _public_uniform(search.seed, repr(r)))
    else:
        way = math.log(r / low) / math.log(high / low) if high > low else 0.0
        steps = min(
            max(round(search.steps[0] * (search.steps[1] / search.steps[0]) ** way), fewest), most
        )
    return min(max(r / steps, search.eta[0]), search.eta[1]), steps


def draw(
    space: Space, mu: float, epsilon: float, rung: int, trial: int, before: Trial | None = None
) -> tuple[float, float]:
    """A trial's place and r.

    A draw depends on the public seed and on its own place alone: one trial more leaves the others
    where they are.

    Args:
        space: the axis.
        mu, epsilon: of the trial's training, and of its rung.
        rung, trial: its place in the ladder.
        before: the trial chosen on the rung below, by released scores. Only a prior that follows it
            or `binary` uses it.

    Returns:
        The place on the axis, and r.
    """
    search = space.search
    low, high = _interval(space, mu, epsilon, rung, before)
    prior = space.belief()
    if search.draw == "uniform":  # Panda et al., Algorithm 3
        place = low + (high - low) * _public_uniform(search.seed, rung, trial)
    elif prior is not None and search.draw == "stratified":
        place = min(max(prior.at(_prior_share(search, rung, trial), SPREAD), low), high)
    else:
        place = low * (high / low) ** _place(search, rung, trial)
    r = space.r(place, mu)
    return space.kappa(r, mu), r


def _interval(
    space: Space, mu: float, epsilon: float, rung: int, before: Trial | None
) -> tuple[float, float]:
    """Where on the axis a trial may lie, from and to: all of the range, or what a trial before
    leaves of it."""
    search = space.search
    low, high = space.range()
    if before is None:
        return low, high
    centre, factor = space.kappa(space.clamp(before.r), mu), math.inf
    # r grows with epsilon: the first version of Panda et al. scales it so
    if search.prior == "proportional":
        centre = space.kappa(space.clamp(before.r * epsilon / before.epsilon), mu)
        factor = PROPORTIONAL_WIDTH
    elif search.prior == "monotone" and epsilon > before.epsilon:
        low = centre
    elif search.prior == "monotone" and epsilon < before.epsilon:
        high = centre
    if search.draw == "binary":  # each rung halves what is left, around the best so far
        factor = min(factor, (high / low) ** 0.5 ** (rung + 1))
    return max(low, centre / factor), min(high, centre * factor)


def _prior_share(search: Search, rung: int, trial: int) -> float:
    """Where in the prior a trial lies, between 0 and 1: first its quarters, then its middle, then
    between."""
    quarters = (0.25, 0.75, 0.5)
    if trial < len(quarters):
        return quarters[trial if rung % 2 == 0 or trial == 2 else 1 - trial]
    return _van_der_corput(trial + 1)


def _place(search: Search, rung: int, trial: int) -> float:
    """Where in the interval of the logarithm a trial lies, between 0 and 1."""
    if search.draw == "log_uniform":
        return _public_uniform(search.seed, rung, trial)
    # golden steps from a random start keep the gaps even for any number of trials
    if search.draw == "stratified":
        return (_public_uniform(search.seed, rung) + trial * GOLDEN) % 1.0
    return _van_der_corput(trial + 1)  # grid and binary: 1/2, 1/4, 3/4, 1/8, ...


def _steps(r: float, search: Search) -> tuple[int, int]:
    """The fewest and most steps that reach r; the first exceeds the second where none does."""
    fewest = math.ceil(r / search.eta[1] * (1 - 1e-12))
    most = math.floor(r / search.eta[0] * (1 + 1e-12))
    return max(fewest, search.steps[0]), min(most, search.steps[1])


def _public_uniform(*place: object) -> float:
    """A public uniform in [0, 1), the same on every machine and for ever."""
    return (
        int.from_bytes(hashlib.sha256(repr(("r", *place)).encode()).digest()[:6], "big") / 2.0**48
    )


def _van_der_corput(index: int) -> float:
    """The binary digits of index mirrored at the point."""
    mirrored = f"{index:b}"[::-1]
    return int(mirrored, 2) / 2.0 ** len(mirrored)
