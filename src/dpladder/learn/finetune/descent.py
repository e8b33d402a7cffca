"""Descents on a public network from a cut on, with a head, guided by public records where the
learner asks for that."""

from __future__ import annotations

import numpy as np

from dpladder.config.learner_sections import TunedDescent
from dpladder.errors import BadInput
from dpladder.learn import guide
from dpladder.learn.curator import Given, Training
from dpladder.learn.descent import UpdateFactory, descend, in_shapes
from dpladder.learn.finetune.parts import start, tuned_of
from dpladder.learn.finetune.predict import logits
from dpladder.learn.finetune.shapes import shapes
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import GradientSum, Query
from dpladder.learn.scorers import ClassScorer


def descend_network(
    begin: UpdateFactory,
    given: Given,
    queries: tuple[Query, ...],
    learner: TunedDescent,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """A network's descent by any update: how far each trained tensor is from where it started, in
    the public network, and from zero in the head."""
    gradients, head, pull = queries[0], given.start, None
    assert isinstance(gradients, GradientSum)
    if learner.guided:
        worth = yield from sample_worth(given, queries, learner, constants)
        # one that is worth nothing has no head to start from either; a head that was bought stays
        if not worth and not learner.starts_bought:
            head = np.zeros_like(given.start)
        if worth:
            if not learner.head_alone:  # all that a step's batches hold, where they are fewer
                worth = min(worth, float(hyper.steps * guide.BATCH))
            assert given.directions is not None, "a sample has both"
            pull = worth * guide.weight(learner, gradients, constants, given.directions)
    first = start(learner, constants, tuned_of(learner, constants), head).to(given.device)
    flat = yield from descend(gradients, first, hyper, learner, constants, begin, pull)
    return in_shapes(flat, shapes(learner, constants).values())


def sample_worth(
    given: Given,
    queries: tuple[Query, ...],
    learner: TunedDescent,
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
    right = float((yield look.at(weights, ClassScorer(logits(learner, constants)))))
    return guide.worth(given.units, right, given.claim, look.scale(constants), constants)
