"""What a choice among candidates is charged, and what the plan says of it."""

from __future__ import annotations

from typing import Any

import pytest

from dpladder.config import Project
from dpladder.config.load import overlay, resolve
from dpladder.plan import job_identity, rule_specs
from dpladder.plan.plan import Plan, artifact_cost, make_plan
from dpladder.plan.resolve import resolve_defaults
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.events import mu

LAYERS: list[Any] = ["auto", ["blocks.3", "blocks.4"], ["blocks.5"], "last"]
ASKED: dict[str, Any] = {
    "dataset": {"lineage": "images", "source": "mnist5k", "nominal_size": 4000, "census": None},
    "privacy": {"epsilon": 1.0, "delta": 1e-5, "lifetime": {"epsilon": 8.0}},
    "sweep": {"choose": {"features": {"layers": LAYERS}}},
}
RUNGS = {"rungs": [{"epsilon": 0.1, "trials": 4}, {"epsilon": 0.2, "trials": 2}]}


def project(**changes: Any) -> Project:
    return resolve_defaults(resolve(overlay(ASKED, changes)))


def plan(of: Project) -> Plan:
    return make_plan(of, {})


@pytest.mark.parametrize("sweep", [RUNGS, {}], ids=["by hand", "left to the plan"])
def test_every_candidate_is_charged_for_its_training_and_its_count(sweep: dict[str, Any]) -> None:
    asked = project(sweep=sweep)
    made = plan(asked)
    for number, rung in enumerate(asked.main.sweep.ladder):
        trials = [
            item
            for item in made.items_of("images")
            if item.job.rule == "run_trial" and dict(item.job.wildcards)["rung"] == str(number)
        ]
        assert len(trials) == rung.trials
        for item in trials:
            assert {spend.label for spend in item.spends} == {"weights", "score"}
            cost = gdp.compose([mu(spend.event) or 0.0 for spend in item.spends])
            assert cost == pytest.approx(gdp.mu_from_epsilon(rung.epsilon, 1e-5), rel=1e-6)
    assert asked.main.sweep.ladder[0].trials == len(LAYERS)
    [artifact] = made.artifacts
    assert artifact_cost(made, artifact).epsilon == pytest.approx(1.0, abs=1e-4)
    jobs = {job.rule for job in artifact.jobs}
    assert {"run_trial", "train_final", "evaluate"} <= jobs


def test_the_plan_names_candidates_and_what_they_cost() -> None:
    said = project(sweep=RUNGS).choices["main"]
    assert "4 candidates (blocks.4 + blocks.5 + blocks.6; blocks.3 + blocks.4; blocks.5; last)" in (
        said
    )
    assert "as sweep.rungs says" in said
    bought = project().choices["main"]
    assert "of mu^2" in bought
    assert "the best by noised counts" in bought
    assert "as sweep.rungs says" not in bought
    assert "features are of" not in bought
    assert "no sweep" not in bought


def test_a_later_rung_hangs_on_what_the_earlier_one_released() -> None:
    """So whoever changes the earlier one asks the later one anew."""
    config = project(sweep=RUNGS).main
    dearer = overlay(RUNGS, {"rungs": [{"epsilon": 0.12, "trials": 4}, RUNGS["rungs"][1]]})
    other = project(sweep=dearer).main
    ids = [
        job_identity.question_id(one, "run_trial", {"rung": "1", "trial": "0"})
        for one in (config, other)
    ]
    assert ids[0] != ids[1]


def test_other_candidates_are_other_questions_and_other_caches_are_not() -> None:
    """One extraction holds all depths."""
    one = project(sweep=RUNGS).main
    two = project(
        sweep={"choose": {"features": {"layers": [*LAYERS[:3], ["blocks.2"]]}}, **RUNGS}
    ).main
    plain = resolve_defaults(resolve({key: ASKED[key] for key in ("dataset", "privacy")})).main
    part = {"part": "train"}
    caches = {
        job_identity.question_id(config, "merge_features", part) for config in (one, two, plain)
    }
    assert len(caches) == 1
    asked = {
        job_identity.question_id(config, "run_trial", {"rung": "0", "trial": "0"})
        for config in (one, two)
    }
    assert len(asked) == 2


def test_a_choice_fits_no_r_and_hands_its_winner_to_the_final_training() -> None:
    config = project().main
    assert not rule_specs.jobs(config, "fit_radius")
    assert {"run_trial", "select_rung"} <= {*rule_specs.ancestry(config, "train_final")}


def test_public_records_centre_the_candidates_and_choose_and_guide_nothing(tmp_path: Any) -> None:
    sample = tmp_path / "sample.npz"
    sample.touch()
    config = project(dataset={"public_sample": f"npz:{sample}"}).main
    assert config.features.centre == "public"
    assert not config.learner.uses_public_gradient
    assert rule_specs.jobs(config, "find_mean")
