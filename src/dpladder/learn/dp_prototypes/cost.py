"""What prototypes cost: one noised release of every class's sum, because a record lies in one of
them."""

from __future__ import annotations

from dpladder.config.learner_sections import Prototypes
from dpladder.learn.interface import Constants, Declaration, Hyper
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import gaussian
from dpladder.privacy.accounting.events import Counted, Gaussian


def declare(learner: Prototypes, hyper: Hyper, constants: Constants) -> Declaration:
    sigma, shape = gdp.sigma(hyper.mu, 1), (constants.classes, constants.dimension)
    return Declaration(
        (Counted(Gaussian(sigma), 1),),
        (gaussian("sums", sigma, constants.moves(learner.radius), shape),),
    )
