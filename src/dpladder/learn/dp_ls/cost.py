"""DP-LS: every class's ridge regression from noised second moments, each summed once (Mehta et
al.).

theta_j = (A_j + alpha G + lambda I)^-1 b_j, where A_j and b_j sum x x^T and x over the class's own
records and G sums x x^T over all. A record enters G and its own class alone, so each of the three
costs what one record moves it by. alpha and lambda are post-processing, so one release of the sums
answers any number of them. A record may be of several classes (dataset.labels): its weight is
shared out between them.

Findings have no A_j: theta_j = (G + lambda I)^-1 b_j, where b_j sums y x over the records of which
the finding is known. y is 1 where it is present and -1/(m - 1) where not, and those of one record
are cut to length 1 together (train.py). A sigmoid that starts at 1/m lacks (1 - 1/m) y, so m
theta_j is the first Newton step of its logistic regression.
"""

from __future__ import annotations

from dpladder.config.label_sets import MANY
from dpladder.config.learner_sections import LeastSquares
from dpladder.learn.interface import Constants, Declaration, Hyper
from dpladder.learn.second_order import coordinates, covariance_draw
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import gaussian
from dpladder.privacy.accounting.events import Counted, Gaussian


def declare(learner: LeastSquares, hyper: Hyper, constants: Constants) -> Declaration:
    if hyper.mu == 0.0:  # shared statistics are all that it stands on
        return Declaration((), ())
    return declare_sums(hyper.mu, learner.radius, constants, own=learner.covariance is None)


def declare_sums(mu: float, radius: float, constants: Constants, own: bool = True) -> Declaration:
    """Noised A_j and b_j of every class, and G where it is the release's own; of findings no
    A_j."""
    releases = _releases(own, constants)
    sigma = gdp.sigma(mu, releases)
    classes, dimension = constants.classes, constants.dimension
    # A record is in its own class's sums alone, or in those of several with less weight (train.py),
    # so a unit moves those of all classes together by this much.
    apart, targets = constants.moves_apart(radius**2), constants.moves(radius)
    draws = [covariance_draw(sigma, radius, constants)] if own else []
    if constants.labels == MANY:
        draws += [gaussian("targets", sigma, targets, (classes, dimension))]
    else:
        draws += [
            gaussian("moments", sigma, apart, (coordinates(dimension),), classes, stack=classes),
            gaussian("targets", sigma, targets, (dimension,), classes, stack=classes),
        ]
    return Declaration((Counted(Gaussian(sigma), releases),), tuple(draws))


def _releases(own: bool, constants: Constants) -> int:
    return 1 + own + (constants.labels != MANY)


def logit_noise(learner: LeastSquares, hyper: Hyper, constants: Constants) -> float:
    """What the noise on the targets is divided by is the ridge, in the directions that hardly
    vary."""
    own = learner.covariance is None
    length = min(constants.length, learner.radius)
    return (
        length
        * gdp.sigma(hyper.mu, _releases(own, constants))
        * constants.moves(learner.radius)
        / constants.n0
        / hyper.ridge
    )
