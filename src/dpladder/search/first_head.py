"""The training of a private head, which a training of the network then starts from. It is a descent
on what the public network makes of records, at the kappa that its prior expects."""

from __future__ import annotations

from typing import Literal

from dpladder.config.learner_sections import LinkName
from dpladder.config.learners import method
from dpladder.config.model import Resources
from dpladder.config.sweep_sections import Search
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.methods.dp_finetune import FineTune
from dpladder.privacy.accounting.booking import Entry
from dpladder.privacy.release.meter import Meter
from dpladder.search.prior import DEFAULT, prior_of_learner
from dpladder.search.space import Space
from dpladder.search.training import Training, training_of


def head_of(
    bias: bool,
    link: LinkName,
    augment: int,
    public: Literal["none", "gradient"] = "none",
    look: float = 0.0,
) -> FineTune:
    """The learner of that head: full batches, and dp_gd's free step.

    Args:
        bias, link, augment: the network's own, so that its training can go on from the head.
        public, look: how public records guide the network's training, and so the head's.
    """
    return FineTune(
        trains="head",
        bias=bias,
        link=link,
        augment=augment,
        free_step=True,
        public=public,
        look=look,
    )


def worth_of(training: Training, data: Data, meter: Meter, resources: Resources) -> float:
    """What the public sample that guides a head's training is found to be worth (learn/guide.py).

    Guarantee: that of one noised count, which `training` declares.
    """
    from dpladder.learn.curator import Curator
    from dpladder.learn.finetune.descent import sample_worth

    learner, constants = training.learner, training.constants
    assert isinstance(learner, FineTune)
    [worth] = Curator(data, constants, resources).run(
        lambda inputs, asks: sample_worth(inputs, asks, learner, constants),
        [method(learner.name).queries(learner, training.hyper, constants)],
        [meter],
        guided=True,
    )
    return worth


def training_of_head(learner: FineTune, budget: Entry, constants: Constants) -> Training:
    """The training of a head, at the kappa that its prior expects.

    Features at a cut are not centred, so the prior is that of features which are not.

    Args:
        learner: as `head_of` makes it.
        budget: the entry that the training may cost.
        constants: public sizes, and the network.
    """
    space = Space(Search(), learner, constants)
    kappa = prior_of_learner(DEFAULT, kind=False).median
    return training_of(space, space.r(kappa, budget.mu), budget)
