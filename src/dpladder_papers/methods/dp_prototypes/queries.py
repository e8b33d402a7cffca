"""What prototypes ask: one noised release of every class's sum, because a record lies in one of
them. A finding has two, of the records that have it and of those that lack it."""

from __future__ import annotations

from dpladder.config.label_sets import MANY
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.queries import Query, WeighedSums
from dpladder.privacy.accounting import gdp
from dpladder_papers.methods.dp_prototypes.section import Prototypes


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
