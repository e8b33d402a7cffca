"""The learners, and the mechanisms that need none, as `dpladder audit` attacks them."""

from __future__ import annotations

from dpladder.errors import BadInput
from dpladder.learn.attacks import clipped_losses, right_and_wrong, shared_covariance
from dpladder.learn.registry import method
from dpladder.privacy.audit.attack import Mechanism
from dpladder.privacy.audit.built_in import built_in


def shared() -> tuple[Mechanism, ...]:
    """What no learner alone has."""
    losses = (clipped_losses("add_remove"), clipped_losses("replace_one"))
    return (*built_in(), right_and_wrong(), *losses, shared_covariance())


def mechanisms(name: str) -> tuple[Mechanism, ...]:
    """How a learner is attacked. One that nobody attacks is an error."""
    try:
        found = method(name).mechanisms()
    except ModuleNotFoundError as error:
        if not f"dpladder.learn.{name}.audit".startswith(str(error.name)):
            raise
        found = ()
    if not found:
        raise BadInput(
            f"learner {name} has no audit. Its room needs an audit.py whose mechanisms() attack it."
        )
    return found
