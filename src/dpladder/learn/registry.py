"""The learners by the name that the config uses. A new one is a room and a line here.

A room holds `queries.py` (what a training asks, without torch) and `train.py` (how it goes on from
the answers).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from dpladder.config.label_sets import MANY
from dpladder.config.learner_sections import OTHERS, guided, room_of
from dpladder.config.model import Resources
from dpladder.errors import BadInput
from dpladder.learn import public_head, score
from dpladder.learn.interface import (
    Constants,
    Data,
    Declaration,
    Hyper,
    Logits,
    Weights,
)
from dpladder.learn.public_head import SeenByHead
from dpladder.learn.queries import Query, declared
from dpladder.learn.scorers import ClassScorer, FindingScorer, Scorer
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

    def queries(self, learner: Any, hyper: Hyper, constants: Constants) -> tuple[Query, ...]:
        """What a training asks. `learner` is its own section of the config."""
        found: tuple[Query, ...] = self.room("queries").queries(learner, hyper, constants)
        return found

    def declare(self, learner: Any, hyper: Hyper, constants: Constants) -> Declaration:
        """What a training costs and draws."""
        return declared(self.queries(learner, hyper, constants), constants, hyper.delta0)

    def logit_noise(self, learner: Any, hyper: Hyper, constants: Constants) -> float:
        """kappa: the sd of the noise that a training puts into a logit."""
        found: float = self.room("queries").logit_noise(learner, hyper, constants)
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
        [weights] = self.train_many(data, [hyper], learner, constants, [meter], resources)
        return weights

    def train_many(
        self,
        data: Data,
        hypers: Sequence[Hyper],
        learner: Any,
        constants: Constants,
        meters: Sequence[Meter],
        resources: Resources,
    ) -> list[Weights]:
        """Independent trainings, a meter each, on one set of records: side by side over one pass of
        it where its queries allow that, else one after the other."""
        from dpladder.learn.curator import Curator

        queries = [self.queries(learner, hyper, constants) for hyper in hypers]
        curator = Curator(data, constants, resources)
        train, trainings = self.room("train").train, [*zip(hypers, queries, meters, strict=True)]
        together = self.shares_a_pass(learner, hypers[0], constants)
        groups = [trainings] if together else [[one] for one in trainings]
        found: list[Weights] = []
        for group in groups:
            own = [one for one, _, _ in group]

            def begin(given: Any, asks: Any, own: Any = own) -> Any:
                return train(given, asks, learner, own[given.number], constants)

            found += curator.run(
                begin,
                [asks for _, asks, _ in group],
                [meter for _, _, meter in group],
                guided(learner),
            )
        return found

    def ready(self, learner: Any, constants: Constants, resources: Resources) -> None:
        """Refuse what cannot be trained on this machine, before a training is charged."""
        own = self._own("ready")
        if own is not None:
            own(learner, constants, resources)

    def shares_a_pass(self, learner: Any, hyper: Hyper, constants: Constants) -> bool:
        """Whether several trainings go side by side over one pass of the records."""
        return all(query.stacks for query in self.queries(learner, hyper, constants))

    def logits(self, learner: Any, constants: Constants) -> Logits | None:
        """Where weights are no layers of a perceptron, what they make of features
        (learn/score.py)."""
        own = self._own("logits")
        return None if own is None else partial(own, learner, constants)

    def seen_by_head(self, learner: Any, constants: Constants) -> SeenByHead:
        """What the weights of its last layer are multiplied with, its constant feature included."""
        return partial(self._own("seen_by_head") or public_head.seen, learner, constants)

    def scorer(self, learner: Any, constants: Constants) -> Scorer:
        """What its task counts of each record."""
        logits = self.logits(learner, constants)
        if constants.labels == MANY:
            return FindingScorer(partial(score.log_odds, constants.classes, logits))
        own = self._own("scorer")
        found: Scorer | None = None if own is None else own(learner, constants)
        return found or ClassScorer(logits)

    def tensors(self, learner: Any, constants: Constants) -> tuple[str, ...]:
        """Names of the weights in a file, where they have some of their own."""
        shapes = getattr(self.room("queries"), "shapes", None)
        return () if shapes is None else tuple(shapes(learner, constants))

    def _own(self, name: str) -> Any:
        """What only its own train.py knows about its weights. Its queries.py says so: whoever asks
        the others loads no torch."""
        return (
            getattr(self.room("train"), name)
            if name in getattr(self.room("queries"), "OWN", ())
            else None
        )

    def room(self, name: str) -> Any:
        """One of its modules; a learner of another package is one module in all."""
        room = room_of(self.name)
        return import_module(room if self.name in OTHERS else f"{room}.{name}")


def method(name: str) -> Method:
    """The learner that the config names."""
    if name not in LEARNERS:
        raise BadInput(f"learner.name is {name}. Choose one of: {', '.join(LEARNERS)}.")
    return Method(name)
