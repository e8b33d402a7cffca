"""How HyFreeDP is attacked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpladder.config.learner_sections import HyperparameterFree
from dpladder.config.model import Resources
from dpladder.learn.attacks import CANARIES, CLASSES, ETA, N0, NOTHING, Record, data_of
from dpladder.learn.hyfree_dp import cost
from dpladder.learn.interface import Constants, Hyper
from dpladder.privacy.accounting.events import Composed, Relation
from dpladder.privacy.arrays import Floats
from dpladder.privacy.audit.attack import Mechanism
from dpladder.privacy.audit.built_in import neighbours
from dpladder.privacy.release.meter import Meter


def mechanisms() -> tuple[Mechanism, ...]:
    return first_look(HyperparameterFree(), "add_remove"), first_look(HyperparameterFree(), "replace_one")


def first_look(learner: HyperparameterFree, relation: Relation, mu: float = 2.0) -> Mechanism:
    """A step that looks at the losses, by what it asks: how its rate follows from the answers is post-processing."""
    constants = Constants(N0, CLASSES, len(NOTHING[0]), relation)
    found = cost.split(learner, Hyper(ETA, 1, mu))
    declared = cost.declare(learner, Hyper(ETA, 1, mu), constants)
    scales = [draw.scale / N0 for draw in declared.draws]

    def run(records: Sequence[Record], meter: Meter) -> Floats:
        import torch

        from dpladder.learn.hyfree_dp.train import Step, noised_gradient, noised_losses
        from dpladder.learn.linear import resident

        held, threads = resident(data_of(records), constants, Resources(threads=1))
        step = Step(held, held.chunks(), N0, threads)
        weights, bound = torch.zeros(1, CLASSES, constants.dimension).double(), torch.ones(1).double()
        gradient = noised_gradient(step, weights, constants, [meter])
        losses = noised_losses(step, weights, ETA * gradient, bound, [found], [meter])
        return np.concatenate([gradient.ravel() / scales[0], losses.ravel() / scales[1]])

    return Mechanism(
        name=f"{learner.name} {relation}",
        event=Composed(declared.events),
        draws=declared.draws,
        scale=1.0,
        run=run,
        neighbours=neighbours((NOTHING, NOTHING), CANARIES, relation),
        relation=relation,
    )
