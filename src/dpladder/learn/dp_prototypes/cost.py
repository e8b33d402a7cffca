"""What prototypes cost: one noised release of every class's sum, because a record lies in one of
them. A finding has two, of the records that have it and of those that lack it, and a record moves
all that it lies in no further (train.py)."""

from __future__ import annotations

from dpladder.config.label_sets import MANY
from dpladder.config.learner_sections import Prototypes
from dpladder.learn.interface import Constants, Declaration, Hyper
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import gaussian
from dpladder.privacy.accounting.events import Counted, Gaussian


def declare(learner: Prototypes, hyper: Hyper, constants: Constants) -> Declaration:
    sums = constants.classes * (2 if constants.labels == MANY else 1)
    sigma, shape = gdp.sigma(hyper.mu, 1), (sums, constants.dimension)
    return Declaration(
        (Counted(Gaussian(sigma), 1),),
        (gaussian("sums", sigma, constants.moves(learner.radius), shape),),
    )
