"""How DP-FC is attacked."""

from __future__ import annotations

from dpladder.config.learner_sections import FeatureCovariance
from dpladder.learn.attacks import sums
from dpladder.privacy.audit.attack import Mechanism


def mechanisms() -> tuple[Mechanism, ...]:
    learner = FeatureCovariance()
    return sums(learner, 1, tight=True), sums(learner, 3, "replace_one")
