"""Prediction, and the noised count of correct predictions: the only way a private part says how good a head is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.learn.interface import Constants, Declaration, Weights
from dpladder.privacy import gdp
from dpladder.privacy.meter import Draw, Meter
from dpladder.privacy.spend import Counted, Gaussian

CHUNK = 4096


def predict(weights: Weights, features: NDArray[Any]) -> NDArray[np.int64]:
    """The class with the largest logit, which is averaged over views where records have several."""
    starts = range(0, len(features), CHUNK)
    chosen = [logits(weights, features[start : start + CHUNK]).argmax(axis=1) for start in starts]
    return np.concatenate([np.empty(0, np.int64), *chosen])


def logits(weights: Weights, features: NDArray[Any]) -> NDArray[np.float64]:
    """Layer upon layer, with ReLU between them. In float64, so that the rounding of a product, which may depend on the
    other rows of its chunk, can tip no prediction that is not a tie to 15 digits: a count moves by its own unit alone."""
    with np.errstate(over="ignore", invalid="ignore"):  # a wild record is no news for a log
        x = np.asarray(features, np.float64)
        for depth, layer in enumerate(weights):
            x = np.maximum(x, 0.0) if depth else x
            inputs = x.shape[-1]
            x = x @ layer[:, :inputs].T.astype(np.float64)
            if layer.shape[1] > inputs:
                x = x + layer[:, inputs]
        return x if x.ndim == 2 else x.mean(axis=1)


def correct_count(weights: Weights, features: NDArray[Any], labels: NDArray[np.int64]) -> int:
    """How many predictions are right. Private: add noise before anybody sees it."""
    return int(np.count_nonzero(predict(weights, features) == labels))


def correct_counts(
    weights: Weights, features: NDArray[Any], labels: NDArray[np.int64], classes: int
) -> NDArray[np.int64]:
    """Right predictions of each class. Private too, and its noise costs as much as that of one count."""
    right = labels[predict(weights, features) == labels]
    return np.bincount(right[right >= 0], minlength=classes)


def sensitivity(constants: Constants, per_class: bool = False) -> float:
    """L2 distance between neighbours' counts, for units of `cap` records.

    A unit moves one count by its records at most, also when it is replaced: wrong becomes right. Per class, a replaced
    unit may take all its records from one count and give as many to another.
    """
    return constants.cap * (2.0**0.5 if per_class and constants.relation == "replace_one" else 1.0)


def noise_scale(mu: float, constants: Constants, per_class: bool = False) -> float:
    """The sd s at which one noised count, or one vector of them, costs mu: mu = sensitivity / s, to the safe side."""
    return gdp.sigma(mu, 1) * sensitivity(constants, per_class)


def declare(mu: float, constants: Constants, per_class: bool = False) -> Declaration:
    shape = (constants.classes,) if per_class else ()
    draw = Draw("score", "gaussian", noise_scale(mu, constants, per_class), shape)
    return Declaration((Counted(Gaussian(gdp.sigma(mu, 1))),), (draw,))


def noised_count(
    weights: Weights,
    features: NDArray[Any],
    labels: NDArray[np.int64],
    mu: float,
    constants: Constants,
    meter: Meter,
) -> float:
    """The released score: expected right predictions are its own best estimate; divide by n0 for an accuracy."""
    noise = meter.gaussian("score", noise_scale(mu, constants), ())
    return float(correct_count(weights, features, labels) + noise)


def noised_counts(
    weights: Weights,
    features: NDArray[Any],
    labels: NDArray[np.int64],
    mu: float,
    constants: Constants,
    meter: Meter,
) -> NDArray[np.float64]:
    """The released score of each class; declared with per_class."""
    noise = meter.gaussian("score", noise_scale(mu, constants, per_class=True), (constants.classes,))
    return correct_counts(weights, features, labels, constants.classes) + noise
