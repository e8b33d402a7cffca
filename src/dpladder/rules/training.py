"""One private training and what surrounds it, the same for a trial and for the final run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.config.model import Learner, Resources
from dpladder.job import Task
from dpladder.learn.interface import Constants, Declaration, Hyper, Weights, method
from dpladder.learn.weights import load_weights, save_weights
from dpladder.privacy.meter import Meter
from dpladder.rules.private import Part, Reserved, constants_of, part_of, section


@dataclass(frozen=True)
class Training:
    """Everything public about one training, fixed before a private record is read."""

    part: Part
    learner: Learner
    constants: Constants
    hyper: Hyper
    declared: Declaration
