"""The public facts of a training, and what it gives back. No torch here: a plan asks what a
training costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.config.label_sets import Labels
from dpladder.errors import BadInput
from dpladder.network.facts import Network
from dpladder.privacy.accounting.draws import Draw
from dpladder.privacy.accounting.events import Counted, Relation

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
class Declaration:
    """What a mechanism costs, and every draw that it will make."""

    events: tuple[Counted, ...]
    draws: tuple[Draw, ...] = ()


Logits = Callable[[Weights, Any], NDArray[np.float64]]
"""From released weights and features to logits, one row per record."""
