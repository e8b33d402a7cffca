"""DP fine-tuning: a public network from a cut on, with a head, under Algorithm 1."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpladder.config.learner_sections import (
    FineTune,
    StepSizeFreeTuning,
    Tuning,
    guided,
    starts_bought,
)
from dpladder.config.model import Resources
from dpladder.errors import BadInput
from dpladder.learn import guide
from dpladder.learn.curator import Given, Training
from dpladder.learn.descent import UpdateFactory, descend, in_shapes, momentum
from dpladder.learn.dp_finetune.parts import AboveCut, Tuned, start, tuned_of
from dpladder.learn.dp_finetune.queries import shapes
from dpladder.learn.dp_finetune.sums import CPU, in_batches, planned
from dpladder.learn.heads.train import adam
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import GradientSum, Query
from dpladder.learn.records import prepare
from dpladder.learn.score import by_themselves
from dpladder.learn.scorers import AnswerScorer, ClassScorer, LossScorer, Scorer

ROWS = 32  # of logits computed at a time
FEW = 4  # of losses: a language model has a logit for each of its words, at each token


def train(
    given: Given, queries: tuple[Query, ...], learner: FineTune, hyper: Hyper, constants: Constants
) -> Training[Weights]:
    """How far each trained tensor is from where it started: in the public network, and from zero in
    the head."""
    update = momentum(learner) if learner.optimizer == "momentum" else adam(learner)
    return by_steps_of(update, given, queries, learner, hyper, constants)


def by_steps_of(
    begin: UpdateFactory,
    given: Given,
    queries: tuple[Query, ...],
    learner: FineTune | StepSizeFreeTuning,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """The same by any update."""
    gradients, head, pull = queries[0], given.start, None
    assert isinstance(gradients, GradientSum)
    if guided(learner):
        worth = yield from sample_worth(given, queries, learner, constants)
        # one that is worth nothing has no head to start from either; a head that was bought stays
        if not worth and not starts_bought(learner):
            head = np.zeros_like(given.start)
        if worth:
            if learner.trains != "head":  # all that a step's batches hold, where they are fewer
                worth = min(worth, float(hyper.steps * guide.BATCH))
            assert given.directions is not None, "a sample has both"
            pull = worth * guide.weight(learner, gradients, constants, given.directions)
    first = start(learner, constants, tuned_of(learner, constants), head).to(given.device)
    flat = yield from descend(gradients, first, hyper, learner, constants, begin, pull)
    return in_shapes(flat, shapes(learner, constants).values())


def sample_worth(
    given: Given,
    queries: tuple[Query, ...],
    learner: FineTune | StepSizeFreeTuning,
    constants: Constants,
) -> Training[float]:
    """What a public sample is worth to a training that it guides (learn/guide.py): by a look at how
    many records the public head is right about above the public network, where there is one."""
    if given.units is None or given.start is None:
        raise BadInput(
            f"learner.public: {learner.public} has no public records, or no head. The workflow has "
            "them from dataset.public_sample."
        )
    if given.worth is not None:
        return given.worth
    if not guide.looks(learner):
        return float(given.units)
    assert given.claim is not None, "the head comes with what it claims (jobs/find_start.py)"
    first = start(learner, constants, tuned_of(learner, constants), given.start)
    weights = in_shapes(first.float().numpy(), shapes(learner, constants).values())
    look = queries[1]
    right = float((yield look.at(weights, ClassScorer(partial(logits, learner, constants)))))
    return guide.worth(given.units, right, given.claim, look.scale(constants), constants)


def ready(learner: Tuning, constants: Constants, resources: Resources) -> None:
    """Refuse a network that cannot be trained, on public random records: before a training is
    charged."""
    planned(learner, constants, prepare(resources), resources)


def logits(
    learner: Tuning, constants: Constants, weights: Weights, features: Any
) -> NDArray[np.float64]:
    """In float64 and in batches of one size, so that rounding inside the network, which may depend
    on the other rows, tips no prediction but one that is a tie to 15 digits; the head tips none."""
    module = _put(learner, constants, weights).module
    assert isinstance(module, AboveCut), "a language model has no head of its own"
    head = module.head.weight.numpy()
    rows = in_batches(module.seen_by_head, features, ROWS)
    seen = np.concatenate([np.empty((0, head.shape[1])), *rows])
    return by_themselves((head,), seen)


def seen_by_head(learner: Tuning, constants: Constants, features: Any) -> NDArray[np.float64]:
    """Of a classifier, what the public network makes of activations at the cut."""
    tuned = tuned_of(learner, constants).copied(CPU, torch.float64)
    assert isinstance(tuned.module, AboveCut), "a language model has no head of its own"
    return np.concatenate([*in_batches(tuned.module.seen_by_head, features, ROWS)])


def scorer(learner: Tuning, constants: Constants) -> Scorer | None:
    """Of a language model, by how wrong it is about each record: knowing nothing costs the log of
    how many words there are. Of one that finds answers, by whether it is right."""
    network = constants.network
    told = partial(_told, learner, constants, size=FEW)
    if network is not None and network.speaks:
        return LossScorer(told, tuned_of(learner, constants).module.knowing_nothing)
    answers = network is not None and network.answers
    return AnswerScorer(partial(told, says=attrgetter("right"))) if answers else None


def answered(
    learner: Tuning, constants: Constants, weights: Weights, features: Any
) -> NDArray[np.int64]:
    """Of each question with its context, the answer's first and last token; 0 where it has
    none."""
    say = attrgetter("answered")
    found = _told(learner, constants, weights, features, size=FEW, width=(2,), says=say)
    return found.astype(np.int64)


def _told(
    learner: Tuning,
    constants: Constants,
    weights: Weights,
    features: Any,
    *,
    size: int,
    width: tuple[int, ...] = (),
    says: Callable[[Any], Callable[[Tensor], Tensor]] = lambda module: module,
) -> NDArray[np.float64]:
    """What the model says of each record, in float64 and in batches of one size. `says`: of its
    module, what is asked."""
    module = _put(learner, constants, weights).module
    rows = in_batches(says(module), features, size)
    return np.concatenate([np.empty((0, *width)), *rows])


def _put(learner: Tuning, constants: Constants, weights: Weights) -> Tuned:
    """The model with these weights, in float64."""
    tuned = tuned_of(learner, constants).copied(CPU, torch.float64)
    tuned.put(torch.from_numpy(np.concatenate([np.ravel(part) for part in weights])).double())
    return tuned
