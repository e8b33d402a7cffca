"""How DP-GD is attacked."""

from __future__ import annotations

from functools import partial

from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.trainings import (
    along_momentum,
    look,
    of_findings,
    trained,
    training,
)
from dpladder.config.learner_sections import Descent

LEARNER = Descent(name="dp_gd")


def in_cell(cell: GridCell) -> Mechanism:
    return trained(LEARNER, cell, partial(along_momentum, LEARNER))


def others() -> tuple[Mechanism, ...]:
    """One step, which a canary can saturate, and what else a config can set."""
    reach = partial(along_momentum, LEARNER)
    other = LEARNER.model_copy(
        update={"clipping": "automatic", "schedule": "cosine", "link": "sigmoid"}
    )
    guided = LEARNER.model_copy(update={"public": "gradient", "look": 0.0})
    note = ", automatic clipping, cosine, sigmoids"
    return (
        training(LEARNER, 1, "add_remove", reach, tight=True),
        training(LEARNER.model_copy(update={"augment": 3}), 1, "add_remove", reach, tight=True),
        # one step: from the second on, what guides it hangs on the noise of those before
        training(guided, 1, "add_remove", reach, tight=True, note=", guided"),
        training(guided, 1, "replace_one", reach, tight=True, cap=2, note=", guided"),
        look(LEARNER, "add_remove", cap=2),
        look(LEARNER, "replace_one"),
        training(other, 3, "replace_one", partial(along_momentum, other), note=note),
        *of_findings(LEARNER, reach, cap=2),
    )
