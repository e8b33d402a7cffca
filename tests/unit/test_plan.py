"""The plan: what a config declares it will spend, before anything is read."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpladder.config import Project
from dpladder.config.docs import DEMO
from dpladder.config.learners import OneStep
from dpladder.config.load import overlay, resolve
from dpladder.config.searches import SEARCHES
from dpladder.errors import Refused
from dpladder.privacy import gdp
from dpladder.privacy.compose import compose
from dpladder.privacy.home import open_home
from dpladder.privacy.ledger import commit, finish, load, open_ledger, reserve
from dpladder.privacy.plan import Plan, artifact_cost, make_plan, trial_budget
from dpladder.privacy.show import plan_document, plan_table
from dpladder.privacy.spend import mu

NOTHING: dict[str, Any] = {}


def project(**changes: Any) -> Project:
    return resolve(overlay(DEMO, changes))


def plan(**changes: Any) -> Plan:
    return make_plan(project(**changes), NOTHING)


def test_the_demo_spends_its_total_and_not_a_hair_more() -> None:
    (artifact,) = plan().artifacts
    cost = artifact_cost(plan(), artifact)
    assert 0.99999 < cost.epsilon <= 1.0
    assert cost.accountant == "exact"


def test_a_trial_costs_its_rungs_epsilon_score_included() -> None:
    demo = project().main
    budget = trial_budget(demo, 0)
    assert budget.score is not None
    assert gdp.compose([budget.weights, budget.score]) == pytest.approx(gdp.mu(0.1, 1e-5), rel=1e-9)
    assert budget.score**2 == pytest.approx(0.05 * budget.total**2, rel=1e-9)


def test_a_public_score_leaves_the_whole_trial_to_the_weights(tmp_path: Any) -> None:
    (tmp_path / "v.npz").touch()
    public = {"public_validation": f"npz:{tmp_path / 'v.npz'}"}
    config = project(dataset=public, sweep={"select": {"by": "public"}}).main
    assert trial_budget(config, 0).score is None
    assert trial_budget(config, 0).weights == trial_budget(config, 0).total


@settings(max_examples=60, deadline=None)
@given(
    total=st.floats(0.45, 20.0),
    rungs=st.lists(
        st.tuples(st.floats(0.01, 0.12), st.integers(1, 4)), min_size=2, max_size=3, unique_by=lambda r: r[0]
    ),
    relation=st.sampled_from(["add_remove", "replace_one"]),
    share=st.floats(0.01, 0.5),
)
def test_every_artifact_of_every_plan_stays_within_its_total(
    total: float, rungs: list[tuple[float, int]], relation: str, share: float
) -> None:
    made = plan(
        privacy={"epsilon": total, "relation": relation, "lifetime": {"epsilon": 100.0}},
        sweep={"rungs": [{"epsilon": e, "trials": n} for e, n in rungs], "select": {"share": share}},
    )
    (artifact,) = made.artifacts
    assert artifact_cost(made, artifact).epsilon <= total
    assert artifact_cost(made, artifact).epsilon == pytest.approx(total, rel=1e-6)


def test_a_shared_covariance_is_charged_once_for_all_that_use_it() -> None:
    covariance = {"epsilon": 0.3}
    made = plan(
        learner={"name": "dp_fc", "covariance": covariance},
        experiments={
            "ls": {"learner": {"name": "dp_ls", "covariance": covariance}},
            "wider": {"learner": {"name": "dp_ls", "covariance": covariance, "radius": 2.0}},
            "alone": {"learner": {"name": "dp_ls"}},
        },
    )
    charged = [item for job, item in made.items.items() if job.rule == "estimate_covariance"]
    assert [item.job.experiment for item in charged] == ["main", "wider"]
    (spend,) = charged[0].spends
    assert mu(spend.event) == pytest.approx(gdp.mu(0.3, 1e-5), rel=1e-9)
    for artifact in made.artifacts:
        assert 0.99999 < artifact_cost(made, artifact).epsilon <= 1.0
        own = [job.experiment for job in artifact.jobs if job.rule == "estimate_covariance"]
        assert own == {"main": ["main"], "ls": ["main"], "wider": ["wider"], "alone": []}[artifact.experiment]


STATISTICS = {"name": "dp_ls", "statistics": {"epsilon": 0.6}}


def test_trials_on_shared_statistics_pay_for_their_scores_alone() -> None:
    made = plan(
        learner=STATISTICS,
        sweep={"rungs": [{"epsilon": 0.1, "trials": 4}]},
        final={"targets": [1.0, 2.0]},
        experiments={
            "finer": {"learner": {"statistics": {"alpha": [0.1, 1.0]}}},
            "wider": {"learner": {"radius": 2.0}},
        },
    )
    charged = {job: item.spends for job, item in made.items.items()}
    shared = {job.experiment: spends for job, spends in charged.items() if job.rule == "estimate_statistics"}
    assert list(shared) == ["main", "wider"]
    (statistics,) = shared["main"]
    assert mu(statistics.event) == pytest.approx(gdp.mu(0.6, 1e-5), rel=1e-9)
    trials = [spends for job, spends in charged.items() if job.rule == "run_trial"]
    assert len(trials) == 12
    for (score,) in trials:
        assert score.label == "score"
        assert mu(score.event) == pytest.approx(gdp.mu(0.1, 1e-5), rel=1e-9)
    for artifact in made.artifacts:
        assert artifact.target * 0.99999 < artifact_cost(made, artifact).epsilon <= artifact.target
        own = [job.experiment for job in artifact.jobs if job.rule == "estimate_statistics"]
        assert own == ["wider" if artifact.experiment == "wider" else "main"]


def test_trials_on_shared_statistics_with_public_scores_are_free(tmp_path: Any) -> None:
    (tmp_path / "v.npz").touch()
    made = plan(
        learner=STATISTICS,
        dataset={"public_validation": f"npz:{tmp_path / 'v.npz'}"},
        sweep={"select": {"by": "public"}},
    )
    assert [job.rule for job in made.items] == ["estimate_statistics", "train_final", "evaluate"]
    (artifact,) = made.artifacts
    assert 0.99999 < artifact_cost(made, artifact).epsilon <= 1.0


def test_without_a_ladder_the_final_training_gets_the_whole_total() -> None:
    config = project().main
    bare = config.model_copy(
        update={"learner": OneStep(), "sweep": config.sweep.model_copy(update={"rungs": ()})}
    )
    made = make_plan(Project({"main": bare}), NOTHING)
    assert [job.rule for job in made.items] == ["train_final", "evaluate"]
    (weights,) = next(item for job, item in made.items.items() if job.rule == "train_final").spends
    assert mu(weights.event) == pytest.approx(gdp.mu(1.0, 1e-5), rel=1e-9)
    other = bare.model_copy(update={"fit": bare.fit.model_copy(update={"degree": 2})})
    statics = {
        item.static
        for one in (bare, other)
        for item in make_plan(Project({"main": one}), NOTHING).items.values()
    }
    assert len(statics) == 2  # a fit that is not there changes nothing


def test_targets_share_one_sweep_and_each_keeps_its_total() -> None:
    made = plan(final={"targets": [0.5, 1.0, 2.0, 4.0, 8.0]}, privacy={"lifetime": {"epsilon": 20.0}})
    assert sum(job.rule == "run_trial" for job in made.items) == 6
    for artifact in made.artifacts:
        assert artifact_cost(made, artifact).epsilon == pytest.approx(artifact.target, rel=1e-6)
    joint = compose(made.of_lineage("mnist5k"), 1e-5).epsilon
    assert joint == pytest.approx(9.87, abs=0.01)  # DESIGN section 9


def test_the_test_part_never_bears_more_than_the_training_part() -> None:
    made = plan(final={"targets": [0.5, 8.0]}, privacy={"lifetime": {"epsilon": 20.0}})
    parts = {
        part: figure.epsilon for (_, part), figure in compose(made.of_lineage("mnist5k"), 1e-5).parts.items()
    }
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
    three, four = (
        plan(),
        plan(sweep={"rungs": [{"epsilon": 0.1, "trials": 4}, {"epsilon": 0.2, "trials": 3}]}),
    )
    for job, item in three.items.items():
        if job.rule == "run_trial":
            assert four.items[job] == item


def test_finished_jobs_keep_what_they_cost_and_changed_ones_are_superseded(tmp_path: Any) -> None:
    first = plan()
    state = spent_in_full(first, tmp_path)
    again = make_plan(project(), {"mnist5k": state})
    assert {job: item.spends for job, item in again.items.items()} == {
        job: item.spends for job, item in first.items.items()
    }
    assert not again.superseded

    with pytest.raises(Refused, match=r"changed .* after epsilon = 1 was paid"):
        make_plan(project(sweep={"search": {"eta": [0.02, 5.0]}}), {"mnist5k": state})
    dearer = make_plan(project(privacy={"epsilon": 2.0}), {"mnist5k": state})
    (artifact,) = dearer.artifacts
    assert {spend.job.rule for spend in dearer.superseded} == {"train_final", "evaluate"}
    assert 1.99 < artifact_cost(dearer, artifact).epsilon <= 2.0


SEARCHING = {
    "sweep": {"rungs": []},
    "privacy": {"lifetime": {"epsilon": 20.0, "selections": True}},
}


@pytest.mark.parametrize("section", SEARCHES)
def test_a_search_spends_its_total_and_once_changed_what_is_left_of_a_larger_one(
    section: Any, tmp_path: Any
) -> None:
    changes = overlay(SEARCHING, {"hpo": {"name": section().name}})
    first = plan(**changes)
    (artifact,) = first.artifacts
    assert {job.rule for job in artifact.jobs} == {"private_search", "evaluate"}
    assert 0.99999 < artifact_cost(first, artifact).epsilon <= 1.0
    state = spent_in_full(first, tmp_path)
    wider = overlay(changes, {"sweep": {"search": {"eta": [0.02, 5.0]}}})
    with pytest.raises(Refused, match=r"changed .* after epsilon = "):
        make_plan(project(**wider), {"mnist5k": state})
    dearer = make_plan(project(**overlay(wider, {"privacy": {"epsilon": 4.0}})), {"mnist5k": state})
    (artifact,) = dearer.artifacts
    assert 3.9 < artifact_cost(dearer, artifact).epsilon <= 4.0


SHARED_COVARIANCE = {
    "learner": {"name": "dp_fc", "covariance": {"epsilon": 0.8}},
    "experiments": {"ridge": {"learner": {"name": "dp_ls", "covariance": {"epsilon": 0.8}}}},
}
OTHER_COVARIANCE = {
    "learner": {"covariance": {"epsilon": 0.7}},
    "experiments": {"ridge": {"learner": {"name": "dp_ls", "covariance": {"epsilon": 0.7}}}},
}
SHARED_STATISTICS = {"learner": STATISTICS, "experiments": {"finer": {"learner": {"alpha": 0.5}}}}
OTHER_STATISTICS = {"learner": {"statistics": {"epsilon": 0.5}}}
SHARED_TRIALS = {"experiments": {"mu-axis": {"fit": {"against": "mu"}}}}
OTHER_TRIALS = {"sweep": {"search": {"eta": [0.02, 5.0]}}}


@pytest.mark.parametrize(
    ("shared", "change", "rule"),
    [
        (SHARED_COVARIANCE, OTHER_COVARIANCE, "estimate_covariance"),
        (SHARED_STATISTICS, OTHER_STATISTICS, "estimate_statistics"),
        (SHARED_TRIALS, OTHER_TRIALS, "run_trial"),
    ],
)
def test_earlier_versions_of_a_shared_job_count_for_all_who_share_it(
    shared: dict[str, Any], change: dict[str, Any], rule: str, tmp_path: Any
) -> None:
    before = overlay({"privacy": {"epsilon": 1.5, "lifetime": {"epsilon": 20.0}}}, shared)
    state = spent_in_full(plan(**before), tmp_path)
    again = overlay(overlay(before, change), {"privacy": {"epsilon": 4.0}})
    made = make_plan(project(**again), {"mnist5k": state})
    old = [spend for spend in made.superseded if spend.job.rule == rule]
    assert old
    assert {spend.job.experiment for spend in old} == {"main"}
    for artifact in made.artifacts:
        own = [s for s in made.superseded if s.job.experiment == artifact.experiment and s not in old]
        whole = compose([*made.of(artifact.jobs), *own, *old], artifact.delta)
        assert artifact_cost(made, artifact).epsilon == whole.epsilon
        assert 3.999 < whole.epsilon <= 4.0


def test_a_plan_within_its_totals_but_over_the_lifetime_is_not_feasible() -> None:
    made = plan(final={"targets": [4.0, 8.0]})
    document = plan_document(made, NOTHING)
    assert not document["feasible"]
    assert "lifetime limit of 8" in document["problems"][0]
    assert "REFUSED" in plan_table(document)


def test_the_documents_figures_are_those_of_its_spends() -> None:
    made = plan()
    document = plan_document(made, NOTHING)
    again = compose(made.of_lineage("mnist5k"), document["delta"])
    assert (document["epsilon"], document["mu"]) == (again.epsilon, again.mu)
    assert {
        "feasible",
        "epsilon",
        "delta",
        "mu",
        "target_epsilon",
        "lifetime_epsilon",
        "spends",
    } <= document.keys()
    wanted = {"rule", "experiment", "dataset", "partition", "relation", "event", "count", "mu"}
    assert all(wanted <= spend.keys() for spend in document["spends"])


def spent_in_full(made: Plan, home_path: Any) -> Any:
    """The ledger's state once every job of a plan is done, without doing any of them."""
    ledger = open_ledger(open_home(home_path / "home"), made.terms["mnist5k"])
    held = reserve(ledger, made.items.values())
    for place, item in enumerate(held):
        commit(ledger, item.token, f"{place:064x}", item.spends)
        finish(ledger, item.token, "0" * 64)
    return load(ledger)


def test_parts_as_given_add_because_the_next_version_may_give_others() -> None:
    made = plan(dataset={"split": {"rule": "given"}})
    (artifact,) = made.artifacts
    assert 0.99999 < artifact_cost(made, artifact).epsilon <= 1.0
    parts = compose(made.of(artifact.jobs), 1e-5).parts
    assert {figure.epsilon for figure in parts.values()} == {artifact_cost(made, artifact).epsilon}


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
        "selections": False,
        "mode": "release",
    }
