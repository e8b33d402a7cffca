"""What a summary computes from releases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from statements import UNLIMITED, Finished

from dpladder.config.learners import learner_of
from dpladder.config.sweep_sections import Search
from dpladder.jobs.summarise import _trial, distance, epsilon_of_training
from dpladder.privacy.accounting import gdp
from dpladder.privacy.statement.documents import SealedStatement
from dpladder.report.model_chapter import largest
from dpladder.section import from_document

WEIGHTS = (np.array([[2.0, 3.0]], np.float32), np.array([6.0], np.float32))


@pytest.mark.parametrize(
    ("learner", "known"),
    [
        ({"name": "dp_gd"}, True),
        ({"name": "dp_finetune", "trains": "last_block"}, True),
        ({"name": "dp_finetune", "trains": "lora"}, True),
        # both factors are trained, and one of them starts at random
        ({"name": "dp_finetune", "trains": "lora", "lora": {"freeze": "none"}}, False),
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


@pytest.mark.parametrize(
    "final",
    [
        {"learner": {"sampling_rate": 0.2}, "sweep": {"rungs": []}},
        {"hpo": {"name": "papernot_steinke"}, "sweep": {"rungs": None}},
    ],
    ids=["samples", "search"],
)
def test_a_final_training_costs_what_the_statement_booked(
    tmp_path: Path, final: dict[str, Any]
) -> None:
    """A mu at all of delta tells less, where something else is booked beside it."""
    sealed = Finished(tmp_path, UNLIMITED | final).state()
    dataset = from_document(SealedStatement, sealed).datasets["mnist5k"]
    (model,) = dataset.artifacts.values()
    (line,) = [one for one in dataset.spends if one.rule in ("train_final", "private_search")]
    assert epsilon_of_training(model, dataset) == line.epsilon
    if line.mu is not None:
        assert line.epsilon > 1.001 * gdp.epsilon(line.mu, dataset.delta)
