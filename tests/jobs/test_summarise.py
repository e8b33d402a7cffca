"""What a summary computes from releases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpladder.config.learner_sections import learner_of
from dpladder.jobs.summarise import distance

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
