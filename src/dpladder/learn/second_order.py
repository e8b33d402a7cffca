"""What second-order learners share: the noised sum of x x^T over records in a ball, and a walk over
the classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from dpladder.learn.interface import Constants
from dpladder.learn.queries import QueryCall, SecondMoments

if TYPE_CHECKING:
    from dpladder.learn.curator import Given, Training

Conclusion = TypeVar("Conclusion")


def covariance(sigma: float, radius: float) -> SecondMoments:
    return SecondMoments(name="covariance", multiplier=sigma, radius=radius)


def class_by_class(
    given: Given,
    constants: Constants,
    ask: Callable[[int], list[QueryCall]],
    conclude: Callable[[int, list[Any]], Conclusion],
) -> Training[list[Conclusion]]:
    """What is concluded of each class from the answers to its questions. As many classes as there
    are threads stand side by side, and no more are held."""
    concluded: list[Conclusion] = []
    for first in range(0, constants.classes, given.threads):
        group = range(first, min(first + given.threads, constants.classes))
        questions = [ask(label) for label in group]
        answers = iter((yield [question for own in questions for question in own]))
        each = [[next(answers) for _ in own] for own in questions]
        concluded += given.side_by_side(conclude, group, each)
    return concluded
