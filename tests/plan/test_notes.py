"""What a plan cannot hope for is said in the plan, and nothing where there is hope."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpladder.config.load import overlay, resolve
from dpladder.plan.dag import build_dag
from dpladder.plan.notes import notes
from dpladder.plan.plan import make_plan
from dpladder.plan.table import plan_document, plan_table
from dpladder.privacy.accounting import gdp

SMALL: dict[str, Any] = {
    "dataset": {"lineage": "small", "source": "digits", "nominal_size": 450, "census": None},
    "privacy": {"epsilon": 1.0, "delta": 1e-5, "lifetime": {"epsilon": 8.0}},
    "sweep": {
        "rungs": [{"epsilon": 0.05, "trials": 3}, {"epsilon": 0.1, "trials": 3}],
        "select": {"share": 0.2},
    },
}


def told(*changes: dict[str, Any]) -> tuple[str, ...]:
    values = SMALL
    for change in changes:
        values = overlay(values, change)
    return notes(resolve(values))


def test_scores_that_noise_decides_are_told() -> None:
    """At n0 = 450, where "151 % correct" won a rung."""
    first, second = told()
    assert first.startswith(
        "main: rung 1 at epsilon = 0.05 tells little: its scores have a noise of 29% of the 450 "
        "units"
    )
    assert "rung 2" in second


def test_scores_that_tell_something_are_not() -> None:
    assert told({"dataset": {"nominal_size": 60_000}}) == ()
    assert told({"sweep": {"rungs": []}}) == ()


@pytest.mark.parametrize(("classes", "weak", "strong"), [(10, 350, 450), (2, 650, 850)])
def test_probabilities_that_may_say_less_than_the_base_rate_are_told(
    classes: int, weak: int, strong: int, tmp_path: Path
) -> None:
    np.savez(tmp_path / "rows.npz", features=np.eye(classes), labels=np.arange(classes))

    def of(units: int) -> tuple[str, ...]:
        source = {"source": f"npz:{tmp_path}/rows.npz", "classes": classes}
        return told({"dataset": source | {"nominal_size": units}, "sweep": {"rungs": []}})

    [words] = of(weak)
    assert "may say less than how frequent each class is" in words
    assert of(strong) == ()


@pytest.mark.parametrize(("limit", "found"), [(10.5, "66.9 %"), (90.0, "100.0"), (1e6, "100.0")])
def test_what_a_large_epsilon_protects_is_told(limit: float, found: str) -> None:
    large = {"dataset": {"nominal_size": 60_000}, "privacy": {"lifetime": {"epsilon": limit}}}
    [words] = told(large)
    assert f"epsilon = {limit:g} protects little" in words
    assert f"may find {found}" in words
    assert told(large, {"privacy": {"lifetime": {"epsilon": 10.0}}}) == ()


@pytest.mark.parametrize(
    "beside",
    [
        {"learner": {"sampling_rate": 0.2}},
        {"privacy": {"share": 0.1}},
        {"privacy": {"lifetime": {"loss": 1.0}}},
        {"hpo": {"name": "papernot_steinke"}, "privacy": {"lifetime": None, "epsilon": 10.5}},
    ],
    ids=str,
)
def test_what_more_than_gaussians_protect_is_told_by_epsilon(beside: dict[str, Any]) -> None:
    large = {
        "dataset": {"nominal_size": 60_000},
        "privacy": {"lifetime": {"epsilon": 10.5}},
        "sweep": {"rungs": []},
    }
    (words,) = [one for one in told(large, beside) if "protects little" in one]
    assert "may find 100.0 %" in words


NETWORK: dict[str, Any] = {
    "dataset": {"source": "mnist5k"},
    "features": {"model": "efficientnet_lite0", "until": "blocks.5"},
    "learner": {"name": "dp_finetune"},
    "sweep": {"rungs": []},
}


@pytest.mark.parametrize(
    ("idle", "at_work"),
    [
        ({"learner": {"look": 0.1}}, {"dataset": {"public_sample": "digits"}}),
        ({"learner": {"betas": [0.8, 0.9]}}, {"learner": {"optimizer": "adam"}}),
        ({"learner": {"lora": {"rank": 2}}}, {"learner": {"trains": "lora"}}),
    ],
    ids=["look", "betas", "lora"],
)
def test_a_key_that_does_nothing_is_told_and_refuses_nothing(
    idle: dict[str, Any], at_work: dict[str, Any]
) -> None:
    [said] = [one for one in told(NETWORK, idle) if "does nothing" in one]
    [name] = idle["learner"]
    assert f"learner.{name} does nothing" in said
    assert not any("does nothing" in one for one in told(NETWORK, overlay(idle, at_work)))


def test_a_user_of_several_records_moves_a_score_further() -> None:
    users = {"dataset": {"nominal_size": 6_000, "unit": {"by": "user", "cap": 20}}}
    assert told({"dataset": {"nominal_size": 6_000}}) == ()
    assert len(told(users)) == 2


def test_what_a_training_cannot_reach_is_no_room_for_its_scores() -> None:
    """Little noise in a score, and no budget in the weights."""
    lean = {
        "sweep": {"rungs": [{"epsilon": 0.001, "trials": 2}] * 1, "select": {"share": 0.9}},
        "fit": {"using": "pooled"},
    }
    [only] = told({"dataset": {"nominal_size": 5_000}}, lean)
    assert "between 10% and" in only


@pytest.mark.parametrize(("epsilon", "count"), [(0.05, 1), (1.0, 0), (None, 0)])
def test_a_test_that_tells_nothing_is_told(epsilon: float | None, count: int) -> None:
    assert len(told({"sweep": {"rungs": []}, "evaluate": {"epsilon": epsilon}})) == count


RARE: list[dict[str, Any]] = [
    {"dataset": {"source": "digits", "nominal_size": 4000}, "sweep": {"rungs": []}},
    {"evaluate": {"measures": "classes", "epsilon": 1.0}},
]


def test_a_class_that_noise_will_hide_is_told_from_its_declared_share() -> None:
    """1,000 people are tested; a class is hidden below four deviations of a sum of two counts."""
    least = math.ceil(4.0 * gdp.sigma(gdp.mu_from_epsilon(1.0, 1e-5), 1) * 2**0.5)
    assert told(*RARE) == ()
    assert told(*RARE, {"dataset": {"rare": (least + 1) / 1000}}) == ()
    [only] = told(*RARE, {"dataset": {"rare": (least - 1) / 1000}})
    assert f"nothing of the rarest class: noise hides fewer than {least} records" in only
    assert f"of the 1000 that the test part has at most are {least - 1}." in only
    [only] = told(*RARE, {"dataset": {"majority": 0.9}})  # nine share a tenth
    assert "1.1% of the 1000" in only
    [only] = told(*RARE, {"dataset": {"nominal_size": 400}})
    assert "can tell nothing of any class" in only
    assert told(*RARE, {"dataset": {"rare": 0.001}, "evaluate": {"measures": "accuracy"}}) == ()
    free = {"rare": 0.001, "public_test": "mnist5k", "split": {"test": 0}}
    assert told(*RARE, {"dataset": free}) == ()


@pytest.mark.parametrize(("measures", "counts", "part"), [("classes", 2, 1.0), ("auc", 2, 0.5)])
def test_findings_are_hidden_by_the_noise_of_all_of_them(
    tmp_path: Path, measures: str, counts: int, part: float
) -> None:
    """A record is in a count of each of the four."""
    source = f"npz:{tmp_path / 'f.npz'}"
    many = {"source": source, "classes": ["a", "b", "c", "d"], "labels": "many"}
    (tmp_path / "f.npz").touch()
    changes = [
        *RARE,
        {"dataset": many, "features": {"model": "none"}, "learner": {"link": "sigmoid"}},
        {"evaluate": {"measures": measures}},
    ]
    sd = gdp.sigma(gdp.mu_from_epsilon(1.0, 1e-5), 1) * (4 / part) ** 0.5
    least = 4.0 * sd * counts**0.5 / 1000
    can_tell = f"evaluate.measures: {measures} can tell nothing of the rarest finding"
    assert can_tell not in " ".join(told(*changes, {"dataset": {"rare": least * 1.01}}))
    assert can_tell in " ".join(told(*changes, {"dataset": {"rare": least * 0.99}}))


def test_how_measures_share_their_price_is_told() -> None:
    together = {"evaluate": {"measures": ["calibration", "classes", "accuracy"]}}
    [only] = told(*RARE, together)
    assert (
        "[classes, calibration] buys 2 tables of counts, for the price of one: a table has" in only
    )
    assert "50% of the test's mu^2 at most, and 1.41 times the noise" in only
    assert (
        told(*RARE, together, {"dataset": {"public_test": "mnist5k", "split": {"test": 0}}}) == ()
    )


def test_totals_above_the_total_are_told() -> None:
    of_more = {"dataset": {"nominal_size": 1000}}
    [only] = told(of_more, {"sweep": {"rungs": []}, "final": {"targets": [0.5, 4.0]}})
    assert "up to 4, above privacy.epsilon: 1" in only


def test_users_who_are_named_and_not_protected_are_told(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("patient,age,label\n")
    (tmp_path / "scans").mkdir()
    table = str(tmp_path / "visits.csv")
    own = {
        "dataset": {"classes": ["well", "ill"], "nominal_size": 60_000, "census": None},
        "sweep": {"rungs": []},
    }
    named = {
        "dataset": {"source": f"csv:{table}", "user": "patient"},
        "features": {"model": "none"},
    }
    [words] = told(own, named)
    assert words.startswith("main: dataset.user says whose a record is, yet each record is")
    folder = {"images": str(tmp_path / "scans"), "table": table, "key": "patient", "patient": 1}
    [words] = told(own, {"dataset": {"source": folder}})
    assert words.startswith("main: dataset.source.patient says whose a record is")
    assert told(own, named, {"dataset": {"unit": {"by": "user"}}}) == ()
    assert told(own, named, {"dataset": {"declared_public": True}}) == ()


def test_the_plan_says_it() -> None:
    project = resolve(SMALL)
    assert "note: main: rung 1" in plan_table(
        plan_document(make_plan(build_dag(project), {}), {}, build_dag(project))
    )


def test_a_part_that_is_set_aside_and_read_by_nobody_is_told() -> None:
    large = {"dataset": {"nominal_size": 60_000}}
    public = overlay(large, {"dataset": {"public_test": "mnist5k"}})
    unread = "lineage small: 20% of the units are set aside as the test part, which nothing reads"
    assert [note.partition(". ")[0] for note in told(public)] == [unread]
    assert told(public, {"dataset": {"split": {"test": 0.0}}}) == ()
    assert told(public, {"experiments": {"private": {"dataset": {"public_test": None}}}}) == ()
    assert "validation part" in "".join(told(large, {"dataset": {"split": {"validation": 0.1}}}))


def test_how_much_of_a_step_is_the_public_records_is_told(tmp_path: Path) -> None:
    """lambda = P m k / (n0 mu)^2, of 12 directions at least; mu = 0.247 at a total of 1."""
    (tmp_path / "s.npz").touch()
    sample = {
        "dataset": {"nominal_size": 4000, "public_sample": f"npz:{tmp_path / 's.npz'}"},
        "sweep": {"rungs": []},
    }
    [advice] = told(sample)
    assert "learner.public: gradient lets them guide each step too" in advice
    for given in (
        {"init": "public"},
        {"init": "random"},
        {"link": "sigmoid"},
    ):  # which it can't guide
        assert told(sample, {"learner": given}) == ()
    assert told(sample, {"learner": {"name": "dp_ls"}, "fit": {"using": "pooled"}}) == ()
    guided: dict[str, Any] = {"learner": {"public": "gradient"}}
    [unsized] = told(sample, guided)
    assert "(dataset.public_size, how many records it has, tells" in unsized
    guided["dataset"] = {"public_size": 2000}
    expected = 2000 * 10 * 12 / (4000 * gdp.mu_from_epsilon(1.0, 1e-5)) ** 2
    [weighed] = told(sample, guided)
    share = f"{expected / (1 + expected):.0%} of each step"
    assert f"at least: lambda = {expected:.2g} at a total of 1, {share}." in weighed
    assert "A look at its head costs 5% of each training's mu^2" in weighed
    assert weighed.endswith("no labels, or other classes, set learner.public: none.")
    replaced = {"learner": {"look": 0.0}, "privacy": {"relation": "replace_one"}}
    [told_so] = told(sample, guided, replaced)
    assert f"lambda = {4 * expected:.2g} at a total of 1" in told_so
    assert "You vouch for it" in told_so


@pytest.mark.parametrize(
    ("source", "features", "share"),
    [
        ("mnist5k", {"until": "blocks.5"}, 0.6),
        ("kjv:5000", {"model": "minilm", "until": "encoder.layer.4"}, 0.9),
    ],
)
def test_the_price_of_a_first_head_is_told(
    source: str, features: dict[str, str], share: float
) -> None:
    started = {
        "dataset": {"source": source, "nominal_size": 4000},
        "features": features,
        "learner": {"name": "dp_finetune", "head": {"epsilon": 0.75}},
        "sweep": {"rungs": []},
        "final": {"targets": [1.0, 2.0]},
    }
    [only] = (words for words in told(started) if "the head that" in words)
    shares = [
        (gdp.mu_from_epsilon(0.75, 1e-5) / gdp.mu_from_epsilon(total, 1e-5)) ** 2
        for total in (1.0, 2.0)
    ]
    assert f"{shares[0]:.0%} of mu^2 at a total of 1 and {shares[1]:.0%} of mu^2 at a" in only
    best = gdp.epsilon(share**0.5 * gdp.mu_from_epsilon(1.0, 1e-5), 1e-5)
    assert only.endswith(f"did well: epsilon: {best:.3g}.")


def test_a_student_is_told(tmp_path: Path) -> None:
    (tmp_path / "s.npz").touch()
    shown = {"dataset": {"public_unlabelled": f"npz:{tmp_path / 's.npz'}"}, "sweep": {"rungs": []}}
    [only] = told(shown)
    assert "is released beside it, at no cost; only a public test shows how good it is" in only
