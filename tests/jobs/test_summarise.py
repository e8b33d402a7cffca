"""What a summary computes from releases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpladder.config.learners import learner_of
from dpladder.config.sweep_sections import Search
from dpladder.jobs.summarise import _trial, distance
from dpladder.report.model_chapter import largest

WEIGHTS = (np.array([[2.0, 3.0]], np.float32), np.array([6.0], np.float32))


@pytest.mark.parametrize(
    ("learner", "known"),
    [
        ({"name": "dp_gd"}, True),
        ({"name": "dp_finetune", "trains": "last_block"}, True),
        ({"name": "dp_finetune", "trains": "lora"}, False),  # adapters start at random
        ({"name": "dp_mlp"}, False),
        ({"name": "dp_gd", "init": "random"}, False),
        ({"name": "dp_ls"}, False),  # nothing descends
    ],
    ids=str,
)
def test_the_distance_is_told_from_where_weights_start_if_that_is_zero(
    learner: dict[str, Any], known: bool
) -> None:
    assert distance(learner_of(learner), WEIGHTS) == (7.0 if known else None)


@pytest.mark.parametrize(
    ("majority", "rare", "classes", "found"),
    [(None, None, 2, None), (None, 0.25, 2, 0.75), (0.6, 0.25, 2, 0.6), (None, 0.25, 3, None)],
)
def test_of_two_classes_the_rarer_ones_share_tells_the_largers(
    majority: float | None, rare: float | None, classes: int, found: float | None
) -> None:
    assert largest(majority, rare, classes) == found


@pytest.mark.parametrize(("unit", "kappa"), [("r", None), ("kappa", 40.0)])
def test_a_place_of_a_search_in_r_is_no_kappa(unit: Any, kappa: float | None) -> None:
    prior = "none" if unit == "r" else "lognormal"
    search = Search(unit=unit, prior=prior)
    trial = {
        "trial": 0,
        "r": 40.0,
        "mu": 0.1,
        "kappa": 40.0,
        "score": 9.0,
        "counted": 20,
        "sd": 1.0,
    }
    assert _trial(trial, learner_of({"name": "dp_gd"}), search).kappa == kappa
