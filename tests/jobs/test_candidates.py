"""A job as a candidate of sweep.choose has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpladder.config.load import resolve
from dpladder.config.model import Resources
from dpladder.errors import Refused
from dpladder.jobs import reservation
from dpladder.jobs.candidates import of_candidate
from dpladder.jobs.task import Task
from dpladder.plan import job_identity
from dpladder.plan.resolve import resolve_defaults
from dpladder.plan.rule_params import RunTrial
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.home import Home

MODELS, LEARNERS = ("efficientnet_lite0", "efficientnet_lite1"), ("dp_gd", "dp_ls")
CANDIDATES = [(model, learner) for model in MODELS for learner in LEARNERS]
CHOOSE = {"features": {"model": [*MODELS]}, "learner": {"name": [*LEARNERS]}}


def trial(private: str = "private") -> Task[RunTrial]:
    values: dict[str, Any] = {
        "dataset": {"lineage": "images", "source": "mnist5k", "nominal_size": 4000, "census": None},
        "features": {"mean": {"epsilon": 0.1}},
        "privacy": {"epsilon": 1.0, "delta": 1e-5},
        "sweep": {"choose": CHOOSE},
        "paths": {"private": private},
    }
    wildcards = {"experiment": "main", "rung": "0", "trial": "0"}
    cfg = job_identity.params(resolve_defaults(resolve(values)), "run_trial", wildcards)
    inputs = {"mean": ["first", "second"], "below": []}
    return Task("run_trial", wildcards, cfg, "", inputs, {}, Resources())


@pytest.mark.parametrize("number", range(4))
def test_a_candidate_has_its_own_network_mean_and_learner(number: int) -> None:
    task, (model, learner) = of_candidate(trial(), number), CANDIDATES[number]
    assert (task.reads.model, task.reads.learner.name) == (model, learner)
    network = MODELS.index(model)
    assert task.input["mean"] == ("first", "second")[network]
    assert task.reads.places.features == task.reads.network_places[network]["features"]
    # what its record is of
    assert task.cfg == trial().cfg


def test_the_mean_of_every_network_must_be_as_it_was_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edited one would be paid for, and once more when it is restored."""
    monkeypatch.setattr(reservation, "is_kept", lambda home, path, lineage: path.name == "first")
    with pytest.raises(Refused, match=r"^second is not what was released under lineage images"):
        reservation._check_releases(trial(), Ledger(Home(tmp_path), "images"))


def test_where_features_lie_is_no_part_of_what_a_candidate_is_known_by() -> None:
    here, there = (of_candidate(trial(private), 2) for private in ("private", "elsewhere"))
    assert here.reads.places != there.reads.places
    assert here.reads.network_places != there.reads.network_places
    assert here.public_cfg == there.public_cfg
