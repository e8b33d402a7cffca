"""The learners by the name that the config uses. A new one is a module and a line here."""

from __future__ import annotations

from dpladder.errors import BadInput
from dpladder.learn import dp_gd, dp_mlp
from dpladder.learn.interface import Method

LEARNERS: dict[str, Method] = {
    "dp_gd": dp_gd,
    "dp_mlp": dp_mlp,
}


def method(name: str) -> Method:
    """The learner that the config names."""
    if name not in LEARNERS:
        raise BadInput(f"learner.name is {name}. Choose one of: {', '.join(LEARNERS)}.")
    return LEARNERS[name]
