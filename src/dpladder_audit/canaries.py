"""An empirical audit of one whole training: the demo's learner on data of the demo's shape, with
canaries in it.

A canary is a record in a direction across from the data's. Canaries of the other classes alone
share that direction. A fair coin decides whether it is in the data. It is just long enough for its
gradient to be clipped, and too short for the softmax to learn it. So that gradient is one direction
of length C at every step. Its trace in the released weights is the largest that a record can leave.
It is a shift of mu beside noise of deviation 1, less a little for momentum. Nothing but the
released weights is looked at, and only the surest guesses count (dpladder_audit/engine/one_run.py).

One run shows the more the larger its claim is. At a total of 8 that is more than half of the claim,
at the demo's own 1 a third.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from dpladder.config.model import Resources
from dpladder.config.sweep_sections import Search
from dpladder.jobs.train_final import r_by_prior
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.methods.dp_gd import Descent
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import Entry
from dpladder.privacy.accounting.events import Composed, mu
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release.meter import Meter, Streams
from dpladder.privacy.release.noise import SecretNoise, uniform
from dpladder.search.space import Space
from dpladder.search.training import Training, training_of
from dpladder_audit.engine.one_run import mu_bound

RECORDS, LENGTH = 4_000, 32.0  # the demo's, and how long it makes each of them
SHORT = 1.2  # a canary's length; its gradient at equal probabilities is 0.95 times that, and C is 1
CONSTANTS = Constants(n0=RECORDS, classes=10, dimension=1_280, delta=1e-5)
DIRECTIONS = CONSTANTS.dimension // 2  # for canaries; the other half is the data's
CANARIES = CONSTANTS.classes * DIRECTIONS
# Of the canaries, that are guessed: few tell most of a good claim, many of one that is far off.
GUESSED_SHARES = (0.1, 0.33)
CHANCE = 0.05  # that the bound exceeds what is true, at the most
EPSILON = 8.0

Coins = NDArray[np.bool_]


@dataclass(frozen=True)
class Bound:
    """What one run shows: a lower bound on epsilon, and what the training claims.

    Attributes:
        correct: guesses that are right.
        guesses: how many were ventured: the surest ones.
        canaries: how many coins were thrown.
        chance: that the bound exceeds what is true, at most.
        claimed, bound: epsilon at CONSTANTS.delta.
    """

    correct: int
    guesses: int
    canaries: int
    chance: float
    claimed: float
    bound: float

    @property
    def ok(self) -> bool:
        """Whether the run contradicts the claim in nothing."""
        return self.bound <= self.claimed


def audit(key: bytes, epsilon: float = EPSILON) -> Bound:
    """One run of the demo's training, audited by canaries.

    Args:
        key: home's subkey for audits. Noise and coins hang on it, so that an audit repeats.
        epsilon: of the training, at CONSTANTS.delta.
    """
    source = SecretNoise(key, "audit canaries", "0")
    coins = uniform(source.stream("coins", 0), (CANARIES,)) < 0.5
    training = demo(epsilon)
    return guess_membership(training, released(training, coins, source), coins)


def demo(epsilon: float) -> Training:
    """The demo's final training, at all of a total."""
    space, most = (
        Space(Search(), Descent(), CONSTANTS),
        gdp.mu_from_epsilon(epsilon, CONSTANTS.delta),
    )
    return training_of(space, r_by_prior(space, most), Entry(most))


def released(
    training: Training, coins: Coins, source: Streams, meter: Callable[..., Meter] = Meter
) -> Floats:
    """The weights of a training on the made-up data and the canaries whose coins say so.

    Args:
        training: the demo's.
        coins: (canaries,), whether each is in the data.
        source: of the noise.
        meter: makes the meter; a test puts a broken one here.

    Returns:
        float64 (classes, dimension).
    """
    declared = meter(training.declared.draws, source)
    [weights] = training.run(_data(coins), declared, Resources())
    declared.close()
    return weights.astype(np.float64)


def guess_membership(training: Training, weights: Floats, coins: Coins) -> Bound:
    """Guess in or out of released weights, where they say it most clearly.

    Args:
        training: whose claim is held against the bound.
        weights: that it released, (classes, dimension).
        coins: whether each canary was in the data.

    Returns:
        The best bound over several numbers of guesses; the chance of an error is shared out among
        them.
    """
    across = weights[:, CONSTANTS.dimension - DIRECTIONS :]
    scores = (across - across.mean(axis=0)).ravel()
    scores -= np.median(scores)  # coins are fair
    right = ((scores > 0) == coins)[np.argsort(-np.abs(scores))]
    tried = [
        (int(right[:guesses].sum()), guesses)
        for guesses in (round(sure * CANARIES) for sure in GUESSED_SHARES)
    ]
    bounds = [
        mu_bound(correct, guesses, CANARIES, CHANCE / len(GUESSED_SHARES))
        for correct, guesses in tried
    ]
    bound, (correct, guesses) = max(zip(bounds, tried, strict=True))
    claimed = mu(Composed(training.declared.events))
    assert claimed is not None, "full batches are Gaussian"
    epsilons = [gdp.epsilon(each, CONSTANTS.delta) for each in (claimed, bound)]
    return Bound(correct, guesses, CANARIES, CHANCE, *epsilons)


def sentence(bound: Bound) -> str:
    """The result for people, in a line that begins with the verdict."""
    verdict = "ok    " if bound.ok else "FAILED"
    return (
        f"{verdict} one training with {bound.canaries} canaries: {bound.correct} of the "
        f"{bound.guesses} surest guesses are right, so epsilon is at least {bound.bound:.3g}, at "
        f"confidence {1 - bound.chance:g}; claimed are {bound.claimed:.4g} (delta "
        f"{CONSTANTS.delta:g})"
    )


def to_json(bound: Bound) -> str:
    """The result for programs, with a verdict."""
    return json.dumps(asdict(bound) | {"ok": bound.ok, "delta": CONSTANTS.delta}, indent=2)


def _data(coins: Coins) -> Data:
    """Made-up records in the first half of the directions; canaries in the other, class by
    class."""
    random = np.random.default_rng(0)
    labels = random.integers(0, CONSTANTS.classes, RECORDS)
    rows = np.zeros((RECORDS, CONSTANTS.dimension), np.float32)
    centres = random.normal(size=(CONSTANTS.classes, CONSTANTS.dimension - DIRECTIONS))
    rows[:, : centres.shape[1]] = centres[labels] + 3 * random.normal(
        size=(RECORDS, centres.shape[1])
    )
    rows *= LENGTH / np.linalg.norm(rows, axis=1, keepdims=True)
    classes, places = np.divmod(np.flatnonzero(coins), DIRECTIONS)
    across = np.zeros((len(places), CONSTANTS.dimension), np.float32)
    across[np.arange(len(places)), CONSTANTS.dimension - DIRECTIONS + places] = SHORT
    return Data(np.concatenate([rows, across]), np.concatenate([labels, classes]).astype(np.int64))
