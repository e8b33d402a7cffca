"""What second-order learners share: noised sums over records in a ball, which may be released once
for all trainings, and a walk over the classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from dpladder.config.label_sets import MANY
from dpladder.config.learner_sections import SumsShared
from dpladder.learn.interface import Constants
from dpladder.learn.queries import Query, QueryCall, SecondMoments, WeighedSums
from dpladder.privacy.accounting import gdp

if TYPE_CHECKING:
    from dpladder.learn.curator import PublicInputs, Training

Conclusion = TypeVar("Conclusion")


def covariance(sigma: float, radius: float) -> SecondMoments:
    """G, one noised sum of x x^T over all records.

    Args:
        sigma: noise sd over the sum's sensitivity.
        radius: of the ball that records are scaled into.
    """
    return SecondMoments(name="covariance", multiplier=sigma, radius=radius)


def class_sums(sigma: float, radius: float, constants: Constants) -> tuple[Query, ...]:
    """A_j and b_j of every class j, the sums of x x^T and of x over its own records.

    Of findings it is b_j alone, where records weigh by what they lack (`WeighedSums`).

    Args:
        sigma: noise sd over each sum's sensitivity.
        radius: of the ball that records are scaled into.
        constants: what a record may be of.
    """
    several = constants.labels != MANY
    moments = SecondMoments(name="moments", multiplier=sigma, radius=radius, by_class=True)
    targets = WeighedSums(
        name="targets",
        multiplier=sigma,
        radius=radius,
        by="class" if several else "lack",
        apart=several,
    )
    return (*([moments] * several), targets)


def shared_queries(
    which: SumsShared, mu: float, radius: float, constants: Constants
) -> tuple[Query, ...]:
    """The sums that are released once for all trainings (learner.shared).

    Guarantee: mu-GDP together: each is a release of one multiplier.

    Args:
        which: the covariance alone, or all sums.
        mu: that all of them cost together.
        radius: of the ball that records are scaled into.
        constants: public sizes.
    """
    if which == "covariance":
        return (covariance(gdp.sigma(mu, 1), radius),)
    sigma = gdp.sigma(mu, 1 + len(class_sums(1.0, radius, constants)))
    return covariance(sigma, radius), *class_sums(sigma, radius, constants)


def class_by_class(
    inputs: PublicInputs,
    constants: Constants,
    ask: Callable[[int], list[QueryCall]],
    conclude: Callable[[int, list[Any]], Conclusion],
) -> Training[list[Conclusion]]:
    """What is concluded of each class from the answers to its questions. As many classes as there
    are threads stand side by side, and no more: a class's matrix has dimension^2 numbers.

    Args:
        inputs: public inputs, with the number of threads.
        constants: number of classes.
        ask: a class's questions, the same number for each.
        conclude: from a class and its answers to its part of the result; post-processing.
    """
    concluded: list[Conclusion] = []
    for first in range(0, constants.classes, inputs.threads):
        group = range(first, min(first + inputs.threads, constants.classes))
        questions = [ask(label) for label in group]
        answers = iter((yield [question for of_class in questions for question in of_class]))
        each = [[next(answers) for _ in of_class] for of_class in questions]
        concluded += inputs.map_in_threads(conclude, group, each)
    return concluded
