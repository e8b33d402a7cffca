"""How fine-tuning with step sizes from noised losses is attacked."""

from __future__ import annotations

from dpladder.config.learner_sections import HyperparameterFreeTuning, Lora
from dpladder.learn.hyfree_dp.audit import first_look
from dpladder.network.cut import network_of
from dpladder.privacy.audit.attack import Mechanism


def mechanisms() -> tuple[Mechanism, ...]:
    """Of the head alone, and with it of layers of a network: matrices, whose records' gradients are never made, and a norm,
    whose are. A head that starts at zero lets no gradient through."""
    head = HyperparameterFreeTuning(trains="head", init="random")
    network = network_of("test_vit", "blocks.4", 32)
    adapted = head.model_copy(update={"trains": "lora", "lora": Lora(rank=1, targets=("*.mlp.fc2",))})
    norm = head.model_copy(update={"trains": ("norm.*",)})
    return (
        first_look(head, "add_remove"),
        first_look(
            head.model_copy(update={"sampling_rate": 0.5, "gamma": 2.0}), "replace_one", note=" sampled"
        ),
        first_look(adapted, "replace_one", note=", adapted", network=network),
        first_look(norm, "add_remove", note=", with a norm", network=network),
    )
