"""One private training, a trial's and the final model's alike: what the ladder chose, and what it
costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpladder.config.learners import Learner
from dpladder.config.model import Resources
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, Declaration, Hyper, Weights
from dpladder.learn.trainings import declare, train, weights_of
from dpladder.privacy.accounting.booking import Entry
from dpladder.privacy.release.meter import Meter
from dpladder.search.space import Space, hyper_of


@dataclass(frozen=True)
class Training:
    """A training that is settled: what it will do, cost and draw. Nothing was read for it.

    Attributes:
        learner: its section in the config.
        hyper: eta, steps, mu and delta0.
        constants: public sizes and bounds.
        declared: its events and draws.
    """

    learner: Learner
    hyper: Hyper
    constants: Constants
    declared: Declaration

    def ready(self, resources: Resources, together: int = 1) -> None:
        """Refuse, before it is charged, a training that cannot be run on this machine.

        Args:
            resources: threads, memory and device.
            together: how many share a pass over the records, itself included.

        Raises:
            Refused: the machine rounds a record by its place, or mixes records.
        """
        weights_of(self.learner).ready(self.learner, self.constants, resources, together)

    def run(self, data: Data, meter: Meter, resources: Resources) -> Weights:
        """Released weights. Guarantee: that of the declared draws (`learn.trainings.train`)."""
        return train(data, self.hyper, self.learner, self.constants, meter, resources)


def training_of(space: Space, r: float | None, budget: Entry) -> Training:
    """A training at r, or where the learner has no r to search, at its own eta and steps.

    Args:
        space: the axis, learner and constants.
        r: None where the learner has none.
        budget: the entry that the training may cost: its mu and delta0.
    """
    hyper = hyper_of(space.learner, space.search, r, budget.mu, budget.delta0)
    declared = declare(space.learner, hyper, space.constants)
    return Training(space.learner, hyper, space.constants, declared)


def learner_of_trial(learner: Learner, trial: int) -> Learner:
    """The learner as a trial of this number has it: some choose a key of their own by it, for
    nothing."""
    return learner.of_trial(trial)


def choice_as_text(learner: Learner, hyper: Hyper) -> dict[str, Any]:
    """The choice in the learner's own words, for readers: from key to value."""
    choice = {"ridge": hyper.ridge} if learner.searches == "ridge" else {"eta": hyper.eta}
    return choice | learner.chosen_keys | {"steps": hyper.steps}
