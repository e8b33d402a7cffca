"""Fine-tuning with step sizes from noised gradients: a head alone is dp_prodigy's, and a network is
trained by what was released."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from learn.test_finetune import CLASSES, SMALL, records
from support import Seeded

from dpladder.config.model import Resources
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.trainings import declare, train
from dpladder.privacy.release.meter import Meter
from dpladder_papers.methods.dp_prodigy import StepSizeFree
from dpladder_papers.methods.prodigy_finetune import StepSizeFreeTuning

ONE = Resources(threads=1, mem_mb=50)


def trained(learner: Any, data: Data, constants: Constants, hyper: Hyper) -> Weights:
    meter = Meter(declare(learner, hyper, constants).draws, Seeded())
    found = train(data, hyper, learner, constants, meter, ONE)
    meter.close()
    return found


@pytest.mark.parametrize("step_sizes", ["prodigy", "d_adaptation"])
@pytest.mark.parametrize("bias", [False, True])
def test_a_head_on_features_alone_is_trained_as_dp_prodigy_trains_it(
    step_sizes: str, bias: bool
) -> None:
    random = np.random.default_rng(0)
    data = Data(random.normal(size=(50, 12)).astype(np.float32), random.integers(0, CLASSES, 50))
    constants, hyper = Constants(50, CLASSES, 12), Hyper(0.1, 12, 30.0)
    shared = {"bias": bias, "eta": 0.1, "step_sizes": step_sizes, "average": "ema"}
    (head,) = trained(StepSizeFree(**shared), data, constants, hyper)
    (tuned,) = trained(StepSizeFreeTuning(trains="head", **shared), data, constants, hyper)
    assert np.linalg.norm(head) > 0.1
    assert np.linalg.norm(tuned - head) <= 1e-5 * np.linalg.norm(head)


def test_the_rate_of_a_hyper_is_no_part_of_the_steps() -> None:
    """The section's eta is the first distance; what a training is told beside it scales nothing."""
    learner, data = StepSizeFreeTuning(trains="norm_and_bias", init="random"), records(SMALL)
    found = [trained(learner, data, SMALL, Hyper(eta, 3, 1.0)) for eta in (0.01, 10.0)]
    assert all(np.array_equal(one, other) for one, other in zip(*found, strict=True))
    assert max(np.abs(part).max() for part in found[0]) > 0
