"""How fine-tuning with step sizes from noised losses is attacked."""

from __future__ import annotations

from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.trainings import in_cell as as_in
from dpladder.audit.methods.hyfree_dp import first_look
from dpladder.config.learner_sections import HyperparameterFreeTuning, Lora
from dpladder.network.cut import network_of

NETWORK = "test_vit", "blocks.4", 32
# A head that starts at zero lets no gradient through.
HEAD = HyperparameterFreeTuning(trains="head", init="random", gamma=2.0)


def in_cell(cell: GridCell) -> Mechanism:
    """Of matrices, whose records' gradients are never made."""
    update = {"trains": "lora", "lora": Lora(rank=1, targets=("*.mlp.fc2",))}
    learner = as_in(HEAD.model_copy(update=update), cell)
    return first_look(learner, cell, note=", adapted", network=network_of(*NETWORK))


def others() -> tuple[Mechanism, ...]:
    """Of the head alone, and with it of a norm, whose records' gradients are made."""
    norm = HEAD.model_copy(update={"trains": ("norm.*",)})
    sampled = GridCell("hyfree_finetune", "replace_one", sampled=True)
    whole = GridCell("hyfree_finetune", "add_remove")
    return (
        first_look(HEAD, whole),
        first_look(as_in(HEAD, sampled), sampled),
        first_look(norm, whole, note=", with a norm", network=network_of(*NETWORK)),
    )
