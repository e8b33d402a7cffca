"""What second-order learners share: the noised sum of x x^T over records in a ball, and a walk over
the classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from dpladder.learn.interface import Constants
from dpladder.learn.queries import QueryCall, SecondMoments

if TYPE_CHECKING:
    from dpladder.learn.curator import PublicInputs, Training

Conclusion = TypeVar("Conclusion")


def covariance(sigma: float, radius: float) -> SecondMoments:
    return SecondMoments(name="covariance", multiplier=sigma, radius=radius)


def class_by_class(
    inputs: PublicInputs,
    constants: Constants,
    ask: Callable[[int], list[QueryCall]],
    conclude: Callable[[int, list[Any]], Conclusion],
) -> Training[list[Conclusion]]:
    """What is concluded of each class from the answers to its questions. As many classes as there
    are threads stand side by side, and no more are held."""
    concluded: list[Conclusion] = []
    for first in range(0, constants.classes, inputs.threads):
        group = range(first, min(first + inputs.threads, constants.classes))
        questions = [ask(label) for label in group]
        answers = iter((yield [question for of_class in questions for question in of_class]))
        each = [[next(answers) for _ in of_class] for of_class in questions]
        concluded += inputs.map_in_threads(conclude, group, each)
    return concluded
