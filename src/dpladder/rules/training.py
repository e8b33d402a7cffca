"""One private training, a trial's and the final model's alike: what the ladder chose, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpladder.config.learners import Learner, LeastSquares, learner_of
from dpladder.config.model import Search
from dpladder.job import Task, section
from dpladder.learn.interface import Constants, Data, Declaration, Hyper, Weights
from dpladder.learn.registry import method
from dpladder.privacy.meter import Meter
from dpladder.search.space import decompose


@dataclass(frozen=True)
class Training:
    learner: Learner
    hyper: Hyper
    constants: Constants
    declared: Declaration

    def run(self, data: Data, meter: Meter, task: Task) -> Weights:
        train = method(self.learner.name).train
        return train(data, self.hyper, self.learner, self.constants, meter, task.resources)


def training_of(task: Task, r: float | None, mu: float, constants: Constants, trial: int) -> Training:
    """The job's training at r, for a learner that has an r to search, and at what else goes by a trial's number."""
    learner = of_trial(learner_of(task.cfg["learner"]), trial)
    hyper = hyper_of(learner, section(task, "sweep.search", Search), r, mu)
    return Training(learner, hyper, constants, method(learner.name).declare(learner, hyper, constants))


def hyper_of(learner: Any, search: Search, r: float | None, mu: float) -> Hyper:
    """What r stands for, and which fields its section has, is the learner's to say (config/learners.py)."""
    if r is None:
        return Hyper(learner.eta, learner.steps, mu)
    if learner.searches == "ridge":
        return Hyper(r / learner.steps, learner.steps, mu)
    return Hyper(*decompose(r, search), mu)


def of_trial(learner: Learner, trial: int) -> Learner:
    return learner.of_trial(trial) if isinstance(learner, LeastSquares) else learner


def chosen(learner: Learner, hyper: Hyper) -> dict[str, Any]:
    """The choice in the learner's own words, for readers."""
    own = {"ridge": hyper.ridge} if learner.searches == "ridge" else {"eta": hyper.eta}
    if isinstance(learner, LeastSquares):
        own |= {"alpha": learner.alpha}
    return own | {"steps": hyper.steps}
