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

MAX_BATCHED_TRAININGS = (
    32  # trainings that share a pass, at most: products of so many are tried beforehand
)

Shape = tuple[int, ...]
# one matrix per layer; one column more than its input is the bias
Weights = tuple[NDArray[np.float32], ...]


@dataclass(frozen=True)
class Constants:
    """The public facts of a training: from config, never from the data.

    Attributes:
        n0: nominal number of units. Sums are divided by it, never by the data's own number.
        classes: of the declared list.
        dimension: features per record.
        relation: what neighbours are.
        delta: the lineage's.
        cap: records per unit, at most.
        seed: of `public_random`.
        length: of a record's features, typically. It is public: kappa is relative to it.
        labels: classes that a record may be of, at most; `many` where each is a finding.
        network: that a training goes on from, where features are activations at a cut in it.
    """

    n0: int
    classes: int
    dimension: int
    relation: Relation = "add_remove"
    delta: float = 1e-5
    cap: int = 1
    seed: int = 0
    length: float = 1.0
    labels: Labels = 1
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
    rests on.

    Args:
        constants: whose seed it follows from.
        purpose: a number or more for what is drawn, so that two purposes share no stream.
    """
    return np.random.default_rng([constants.seed, *purpose])


@dataclass(frozen=True)
class Hyper:
    """How one training goes. The ladder's r is eta * steps.

    Attributes:
        eta: learning rate.
        steps: how many there are.
        mu: that all steps together may spend. Where shared sums are all that a training
            stands on, it spends nothing of it.
        delta0: what the training is booked at, where it samples.
    """

    eta: float
    steps: int
    mu: float
    delta0: float = 0.0

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
    """What a public head may be held to.

    Attributes:
        right: the share of public records that it is right about and was not fitted to, less one
            standard error.
        baseline: the share that is right if one always names their largest class.
    """

    right: float
    baseline: float


@dataclass(frozen=True)
class Declaration:
    """What a mechanism costs, and every draw that it will make.

    COMMIT recomputes the one from the other (privacy/accounting/draws.py).

    Attributes:
        events: that the ledger is charged.
        draws: with the sensitivities that their noise is made for.
    """

    events: tuple[Counted, ...]
    draws: tuple[Draw, ...] = ()


Logits = Callable[[Weights, Any], NDArray[np.float64]]
"""From released weights and features to logits, one row per record."""
