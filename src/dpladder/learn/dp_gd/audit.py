"""How DP-GD is attacked."""

from __future__ import annotations

from functools import partial

from dpladder.config.learner_sections import Descent
from dpladder.learn.attacks import along_momentum, training
from dpladder.privacy.audit.attack import Mechanism


def mechanisms() -> tuple[Mechanism, ...]:
    """One step, which a canary can saturate, and several, whose noise must be fresh in each."""
    learner = Descent(name="dp_gd")
    reach = partial(along_momentum, learner)
    other = learner.model_copy(update={"clipping": "automatic", "schedule": "cosine", "link": "sigmoid"})
    return (
        training(learner, 1, "add_remove", reach, tight=True),
        training(learner, 3, "add_remove", reach),
        training(learner, 1, "replace_one", reach),
        training(learner.model_copy(update={"sampling_rate": 0.5}), 2, "add_remove", reach),
        training(learner.model_copy(update={"sampling_rate": 0.5}), 2, "replace_one", reach),
        training(learner.model_copy(update={"sampling_rate": 0.5, "augment": 2}), 2, "replace_one", reach),
        training(learner.model_copy(update={"augment": 3}), 1, "add_remove", reach, tight=True),
        training(
            other,
            3,
            "replace_one",
            partial(along_momentum, other),
            note=", automatic clipping, cosine, sigmoids",
        ),
    )
