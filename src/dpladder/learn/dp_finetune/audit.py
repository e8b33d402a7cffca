"""How fine-tuning is attacked."""

from __future__ import annotations

from functools import partial

from dpladder.config.learner_sections import FineTune, Lora
from dpladder.learn.attacks import along_momentum, training
from dpladder.network.cut import network_of
from dpladder.privacy.audit.attack import Mechanism


def mechanisms() -> tuple[Mechanism, ...]:
    """Of the head alone, and with it of layers of a network: matrices, whose records' gradients are never made, and a norm,
    whose are."""
    head = FineTune(trains="head")
    reach = partial(along_momentum, head)
    network = network_of("test_vit", "blocks.4", 32)
    adapted = FineTune(trains="lora", lora=Lora(rank=1, targets=("*.mlp.fc2",)), init="random")
    norm = FineTune(trains=("norm.*",), init="random")
    other = head.model_copy(update={"clipping": "automatic", "schedule": "linear"})
    return (
        training(head, 1, "add_remove", reach),
        training(head, 2, "replace_one", reach),
        training(head.model_copy(update={"sampling_rate": 0.5}), 2, "add_remove", reach),
        training(head.model_copy(update={"sampling_rate": 0.5}), 2, "replace_one", reach),
        training(adapted, 1, "replace_one", reach, note=", adapted", network=network),
        training(norm, 1, "add_remove", reach, note=", with a norm", network=network),
        training(other, 2, "add_remove", partial(along_momentum, other), note=", automatic clipping, linear"),
    )
