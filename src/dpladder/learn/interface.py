"""What every learner is given and what it gives back. No torch here: a plan asks a learner for its
cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.config.label_sets import Labels
from dpladder.config.learner_sections import Descending, Rated
from dpladder.config.model import Resources
from dpladder.errors import BadInput
from dpladder.network.facts import Network
from dpladder.privacy.accounting import gdp, memo
from dpladder.privacy.accounting.booking import price
from dpladder.privacy.accounting.draws import Draw, gaussian
from dpladder.privacy.accounting.events import Booked, Counted, Gaussian, Relation, Sampled
from dpladder.privacy.accounting.selection import largest
from dpladder.privacy.release.meter import Meter

CLOSE = 1e-4  # how near to the least a noise is found, where each look at its cost takes a while

Shape = tuple[int, ...]
# one matrix per layer; one column more than its input is the bias
Weights = tuple[NDArray[np.float32], ...]


@dataclass(frozen=True)
class Constants:
    """The public facts of a training: from config, never from the data."""

    n0: int  # nominal number of units
    classes: int
    dimension: int  # features per record
    relation: Relation = "add_remove"
    delta: float = 1e-5  # the lineage's
    cap: int = 1  # records per unit, at most
    seed: int = 0  # of `public_random`
    length: float = 1.0  # of a record's features, typically; kappa is told in it
    labels: Labels = 1  # classes that a record may be of, at most
    # that a training goes on from, where features are activations at a cut in it
    network: Network | None = None

    def __post_init__(self) -> None:
        for name in ("n0", "classes", "dimension", "cap"):
            if getattr(self, name) < 1:
                raise BadInput(
                    f"{name} is {getattr(self, name)}. It must be 1 or more, and public."
                )

    def enters(self, bound: float) -> float:
        """How far one unit moves a sum of vectors of norm `bound` per record when the unit enters,
        or leaves."""
        return bound * self.cap

    def moves(self, bound: float) -> float:
        """How far one unit moves a sum of vectors of norm `bound` per record: by its records, and
        twice as far when it is replaced, which takes one contribution out of the sum and puts
        another in."""
        return bound * self.cap * (2.0 if self.relation == "replace_one" else 1.0)

    def moves_apart(self, bound: float) -> float:
        """The same where two contributions are never opposite: their inner product is 0 or more, so
        a replaced unit's distance is |P - Q|^2 <= |P|^2 + |Q|^2. So it is for positive semidefinite
        matrices, and for counts of several kinds, of which a record is in one. Never of sums over a
        sample (privacy/accounting/draws.py, `in_sample`)."""
        return bound * self.cap * (math.sqrt(2.0) if self.relation == "replace_one" else 1.0)

    def moves_count(self, bound: float = 1.0) -> float:
        """The same for sums of numbers from 0 to `bound`, such as counts: a replaced unit moves one
        by no more than an added unit does. Never of sums over a sample."""
        return self.enters(bound)


def sigmoid_bias(classes: int) -> float:
    """Where a sigmoid's probability is 1/m (learn/links.py)."""
    return -math.log(max(classes - 1, 1))


def public_random(constants: Constants, *purpose: int) -> np.random.Generator:
    """A stream that everybody may know, for random starts and directions: the one place in a
    training that draws outside the meter. Noise never comes from it, nor anything else that privacy
    rests on."""
    return np.random.default_rng([constants.seed, *purpose])


@dataclass(frozen=True)
class Hyper:
    """One training: learning rate, steps, and the mu that all its steps together may spend; none of
    it where shared statistics are all that it stands on. The ladder's r is eta * steps."""

    eta: float
    steps: int
    mu: float
    delta0: float = 0.0  # what the training is booked at, where it samples

    def __post_init__(self) -> None:
        if not 0.0 < self.eta < math.inf:
            raise BadInput(f"eta is {self.eta}. It must be positive and finite.")

    @property
    def ridge(self) -> float:
        """lambda, for learners that solve instead of descending: 1/r
        (config/learner_sections.py)."""
        return 1.0 / (self.eta * self.steps)


@dataclass(frozen=True)
class Claim:
    """How often a public head is right about public records that it was not fitted to, less one
    standard error, and how often who always names their largest class."""

    right: float
    luck: float


@dataclass(frozen=True)
class Data:
    """One part of the private data. A record with label -1, or with features all zero, contributes
    exactly zero."""

    # an array (records, dimension) or (records, views, dimension), often a memory map, or mapped
    # when read
    features: Any
    labels: NDArray[np.int64]  # a class each, or the number of several (config/label_sets.py)
    # (records, 16): whose record it is; Poisson sampling needs it
    units: NDArray[np.uint8] | None = None
    covariance: NDArray[np.float64] | None = None  # released before, where trainings share one
    statistics: Path | None = None  # DP-LS's sums as released before (learn/dp_ls/statistics.py)
    start: NDArray[np.float32] | None = None  # a head trained on public data (learn/public_head.py)
    claim: Claim | None = None  # of that head, where public records guide each step
    sample: Data | None = None  # those records (learn/guide.py)
    worth: float | None = None  # as how many of the same kind, where a look told it before
    # of each record, where they are declared: for tests alone
    groups: NDArray[np.int64] | None = None


def plain(features: Any, rows: Any = slice(None)) -> Any:
    """Some records as they are: where there are several views, the first."""
    return features[rows] if features.ndim == 2 else features[rows, 0]


@dataclass(frozen=True)
class Declaration:
    """What a mechanism costs, and every draw that it will make."""

    events: tuple[Counted, ...]
    draws: tuple[Draw, ...] = ()


Publish = Callable[[str, Any], Any]
"""The one way a sum (a tensor) leaves a training: under its declared name, with the noise declared
for it."""


def publish(meter: Meter, name: str, total: Any) -> Any:
    """A tensor's noised sum, on the tensor's device."""
    noise = meter.noise(name, tuple(total.shape))
    return noise.onto(total.double(), total.new_tensor(noise.values, dtype=total.double().dtype))


Logits = Callable[[Weights, Any], NDArray[np.float64]]
"""From released weights and features to logits, one row per record."""


@dataclass(frozen=True)
class Losses:
    """Of a model that names no class. `of`: from released weights and features to how wrong it is
    about each record, whatever that comes to; `most`: a public figure, above which a loss counts as
    that (learn/score.py)."""

    of: Logits
    most: float


@dataclass(frozen=True)
class Rights:
    """Of a model that names no class, and is right or wrong. `of`: from released weights and
    features to 1 for each record that it is right about, and 0 for others."""

    of: Logits


@dataclass(frozen=True)
class LogOdds:
    """Of a model of findings. `of`: from released weights and features to a logit of each class by
    itself, above zero where the class is more likely present than not."""

    of: Logits


Judge = Logits | Losses | Rights | LogOdds | None
"""What tells how right weights are about a record; None where they are layers of a perceptron
(learn/score.py)."""


Train = Callable[[Data, Hyper, Any, Constants, Meter, Resources], Weights]


TrainMany = Callable[
    [Data, Sequence[Hyper], Any, Constants, Sequence[Meter], Resources], NDArray[np.float32]
]


def alone(train_many: TrainMany) -> Train:
    """`train` of a learner that trains many over one pass."""

    return lambda data, hyper, learner, constants, meter, resources: (
        train_many(data, [hyper], learner, constants, [meter], resources)[0],
    )


def metered(fit: Callable[..., Weights]) -> Train:
    """`train` of a learner that releases its sums by the names it declares."""

    return lambda data, hyper, learner, constants, meter, resources: fit(
        data, hyper, learner, constants, partial(publish, meter), resources
    )


def noise_multiplier(learner: Descending, hyper: Hyper, constants: Constants) -> float:
    """sigma: the noise sd of each step over the sensitivity of its sum, rounded to the safe
    side."""
    if learner.sampling_rate == 1.0:
        return gdp.sigma(hyper.mu, hyper.steps)
    return sampled_sigma(
        hyper.mu, hyper.delta0, hyper.steps, learner.sampling_rate, constants.relation
    )


def declaration(
    learner: Descending, hyper: Hyper, constants: Constants, shape: Shape
) -> Declaration:
    """A run's `steps` noised sums of gradients of this shape, each over a Poisson sample where the
    learner samples. A unit of `cap` records contributes `clip` at most, because each of them
    contributes clip / cap."""
    sigma, one = noise_multiplier(learner, hyper, constants), learner.clip / constants.cap
    moves = constants.moves(one)
    if learner.sampling_rate == 1.0:
        noise = gaussian("noise", sigma, moves, shape, hyper.steps)
        return Declaration((Counted(Gaussian(sigma), hyper.steps),), (noise,))
    sample = Draw("sample", "mask", learner.sampling_rate, count=hyper.steps)
    entering = constants.enters(one)
    noise = gaussian(
        "noise", sigma, moves, shape, hyper.steps, under=sample.name, entering=entering
    )
    booked = _booked(learner.sampling_rate, sigma, hyper.steps, hyper.delta0)
    return Declaration((Counted(booked),), (noise, sample))


def head_shape(learner: Any, constants: Constants) -> Shape:
    return constants.classes, constants.dimension + learner.bias


def noise_scale(learner: Descending, hyper: Hyper, constants: Constants) -> float:
    """The noise sd on a sum of clipped gradients."""
    return noise_multiplier(learner, hyper, constants) * constants.moves(
        learner.clip / constants.cap
    )


def logit_noise(
    learner: Descending, hyper: Hyper, constants: Constants, momentum: float = 0.0
) -> float:
    """kappa: the sd of the noise that a whole training puts into a logit, for a record of the
    public length.

    Every step adds noise of the same sd to the gradient, and a step size's worth of it to the
    weights: eta sigma C / n0. With momentum m it goes on moving them, by 1 + m + ... + m^(j-1)
    where j steps are left, and m^(j-1) once more in the free step, each at its step's learning
    rate. The steps' shares are independent, so their squares add; sqrt(T) sigma C = T C / mu makes
    that r C R / (n0 mu) times the root mean square of what momentum carries. Samples are told as if
    they were full batches.
    """
    carried = _carried(paces(learner, hyper.steps), momentum, learner.free_step)
    moves = constants.moves(learner.clip / constants.cap)
    step = hyper.eta * gdp.sigma(hyper.mu, hyper.steps) * moves / constants.n0
    return constants.length * step * carried


@lru_cache(maxsize=4096)
def _carried(rates: tuple[float, ...], momentum: float, free_step: bool) -> float:
    """From the last step back: what a step's noise moves is its own rate's worth, and m times what
    the next one's does."""
    moved, squares = 0.0, 0.0
    for rate in (rates[-1] * (1 + free_step), *rates[-2::-1]):
        moved = rate + momentum * moved
        squares += moved**2
    return math.sqrt(squares)


@lru_cache(maxsize=4096)
def _paces(schedule: str, steps: int) -> tuple[float, ...]:
    shares = [step / steps for step in range(steps)]
    if schedule == "cosine":  # Loshchilov & Hutter 2017, Eq. 5, without restarts
        return tuple((1 + math.cos(math.pi * share)) / 2 for share in shares)
    return tuple(1 - share if schedule == "linear" else 1.0 for share in shares)


def paces(learner: Descending, steps: int) -> tuple[float, ...]:
    """Each step's learning rate, over the first one's."""
    return _paces(learner.schedule if isinstance(learner, Rated) else "constant", steps)


def walked(learner: Descending, steps: int) -> float:
    """The deviation of a walk whose steps' own is their learning rate, over the first one's."""
    return math.hypot(*paces(learner, steps))


def batch_size(learner: Descending, constants: Constants) -> float:
    """What a sum is divided by: the units expected in it, from public figures alone
    (docs/design.md, line 12)."""
    return constants.n0 * learner.sampling_rate


def sampled_sigma(mu: float, delta0: float, steps: int, rate: float, relation: Relation) -> float:
    """The least noise, to 1e-4 of it, at which sampled steps are booked at no more than mu."""

    def cost(sigma: float) -> float:
        return price(_booked(rate, sigma, steps, delta0), relation).mu

    arguments = {"arguments": [mu, relation], "prices": repr(_booked(rate, 1.0, steps, delta0))}
    return memo.remembered(
        "sampled sigma", arguments, partial(least_noise, cost, mu, gdp.sigma(mu, steps))
    )


def least_noise(cost: Callable[[float], float], mu: float, enough: float) -> float:
    """The least noise, to 1e-4 of it, whose cost is mu at most. Cost falls with noise, nearly as
    its inverse, so that what `enough` costs, about as much as the full batch needs, tells how far
    to look."""

    def of(inverse: float) -> float:
        return cost(1.0 / inverse)

    high = 2.0 * mu / (enough * cost(enough))
    while (found := largest(of, mu, high, CLOSE)) > high * (1.0 - 2.0 * CLOSE):
        high *= 2.0
    return 1.0 / found


def _booked(rate: float, sigma: float, steps: int, delta0: float) -> Booked:
    return Booked((Counted(Sampled(rate, Gaussian(sigma)), steps),), delta0)
