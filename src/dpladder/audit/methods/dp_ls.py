"""How DP-LS, and the sums that its trainings share, are attacked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from dpladder.audit.engine.built_in import neighbours
from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.trainings import CANARIES, CLASSES, N0, NOTHING, Record, data_of, sums
from dpladder.config.label_sets import MANY
from dpladder.config.learner_sections import LeastSquares
from dpladder.config.model import Resources
from dpladder.learn.dp_ls.cost import declare_sums
from dpladder.learn.interface import Constants, publish
from dpladder.privacy.accounting.events import Composed
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release.meter import Meter

WHOLE = GridCell("dp_ls", "add_remove")


def in_cell(cell: GridCell) -> Mechanism:
    return sums(LeastSquares(), 1, cell, tight=cell == WHOLE)


def others() -> tuple[Mechanism, ...]:
    replaced = GridCell("dp_ls", "replace_one", cap=2)
    return (
        sums(LeastSquares(), 1, WHOLE, tight=True, labels=3),
        sums(LeastSquares(), 1, WHOLE, tight=True, labels=MANY),
        sums(LeastSquares(), 1, replaced, labels=MANY),
        shared_statistics(),
    )


def shared_statistics(mu: float = 2.0, radius: float = 2.0) -> Mechanism:
    """The sums that trainings share."""
    constants = Constants(N0, CLASSES, len(NOTHING[0]))
    declared = declare_sums(mu, radius, constants)
    scales = {draw.name: draw.scale for draw in declared.draws}

    def run(records: Sequence[Record], meter: Meter) -> Floats:
        from dpladder.learn.dp_ls.train import release_sums

        release, seen = partial(publish, meter), []

        def keep(name: str, _: int | None, total: Any) -> None:
            seen.append(total / scales[name])

        release_sums(data_of(records), radius, constants, release, keep, Resources(threads=1))
        return np.concatenate(seen)

    pairs = neighbours((NOTHING, NOTHING), CANARIES, "add_remove")
    return Mechanism(
        "statistics", Composed(declared.events), declared.draws, 1.0, run, pairs, tight=True
    )
