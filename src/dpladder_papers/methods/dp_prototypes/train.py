"""The direction of every class's noised sum is its row of a linear head, so the nearest by angle
wins. That is the nearest class mean, as in Wahdany et al. 2025, with plain means. All sums are one
release, because a record lies in one class.

A class's size decides only how noisy its own direction is: small classes are not outvoted, as they
are in a descent.

A finding has a prototype of the records that have it and one of those that lack it, each with a sum
of its own. The difference of their directions is its row. A record that is as near to the one as to
the other has it as likely as its public bias says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpladder.config.label_sets import MANY
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query, WeighedSums
from dpladder.privacy.accounting import gdp
from dpladder_papers.methods.dp_prototypes import Prototypes

if TYPE_CHECKING:  # a plan asks for queries alone, and loads no torch
    from dpladder.learn.curator import PublicInputs, Training


def queries(learner: Prototypes, hyper: Hyper, constants: Constants) -> tuple[Query, ...]:
    """One noised release of every class's sum.

    Guarantee: mu-GDP for `hyper.mu`: a record lies in one class, so all sums together move by one
    radius.
    """
    return (
        WeighedSums(
            name="sums",
            multiplier=gdp.sigma(hyper.mu, 1),
            radius=learner.radius,
            by="presence" if constants.labels == MANY else "class",
        ),
    )


def train(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: Prototypes,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """The directions of noised class sums, as rows of a head (after Wahdany et al. 2025).

    Guarantee: that of the one release. Directions are post-processing.
    """
    from torch.nn.functional import normalize

    from dpladder.learn.moments import as_weights

    (sums,) = queries
    directions = normalize((yield sums.at()))
    if constants.labels == MANY:
        present, absent = directions.chunk(2)
        return as_weights(present - absent)
    return as_weights(directions)
