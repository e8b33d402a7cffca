"""What the trained weights of a public network mean: its logits and losses, and what its
head sees.

learn/layers.py has the same for layers of a perceptron.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpladder.config.learner_sections import Tuning
from dpladder.config.model import Resources
from dpladder.learn.finetune.parts import HEAD, AboveCut, Tuned, tuned_model
from dpladder.learn.finetune.shapes import shapes
from dpladder.learn.finetune.sums import CPU, forward_batches, plan_chunks
from dpladder.learn.interface import Constants, Logits, Weights
from dpladder.learn.public_head import SeenByHead
from dpladder.learn.records import prepare
from dpladder.learn.score import row_by_row_logits
from dpladder.learn.scorers import LossScorer, Scorer
from dpladder.privacy.arrays import Floats

ROWS = 32  # of logits computed at a time
MOST_LOSSES = 4  # of losses: a language model has a logit for each of its words, at each token


def ready(
    learner: Tuning,
    constants: Constants,
    resources: Resources,
    trainings: int = 1,
    parts: bool = False,
) -> None:
    """Refuse a network that cannot be trained, on public random records: before a training is
    charged.

    Args:
        learner: its section in the config.
        constants: public sizes, and the network.
        resources: threads, memory and device.
        trainings, parts: as learn/layers.py has them. No two trainings of a network share a pass,
            and no search trains one (config/check.py).

    Raises:
        Refused: on this machine a record's gradient hangs on other records, or is not that of
            autograd.
    """
    plan_chunks(learner, constants, prepare(resources), resources)


def tensors(learner: Tuning, constants: Constants) -> tuple[str, ...]:
    """Names of the weights in a file."""
    return tuple(shapes(learner, constants))


def logits(learner: Tuning, constants: Constants) -> Logits:
    """From weights and features to logits, float64 (records, classes)."""
    return partial(_logits, learner, constants)


def _logits(
    learner: Tuning, constants: Constants, weights: Weights, features: Any
) -> NDArray[np.float64]:
    """Logits in float64 and in batches of one size.

    Rounding inside the network may depend on the other rows. So it tips no prediction but one that
    is a tie to 15 digits, and the head tips none.
    """
    module = _model_with_weights(learner, constants, weights).module
    assert isinstance(module, AboveCut), "a language model has no head of its own"
    head = module.head.weight.numpy()
    rows = forward_batches(module.seen_by_head, features, ROWS)
    seen = np.concatenate([np.empty((0, head.shape[1])), *rows])
    return row_by_row_logits((head,), seen)


def seen_by_head(learner: Tuning, constants: Constants) -> SeenByHead:
    """What the weights of the last layer are multiplied with, its constant feature included."""
    return partial(_seen_by_head, learner, constants)


def _seen_by_head(learner: Tuning, constants: Constants, features: Any) -> NDArray[np.float64]:
    """What a classifier's public network makes of activations at the cut."""
    tuned = tuned_model(learner, constants).copy_to(CPU, torch.float64)
    assert isinstance(tuned.module, AboveCut), "a language model has no head of its own"
    return np.concatenate([*forward_batches(tuned.module.seen_by_head, features, ROWS)])


def turn_head(
    learner: Tuning, constants: Constants, weights: Weights, slope: float, shifts: Floats
) -> Weights:
    """As learn/layers.py has it. The head is told from zero, and only its own bias can take
    shifts."""
    place = tensors(learner, constants).index(HEAD)
    turned = slope * weights[place].astype(np.float64)
    if learner.bias:
        turned[:, -1] += shifts
    return (*weights[:place], turned.astype(np.float32), *weights[place + 1 :])


def scorer(learner: Tuning, constants: Constants) -> Scorer | None:
    """The scorer of a language model, by how wrong it is about each record: knowing nothing costs
    the log of how many words there are."""
    network = constants.network
    outputs = partial(_model_outputs, learner, constants, size=MOST_LOSSES)
    if network is not None and network.speaks:
        return LossScorer(outputs, tuned_model(learner, constants).module.initial_loss)
    return None


def _model_outputs(
    learner: Tuning,
    constants: Constants,
    weights: Weights,
    features: Any,
    *,
    size: int,
    width: tuple[int, ...] = (),
    says: Callable[[Any], Callable[[Tensor], Tensor]] = lambda module: module,
) -> NDArray[np.float64]:
    """What the model says of each record, in float64 and in batches of one size.

    Args:
        learner: its section in the config.
        constants: public sizes, and the network.
        weights: released ones.
        features: (records, width).
        size: records of a batch.
        width: shape of what is said of a record.
        says: of the model's module, what is asked.
    """
    module = _model_with_weights(learner, constants, weights).module
    rows = forward_batches(says(module), features, size)
    return np.concatenate([np.empty((0, *width)), *rows])


def _model_with_weights(learner: Tuning, constants: Constants, weights: Weights) -> Tuned:
    """The model with these weights, in float64."""
    tuned = tuned_model(learner, constants).copy_to(CPU, torch.float64)
    tuned.set_difference(
        torch.from_numpy(np.concatenate([np.ravel(part) for part in weights])).double()
    )
    return tuned
