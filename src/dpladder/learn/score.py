"""Prediction, and the noised count of correct predictions: the only way a private part says how good a head is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.learn.interface import Constants, Declaration, Logits, Weights, plain
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import gaussian
from dpladder.privacy.accounting.events import Counted, Gaussian
from dpladder.privacy.release.meter import Meter

CHUNK = 4096


def predict(weights: Weights, features: NDArray[Any], own: Logits | None = None) -> NDArray[np.int64]:
    """The class with the largest logit of each record as it is, without the other views that trainings may see. `own`: of a
    learner whose weights are no layers of a perceptron."""
    starts = range(0, len(features), CHUNK)
    parts = (plain(features, slice(start, start + CHUNK)) for start in starts)
    chosen = [(own or logits)(weights, part).argmax(axis=1) for part in parts]
    return np.concatenate([np.empty(0, np.int64), *chosen])


def logits(weights: Weights, features: NDArray[Any]) -> NDArray[np.float64]:
    """Layer upon layer, with ReLU between them. In float64, so that the rounding of a product, which may depend on the
    other rows of its chunk, can tip no prediction that is not a tie to 15 digits: a count moves by its own unit alone."""
    with np.errstate(over="ignore", invalid="ignore"):  # whether a record overflows must show nowhere
        x = np.asarray(features, np.float64)
        for depth, layer in enumerate(weights):
            x = np.maximum(x, 0.0) if depth else x
            inputs = x.shape[-1]
            x = x @ layer[:, :inputs].T.astype(np.float64)
            if layer.shape[1] > inputs:
                x = x + layer[:, inputs]
        return x


def correct_count(
    weights: Weights, features: NDArray[Any], labels: NDArray[np.int64], own: Logits | None = None
) -> int:
    """How many predictions are right. Private: add noise before anybody sees it."""
    return int(np.count_nonzero(predict(weights, features, own) == labels))


def noise_scale(mu: float, constants: Constants) -> float:
    """The sd s at which one noised count costs mu: mu = sensitivity / s, to the safe side."""
    return gdp.sigma(mu, 1) * constants.moves_count()


def declare(mu: float, constants: Constants) -> Declaration:
    """One noised count. A unit moves it by its records at most, also when it is replaced: wrong becomes right."""
    sigma = gdp.sigma(mu, 1)
    return Declaration((Counted(Gaussian(sigma)),), (gaussian("score", sigma, constants.moves_count()),))


def noised_count(
    weights: Weights,
    features: NDArray[Any],
    labels: NDArray[np.int64],
    meter: Meter,
    own: Logits | None = None,
) -> float:
    """The released score: expected right predictions are its own best estimate; divide by n0 for an accuracy."""
    return float(meter.publish("score", correct_count(weights, features, labels, own)))
