"""The learners by the name that the config uses, which is their module's. A new one is a module and a line here."""

from __future__ import annotations

from dpladder.errors import BadInput
from dpladder.learn import (
    dp_adam,
    dp_adam_wosm,
    dp_fc,
    dp_gd,
    dp_ls,
    dp_mlp,
    dp_newton,
    dp_prodigy,
    dp_zo,
    hyfree_dp,
    one_step,
)
from dpladder.learn.interface import Method

LEARNERS: dict[str, Method] = {
    "dp_gd": dp_gd,
    "dp_mlp": dp_mlp,
    "dp_adam": dp_adam,
    "dp_adam_wosm": dp_adam_wosm,
    "dp_prodigy": dp_prodigy,
    "one_step": one_step,
    "hyfree_dp": hyfree_dp,
    "dp_zo": dp_zo,
    "dp_ls": dp_ls,
    "dp_newton": dp_newton,
    "dp_fc": dp_fc,
}


def method(name: str) -> Method:
    """The learner that the config names."""
    if name not in LEARNERS:
        raise BadInput(f"learner.name is {name}. Choose one of: {', '.join(LEARNERS)}.")
    return LEARNERS[name]
