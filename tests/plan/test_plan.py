"""The plan: what a config declares it will spend, before anything is read."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import DEMO, commit, node_of

from dpladder.config import Project, searches
from dpladder.config.load import overlay, resolve
from dpladder.errors import BadInput, Refused
from dpladder.plan import follows
from dpladder.plan.cost import trial_budget
from dpladder.plan.dag import build_dag
from dpladder.plan.plan import Plan, make_plan
from dpladder.plan.resolve import resolve_defaults
from dpladder.plan.reuse import questions_to_repeat, under_terms
from dpladder.plan.rules import RULES
from dpladder.plan.table import plan_document, plan_table
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import Entry
from dpladder.privacy.accounting.composition import Composition, compose, entry_of
from dpladder.privacy.accounting.events import Spend, mu
from dpladder.privacy.ledger.book import admit, finish, load, open_ledger, reserve
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.statement.documents import PlanDocument, PlannedModel
from dpladder_papers.methods.one_step import OneStep

NOTHING: dict[str, Any] = {}


SWEEP = {
    "dataset": {"census": None},
    "features": {"centre": "auto"},
    "sweep": {
        "rungs": [{"epsilon": 0.1, "trials": 3}, {"epsilon": 0.2, "trials": 3}],
        "select": {"share": 0.05},
    },
}


def project(**changes: Any) -> Project:
    return resolve_defaults(resolve(overlay(overlay(DEMO, SWEEP), changes)))


def plan(**changes: Any) -> Plan:
    return make_plan(build_dag(project(**changes)), NOTHING)


def document_of(**changes: Any) -> PlanDocument:
    return plan_document(plan(**changes), NOTHING, build_dag(project(**changes)))


def assert_spends_its_totals(made: Plan) -> None:
    """Each artifact's total, and not a hair more."""
    for artifact in made.artifacts:
        total = artifact.target_epsilon
        assert 0.99999 * total < artifact.epsilon <= total
        assert artifact.epsilon == composed(made, artifact).epsilon


def composed(made: Plan, artifact: PlannedModel) -> Composition:
    """What a final model's jobs cost together, as they are priced in the whole plan."""
    return compose(made.spends_of(one.job for one in artifact.jobs), 1e-5)


def epsilon_of(spend: Spend) -> float:
    return gdp.epsilon(mu(spend.event) or 0.0, 1e-5)


def spends_of_rule(made: Plan, rule: str) -> dict[str, tuple[Spend, ...]]:
    """By the experiment that pays for them."""
    return {job.experiment: item.spends for job, item in made.items.items() if job.rule == rule}


def test_the_demo_spends_its_total_and_not_a_hair_more() -> None:
    made = plan()
    (artifact,) = made.artifacts
    cost = composed(made, artifact)
    assert_spends_its_totals(made)
    assert cost.entry == Entry(cost.mu)


def test_a_trial_costs_its_rungs_epsilon_score_included() -> None:
    demo = project().main
    budget = trial_budget(demo, 0)
    assert budget.score is not None
    assert gdp.compose([budget.weights, budget.score]) == pytest.approx(
        gdp.mu_from_epsilon(0.1, 1e-5), rel=1e-9
    )
    assert budget.score**2 == pytest.approx(0.05 * budget.total**2, rel=1e-9)


def test_a_public_score_leaves_the_whole_trial_to_the_weights(tmp_path: Any) -> None:
    (tmp_path / "v.npz").touch()
    public = {"public_validation": f"npz:{tmp_path / 'v.npz'}"}
    config = project(dataset=public, sweep={"select": {"by": "public"}}).main
    assert trial_budget(config, 0).score is None
    assert trial_budget(config, 0).weights == trial_budget(config, 0).total
    made = plan(learner=STATISTICS, dataset=public, sweep={"select": {"by": "public"}})
    assert [job.rule for job in made.items] == ["estimate_sums", "train_final", "evaluate"]
    assert_spends_its_totals(made)


@settings(max_examples=60, deadline=None)
@given(
    total=st.floats(0.45, 20.0),
    rungs=st.lists(
        st.tuples(st.floats(0.01, 0.12), st.integers(1, 4)),
        min_size=2,
        max_size=3,
        unique_by=lambda r: r[0],
    ),
    relation=st.sampled_from(["add_remove", "replace_one"]),
    share=st.floats(0.01, 0.5),
)
def test_every_artifact_of_every_plan_stays_within_its_total(
    total: float, rungs: list[tuple[float, int]], relation: str, share: float
) -> None:
    made = plan(
        privacy={"epsilon": total, "relation": relation, "lifetime": {"epsilon": 100.0}},
        sweep={
            "rungs": [{"epsilon": e, "trials": n} for e, n in rungs],
            "select": {"share": share},
        },
    )
    (artifact,) = made.artifacts
    assert artifact.target_epsilon == total
    assert artifact.epsilon <= total
    assert artifact.epsilon == pytest.approx(total, rel=1e-6)


COVARIANCE = {"name": "dp_ls", "shared": {"epsilon": 0.3}}
STATISTICS = {"name": "dp_ls", "shared": {"epsilon": 0.6, "sums": "all"}}
HEAD = {"name": "dp_finetune", "head": {"epsilon": 0.7}}


@pytest.mark.parametrize(
    ("rule", "epsilon", "changes", "payers"),
    [
        (
            "estimate_sums",
            0.3,
            {
                "learner": COVARIANCE | {"name": "dp_fc"},
                "experiments": {
                    "ls": {"learner": COVARIANCE},
                    "wider": {"learner": COVARIANCE | {"radius": 2.0}},
                    "alone": {"learner": {"name": "dp_ls"}},
                },
            },
            {"main": ["main"], "ls": ["main"], "wider": ["wider"], "alone": []},
        ),
        (
            "estimate_sums",
            0.6,
            {
                "learner": STATISTICS,
                "final": {"targets": [1.0, 2.0]},
                "experiments": {
                    "finer": {"learner": {"shared": {"alpha": [0.1, 1.0]}}},
                    "wider": {"learner": {"radius": 2.0}},
                },
            },
            {"main": ["main"], "finer": ["main"], "wider": ["wider"]},
        ),
        (
            "estimate_head",
            0.7,
            {
                "features": {"until": "blocks.5"},
                "final": {"targets": [1.0, 2.0]},
                "sweep": {"rungs": []},
                "learner": HEAD,
                "experiments": {
                    "adapted": {"learner": {"trains": "lora"}},
                    "biased": {"learner": {"bias": True}},
                },
            },
            {"main": ["main"], "adapted": ["main"], "biased": ["biased"]},
        ),
    ],
    ids=["covariance", "statistics", "head"],
)
def test_a_shared_release_is_charged_once_for_all_that_use_it(
    rule: str, epsilon: float, changes: dict[str, Any], payers: dict[str, list[str]]
) -> None:
    made = plan(**changes)
    charged = spends_of_rule(made, rule)
    assert [[payer] for payer in charged] == [*{tuple(p): p for p in payers.values() if p}.values()]
    for (spend,) in charged.values():
        assert epsilon_of(spend) == pytest.approx(epsilon, rel=1e-6)
        assert spend.partition.parts == ("train",)
    assert_spends_its_totals(made)
    for artifact in made.artifacts:
        assert [job.experiment for job in artifact.jobs if job.rule == rule] == payers[
            artifact.experiment
        ]


STATISTICS = {"name": "dp_ls", "shared": {"epsilon": 0.6, "sums": "all"}}


def test_trials_on_shared_statistics_pay_for_their_scores_alone() -> None:
    made = plan(learner=STATISTICS, sweep={"rungs": [{"epsilon": 0.1, "trials": 4}]})
    trials = [item.spends for job, item in made.items.items() if job.rule == "run_trial"]
    assert len(trials) == 4
    for (score,) in trials:
        assert score.label == "score"
        assert epsilon_of(score) == pytest.approx(0.1, rel=1e-6)


FURTHER = {
    "also": [
        {
            "name": "blurred",
            "of": "test",
            "corruption": "blur",
            "severities": [1, 4],
            "epsilon": 0.3,
        },
        {"name": "photos", "source": "digits", "declared_public": True},
        {"name": "noisy", "of": "photos", "corruption": "noise"},
    ]
}


def test_further_tests_of_private_images_are_paid_by_the_test_part_and_public_ones_are_free() -> (
    None
):
    made = plan(evaluate=FURTHER)
    tests = {
        job: item.spends for job, item in made.items.items() if job.rule.startswith("evaluate")
    }
    also = {dict(job.wildcards)["test"] for job in tests if job.rule == "evaluate_also"}
    assert also == {"blurred-1", "blurred-4"}
    assert {spend.partition.parts for spends in tests.values() for spend in spends} == {("test",)}
    (blurred,) = spends_of_rule(made, "evaluate_also")["main"]
    assert epsilon_of(blurred) == pytest.approx(0.3, rel=1e-6)
    assert set(tests) <= {one.job for one in made.artifacts[0].jobs}
    assert_spends_its_totals(made)
    assert compose(made.spends_of(tests), 1e-5).epsilon <= 1.0
    # The final training gets what it got without them.
    assert spends_of_rule(made, "train_final") == spends_of_rule(plan(), "train_final")


def test_the_plan_says_what_counting_units_buys() -> None:
    counted = {"census": {"epsilon": 0.02}}
    rows = [line.split() for line in plan_table(document_of(dataset=counted)).splitlines()]
    assert [row[1:4] for row in rows if "count_units" in row] == [
        ["count_units", "class", "counts"]
    ]


def test_a_part_is_public_by_a_source_of_its_own_alone(tmp_path: Any) -> None:
    """Of other parts those units count that were there when the version was first asked."""
    (tmp_path / "test.npz").touch()
    for source, public in ((None, []), (f"npz:{tmp_path}/test.npz", ["test"])):
        found = project(dataset={"public_test": source})
        assert node_of(found, "evaluate", target="1").params["public_parts"] == public


RESEARCH: dict[str, Any] = {"mode": "research", "dataset": {"declared_public": True}}


def test_research_counts_its_tests_exactly_and_pays_for_trainings_alone() -> None:
    """A test part of data declared public, as it is and corrupted; in a release it is paid for."""
    free = [*FURTHER["also"]]
    free[0] = {key: value for key, value in free[0].items() if key != "epsilon"}
    tests = {"evaluate": {"also": free}}
    released, counted = plan(evaluate=FURTHER), plan(**overlay(RESEARCH, tests))
    assert {job.rule for job in released.items} >= {"train_final", "evaluate", "evaluate_also"}
    assert {job.rule for job in counted.items} == {"train_final", "run_trial"}
    assert "main: research counts its tests exactly" in "\n".join(
        document_of(**overlay(RESEARCH, tests)).notes
    )
    declared = overlay(RESEARCH, {"mode": "release", "evaluate": FURTHER})
    assert {job.rule for job in plan(**declared).items} == {job.rule for job in released.items}


@pytest.mark.parametrize("rule", ["find_start", "find_mean", "train_student"])
def test_what_is_found_for_nothing_is_found_in_public_sources(tmp_path: Any, rule: str) -> None:
    """Heads, means and students without noise: each opens public sources alone, and nothing is
    booked for them. The test part is private here."""
    (tmp_path / "s.npz").touch()
    public = dict.fromkeys(("public_sample", "public_unlabelled"), f"npz:{tmp_path / 's.npz'}")
    changes: dict[str, Any] = {"learner": {"init": "public"}, "features": {"centre": "public"}}
    config = project(dataset=public, **changes).main
    spec = RULES[rule]
    assert spec.when(config)
    parts = spec.parts(config, {})
    assert parts
    assert all(follows.is_public(config, part) for part in parts)
    assert rule not in {job.rule for job in plan(dataset=public, **changes).items}


OTHER: dict[str, Any] = {
    "dataset": {"lineage": "other", "source": "digits", "nominal_size": 300},
    "privacy": {"epsilon": 0.4, "delta": 1e-4, "relation": "replace_one"},
    "sweep": {"rungs": []},
    "features": {"centre": "none"},
}


def test_a_job_opens_the_private_parts_that_it_pays_for_and_no_others() -> None:
    found, made = project(experiments={"other": OTHER}), plan(experiments={"other": OTHER})
    for name, rules in (("main", {"run_trial"}), ("other", set())):
        charged = {job.rule for job in made.items if job.experiment == name}
        assert charged == {"train_final", "evaluate", *rules}
    for job, item in made.items.items():
        config = found.experiments[job.experiment]
        opened = RULES[job.rule].parts(config, dict(job.wildcards))
        private = {
            follows.records_of(config, part)
            for part in opened
            if not follows.is_public(config, part)
        }
        assert private == {part for spend in item.spends for part in spend.partition.parts}


def test_shares_are_of_what_one_record_of_a_lineage_may_bear() -> None:
    """A replaced record may have been in two parts; and no lineage pays for another one's."""
    document = document_of(experiments={"other": OTHER})
    rows = [line.split() for line in plan_table(document).splitlines()]
    shares = {row[1]: row[-1] for row in rows if row[:1] == ["other"]}
    mus = {spend.rule: spend.mu**2 for spend in document.spends if spend.dataset == "other"}
    assert shares == {name: f"{one / sum(mus.values()):.1%}" for name, one in mus.items()}
    of_main = [row[-2:] for row in rows if row[:2] == ["main", "evaluate"]]
    assert of_main == [["in", "parallel"]]


def test_what_repeats_have_in_common_stands_once() -> None:
    """Ten repeats of a comparison are no ten pages to read."""
    repeated = {"mode": "research", "research": {"seed": 1, "repeats": 5}}
    once = plan_table(document_of(dataset={"declared_public": True}, mode="research"))
    table = plan_table(document_of(dataset={"declared_public": True}, **repeated))
    assert len(table.splitlines()) == len(once.splitlines())
    trained = next(line.split() for line in table.splitlines() if " train_final " in line)
    assert trained[:3] == ["main,", "main-2,", "...,"]
    assert trained[3:8] == ["main-5", "train_final", "weights", "train", "5"]


def test_a_table_keeps_its_columns_apart_whatever_experiments_are_called() -> None:
    name = "a-name-of-thirty-or-so-letters"
    document = document_of(experiments={name: {"privacy": {"epsilon": 2.0}}})
    lines = plan_table(document).splitlines()
    table = lines[: lines.index("")]
    assert {line.split()[0] for line in table} == {"experiment", "main", name}
    assert {
        line.find(rule)
        for line in table
        for rule in ("rule", "train_final", "evaluate")
        if rule in line
    } == {len(name) + 2}


def test_trainings_on_different_groups_add(tmp_path: Any) -> None:
    """No ledger knows whether a record, or one of a user's, was in the other group before it was
    edited."""
    (tmp_path / "x.npz").touch()
    group = {"column": "region", "names": ["north", "south"]}
    dataset = {
        "source": f"npz:{tmp_path / 'x.npz'}",
        "classes": 3,
        "group": group | {"train": ["north"]},
    }
    features = {"model": "none", "centre": "none", "image_size": None}
    south = {"dataset": {"group": {"train": ["south"]}}}
    base: dict[str, Any] = {"dataset": dataset, "features": features, "sweep": {"rungs": []}}
    both = plan(**base, experiments={"south": south})
    # neither is the other's job
    trained = [item for item in both.items.values() if item.job.rule == "train_final"]
    assert {item.job.experiment for item in trained} == {"main", "south"}
    one, other = weights = [item.spends[0] for item in trained]
    assert {one.label, other.label} == {"weights"}
    assert one.partition == other.partition
    alone = compose([one], 1e-5).epsilon
    assert compose(weights, 1e-5).epsilon == pytest.approx(
        gdp.epsilon(2**0.5 * gdp.mu_from_epsilon(alone, 1e-5), 1e-5)
    )


def test_further_tests_that_leave_the_test_part_nothing_are_refused() -> None:
    dear = {"also": [{"name": "x", "of": "test", "corruption": "blur", "epsilon": 0.9}]}
    with pytest.raises(Refused, match=r"Nothing is left.* Raise the total"):
        plan(evaluate=dear)
    assert plan(evaluate=dear, final={"targets": [2.5]}).artifacts


def test_without_a_ladder_the_final_training_gets_the_whole_total() -> None:
    config = project().main
    bare = config.model_copy(
        update={"learner": OneStep(), "sweep": config.sweep.model_copy(update={"rungs": ()})}
    )
    made = make_plan(build_dag(Project({"main": bare})), NOTHING)
    assert [job.rule for job in made.items] == ["train_final", "evaluate"]
    ((weights, calibration),) = spends_of_rule(made, "train_final").values()
    assert (weights.label, calibration.label) == ("weights", "calibration")
    assert compose([weights, calibration], 1e-5).epsilon == pytest.approx(1.0, rel=1e-6)
    shares = [mu(spend.event) ** 2 for spend in (weights, calibration)]
    assert shares[1] / sum(shares) == pytest.approx(0.018, rel=1e-6)
    other = bare.model_copy(update={"fit": bare.fit.model_copy(update={"degree": 2})})
    again = make_plan(build_dag(Project({"main": other})), NOTHING)
    assert again.items == made.items  # a fit that is not there changes nothing


def test_targets_share_one_sweep_and_each_keeps_its_total() -> None:
    made = plan(
        final={"targets": [0.5, 1.0, 2.0, 4.0, 8.0]}, privacy={"lifetime": {"epsilon": 20.0}}
    )
    assert sum(job.rule == "run_trial" for job in made.items) == 6
    assert_spends_its_totals(made)
    joint = compose(spends_of(made, "mnist5k"), 1e-5)
    assert joint.epsilon == pytest.approx(9.87, abs=0.01)
    parts = {part: figure.epsilon for (_, part), figure in joint.parts.items()}
    assert parts["test"] <= parts["train"]


def test_an_infeasible_target_is_refused_by_name_with_the_nearest_plans() -> None:
    with pytest.raises(
        Refused, match=r"total epsilon 0\.3 is infeasible.*0\.416.*multiply every rung's epsilon"
    ):
        plan(final={"targets": [0.3, 1.0]})


def test_experiments_with_the_same_sweep_pay_for_it_once() -> None:
    made = plan(
        experiments={
            "mu-axis": {"fit": {"against": "mu"}},
            "wide": {"sweep": {"search": {"eta": [0.01, 9.0]}}},
        }
    )
    trials = [job for job in made.items if job.rule == "run_trial"]
    assert sorted(job.experiment for job in trials) == ["main"] * 6 + ["wide"] * 6
    assert sum(job.rule == "train_final" for job in made.items) == 3


def test_a_fourth_trial_leaves_the_first_three_as_they_are() -> None:
    more = plan(sweep={"rungs": [{"epsilon": 0.1, "trials": 4}, {"epsilon": 0.2, "trials": 3}]})
    trials = {job: item for job, item in plan().items.items() if job.rule == "run_trial"}
    assert trials.items() <= more.items.items()


def test_finished_jobs_keep_what_they_cost_and_changed_ones_are_asked_anew(tmp_path: Any) -> None:
    first = plan()
    state = spent_in_full(first, tmp_path)
    again = make_plan(build_dag(project()), {"mnist5k": state})
    assert {job: item.spends for job, item in again.items.items()} == {
        job: item.spends for job, item in first.items.items()
    }

    edited = make_plan(
        build_dag(project(sweep={"search": {"eta": [0.02, 5.0]}})), {"mnist5k": state}
    )
    assert_spends_its_totals(edited)
    asked = {item.question for item in first.items.values()}
    assert asked.isdisjoint(item.question for item in edited.items.values())


@pytest.mark.parametrize("section", searches.SECTIONS)
def test_a_search_spends_its_total(section: Any) -> None:
    made = plan(**overlay(SEARCHING, {"hpo": {"name": section().name}}))
    (artifact,) = made.artifacts
    assert {job.rule for job in artifact.jobs} == {"private_search", "evaluate"}
    assert_spends_its_totals(made)


SEARCHING = {
    "sweep": {"rungs": []},
    "privacy": {"lifetime": {"epsilon": 20.0, "loss": 4.0, "weight": 1e4}},
}


def test_research_has_no_budget_that_edits_could_use_up(tmp_path: Any) -> None:
    public = overlay(RESEARCH, {"privacy": {"lifetime": None}})
    state = spent_in_full(plan(**public), tmp_path)
    asked = build_dag(project(**overlay(public, {"sweep": {"search": {"eta": [0.02, 5.0]}}})))
    made = make_plan(asked, {"mnist5k": state})
    assert_spends_its_totals(made)
    items = [*made.items.values()]
    assert questions_to_repeat(asked, items) == {item.question for item in items}


ROOM = {"privacy": {"epsilon": 2.0, "lifetime": {"epsilon": 20.0}}}
RIDGE = {"learner": {"name": "dp_ls", "shared": {"epsilon": 0.8}}}
SOLVED = {"learner": STATISTICS, "sweep": {"rungs": [{"epsilon": 0.1, "trials": 4}]}}
CENTRED = {"features": {"mean": {"epsilon": 0.3}}}
MU_AXIS = {"fit": {"against": "mu"}}


@pytest.mark.parametrize("own", [RIDGE, SOLVED, CENTRED], ids=["covariance", "statistics", "mean"])
@pytest.mark.parametrize("ended", ["DONE", "COMMITTED"])
def test_what_is_paid_for_costs_nobody_anything_under_any_name(
    own: dict[str, Any], ended: str, tmp_path: Any
) -> None:
    """Renamed, swapped, or put above another one that asks it too."""
    before = plan(**ROOM, experiments={"old": own, "other": CENTRED | MU_AXIS})
    states = {"mnist5k": spent_in_full(before, tmp_path, ended)}
    dearer = overlay(own, {"final": {"targets": [3.0]}})
    for experiments, new in (
        ({"new": own}, set()),
        ({"other": own, "old": CENTRED | MU_AXIS}, set()),
        ({"new": dearer, "old": own}, {("new", "train_final"), ("new", "evaluate")}),
    ):
        found = project(**ROOM, experiments=experiments)
        named = under_terms(found, states)
        made = make_plan(build_dag(found), named)
        admitted, _ = admit(made.terms["mnist5k"], named["mnist5k"], [*made.items.values()])
        assert {(item.job.experiment, item.job.rule) for item in admitted} == new
        assert_spends_its_totals(made)


def test_who_asks_first_in_the_config_prices_what_is_shared() -> None:
    """Another experiment whose test eats of its own total may not set the price of a model that it
    shares."""
    given = {"dataset": {"split": {"rule": "given"}}}
    both = plan(**given, experiments={"tested": {"evaluate": {"epsilon": 0.5}}})
    assert spends_of_rule(both, "train_final") == spends_of_rule(plan(**given), "train_final")


def test_one_question_of_two_sources_is_refused_until_versions_tell_them_apart() -> None:
    elsewhere = overlay(RIDGE, {"dataset": {"source": "digits"}})
    both = {"here": RIDGE, "there": elsewhere}
    with pytest.raises(BadInput, match=r"main and there read different sources.*dataset\.version"):
        plan(**ROOM, experiments=both)
    both["there"] = overlay(elsewhere, {"dataset": {"version": 2}})
    asked = [item.question for item in plan(**ROOM, experiments=both).items.values()]
    assert len(asked) == len(set(asked))


def test_what_stands_on_other_views_is_shared_by_nobody() -> None:
    viewed = {
        "features": {"mean": {"epsilon": 0.1}},
        "experiments": {"more": {"learner": {"augment": 4}}},
    }
    found = project(**viewed)
    jobs: tuple[tuple[str, dict[str, str]], ...] = (
        ("merge_features", {"part": "train"}),
        ("estimate_mean", {}),
    )
    assert [owner(found, *job) for job in jobs] == ["more", "more"]
    assert owner(found, "merge_features", {"part": "test"}) == "main"
    same = project(**overlay(viewed, {"features": {"mirror": True}, "learner": {"augment": 4}}))
    assert [owner(same, *job) for job in jobs] == ["main", "main"]


def owner(found: Project, rule: str, wildcards: dict[str, str]) -> str:
    """Whose folder holds a job's outputs that experiment more asks for."""
    return node_of(found, rule, experiment="more", **wildcards).experiment


def test_how_documents_are_cut_tells_manifests_apart_where_they_are() -> None:
    """And nowhere else: an encoder reads records that are there already."""

    def places(tokens: int, **dataset: Any) -> set[str]:
        told = {
            "task": "language_model",
            "dataset": {"source": "kjv", "lineage": "x", "nominal_size": 100} | dataset,
            "features": {
                "model": "hf:x",
                "weights": "pretrained",
                "tokens": tokens,
                "image_size": None,
            },
            "learner": {"name": "dp_finetune", "trains": "lora"},
            "privacy": {"epsilon": 1.0, "delta": 1e-5},
            "sweep": {"rungs": []},
        }
        asked = node_of(project(**told), "prepare_dataset").params
        assert (asked["spans"] is None) == (not dataset)
        return {*asked["places"]["manifests"].values()}

    cut = {"spans": True, "unit": {"by": "document", "cap": 2}}
    assert places(16) == places(32)
    assert len(places(16) | places(16, **cut) | places(32, **cut)) == 3


def test_a_plan_within_its_totals_but_over_the_lifetime_is_not_feasible() -> None:
    document = document_of(final={"targets": [4.0, 8.0]})
    assert not document.feasible
    assert "lifetime limit of 8" in document.problems[0]
    assert "REFUSED" in plan_table(document)


def test_the_documents_figures_are_those_of_its_spends() -> None:
    document = document_of()
    again = compose(spends_of(plan(), "mnist5k"), document.delta)
    assert (document.epsilon, document.mu) == (again.epsilon, again.mu)


def spends_of(made: Plan, lineage: str) -> list[Spend]:
    return [spend for item in made.items_of(lineage) for spend in item.spends]


def spent_in_full(made: Plan, home_path: Any, ended: str = "DONE") -> Any:
    """The ledger's state once every job of a plan is done, without doing any of them."""
    ledger = open_ledger(open_home(home_path / "home"), made.terms["mnist5k"])
    for charge in reserve(ledger, made.items.values()):
        commit(ledger, charge.token, charge.token, charge.spends)
        if ended == "DONE":
            finish(ledger, charge.token, "0" * 64)
    return load(ledger)


def test_a_plan_half_done_costs_in_the_end_what_it_did_at_first(tmp_path: Any) -> None:
    given = {"privacy": {"lifetime": {"epsilon": 1.0}}}
    made = plan(**given)
    ledger = open_ledger(open_home(tmp_path / "home"), made.terms["mnist5k"])
    for held in reserve(
        ledger, [item for item in made.items.values() if item.job.rule != "evaluate"]
    ):
        commit(ledger, held.token, held.token, held.spends)
    states = {"mnist5k": load(ledger)}
    document = plan_document(
        make_plan(build_dag(project(**given)), states), states, build_dag(project(**given))
    )
    assert document.feasible
    assert document.lifetimes["mnist5k"].epsilon_after == pytest.approx(1.0, abs=1e-5)


def test_parts_as_given_add_because_the_next_version_may_give_others() -> None:
    made = plan(dataset={"split": {"rule": "given"}})
    (artifact,) = made.artifacts
    assert_spends_its_totals(made)
    parts = composed(made, artifact).parts
    assert {figure.epsilon for figure in parts.values()} == {artifact.epsilon}


def test_terms_follow_from_the_config() -> None:
    terms = plan().terms["mnist5k"]
    assert dataclasses.asdict(terms) == {
        "lineage": "mnist5k",
        "relation": "add_remove",
        "unit": "record",
        "cap": 1,
        "delta": 1e-5,
        "split_rule": "hash test=0.2 validation=0.0",
        "lifetime_epsilon": 8.0,
        "share": 0.0,
        "loss": 0.0,
        "weight": 1.0,
        "mode": "release",
    }


def test_a_training_on_samples_is_booked_inside_its_epsilon() -> None:
    """What it is booked at comes out of delta, so less mu is left, and the spend says both."""
    sampled = plan(learner={"name": "dp_gd", "sampling_rate": 0.5})
    for item in sampled.items.values():
        [weights] = [s for s in item.spends if s.label == "weights"] or [None]
        if weights is not None:
            assert entry_of(weights).delta0 > 0
    trial = next(item for item in sampled.items.values() if item.job.rule == "run_trial")
    assert compose(trial.spends, 1e-5).epsilon <= 0.1
    assert trial_budget(
        project(learner={"sampling_rate": 0.5}).main, 0
    ).total < gdp.mu_from_epsilon(0.1, 1e-5)


@pytest.mark.parametrize(("declared", "share"), [(None, 0.3), (0.1, 0.1), (0.5, 0.5)])
def test_trainings_on_samples_are_booked_at_the_declared_share(
    declared: float | None, share: float
) -> None:
    """A thousand trials use it up, or ten final trainings, and the lineage is opened with it."""
    asked = plan(learner={"name": "dp_gd", "sampling_rate": 0.5}, privacy={"share": declared})
    booked = {
        item.job.rule: entry_of(spend).delta0
        for item in asked.items.values()
        for spend in item.spends
        if spend.label == "weights"
    }
    assert booked["run_trial"] == pytest.approx(share * 1e-5 / 1000, rel=1e-12)
    assert booked["train_final"] == pytest.approx(share * 1e-5 / 10, rel=1e-12)
    [terms] = {*asked.terms.values()}
    assert terms.share == share


def test_versions_of_the_data_add_and_parts_of_one_do_not() -> None:
    """Between two versions a record may move from the training part to the test part."""

    def read(number: int | None) -> dict[str, list[Spend]]:
        made = plan(dataset={"version": number})
        found: dict[str, list[Spend]] = {"train": [], "test": []}
        for spend in spends_of(made, "mnist5k"):
            found[spend.partition.parts[0]].append(spend)
        return found

    first, second = read(None), read(2)
    alone = compose(first["train"], 1e-5)
    assert compose([*first["train"], *first["test"]], 1e-5).epsilon == alone.epsilon
    both = compose([*first["train"], *second["test"]], 1e-5).entry.mu
    assert both == pytest.approx(math.hypot(alone.entry.mu, compose(second["test"], 1e-5).entry.mu))


def test_one_question_of_two_samples_is_refused_until_versions_tell_them_apart(
    tmp_path: Path,
) -> None:
    """A question names no path: of two public samples it would have two answers."""
    for name in ("here", "there"):
        np.savez(tmp_path / name, images=np.zeros((9, 28, 28), np.uint8), labels=np.arange(9))
    both = {
        name: {"dataset": {"public_sample": f"npz:{tmp_path / name}.npz"}}
        for name in ("here", "there")
    }
    with pytest.raises(BadInput, match=r"same question of different sources.*dataset\.version"):
        plan(**ROOM, experiments=both)
    both["there"]["dataset"]["version"] = 2
    plan(**ROOM, experiments=both)
