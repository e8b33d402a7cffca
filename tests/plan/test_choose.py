"""What a choice among candidates is charged, and what the plan says of it."""

from __future__ import annotations

import json
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from dpladder import formats
from dpladder.config import Project, candidate_rules
from dpladder.config.load import overlay, resolve
from dpladder.errors import BadInput, Refused
from dpladder.methods.dp_gd.section import Descent
from dpladder.plan import edits, job_identity, rule_specs
from dpladder.plan.plan import Plan, artifact_cost, make_plan
from dpladder.plan.resolve import MEAN, resolve_defaults
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.events import mu
from dpladder.search.prior import prior_of_learner

LAYERS: list[Any] = ["auto", ["blocks.3", "blocks.4"], ["blocks.5"], "last"]
ASKED: dict[str, Any] = {
    "dataset": {"lineage": "images", "source": "mnist5k", "nominal_size": 4000, "census": None},
    "privacy": {"epsilon": 1.0, "delta": 1e-5, "lifetime": {"epsilon": 8.0}},
    "sweep": {"choose": {"features": {"layers": LAYERS}}},
}
LEARNERS = ["dp_gd", "dp_adam", "dp_ls", "dp_newton"]
OF_LEARNERS = {"choose": {"features": {"layers": []}, "learner": {"name": LEARNERS}}}
RUNGS = {"rungs": [{"epsilon": 0.1, "trials": 4}, {"epsilon": 0.2, "trials": 2}]}


def project(**changes: Any) -> Project:
    return resolve_defaults(resolve(overlay(ASKED, changes)))


def plan(of: Project) -> Plan:
    return make_plan(of, {})


@pytest.mark.parametrize(
    "sweep",
    [RUNGS, {}, RUNGS | OF_LEARNERS],
    ids=["by hand", "left to the plan", "learners by hand"],
)
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


@pytest.mark.parametrize(("epsilon", "hides"), [(1.0, True), (4.0, False)])
def test_the_plan_says_where_noise_hides_which_depths_are_better(
    epsilon: float, hides: bool
) -> None:
    """n0 mu is about 1,000 at a total of 1, and 3,500 at 4."""
    notes = project(privacy={"epsilon": epsilon}).choices["main"]
    assert ("hides which depths are better" in notes) == hides


def test_a_public_validation_part_scores_candidates_for_nothing(tmp_path: Any) -> None:
    sample = tmp_path / "validation.npz"
    sample.touch()
    asked = project(
        dataset={"public_validation": f"npz:{sample}"}, sweep={"select": {"by": "public"}}
    )
    spends = [
        spend
        for item in plan(asked).items.values()
        if item.job.rule == "run_trial"
        for spend in item.spends
    ]
    assert [spend.label for spend in spends] == ["weights"] * len(LAYERS)
    assert "the best by counts on dataset.public_validation gets" in asked.choices["main"]
    caption = resources.files("dpladder.report").joinpath("captions", "choice.rst").read_text()
    assert "every score was paid for" not in caption.lower()
    assert "scores are exact and free" in " ".join(caption.split())


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


def trial(of: Project, number: int = 0) -> dict[str, Any]:
    """What Snakemake compares of a trial of the first rung."""
    wildcards = {"experiment": "main", "rung": "0", "trial": str(number)}
    return job_identity.params(of, "run_trial", wildcards)


def test_each_learner_is_tried_at_the_middle_of_its_own_prior() -> None:
    asked = project(sweep=RUNGS | OF_LEARNERS)
    several, centred = trial(asked)["candidates"], asked.main.features.centre != "none"
    assert [one["learner"]["name"] for one in several] == LEARNERS
    medians = [one["sweep.search"]["expected"][0] for one in several]
    assert medians == [prior_of_learner(name, centred).median for name in LEARNERS]
    assert len({*medians}) > 1


def test_every_candidate_takes_what_the_config_says_of_the_learner() -> None:
    said = {"learner": {"clip": 0.5, "link": "sigmoid"}}
    one = {"choose": {"features": {"layers": []}, "learner": {"name": ["dp_gd", "dp_adam"]}}}
    several = trial(project(sweep=one, **said))["candidates"]
    assert [(each["learner"]["clip"], each["learner"]["link"]) for each in several] == [
        (0.5, "sigmoid")
    ] * 2
    # the default of each where the config says nothing
    assert [each["learner"]["free_step"] for each in several] == [True, False]


def test_of_two_keys_every_combination_is_a_candidate() -> None:
    both = {"choose": {"features": {"layers": ["auto", "last"]}, "learner": {"name": LEARNERS[:2]}}}
    asked = project(sweep=both)
    assert asked.main.sweep.ladder[0].trials == 4
    pairs = [(one["features.layers"], one["learner"]["name"]) for one in trial(asked)["candidates"]]
    assert pairs == [("auto", "dp_gd"), ("auto", "dp_adam"), ("last", "dp_gd"), ("last", "dp_adam")]
    assert "4 candidates (blocks.4 + blocks.5 + blocks.6, dp_gd; " in asked.choices["main"]


def test_a_trial_is_known_by_the_versions_of_all_learners_that_are_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A count of an older version would speak for another learner than the one that is trained."""
    config = project(sweep=RUNGS | OF_LEARNERS).main
    assert {*LEARNERS} <= {*rule_specs.versions_of(config, "run_trial")}
    known = [
        rule_specs.identity_of(config, "run_trial", {"dp_newton": version}) for version in (1, 2)
    ]
    assert known[0] != known[1]


NETWORKS = ["efficientnet_lite0", "efficientnet_lite1"]
OF_NETWORKS: dict[str, Any] = {
    "features": {"mean": {"epsilon": 0.1}},
    "sweep": {
        "rungs": [{"epsilon": 0.1, "trials": 2}],
        "choose": {"features": {"layers": [], "model": NETWORKS}},
    },
}


def plain(**features: Any) -> Project:
    """A project that chooses nothing."""
    alone = {key: ASKED[key] for key in ("dataset", "privacy")}
    return resolve_defaults(resolve(overlay(alone, {"features": features})))


def test_every_network_is_charged_for_its_mean_and_its_trial() -> None:
    of = project(**OF_NETWORKS)
    [artifact] = plan(of).artifacts
    jobs = Counter(job.rule for job in artifact.jobs)
    assert (jobs["estimate_mean"], jobs["run_trial"]) == (2, 2)
    spends = plan(of).spends_of(artifact.jobs)
    assert [spend.label for spend in spends].count("mean") == 2
    assert artifact_cost(plan(of), artifact).epsilon == pytest.approx(1.0, abs=1e-4)
    assert "2 candidates (efficientnet_lite0; efficientnet_lite1) are tried" in of.choices["main"]


def test_a_mean_left_to_the_plan_takes_the_same_part_for_all_networks_together() -> None:
    of = {"choose": {"features": {"layers": [], "model": NETWORKS}}}
    whole = gdp.mu_from_epsilon(1.0, 1e-5)
    means = [
        mu(spend.event) or 0.0
        for item in plan(project(sweep=of)).items.values()
        if item.job.rule == "estimate_mean"
        for spend in item.spends
    ]
    assert len(means) == 2
    assert gdp.compose(means) ** 2 == pytest.approx(MEAN * whole**2, rel=0.02)


def test_a_network_that_is_tried_shares_extraction_and_mean_with_one_that_is_not() -> None:
    of = project(**OF_NETWORKS)
    for name, model in zip(of.networks_of("main"), NETWORKS, strict=True):
        alone = plain(model=model, layers="auto", mean={"epsilon": 0.1}).main
        for rule, wildcards in (("merge_features", {"part": "train"}), ("estimate_mean", {})):
            known = [
                job_identity.question_id(one, rule, wildcards)
                for one in (of.experiments[name], alone)
            ]
            assert known[0] == known[1], (rule, model)


@pytest.mark.parametrize(("key", "values"), [("model", NETWORKS), ("image_size", [64, 128])])
def test_a_candidate_reads_the_features_of_its_own_network(key: str, values: list[Any]) -> None:
    features = {"layers": [], "model": [], key: values}
    told = trial(project(**overlay(OF_NETWORKS, {"sweep": {"choose": {"features": features}}})))
    alone = [
        job_identity.params(plain(**{key: value}), "train_final", {"target": "1"})["places"]
        for value in values
    ]
    assert len(told["candidates"]) == len(values)
    assert [one["features"]["train"] for one in told["network_places"]] == [
        one["features"]["train"] for one in alone
    ]


def test_networks_in_another_order_share_the_means_that_were_paid_for() -> None:
    turned = overlay(OF_NETWORKS, {"sweep": {"choose": {"features": {"model": NETWORKS[::-1]}}}})
    means = [
        {
            item.question
            for item in plan(project(**one)).items.values()
            if item.job.rule == "estimate_mean"
        }
        for one in (OF_NETWORKS, turned)
    ]
    assert len(means[0]) == 2
    assert means[0] == means[1]


def test_a_learner_that_samples_by_itself_is_no_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its trials would be charged as those on full batches, which cost more."""
    sampled = Descent(name="dp_gd", sampling_rate=0.5)
    monkeypatch.setattr(candidate_rules, "learner_as", lambda learner, name: sampled)
    with pytest.raises(BadInput, match="dp_adam buys, samples or sees records in its own way"):
        project(sweep=OF_LEARNERS)


@pytest.mark.parametrize("key", ["features", "learner"])
def test_candidates_in_another_order_share_the_mean_that_was_paid_for(key: str) -> None:
    of_key: dict[str, Any] = {"features": {"layers": LAYERS}, "learner": {"name": LEARNERS}}
    [(name, values)] = of_key[key].items()
    nothing = {"features": {"layers": []}}
    orders = [
        project(
            features={"mean": {"epsilon": 0.1}},
            sweep=RUNGS | {"choose": nothing | {key: {name: order}}},
        )
        for order in (values, values[::-1])
    ]
    means = {job_identity.question_id(one.main, "estimate_mean", {}) for one in orders}
    assert len(means) == 1
    # what the release is known by beside its question
    params = [job_identity.params(one, "estimate_mean", {"experiment": "main"}) for one in orders]
    assert params[0] == params[1]
    trials = {
        job_identity.question_id(one.main, "run_trial", {"rung": "0", "trial": "0"})
        for one in orders
    }
    assert len(trials) == 2


def test_learners_share_the_mean_of_a_config_that_chooses_nothing() -> None:
    bought = {"features": {"mean": {"epsilon": 0.1}}}
    plain = overlay({key: ASKED[key] for key in ("dataset", "privacy")}, bought)
    configs = project(sweep=OF_LEARNERS, **bought).main, resolve_defaults(resolve(plain)).main
    assert len({job_identity.question_id(one, "estimate_mean", {}) for one in configs}) == 1


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


@pytest.mark.parametrize(
    ("choice", "named"),
    [
        (
            {"learner": {"name": LEARNERS[:3]}},
            "sweep.choose was dp_gd; dp_adam; dp_ls; dp_newton, is dp_gd; dp_adam; dp_ls",
        ),
        (None, "sweep.choose was dp_gd; dp_adam; dp_ls; dp_newton, is nothing"),
    ],
)
def test_a_refusal_after_an_edited_choice_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: dict[str, Any] | None, named: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("results").mkdir()
    keys = edits.keys_of(project(sweep=RUNGS | OF_LEARNERS))
    edits.PLAN.write_text(json.dumps({"format": formats.FORMATS["plan"], "keys": keys}))
    rungs = [{"epsilon": 0.1, "trials": 3}, {"epsilon": 0.2, "trials": 2}]
    chosen = {} if choice is None else {"choose": {"features": {"layers": []}, **choice}}
    now = project(sweep={"rungs": rungs, "choose": None, **chosen})
    with pytest.raises(Refused) as refused, edits.name_edits_in_refusals(now):
        raise Refused("No room.")
    said = str(refused.value)
    assert named in said
    assert len(said) < 700


def test_an_edit_within_a_candidate_is_named_by_its_key() -> None:
    before = edits.keys_of(project(sweep=RUNGS | OF_LEARNERS))["main"]
    now = json.loads(json.dumps(before))
    now["sweep.choose"][1]["learner"]["clip"] = 2.0
    before = json.loads(json.dumps(before))
    assert [*edits._edits(before, now)] == ["sweep.choose (dp_adam) learner.clip was 1.0, is 2.0"]
