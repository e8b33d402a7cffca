"""What every learner is given and what it gives back. No torch here: a plan asks a learner for its cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpladder.config.learners import Descending
from dpladder.config.model import Resources
from dpladder.errors import BadInput
from dpladder.privacy import gdp
from dpladder.privacy.meter import Draw, Meter
from dpladder.privacy.spend import Counted, Gaussian, Relation, Sampled, new_accountant, to_dp_event

Shape = tuple[int, ...]
Weights = tuple[NDArray[np.float32], ...]  # one matrix per layer; one column more than its input is the bias


@dataclass(frozen=True)
class Constants:
    """The public facts of a training: from config, never from the data."""

    n0: int  # nominal number of units
    classes: int
    dimension: int  # features per record
    relation: Relation = "add_remove"
    delta: float = 1e-5  # the lineage's; only sampled steps are calibrated at it
    cap: int = 1  # records per unit, at most
    seed: int = 0  # of `public_random`

    def __post_init__(self) -> None:
        for name in ("n0", "classes", "dimension", "cap"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}. It must be 1 or more, and public.")

    @property
    def doubling(self) -> int:
        """Replacing a unit takes one contribution out of a sum and puts another in."""
        return 2 if self.relation == "replace_one" else 1


def public_random(constants: Constants, *purpose: int) -> np.random.Generator:
    """A stream that everybody may know, for random starts and directions: the one place in a training that draws outside
    the meter. Noise never comes from it, nor anything else that privacy rests on."""
    return np.random.default_rng([constants.seed, *purpose])


@dataclass(frozen=True)
class Hyper:
    """One training: learning rate, steps, and the mu that all its steps together may spend; none of it where shared
    statistics are all that it stands on. The ladder's r is eta * steps."""

    eta: float
    steps: int
    mu: float

    def __post_init__(self) -> None:
        if not 0.0 < self.eta < math.inf:
            raise BadInput(f"eta is {self.eta}. It must be positive and finite.")

    @property
    def ridge(self) -> float:
        """lambda, for learners that solve instead of descending: 1/r (config/learners.py)."""
        return 1.0 / (self.eta * self.steps)


@dataclass(frozen=True)
class Data:
    """One part of the private data. A record with label -1, or with features all zero, contributes exactly zero."""

    features: NDArray[Any]  # (records, dimension) or (records, views, dimension), often a memory map
    labels: NDArray[np.int64]
    units: NDArray[np.uint8] | None = None  # (records, 16): whose record it is; Poisson sampling needs it
    covariance: NDArray[np.float64] | None = None  # released before, where trainings share one
    statistics: Path | None = None  # DP-LS's sums as released before (learn/statistics.py)


@dataclass(frozen=True)
class Declaration:
    """What a mechanism costs, and every draw that it will make."""

    events: tuple[Counted, ...]
    draws: tuple[Draw, ...]


Release = Callable[[str, Any], Any]
"""The one way a sum (a tensor) leaves a training: under its declared name, with the noise declared for it."""


def releasing(meter: Meter, draws: Iterable[Draw]) -> Release:
    scales = {draw.name: draw.scale for draw in draws}

    def release(name: str, total: Any) -> Any:
        noise = meter.gaussian(name, scales[name], tuple(total.shape))
        return total + total.new_tensor(noise)

    return release


Train = Callable[[Data, Hyper, Any, Constants, Meter, Resources], Weights]


def alone(train_many: Callable[..., NDArray[np.float32]]) -> Train:
    """`train` of a learner that trains many over one pass."""

    def train(
        data: Data, hyper: Hyper, learner: Any, constants: Constants, meter: Meter, resources: Resources
    ) -> Weights:
        return (train_many(data, [hyper], learner, constants, [meter], resources)[0],)

    return train


def metered(declare: Callable[[Any, Hyper, Constants], Declaration], fit: Callable[..., Weights]) -> Train:
    """`train` of a learner that releases its sums by the names it declares."""

    def train(
        data: Data, hyper: Hyper, learner: Any, constants: Constants, meter: Meter, resources: Resources
    ) -> Weights:
        release = releasing(meter, declare(learner, hyper, constants).draws)
        return fit(data, hyper, learner, constants, release, resources)

    return train


class Method(Protocol):
    """A learner: a module with these two functions, and one line in the registry. `learner` is its own section of the
    config."""

    def declare(self, learner: Any, hyper: Hyper, constants: Constants) -> Declaration: ...

    def train(
        self,
        data: Data,
        hyper: Hyper,
        learner: Any,
        constants: Constants,
        meter: Meter,
        resources: Resources,
    ) -> Weights: ...


def noise_multiplier(learner: Descending, hyper: Hyper, constants: Constants) -> float:
    """sigma: the noise sd of each step over the sensitivity of its sum, rounded to the safe side."""
    if learner.sampling_rate == 1.0:
        return gdp.sigma(hyper.mu, hyper.steps)
    return _sampled_sigma(hyper.mu, hyper.steps, learner.sampling_rate, constants.relation, constants.delta)


def noise_scale(learner: Descending, hyper: Hyper, constants: Constants) -> float:
    """The noise sd on a sum of clipped gradients."""
    return noise_multiplier(learner, hyper, constants) * learner.clip * constants.doubling


def declaration(learner: Descending, hyper: Hyper, constants: Constants, shape: Shape) -> Declaration:
    """A run's `steps` noised sums of gradients of this shape, each over a Poisson sample where the learner samples."""
    gaussian = Gaussian(noise_multiplier(learner, hyper, constants))
    noise = Draw("noise", "gaussian", noise_scale(learner, hyper, constants), shape, hyper.steps)
    if learner.sampling_rate == 1.0:
        return Declaration((Counted(gaussian, hyper.steps),), (noise,))
    sample = Draw("sample", "mask", learner.sampling_rate, count=hyper.steps)
    return Declaration((Counted(Sampled(learner.sampling_rate, gaussian), hyper.steps),), (noise, sample))


def batch_size(learner: Descending, constants: Constants) -> float:
    """What a sum is divided by: the units expected in it, from public figures alone (DESIGN, contract line 12)."""
    return constants.n0 * learner.sampling_rate


@lru_cache(maxsize=256)
def _sampled_sigma(mu: float, steps: int, rate: float, relation: Relation, delta: float) -> float:
    """The least noise, to 0.5 %, at which sampled steps keep the epsilon that mu-GDP has at the lineage's delta.

    Sampled steps have no mu of their own (their profile is not a Gaussian's), so the two are made to meet at delta.
    """
    from dp_accounting import SelfComposedDpEvent

    target = gdp.epsilon(mu, delta)

    def enough(sigma: float) -> bool:
        step = to_dp_event(Sampled(rate, Gaussian(sigma)), relation, "pld")
        accountant = new_accountant(relation, "pld").compose(SelfComposedDpEvent(step, steps))
        return bool(accountant.get_epsilon(delta) <= target)

    high = gdp.sigma(mu, steps)  # the full batch's noise is enough, but for the accountant's own rounding
    while not enough(high):
        high *= 1.01
    low = high / 2
    while enough(low):
        low, high = low / 2, low
    while high > low * 1.005:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
