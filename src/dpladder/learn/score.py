"""Logits of a head or a perceptron, probabilities, and the price of the noised count of correct
predictions.

That count is the only way a private part says how good a head is (learn/scorers.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.learn.interface import (
    Logits,
    Weights,
    sigmoid_bias,
)
from dpladder.learn.queries import RightCount
from dpladder.privacy.accounting import gdp

CHUNK = 4096
NEAR = 1e-9  # of what logits are at most: rounding may put such neighbours in either order


def position_independent_logits(
    weights: Weights, features: NDArray[Any], heads: int = 1
) -> NDArray[np.float64]:
    """Logits, of which the largest follows from its own record alone.

    A library of products adds up in another order where there are more rows, or in another place.
    One record more would tip every prediction that is a tie, and a public head's ties are known to
    everybody. So logits that rounding might put in either order are computed row by row.

    Args:
        weights: layers of a head or a perceptron.
        features: (records, dimension).
        heads: linear ones whose rows lie in one layer, each with a largest logit of its own.

    Returns:
        (records, classes), float64.
    """
    result = logits(weights, features)
    each = result.reshape(len(result), heads, -1)
    if len(result) == 0 or each.shape[2] < 2:
        return result
    with np.errstate(over="ignore", invalid="ignore"):
        second, first = np.moveaxis(np.partition(each, -2, axis=2)[..., -2:], 2, 0)
        most = _largest_terms(weights, features)
        near = ~(first - second > NEAR * most[:, None]).all(axis=1) & (most != 0.0)
    result[near] = row_by_row_logits(weights, np.asarray(features)[near])
    return result


def _largest_terms(weights: Weights, features: NDArray[Any]) -> NDArray[np.float64]:
    """How large the terms of each record's logits are at most (Cauchy-Schwarz, layer by layer)."""
    most = np.linalg.norm(np.asarray(features, np.float64), axis=1)
    width = features.shape[1]
    for layer in weights:
        bias = layer.shape[1] > width
        most = (most + bias) * np.linalg.norm(layer.astype(np.float64))
        width = layer.shape[0]
    return np.asarray(most)


def row_by_row_logits(weights: Weights, features: NDArray[Any]) -> NDArray[np.float64]:
    """Logits by sums over each record's own numbers, in an order that hangs on nothing else:
    float64 (records, classes)."""
    return _layers(weights, features, _row_by_row_product)


def _row_by_row_product(x: NDArray[np.float64], matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    rows = np.ascontiguousarray(x)
    columns = [np.empty((len(rows), 0))] + [(rows * row).sum(axis=1)[:, None] for row in matrix]
    return np.concatenate(columns, axis=1)


def logits(weights: Weights, features: NDArray[Any]) -> NDArray[np.float64]:
    """Logits of a head or a perceptron: layer upon layer, with ReLU between them, in float64.

    A prediction that is a tie to 15 digits hangs on how a product is rounded. What counts private
    records asks `position_independent_logits`.
    """
    return _layers(weights, features, lambda x, matrix: x @ matrix.T)


def _layers(
    weights: Weights,
    features: NDArray[Any],
    times: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Layer upon layer, with ReLU between them; a column more than a layer's inputs is its bias."""
    # whether a record overflows must show nowhere
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.asarray(features, np.float64)
        for depth, layer in enumerate(weights):
            x = np.maximum(x, 0.0) if depth else x
            inputs = x.shape[-1]
            x = times(x, layer[:, :inputs].astype(np.float64))
            if layer.shape[1] > inputs:
                x = x + layer[:, inputs]
        return x


def log_odds(
    classes: int, logits_of: Logits | None, weights: Weights, features: NDArray[Any]
) -> NDArray[np.float64]:
    """The logits of findings as training took them, the public bias included: (records, classes).

    Args:
        classes: how many there are; the bias follows from it.
        logits_of: what weights make of features; None where they are layers.
        weights: released ones.
        features: (records, dimension).
    """
    return (logits_of or row_by_row_logits)(weights, features) + sigmoid_bias(classes)


def place_of_logit(said: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where in its public range a number is predicted, from 0 to 1: a model says it from -1 to 1.
    What is none lies in the middle."""
    return np.asarray(np.clip((1.0 + np.nan_to_num(said)) / 2.0, 0.0, 1.0), np.float64)


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability of each of some classes of which a record has one: (records, classes)."""
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True), np.float64)


def sigmoid(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability of each finding, in the shape of its logits. tanh neither overflows nor
    underflows, whatever the logit is."""
    return np.asarray((1.0 + np.tanh(logits / 2.0)) / 2.0, np.float64)


def count_at(mu: float) -> RightCount:
    """One noised count that costs mu.

    Guarantee: mu-GDP.

    Sensitivity: a unit moves it by its number of records at most, also when it is replaced: wrong
    becomes right.
    """
    return RightCount(name="score", multiplier=gdp.sigma(mu, 1))
