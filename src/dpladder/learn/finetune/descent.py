"""Descents on a public network from a cut on, with a head, guided by public records where the
learner asks for that."""

from __future__ import annotations

import numpy as np

from dpladder.config.learner_sections import TunedDescent
from dpladder.errors import BadInput
from dpladder.learn import guide
from dpladder.learn.curator import PublicInputs, Training
from dpladder.learn.descent import UpdateFactory, descend, split_into_shapes
from dpladder.learn.finetune.parts import start, tuned_model
from dpladder.learn.finetune.predict import logits
from dpladder.learn.finetune.shapes import shapes
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import GradientSum, Query
from dpladder.learn.scorers import ClassScorer


def descend_network(
    begin: UpdateFactory,
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: TunedDescent,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """A network's descent by any update.

    Guarantee: that of its gradients' releases and, where public records guide it, of one noised
    count. The public gradient costs nothing.

    Args:
        begin: makes the update, such as `momentum`.
        inputs: public inputs, a head to start from among them.
        queries: the gradients' and, where there is one, the look's.
        learner: its section in the config.
        hyper: eta, steps and mu.
        constants: public sizes, and the network.

    Returns:
        How far each trained tensor is from where it started, in the public network, and from zero
        in the head.
    """
    gradients, head, public_weight = queries[0], inputs.start, None
    assert isinstance(gradients, GradientSum)
    if learner.uses_public_gradient:
        worth = yield from sample_worth(inputs, queries, learner, constants)
        # one that is worth nothing has no head to start from either; a head that was bought stays
        if not worth and not learner.starts_from_private_head:
            head = np.zeros_like(inputs.start)
        if worth:
            if not learner.head_alone:  # all that a step's batches hold, where they are fewer
                worth = min(worth, float(hyper.steps * guide.BATCH))
            assert inputs.directions is not None, "a sample has both"
            public_weight = worth * guide.weight(learner, gradients, constants, inputs.directions)
    first = start(learner, constants, tuned_model(learner, constants), head).to(inputs.device)
    flat = yield from descend(gradients, first, hyper, learner, constants, begin, public_weight)
    return split_into_shapes(flat, shapes(learner, constants).values())


def sample_worth(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: TunedDescent,
    constants: Constants,
) -> Training[float]:
    """What a public sample is worth to a training that it guides, in units (learn/guide.py).

    A look says it: how many private records the public head is right about above the public
    network. What was released before is not asked again, and without a look all of its units count.

    Guarantee: that of one noised count, where there is a look, and else nothing private is asked.

    Args:
        inputs: public inputs, the head and the sample's size among them.
        queries: the gradients' and, where there is one, the look's.
        learner: its section in the config.
        constants: public sizes, and the network.

    Returns:
        From 0 to the number of units in the sample.

    Raises:
        BadInput: there are no public records, or no head.
    """
    if inputs.units is None or inputs.start is None:
        raise BadInput(
            f"learner.public: {learner.public} has no public records, or no head. The workflow has "
            "them from dataset.public_sample."
        )
    if inputs.worth is not None:
        return inputs.worth
    if not guide.asks_for_look(learner):
        return float(inputs.units)
    assert inputs.claim is not None, "the head comes with what it claims (jobs/find_start.py)"
    first = start(learner, constants, tuned_model(learner, constants), inputs.start)
    weights = split_into_shapes(first.float().numpy(), shapes(learner, constants).values())
    look = queries[1]
    right = float((yield look.at(weights, ClassScorer(logits(learner, constants)))))
    return guide.effective_sample_size(
        inputs.units, right, inputs.claim, look.scale(constants), constants
    )
