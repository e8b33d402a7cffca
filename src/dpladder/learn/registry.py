"""The learners by the name that the config uses. A new one is a room and a line here.

A room holds `cost.py` (what a training costs and draws, without torch) and `train.py`. How a
learner is attacked stands in `audit/methods/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from dpladder.config.label_sets import MANY
from dpladder.config.learner_sections import OTHERS, room_of
from dpladder.config.model import Resources
from dpladder.errors import BadInput
from dpladder.learn import public_head, score
from dpladder.learn.interface import (
    Constants,
    Data,
    Declaration,
    Hyper,
    Judge,
    Logits,
    LogOdds,
    Losses,
    Rights,
    TrainMany,
    Weights,
)
from dpladder.learn.public_head import SeenByHead
from dpladder.privacy.release.meter import Meter

LEARNERS = (
    "dp_gd",
    "dp_mlp",
    "dp_finetune",
    "dp_adam",
    "dp_adam_wosm",
    "dp_prodigy",
    "one_step",
    "dp_prototypes",
    "hyfree_dp",
    "hyfree_finetune",
    "prodigy_finetune",
    "dp_zo",
    "dp_ls",
    "dp_newton",
    "dp_fc",
    *OTHERS,
)


@dataclass(frozen=True)
class Method:
    """A learner. Its rooms are entered when they are needed: a plan asks for costs, and never loads
    torch."""

    name: str

    def declare(self, learner: Any, hyper: Hyper, constants: Constants) -> Declaration:
        """What a training costs and draws. `learner` is its own section of the config."""
        found: Declaration = self.room("cost").declare(learner, hyper, constants)
        return found

    def logit_noise(self, learner: Any, hyper: Hyper, constants: Constants) -> float:
        """kappa: the sd of the noise that a training puts into a logit."""
        found: float = self.room("cost").logit_noise(learner, hyper, constants)
        return found

    def train(
        self,
        data: Data,
        hyper: Hyper,
        learner: Any,
        constants: Constants,
        meter: Meter,
        resources: Resources,
    ) -> Weights:
        found: Weights = self.room("train").train(data, hyper, learner, constants, meter, resources)
        return found

    def ready(self, learner: Any, constants: Constants, resources: Resources) -> None:
        """Refuse what cannot be trained on this machine, before a training is charged."""
        own = self._own("ready")
        if own is not None:
            own(learner, constants, resources)

    @property
    def train_many(self) -> TrainMany | None:
        """Several trainings over one pass of the features, where the learner can do that."""
        return getattr(self.room("train"), "train_many", None)

    def logits(self, learner: Any, constants: Constants) -> Logits | None:
        """Where weights are no layers of a perceptron, what they make of features
        (learn/score.py)."""
        own = self._own("logits")
        return None if own is None else partial(own, learner, constants)

    def seen_by_head(self, learner: Any, constants: Constants) -> SeenByHead:
        """What the weights of its last layer are multiplied with, its constant feature included."""
        return partial(self._own("seen_by_head") or public_head.seen, learner, constants)

    def losses(self, learner: Any, constants: Constants) -> Losses | Rights | None:
        """Where weights name no class, how wrong they are about each record, or whether they
        are right."""
        own = self._own("losses")
        found: Losses | Rights | None = None if own is None else own(learner, constants)
        return found

    def judge(self, learner: Any, constants: Constants) -> Judge:
        """What counts a record as right, or as how right."""
        own = self.logits(learner, constants)
        if constants.labels == MANY:
            return LogOdds(partial(score.log_odds, constants.classes, own))
        return self.losses(learner, constants) or own

    def tensors(self, learner: Any, constants: Constants) -> tuple[str, ...]:
        """Names of the weights in a file, where they have some of their own."""
        shapes = getattr(self.room("cost"), "shapes", None)
        return () if shapes is None else tuple(shapes(learner, constants))

    def _own(self, name: str) -> Any:
        """What only its own train.py knows about its weights. Its cost.py says so: whoever asks the
        others loads no torch."""
        return (
            getattr(self.room("train"), name)
            if name in getattr(self.room("cost"), "OWN", ())
            else None
        )

    def room(self, name: str) -> Any:
        """One of its modules."""
        return import_module(f"{room_of(self.name)}.{name}")


def method(name: str) -> Method:
    """The learner that the config names."""
    if name not in LEARNERS:
        raise BadInput(f"learner.name is {name}. Choose one of: {', '.join(LEARNERS)}.")
    return Method(name)
