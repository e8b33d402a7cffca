"""How DP-ZO is attacked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpladder.config.learner_sections import ZerothOrder
from dpladder.learn.attacks import CANARIES, CLASSES, ETA, N0, NOTHING, Record, train
from dpladder.learn.dp_zo import cost
from dpladder.learn.interface import Constants, Hyper
from dpladder.privacy.accounting.events import Composed, Counted, Laplace, Relation
from dpladder.privacy.arrays import Floats
from dpladder.privacy.audit.attack import Mechanism
from dpladder.privacy.audit.built_in import neighbours
from dpladder.privacy.release.meter import Meter


def mechanisms() -> tuple[Mechanism, ...]:
    gaussian, laplace = ZerothOrder(), ZerothOrder(noise="laplace")
    return (
        differences(gaussian, 1, "add_remove", tight=True),
        differences(gaussian, 3, "replace_one"),
        differences(laplace, 1, "add_remove", tight=True),
        differences(laplace, 3, "add_remove"),
    )


def differences(learner: ZerothOrder, steps: int, relation: Relation, tight: bool = False) -> Mechanism:
    """The weights lie in the span of the public directions, and so are as good as the noised differences."""
    constants = Constants(N0, CLASSES, len(NOTHING[0]), relation)
    hyper = Hyper(ETA, steps, 2.0)
    declared = cost.declare(learner, hyper, constants)
    sensitivity, scale = declared.draws[0].sensitivity, declared.draws[0].scale
    laplace = (Counted(Laplace(scale / sensitivity), steps),)

    def run(records: Sequence[Record], meter: Meter) -> Floats:
        from dpladder.learn.dp_zo.train import directions

        weights = train(learner, hyper, constants, records, meter)
        public = directions(constants, 0)
        along = np.array([next(public).ravel() for _ in range(steps)])
        rate = hyper.eta / (2 * learner.smoothing * constants.n0)
        return np.asarray(np.linalg.lstsq(along.T, -weights / rate)[0])

    return Mechanism(
        name=f"{learner.name} {learner.noise} {steps} step{'s' * (steps > 1)} {relation}",
        event=Composed(declared.events if learner.noise == "gaussian" else laplace),
        draws=declared.draws,
        scale=scale,
        run=run,
        neighbours=neighbours((NOTHING, NOTHING), CANARIES, relation),
        relation=relation,
        tight=tight,
    )
