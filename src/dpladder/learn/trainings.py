"""Trainings of any learner: what one costs, and how it runs under a curator. A plan asks for costs
here, and never loads torch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

from dpladder.config.label_sets import MANY, NUMBER
from dpladder.config.learners import Learner, method
from dpladder.config.model import Resources
from dpladder.errors import Refused
from dpladder.learn import score
from dpladder.learn.data import Data
from dpladder.learn.interface import MAX_BATCHED_TRAININGS, Constants, Declaration, Hyper, Weights
from dpladder.learn.queries import LinearHead, OfModel, Query, declared
from dpladder.learn.scorers import ClassScorer, FindingScorer, NumberScorer, Scorer
from dpladder.privacy.release.meter import Meter


def declare(learner: Learner, hyper: Hyper, constants: Constants) -> Declaration:
    """What one training costs and draws, before any record is read.

    Args:
        learner: its section in the config.
        hyper: eta, steps and mu.
        constants: public sizes and bounds.

    Returns:
        Events that come to `hyper.mu` on full batches; on samples, what is booked at
        `hyper.delta0`.
    """
    return declared(queries_of(learner, hyper, constants), constants, hyper.delta0)


def queries_of(learner: Learner, hyper: Hyper, constants: Constants) -> tuple[Query, ...]:
    """All that one training asks.

    Raises:
        Refused: a query is about a head of another shape than the learner's section says. Machines
            are tried with the section's before a training is charged (learn/linear.py). Or it is of
            a class of the learner's own, which could say one bound and keep another.
    """
    queries: tuple[Query, ...] = method(learner.name).queries(learner, hyper, constants)
    shape = learner.constant_feature, learner.views
    for query in queries:
        if type(query).__module__ != Query.__module__:
            raise Refused(
                f"query {query.name} of learner {learner.name} is no kind of query of dpladder's "
                "own, whose bounds are proved. Nothing was asked: take RecordSum or WeighedSums "
                "with a function of one record."
            )
        head = query.model if isinstance(query, OfModel) else None
        if isinstance(head, LinearHead) and (head.bias, head.views) != shape:
            raise Refused(
                f"query {query.name} of learner {learner.name} is about a head with other features "
                "or views than its section says. Nothing was asked: give the LinearHead "
                "bias=learner.constant_feature and views=learner.views."
            )
    return queries


def train(
    data: Data,
    hyper: Hyper,
    learner: Learner,
    constants: Constants,
    meter: Meter,
    resources: Resources,
) -> Weights:
    """One private training.

    Guarantee: mu-GDP for `hyper.mu` where all records are read at each step; on samples, what it is
    booked at. The learner gets no records: it asks the curator, which answers declared queries
    alone.

    Args:
        data: private features and labels.
        hyper: eta, steps and mu.
        learner: its section in the config.
        constants: public sizes and bounds.
        meter: all noise of the training.
        resources: threads, memory and device.

    Returns:
        Released weights.
    """
    [weights] = train_many(data, [hyper], learner, constants, [meter], resources)
    return weights


def train_many(
    data: Data,
    hypers: Sequence[Hyper],
    learner: Learner,
    constants: Constants,
    meters: Sequence[Meter],
    resources: Resources,
) -> list[Weights]:
    """Independent trainings, a meter each, on one set of records.

    They go side by side over one pass of the records where their queries allow that, else one after
    the other.

    Guarantee: that of `train` for each, and their noise is independent: together they cost the sum
    of what they declare.

    Args:
        data: private features and labels.
        hypers: of each training.
        learner: its section in the config, the same for all.
        constants: public sizes and bounds.
        meters: of each training, in the order of `hypers`.
        resources: threads, memory and device.

    Returns:
        Released weights of each.
    """
    from dpladder.learn.curator import Curator

    known = method(learner.name)
    queries = [queries_of(learner, hyper, constants) for hyper in hypers]
    curator = Curator(data, constants, resources)
    trainings = [*zip(hypers, queries, meters, strict=True)]
    together = shares_a_pass(learner, hypers[0], constants)
    weights_found: list[Weights] = []
    size = MAX_BATCHED_TRAININGS if together else 1
    for group in (trainings[first : first + size] for first in range(0, len(trainings), size)):
        group_hypers, group_queries, through = zip(*group, strict=True)

        def begin(inputs: Any, asks: Any, hypers: Any = group_hypers) -> Any:
            return known.train(inputs, asks, learner, hypers[inputs.number], constants)

        weights_found += curator.run(begin, group_queries, through, learner.uses_public_gradient)
    return weights_found


def shares_a_pass(learner: Learner, hyper: Hyper, constants: Constants) -> bool:
    """Whether several trainings go side by side over one pass of the records."""
    return all(query.stacks for query in queries_of(learner, hyper, constants))


def weights_of(learner: Learner) -> Any:
    """The module that says what the learner's weights mean (learn/layers.py)."""
    return import_module(method(learner.name).weights)


def scorer_of(learner: Learner, constants: Constants) -> Scorer:
    """What a record counts for a model of this learner: whether its class is named, or shares of
    findings. A method may bring its own where its weights name no class."""
    weights = weights_of(learner)
    logits = weights.logits(learner, constants)
    if constants.labels == MANY:
        return FindingScorer(partial(score.log_odds, constants.classes, logits))
    if constants.labels == NUMBER:
        return NumberScorer()
    scorer: Scorer | None = weights.scorer(learner, constants)
    return scorer or ClassScorer(logits)
