"""What a summary computes from releases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpladder.config.learner_sections import learner_of
from dpladder.jobs.summarise import distance, largest

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
