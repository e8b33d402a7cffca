"""Prediction, and the noised count of correct predictions: the only way a private part says how
good a head is.

A language model predicts no class. What each record counts is how much less than the public bound
its loss is, as a share of the bound: from 0, where the loss is the bound or more, to 1. A unit
moves a sum of such shares as far as it moves a count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.config.label_sets import are_of
from dpladder.learn.interface import Constants, Declaration, Logits, Losses, Weights, plain
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import gaussian
from dpladder.privacy.accounting.events import Counted, Gaussian
from dpladder.privacy.release.meter import Meter

CHUNK = 4096
FULL = (
    1.0 - 2.0**-10
    # what a record without any loss counts: the rest pays for float32 inside the network, as in
    # descent.py
)


def predict(
    weights: Weights, features: NDArray[Any], own: Logits | None = None
) -> NDArray[np.int64]:
    """The class with the largest logit of each record as it is, without the other views that
    trainings may see. `own`: of a learner whose weights are no layers of a perceptron."""
    chosen = [told.argmax(axis=1) for told in _by_chunk(own or logits, weights, features)]
    return np.concatenate([np.empty(0, np.int64), *chosen])


def _by_chunk(
    of: Logits, weights: Weights, features: NDArray[Any]
) -> Iterator[NDArray[np.float64]]:
    for start in range(0, len(features), CHUNK):
        yield of(weights, plain(features, slice(start, start + CHUNK)))


def logits(weights: Weights, features: NDArray[Any]) -> NDArray[np.float64]:
    """Layer upon layer, with ReLU between them. In float64, so that the rounding of a product,
    which may depend on the other rows of its chunk, can tip no prediction that is not a tie to 15
    digits: a count moves by its own unit alone."""
    # whether a record overflows must show nowhere
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.asarray(features, np.float64)
        for depth, layer in enumerate(weights):
            x = np.maximum(x, 0.0) if depth else x
            inputs = x.shape[-1]
            x = x @ layer[:, :inputs].T.astype(np.float64)
            if layer.shape[1] > inputs:
                x = x + layer[:, inputs]
        return x


def correct_count(
    weights: Weights,
    features: NDArray[Any],
    labels: NDArray[np.int64],
    own: Logits | Losses | None = None,
) -> float:
    """How many predictions are right, each a class that its record is of, or what records count by
    their losses. Private: add noise before anybody sees it."""
    if isinstance(own, Losses):
        found = np.concatenate([np.empty(0), *_by_chunk(own.of, weights, features)])
        return float(shares(found, own.most)[labels >= 0].sum())
    classes = (labels[start : start + CHUNK] for start in range(0, len(labels), CHUNK))
    chunks = zip(_by_chunk(own or logits, weights, features), classes, strict=True)
    right = (
        are_of(own_classes, told.argmax(axis=1), told.shape[1]) for told, own_classes in chunks
    )
    return float(sum(map(np.count_nonzero, right)))


def right_and_wrong(
    weights: Weights,
    features: NDArray[Any],
    labels: NDArray[np.int64],
    own: Logits | Losses | None = None,
) -> NDArray[np.float64]:
    """Two counts. Private until noise is added. Records without a valid label are in neither. A
    language model's record is partly in the one and partly in the other, and so moves them by no
    more than if it were wholly in one."""
    each = FULL if isinstance(own, Losses) else 1.0
    right = correct_count(weights, features, labels, own)
    return np.array([right, each * np.count_nonzero(labels >= 0) - right], np.float64)


def shares(losses: NDArray[np.float64], most: float) -> NDArray[np.float64]:
    """What each record counts, from 0 to FULL, whatever its loss is; nothing where it has none."""
    cut = np.clip(np.nan_to_num(losses, nan=most, posinf=most, neginf=0.0), 0.0, most)
    return FULL * (1.0 - cut / most)


def noise_scale(mu: float, constants: Constants) -> float:
    """The sd s at which one noised count costs mu: mu = sensitivity / s, to the safe side."""
    return gdp.sigma(mu, 1) * constants.moves_count()


def declare(mu: float, constants: Constants) -> Declaration:
    """One noised count. A unit moves it by its records at most, also when it is replaced: wrong
    becomes right."""
    sigma = gdp.sigma(mu, 1)
    return Declaration(
        (Counted(Gaussian(sigma)),), (gaussian("score", sigma, constants.moves_count()),)
    )


def noised_count(
    weights: Weights,
    features: NDArray[Any],
    labels: NDArray[np.int64],
    meter: Meter,
    own: Logits | Losses | None = None,
) -> float:
    """The released score: expected right predictions are its own best estimate; divide by n0 for an
    accuracy."""
    return float(meter.publish("score", correct_count(weights, features, labels, own)))
