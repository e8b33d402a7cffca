"""How DP-MLP is attacked."""

from __future__ import annotations

from functools import partial

from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.trainings import along_momentum, of_findings, trained, training
from dpladder.config.learner_sections import Descent

LEARNER = Descent(name="dp_mlp")


def in_cell(cell: GridCell) -> Mechanism:
    return trained(LEARNER, cell, partial(along_momentum, LEARNER))


def others() -> tuple[Mechanism, ...]:
    other = LEARNER.model_copy(update={"clipping": "automatic"})
    reach = partial(along_momentum, other)
    return (
        training(other, 1, "add_remove", reach, note=", automatic clipping"),
        *of_findings(LEARNER, reach, tight=False),
    )
