"""One private training and what surrounds it, the same for a trial and for the final run."""

from __future__ import annotations

from dataclasses import dataclass

from dpladder.config.model import Learner
from dpladder.learn.interface import Constants, Declaration, Hyper
from dpladder.rules.private import Part


@dataclass(frozen=True)
class Training:
    """Everything public about one training, fixed before a private record is read."""

    part: Part
    learner: Learner
    constants: Constants
    hyper: Hyper
    declared: Declaration
