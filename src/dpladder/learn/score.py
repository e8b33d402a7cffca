"""Prediction, and the noised count of correct predictions: the only way a private part says how
good a head is.

A language model predicts no class. What each record counts is how much less than the public bound
its loss is, as a share of the bound: from 0, where the loss is the bound or more, to 1. A unit
moves a sum of such shares as far as it moves a count.

A model of findings is right about some of a record's classes and wrong about others. What such a
record counts is one less the mean of (p - y)^2 over its known classes (Brier 1950): from 0 to 1,
whatever the model says. Findings are rare, so that nearly all p are below 1/2: how many of them
are right would be the same for a model that says no to all of them, and for one that ranks well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.config.label_sets import are_of, each_finding
from dpladder.learn.interface import (
    Constants,
    Declaration,
    Judge,
    Logits,
    LogOdds,
    Losses,
    Rights,
    Weights,
    plain,
    sigmoid_bias,
)
from dpladder.learn.queries import RightCount, declared
from dpladder.privacy.accounting import gdp
from dpladder.privacy.release.meter import Meter

CHUNK = 4096
NEAR = 1e-9  # of what logits are at most: rounding may put such neighbours in either order
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
    chosen = [told.argmax(axis=1) for told in _by_chunk(own or alike, weights, features)]
    return np.concatenate([np.empty(0, np.int64), *chosen])


def _by_chunk(
    of: Logits, weights: Weights, features: NDArray[Any]
) -> Iterator[NDArray[np.float64]]:
    for start in range(0, len(features), CHUNK):
        yield of(weights, plain(features, slice(start, start + CHUNK)))


def alike(weights: Weights, features: NDArray[Any], heads: int = 1) -> NDArray[np.float64]:
    """Logits, of which the largest hangs on its own record alone. `heads`: linear ones whose rows
    lie in one layer, each with a largest logit of its own.

    A library of products adds up in another order where there are more rows, or in another place:
    one record more would tip every prediction that is a tie, and a public head's ties are known to
    everybody. So logits that rounding might put in either order are told by themselves.
    """
    found = logits(weights, features)
    each = found.reshape(len(found), heads, -1)
    if len(found) == 0 or each.shape[2] < 2:
        return found
    with np.errstate(over="ignore", invalid="ignore"):
        second, first = np.moveaxis(np.partition(each, -2, axis=2)[..., -2:], 2, 0)
        most = _most(weights, features)
        near = ~(first - second > NEAR * most[:, None]).all(axis=1) & (most != 0.0)
    found[near] = by_themselves(weights, np.asarray(features)[near])
    return found


def _most(weights: Weights, features: NDArray[Any]) -> NDArray[np.float64]:
    """How large the terms of each record's logits are at most (Cauchy-Schwarz, layer by layer)."""
    most = np.linalg.norm(np.asarray(features, np.float64), axis=1)
    width = features.shape[1]
    for layer in weights:
        bias = layer.shape[1] > width
        most = (most + bias) * np.linalg.norm(layer.astype(np.float64))
        width = layer.shape[0]
    return np.asarray(most)


def by_themselves(weights: Weights, features: NDArray[Any]) -> NDArray[np.float64]:
    """Logits by sums over each record's own numbers, in an order that hangs on nothing else."""
    return _layers(weights, features, _summed)


def _summed(x: NDArray[np.float64], matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    rows = np.ascontiguousarray(x)
    found = [np.empty((len(rows), 0))] + [(rows * row).sum(axis=1)[:, None] for row in matrix]
    return np.concatenate(found, axis=1)


def logits(weights: Weights, features: NDArray[Any]) -> NDArray[np.float64]:
    """Layer upon layer, with ReLU between them, in float64. A prediction that is a tie to 15 digits
    hangs on how a product is rounded: what counts private records asks `alike`."""
    return _layers(weights, features, lambda x, matrix: x @ matrix.T)


def _layers(
    weights: Weights,
    features: NDArray[Any],
    times: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]],
) -> NDArray[np.float64]:
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


def correct_count(
    weights: Weights,
    features: NDArray[Any],
    labels: NDArray[np.int64],
    own: Judge = None,
) -> float:
    """How many predictions are right, each a class that its record is of, or what records count by
    their losses or findings. Private: add noise before anybody sees it."""
    if isinstance(own, Losses):
        found = np.concatenate([np.empty(0), *_by_chunk(own.of, weights, features)])
        return float(shares(found, own.most)[labels >= 0].sum())
    if isinstance(own, Rights):
        found = np.concatenate([np.empty(0), *_by_chunk(own.of, weights, features)])
        return float(np.count_nonzero((found > 0) & (labels >= 0)))
    if isinstance(own, LogOdds):
        return float(shares_of_findings(each_logit(own, weights, features), labels).sum())
    classes = (labels[start : start + CHUNK] for start in range(0, len(labels), CHUNK))
    chunks = zip(_by_chunk(own or alike, weights, features), classes, strict=True)
    right = (
        are_of(own_classes, told.argmax(axis=1), told.shape[1]) for told, own_classes in chunks
    )
    return float(sum(map(np.count_nonzero, right)))


def right_and_wrong(
    weights: Weights,
    features: NDArray[Any],
    labels: NDArray[np.int64],
    own: Judge = None,
) -> NDArray[np.float64]:
    """Two counts. Private until noise is added. Records without a valid label are in neither. A
    record of a language model, or of findings, is partly in the one and partly in the other, and so
    moves them by no more than if it were wholly in one."""
    each = FULL if isinstance(own, Losses | LogOdds) else 1.0
    right = correct_count(weights, features, labels, own)
    return np.array([right, each * np.count_nonzero(labels >= 0) - right], np.float64)


def shares(losses: NDArray[np.float64], most: float) -> NDArray[np.float64]:
    """What each record counts, from 0 to FULL, whatever its loss is; nothing where it has none."""
    cut = np.clip(np.nan_to_num(losses, nan=most, posinf=most, neginf=0.0), 0.0, most)
    return FULL * (1.0 - cut / most)


def log_odds(
    classes: int, own: Logits | None, weights: Weights, features: NDArray[Any]
) -> NDArray[np.float64]:
    """Of findings: what training took for their logits, the public bias included."""
    return (own or by_themselves)(weights, features) + sigmoid_bias(classes)


def each_logit(own: LogOdds, weights: Weights, features: NDArray[Any]) -> NDArray[np.float64]:
    """The same, of all records."""
    classes = weights[-1].shape[0]
    return np.concatenate([np.empty((0, classes)), *_by_chunk(own.of, weights, features)])


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability of each of some classes of which a record has one."""
    found = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True), np.float64)


def odds(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability of each finding."""
    return np.asarray((1.0 + np.tanh(logits / 2.0)) / 2.0, np.float64)


def shares_of_findings(
    logits: NDArray[np.float64], labels: NDArray[np.int64]
) -> NDArray[np.float64]:
    """What each record counts, from 0 to FULL, whatever its logits are; nothing where nothing is
    known of it."""
    wrong, known = np.zeros(len(labels)), np.zeros(len(labels))
    for place, (present, told) in enumerate(each_finding(labels, logits.shape[1])):
        wrong += told * (odds(np.nan_to_num(logits[:, place])) - present) ** 2
        known += told
    return np.asarray(FULL * (known > 0) * (1.0 - wrong / np.maximum(known, 1)), np.float64)


def count_at(mu: float) -> RightCount:
    """One noised count that costs mu. A unit moves it by its records at most, also when it is
    replaced: wrong becomes right."""
    return RightCount(name="score", multiplier=gdp.sigma(mu, 1))


def noise_scale(mu: float, constants: Constants) -> float:
    """The sd s at which one noised count costs mu: mu = sensitivity / s, to the safe side."""
    return count_at(mu).scale(constants)


def declare(mu: float, constants: Constants) -> Declaration:
    return declared([count_at(mu)], constants)


def noised_count(
    weights: Weights,
    features: NDArray[Any],
    labels: NDArray[np.int64],
    meter: Meter,
    own: Judge = None,
) -> float:
    """The released score: expected right predictions are its own best estimate; divide by n0 for an
    accuracy."""
    return float(meter.publish("score", correct_count(weights, features, labels, own)))
