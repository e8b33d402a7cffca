"""The price of looking: what is bought where, by public figures alone, and in words."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import yaml

from dpladder.cli import main
from dpladder.config.load import resolve
from dpladder.plan.resolve import resolve_defaults, strength
from dpladder.privacy.accounting import gdp
from dpladder.search.prior import prior_of_learner
from dpladder.search.sweep_value import Look, best_ladder, rungs, rungs_as_text, table

BASE = {
    "dataset": {"lineage": "faces", "source": "digits", "nominal_size": 1400},
    "privacy": {"epsilon": 1.0, "delta": 1e-5},
    "features": {"layers": ["blocks.4"]},
}


def project(**changed):
    return resolve_defaults(resolve({**BASE, **changed}))


def test_a_weak_total_buys_nothing_and_a_strong_one_a_cheap_sweep():
    assert best_ladder(100.0, centred=True).rungs == ()
    assert best_ladder(5000.0, centred=True).rungs
    assert all(line.spent < 0.15 for line in table())


def test_what_is_bought_gained_on_public_data_and_what_is_not_costs_nothing():
    for line in table():
        assert (line.gained > line.blind) == bool(line.rungs)
    for centred in (True, False):
        own = [line.strength for line in table() if line.centred == centred]
        assert own == sorted(own)


def test_a_look_reads_as_it_is_written():
    looks = (Look(3, 0.01), Look(2, 0.025))
    assert rungs(rungs_as_text(looks)) == looks
    assert rungs("") == ()


def test_the_plan_settles_rungs_that_cost_what_the_table_says():
    found = project(dataset=BASE["dataset"] | {"nominal_size": 20_000}).main
    line = best_ladder(strength(found), centred=True)
    total = gdp.mu_from_epsilon(1.0, 1e-5)
    assert found.sweep.rungs
    for rung, look in zip(found.sweep.rungs, line.rungs, strict=True):
        assert gdp.mu_from_epsilon(rung.epsilon, 1e-5) == pytest.approx(
            math.sqrt(look.part) * total, rel=0.01
        )
        assert rung.trials == look.trials
    assert found.sweep.select.share == line.share


def test_a_weak_total_leaves_the_final_training_alone_and_says_why():
    found = project()
    assert found.main.sweep.rungs == ()
    assert "no sweep: at n0*mu = 375 scores would tell less than they cost" in found.choices["main"]


@pytest.mark.parametrize(
    ("records", "steps", "bought"),
    [(100_000, 500, True), (400_000, 500, False), (400_000, 5000, True)],
)
def test_no_trials_are_bought_where_the_prior_lies_beyond_the_largest_steps(records, steps, bought):
    """They could only say that the largest is best."""
    search = {"steps": [30, steps]}
    found = project(
        dataset=BASE["dataset"] | {"nominal_size": records},
        privacy=BASE["privacy"] | {"delta": 1e-6},
        sweep={"search": search},
    )
    assert bool(found.main.sweep.rungs) == bought
    said = "0.84 is below the usual 1.4, so trials would tell nothing new. Nothing needs doing; "
    said += "a larger sweep.search.steps would reach it"
    assert (said in found.choices["main"]) == (not bought)


def test_rungs_by_hand_are_left_as_they_are():
    for given in ([], [{"epsilon": 0.1, "trials": 2}]):
        found = project(sweep={"rungs": given})
        assert [rung.model_dump() for rung in found.main.sweep.rungs] == given
        assert "sweep" not in found.choices.get("main", "")


def test_auto_may_be_written_as_one_word():
    assert project(sweep="auto").main == project().main


@pytest.mark.parametrize(
    ("changed", "factor"),
    [
        ({"relation": "replace_one"}, 0.5),
        ({"epsilon": 2.0}, gdp.mu_from_epsilon(2.0, 1e-5) / gdp.mu_from_epsilon(1.0, 1e-5)),
    ],
)
def test_strength_is_the_signal_beside_the_noise(changed, factor):
    other = project(privacy=BASE["privacy"] | changed).main
    assert strength(other) == pytest.approx(strength(project().main) * factor)


def test_the_smallest_of_several_totals_has_to_pay():
    found = project(final={"targets": [0.5, 8.0]}).main
    assert strength(found) == pytest.approx(1400 * gdp.mu_from_epsilon(0.5, 1e-5))


@pytest.mark.parametrize(
    ("changed", "centre"),
    [
        ({"dataset": BASE["dataset"] | {"nominal_size": 350}}, "none"),
        ({"dataset": BASE["dataset"] | {"public_sample": "mnist5k"}}, "public"),
        ({"features": {}}, "noised"),
        ({"features": {"layers": "last"}}, "network"),
        # strong enough
        ({"features": {"layers": "last"}, "privacy": BASE["privacy"] | {"epsilon": 2.0}}, "noised"),
        ({"features": {"mean": {"epsilon": 0.1}}}, "noised"),
        ({"features": {"centre": "none"}}, "none"),
    ],
)
def test_centring_is_the_best_that_is_free_for_the_source(changed, centre):
    assert project(**changed).main.features.centre == centre


def test_a_mean_is_bought_where_it_pays_for_a_twentieth_of_what_the_smallest_total_has():
    found = project(final={"targets": [1.0, 4.0]})
    assert (found.main.features.centre, found.main.features.mean.radius) == ("noised", None)
    mu = gdp.mu_from_epsilon(found.main.features.mean.epsilon, 1e-5)
    assert mu == pytest.approx(math.sqrt(0.05) * gdp.mu_from_epsilon(1.0, 1e-5), rel=0.01)
    assert "at n0*mu = 375 gains more than that" in found.choices["main"]
    held = prior_of_learner("dp_gd", True)
    assert found.main.sweep.search.expected == (held.median, held.factor)


@pytest.mark.parametrize(
    "changed",
    [
        {"privacy": BASE["privacy"] | {"epsilon": 0.2}},  # too weak
        {"privacy": BASE["privacy"] | {"relation": "replace_one", "epsilon": 0.4}},
        {"sweep": {"rungs": [{"epsilon": 0.1, "trials": 2}]}},  # a budget that somebody made
        {"final": {"budget": 0.5}},
        {"learner": {"name": "dp_adam"}},  # not measured
        {"features": {"layers": ["blocks.4"], "length": "as_is"}},
        {"mode": "research", "dataset": BASE["dataset"] | {"declared_public": True}},
        {"hpo": {"name": "random_search"}, "sweep": {"rungs": []}},
    ],
)
def test_no_mean_is_bought_where_it_was_not_measured_to_pay(changed):
    assert project(**changed).main.features.centre == "none"


def test_a_noised_mean_that_is_asked_for_has_the_same_price_anywhere():
    found = project(features={"centre": "noised"}, privacy=BASE["privacy"] | {"epsilon": 0.1}).main
    mu = gdp.mu_from_epsilon(found.features.mean.epsilon, 1e-5)
    assert mu == pytest.approx(math.sqrt(0.05) * gdp.mu_from_epsilon(0.1, 1e-5), rel=0.01)


def test_the_prior_hangs_on_the_learner_and_on_centring_and_is_left_where_it_was_given():
    centred, plain = project(features={}), project(features={"centre": "none"})
    for found, held in (
        (centred, prior_of_learner("dp_gd", True)),
        (plain, prior_of_learner("dp_gd", False)),
    ):
        assert found.main.sweep.search.expected == (held.median, held.factor)
    given = project(sweep={"search": {"expected": [3.0, 1.5]}})
    assert given.main.sweep.search.expected == (3.0, 1.5)


def test_the_plan_says_what_it_chose(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    path = Path(tmp_path / "config.yaml")
    path.write_text(yaml.safe_dump(BASE))
    assert main(["plan", str(path)]) == 0
    assert "no sweep: at n0*mu = 375" in capsys.readouterr().out
    assert main(["plan", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["choices"]) == {"main"}
    assert {spend["rule"] for spend in found["spends"]} == {
        "count_units",
        "estimate_mean",
        "train_final",
        "evaluate",
    }


@pytest.mark.parametrize(
    ("learner", "size", "pays"),
    [
        ("none", 9000, True),
        ("gradient", None, True),
        ("gradient", 100, True),
        ("gradient", 9000, False),
    ],
)
def test_no_trial_pays_whose_steps_are_the_public_records(tmp_path, learner, size, pays):
    """At n0 mu = 2470 trials take 1 % and 2 % of mu^2, less a fifth for their scores: 12 * 10 * 100
    is 0.2 % of its square, and 9,000 records are 18 %."""
    (tmp_path / "s.npz").touch()
    sample = {"public_sample": f"npz:{tmp_path / 's.npz'}", "public_size": size}
    found = project(
        learner={"public": learner},
        dataset={**BASE["dataset"], **sample, "nominal_size": 10_000},
    )
    assert bool(found.main.sweep.rungs) == pays
    told = "a trial's steps would be the public records' more than the private ones'"
    assert (told in found.choices["main"]) != pays
