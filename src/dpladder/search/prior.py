"""Where the best kappa lies before any score is seen: log-normal, by learner, as public data have
it. A learner's METHOD has its own (config/method.py); one without takes dp_gd's.

It hangs on whether features were centred. With their mean still in them, less of a record's length
tells classes apart, and about twice the noise is worth its larger steps. `python
tools/fit_prior.py` fits the figures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from dpladder.config.learners import Learner, method
from dpladder.config.method import Kind
from dpladder.config.sweep_sections import Search

DEFAULT = "dp_gd"
REACH = (
    # the range goes so far beyond the median, at least: learners that precondition have theirs far
    # below
    4.0
)


@dataclass(frozen=True)
class Belief:
    """What is believed of the best kappa: its logarithm is Gaussian.

    Attributes:
        median: of kappa.
        factor: one deviation, as a ratio; above 1.
    """

    median: float
    factor: float

    def at(self, share: float, wider: float = 1.0) -> float:
        """The kappa below which this share of the prior lies, of one so much wider."""
        return self.median * self.factor ** (wider * NormalDist().inv_cdf(share))

    def log_density(self, kappa: float) -> float:
        """Up to a constant."""
        return -0.5 * (math.log(kappa / self.median) / math.log(self.factor)) ** 2


# of a network above a head that is bought (docs/measurements/learners.md)
AFTER_HEAD = Belief(0.2, 2.0)


def belief(learner: str, search: Search) -> Belief:
    """The prior that the config names. Where the plan settled nothing (plan/resolve.py), that of
    centred features."""
    return Belief(*search.expected) if search.expected else prior_of_learner(learner, True)


def with_prior(search: Search, learner: Learner, kind: Kind) -> Search:
    """The search with the prior filled in that its learner has on such features. A prior that the
    config names stays, and so does a search that has none.

    Args:
        search: the config's.
        learner: whose kappa is searched.
        kind: whether features lose their mean before trainings see them; or that numbers are
            learnt.
    """
    if (
        search.expected
        or search.prior != "lognormal"
        or search.unit != "kappa"
        or learner.searches is None
    ):
        return search
    belief_of_learner = (
        AFTER_HEAD if learner.starts_from_private_head else prior_of_learner(learner.name, kind)
    )
    prior, (low, high) = belief_of_learner, search.kappa
    reach = (min(low, prior.median / REACH), max(high, prior.median * REACH))
    return search.model_copy(update={"expected": (prior.median, prior.factor), "kappa": reach})


def prior_of_learner(learner: str, kind: Kind) -> Belief:
    """The prior that was fitted to a learner on public data, or dp_gd's where none was."""
    priors = method(learner).prior
    return Belief(*(priors if kind in priors else method(DEFAULT).prior)[kind])
