"""How DP-Newton is attacked."""

from __future__ import annotations

from dpladder.config.learner_sections import Newton
from dpladder.learn.attacks import sums
from dpladder.privacy.audit.attack import Mechanism


def mechanisms() -> tuple[Mechanism, ...]:
    return sums(Newton(), 2), sums(Newton(link="sigmoid"), 2, "replace_one")
