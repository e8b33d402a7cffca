"""How fine-tuning is attacked."""

from __future__ import annotations

from functools import partial

from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.trainings import along_momentum, look, of_findings, trained, training
from dpladder.config.learner_sections import FineTune, Lora
from dpladder.network.cut import network_of

NETWORK = "test_vit", "blocks.4", 32


def in_cell(cell: GridCell) -> Mechanism:
    """Of matrices, whose records' gradients are never made."""
    learner = FineTune(trains="lora", lora=Lora(rank=1, targets=("*.mlp.fc2",)), init="random")
    reach = partial(along_momentum, learner)
    return trained(learner, cell, reach, note=", adapted", network=network_of(*NETWORK))


def others() -> tuple[Mechanism, ...]:
    """Of the head alone, and with it of a norm, whose records' gradients are made; and both beside
    public records (as dp_gd: of one step)."""
    head = FineTune(trains="head")
    sampled = head.model_copy(update={"sampling_rate": 0.5})
    norm = FineTune(trains=("norm.*",), init="random")
    guided = FineTune(trains="head", public="gradient", look=0.0)
    guided_norm = guided.model_copy(update={"trains": ("norm.*",)})
    other = head.model_copy(update={"clipping": "automatic", "schedule": "linear"})
    reach = partial(along_momentum, head)
    network = network_of(*NETWORK)
    return (
        training(head, 1, "add_remove", reach),
        training(head, 2, "replace_one", reach),
        training(sampled, 2, "add_remove", reach),
        training(sampled, 2, "replace_one", reach),
        training(norm, 1, "add_remove", reach, note=", with a norm", network=network),
        training(guided, 1, "add_remove", reach, tight=True, note=", guided"),
        training(guided, 1, "replace_one", reach, tight=True, cap=2, note=", guided"),
        training(
            guided_norm, 1, "replace_one", reach, note=", with a norm, guided", network=network
        ),
        look(head, "add_remove"),
        look(head, "replace_one", cap=2),
        training(
            other,
            2,
            "add_remove",
            partial(along_momentum, other),
            note=", automatic clipping, linear",
        ),
        *of_findings(head, reach),
    )
