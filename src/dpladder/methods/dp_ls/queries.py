"""DP-LS: every class's ridge regression from noised second moments, each summed once (Mehta et
al.).

theta_j = (A_j + alpha G + lambda I)^-1 b_j, where A_j and b_j sum x x^T and x over the class's own
records and G sums x x^T over all. A record enters G and its own class alone, so each of the three
costs what one record moves it by. alpha and lambda are post-processing, so one release of the sums
answers any number of them. A record may be of several classes (dataset.labels): its weight is
shared out between them.

Findings have no A_j: theta_j = (G + lambda I)^-1 b_j, where b_j sums y x over the records of which
the finding is known. y is 1 where it is present and -1/(m - 1) where not, and those of one record
are cut to length 1 together (`WeighedSums`). A sigmoid that starts at 1/m lacks (1 - 1/m) y, so m
theta_j is the first Newton step of its logistic regression.
"""

from __future__ import annotations

from dpladder.config.label_sets import MANY
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.queries import Query, SecondMoments, WeighedSums
from dpladder.learn.second_order import covariance
from dpladder.methods.dp_ls.section import LeastSquares
from dpladder.privacy.accounting import gdp


def queries(learner: LeastSquares, hyper: Hyper, constants: Constants) -> tuple[Query, ...]:
    """The noised sums of one training, or none where shared ones are enough.

    Guarantee: mu-GDP for `hyper.mu`: G, all A_j and all b_j are releases of one multiplier.
    """
    if hyper.mu == 0.0:  # shared statistics are all that it stands on
        return ()
    return sums(hyper.mu, learner.radius, constants, by_class=learner.covariance is None)


def sums(
    mu: float, radius: float, constants: Constants, by_class: bool = True
) -> tuple[Query, ...]:
    """Noised G, where it is the release's own, and A_j and b_j of every class; of findings no
    A_j."""
    several = constants.labels != MANY
    sigma = gdp.sigma(mu, 1 + by_class + several)
    moments = SecondMoments(name="moments", multiplier=sigma, radius=radius, by_class=True)
    targets = WeighedSums(
        name="targets",
        multiplier=sigma,
        radius=radius,
        by="class" if several else "lack",
        apart=several,
    )
    return (*([covariance(sigma, radius)] * by_class), *([moments] * several), targets)


def logit_noise(learner: LeastSquares, hyper: Hyper, constants: Constants) -> float:
    """What the noise on the targets is divided by is the ridge, in the directions that hardly
    vary."""
    *_, targets = queries(learner, hyper, constants)
    length = min(constants.length, learner.radius)
    return length * targets.scale(constants) / constants.n0 / hyper.ridge
