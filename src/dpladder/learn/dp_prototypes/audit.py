"""How prototypes are attacked."""

from __future__ import annotations

from dpladder.config.learner_sections import Prototypes
from dpladder.learn.attacks import sums
from dpladder.privacy.audit.attack import Mechanism


def mechanisms() -> tuple[Mechanism, ...]:
    return sums(Prototypes(), 1, tight=True), sums(Prototypes(), 1, "replace_one")
