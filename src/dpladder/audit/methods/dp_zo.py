"""How DP-ZO is attacked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpladder.audit.engine.built_in import neighbours
from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.trainings import (
    CLASSES,
    ETA,
    N0,
    NOTHING,
    Record,
    canaries_of,
    cell_of,
    effort_of,
    train,
)
from dpladder.config.label_sets import MANY, Labels
from dpladder.config.learner_sections import ZerothOrder
from dpladder.learn.dp_zo import cost
from dpladder.learn.interface import Constants, Hyper
from dpladder.privacy.accounting.events import Composed, Counted, Laplace
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release.meter import Meter


def in_cell(cell: GridCell) -> Mechanism:
    return differences(ZerothOrder(), 3, cell)


def others() -> tuple[Mechanism, ...]:
    whole = GridCell("dp_zo", "add_remove")
    laplace = ZerothOrder(noise="laplace")
    each = ZerothOrder(link="sigmoid")
    return (
        differences(ZerothOrder(), 1, whole, tight=True),
        differences(laplace, 1, whole, tight=True),
        differences(laplace, 3, whole),
        differences(each, 1, GridCell("dp_zo", "replace_one"), tight=True, labels=MANY),
    )


def differences(
    learner: ZerothOrder, steps: int, cell: GridCell, tight: bool = False, labels: Labels = 1
) -> Mechanism:
    """The weights lie in the span of the public directions, and so are as good as the noised
    differences."""
    constants = Constants(N0, CLASSES, len(NOTHING[0]), cell.relation, cap=cell.cap, labels=labels)
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
        name=f"{cell}, {learner.noise}, {steps} step{'s' * (steps > 1)}"
        f"{', findings' * (labels == MANY)}",
        event=Composed(declared.events if learner.noise == "gaussian" else laplace),
        draws=declared.draws,
        scale=scale,
        run=run,
        neighbours=neighbours((NOTHING, NOTHING), canaries_of(labels), cell.relation),
        relation=cell.relation,
        tight=tight,
        effort=effort_of(cell, tight),
        cell=cell_of(learner, constants),
    )
