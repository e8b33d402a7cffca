"""How fine-tuning with Prodigy's step sizes is attacked."""

from __future__ import annotations

from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.trainings import STEADY, trained, training
from dpladder.config.learner_sections import Lora, StepSizeFreeTuning
from dpladder.network.cut import network_of

NETWORK = "test_vit", "blocks.4", 32
# Steps of length 1, beside which float32 weights that start at random are no coarser than noise.
HEAD = StepSizeFreeTuning(trains="head", gradient_bound=STEADY, eta=STEADY)


def in_cell(cell: GridCell) -> Mechanism:
    """Of matrices, whose records' gradients are never made."""
    update = {"trains": "lora", "lora": Lora(rank=1, targets=("*.mlp.fc2",)), "init": "random"}
    learner = HEAD.model_copy(update=update)
    return trained(learner, cell, _reach, note=", adapted", network=network_of(*NETWORK))


def others() -> tuple[Mechanism, ...]:
    """Of the head alone, by the other's step sizes too."""
    other = HEAD.model_copy(update={"step_sizes": "d_adaptation", "sampling_rate": 0.5})
    return (
        training(HEAD, 1, "add_remove", _reach),
        training(other, 2, "replace_one", _reach, note=", d_adaptation"),
    )


def _reach(steps: int, noise: float) -> list[float]:
    return [1.0] * steps
