"""Whether public records guide steps, where that is left to the plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest
import yaml
from support import commit, node_of

from dpladder.config.curves import curves_of
from dpladder.config.learners import method
from dpladder.config.load import overlay
from dpladder.data.columns import matrix_of
from dpladder.errors import BadInput
from dpladder.plan import mechanisms, resolve
from dpladder.plan.curves import crosses_as_text, refuse_other_than_sums
from dpladder.plan.dag import build_dag
from dpladder.plan.edits import NO_CHOICE, plan_note
from dpladder.plan.plan import make_plan
from dpladder.plan.rules import RULES, jobs
from dpladder.plan.startup import known_states, open_resolved
from dpladder.privacy.arrays import with_curves
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.home import open_home

ASKED: dict[str, Any] = {
    "dataset": {"lineage": "few", "source": "npz:own.npz", "nominal_size": 400, "classes": 3},
    "features": {"model": "none", "centre": "public"},
    "privacy": {"epsilon": 1.0, "delta": 1e-5, "lifetime": {"epsilon": 8.0}},
    "sweep": {"rungs": []},
}
SAMPLE = {"dataset": {"public_sample": "npz:sample.npz"}}
FINAL = {"experiment": "main", "target": "1"}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for name in ("own", "sample"):
        Path(f"{name}.npz").touch()


def asked(*changes: dict[str, Any]) -> Any:
    values = overlay(ASKED, SAMPLE)
    for change in changes:
        values = overlay(values, change)
    Path("config.yaml").write_text(yaml.safe_dump(values))
    return open_resolved(["config.yaml"])


def public(name: str) -> dict[str, Any]:
    return {"learner": {"public": name}}


CUT = {
    "dataset": {"source": "folder:few", "public_sample": "folder:few/."},
    "features": {"model": "efficientnet_lite0", "until": "blocks.5", "centre": "auto"},
}


@pytest.mark.parametrize(
    ("learner", "expected"),
    [
        ({"name": "dp_finetune", "head": {"epsilon": 0.5}}, True),
        ({"name": "dp_finetune", "head": {"epsilon": 0.5}, "public": "none"}, False),
        ({"name": "dp_finetune"}, False),
        ({"name": "dp_finetune", "public": "gradient"}, True),
        ({"name": "hyfree_finetune", "head": {"epsilon": 0.5}}, False),
    ],
)
def test_a_sample_guides_a_head_that_is_bought_and_the_network_above_it(
    learner: dict[str, Any], expected: bool
) -> None:
    Path("few").mkdir()
    found = asked(CUT, {"learner": learner})
    assert found.main.learner.uses_public_gradient is expected
    bought = "head" in learner
    guides = {"find_start": expected, "estimate_head": bought, "train_final": True}
    for rule, there in guides.items():
        assert bool(jobs(found.main, rule)) is there
        parts = RULES[rule].parts(found.main, {})
        assert not there or ("sample" in parts) is expected
    if bought and expected:
        known = node_of(found, "estimate_head").mechanisms_behind
        assert mechanisms.GUIDE in known
        plain = asked(CUT, {"learner": learner | {"public": "none"}})
        assert mechanisms.GUIDE not in node_of(plain, "estimate_head").mechanisms_behind
        told = [node_of(one, "estimate_head").params for one in (found, plain)]
        assert [one.get("learner.public") for one in told] == ["gradient", "none"]
        assert told[0]["question_id"] != told[1]["question_id"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"learner": {"name": "dp_adam"}}, True),
        (public("gradient"), True),
        (public("none"), False),
        ({"dataset": {"public_sample": None}, "features": {"centre": "none"}}, False),
        ({"learner": {"name": "dp_mlp"}}, False),
        ({"learner": {"name": "dp_ls"}, "fit": {"using": "pooled"}}, False),
        ({"learner": {"init": "public"}}, False),
        ({"learner": {"init": "random"}}, False),
        ({"learner": {"link": "sigmoid"}}, False),
        ({"hpo": {"name": "koskela_kulkarni"}, "sweep": {"rungs": None}}, False),
        ({"dataset": {"labels": "many"}, "learner": {"link": "sigmoid"}}, False),
    ],
)
def test_a_sample_guides_every_head_that_it_can_unless_it_is_told_not_to(
    changes: dict[str, Any], expected: bool
) -> None:
    assert asked(changes).main.learner.uses_public_gradient is expected


def test_a_sample_whose_labels_are_other_classes_guides_nothing() -> None:
    named = {"source": "torchvision:CIFAR10", "classes": None}
    apart = {"dataset": named | {"public_sample": "torchvision:STL10"}}
    assert not asked(
        apart, {"features": {"model": "efficientnet_lite0"}}
    ).main.learner.uses_public_gradient


def known_by(project: Any) -> str:
    return node_of(project, "train_final", **FINAL).question_id


def test_what_is_left_to_the_plan_is_the_question_that_it_comes_to() -> None:
    assert known_by(asked()) == known_by(asked(public("gradient")))
    assert known_by(asked(public("none"))) != known_by(asked())
    absent = {"dataset": {"public_sample": None}, "features": {"centre": "none"}}
    assert known_by(asked(absent)) == known_by(asked(absent, public("none")))


def release(project: Any, *rules: str) -> None:
    """What rules of the project release, the final model if none is named, paid for and done."""
    dag = build_dag(project)
    made = make_plan(dag, known_states(project))
    asked = [one for one in made.items.values() if one.job.rule in (rules or ("train_final",))]
    for lineage, terms in made.terms.items():
        ledger = book.open_ledger(open_home(), terms)
        for item in asked:
            if project.experiments[item.job.experiment].dataset.lineage == lineage:
                (held,) = book.reserve(ledger, [item], plan=plan_note(dag, lineage))
                commit(ledger, held.token, held.token * 2, held.spends)


@pytest.mark.parametrize("changes", [{}, {"features": {"centre": "auto"}}])
def test_what_the_plan_chose_and_was_paid_for_is_remembered(changes: dict[str, Any]) -> None:
    release(asked(changes))
    found = asked(changes, {"final": {"targets": [1.0, 2.0]}})
    assert found.main.learner.uses_public_gradient
    assert "kept" not in found.choices.get("main", "")
    assert not asked(changes, public("none")).main.learner.uses_public_gradient


def test_a_choice_that_nobody_paid_for_is_made_anew() -> None:
    """The same one is kept once something was answered under it."""
    today = asked()
    ((lineage, terms),) = make_plan(build_dag(today), {}).terms.items()
    note = plan_note(build_dag(today), lineage)["main"]
    unguided = {**note, "chosen": note["chosen"] | {"public": "none"}}
    book.reserve(book.open_ledger(open_home(), terms), [], plan={"main": unguided})
    assert asked().main.learner.uses_public_gradient
    release(asked(public("none")))
    assert not asked().main.learner.uses_public_gradient


LARGE = {"dataset": {"nominal_size": 40_000}}
GOES_WITHOUT = {"final": {"calibrate": None}}


def share_of_calibration(*changes: dict[str, Any]) -> float | None:
    bought = asked(LARGE, *changes).main.final.calibrate
    return None if bought is None else bought.share


@pytest.mark.parametrize("says", ["choices without it", "no choices", "choices with it"])
def test_a_final_model_that_was_paid_for_before_maps_were_sold_stays_without_one(
    says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ledgers of then have other notes: without this choice, or without any where all was said by
    hand."""
    assert share_of_calibration() == 0.01
    before = asked(LARGE, GOES_WITHOUT)
    note = plan_note(build_dag(before), "few")["main"]
    if says != "choices with it":
        note["chosen"].pop("calibrate", None)
    if says == "no choices":
        note |= NO_CHOICE
    with monkeypatch.context() as patched:
        patched.setattr("plan.test_resolve.plan_note", lambda dag, lineage: {"main": note})
        release(before)
    assert share_of_calibration() is None
    assert share_of_calibration({"final": {"targets": [1.0, 2.0]}}) is None
    assert share_of_calibration({"final": {"calibrate": {"share": 0.1}}}) == 0.1
    assert share_of_calibration({"dataset": {"version": 2}}) == 0.01


def test_no_map_is_bought_of_weights_whose_margins_only_a_plug_in_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = replace(method("dp_gd"), weights="own_methods.layers")
    monkeypatch.setattr(resolve, "method", lambda _: own)
    assert share_of_calibration() is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 0.01),
        ({"dataset": {"nominal_size": 2000}}, 0.05),
        ({"dataset": {"nominal_size": 5000}}, 0.011),
        ({"dataset": {"nominal_size": 500}}, None),
        ({"dataset": {"classes": 2, "nominal_size": 2000}}, None),
        ({"dataset": {"classes": 2}}, 0.01),
        ({"dataset": {"labels": "many"}, "learner": {"link": "sigmoid", "public": "none"}}, 0.01),
        ({"mode": "research", "dataset": {"declared_public": True}}, None),
        ({"hpo": {"name": "koskela_kulkarni"}, "sweep": {"rungs": None}}, None),
        (GOES_WITHOUT, None),
    ],
)
def test_a_map_is_bought_where_it_pays(changes: dict[str, Any], expected: float | None) -> None:
    assert share_of_calibration(changes) == expected


def test_a_sample_that_takes_a_guides_place_and_has_other_classes_guides_nothing() -> None:
    """Labels are matched by place."""
    named = {"source": "torchvision:CIFAR10", "classes": None}
    network = {"features": {"model": "efficientnet_lite0"}}
    Path("few").mkdir()
    release(asked({"dataset": named | {"public_sample": "folder:few"}}, network))
    other = {"dataset": named | {"public_sample": "torchvision:STL10"}}
    assert not asked(other, network).main.learner.uses_public_gradient


def test_what_guides_a_descent_is_a_mechanism_behind_it() -> None:
    for project, guided in ((asked(public("none")), False), (asked(), True)):
        names = node_of(project, "train_final", **FINAL).mechanisms_behind
        assert (mechanisms.GUIDE in names) == guided


CLOSED: dict[str, Any] = {
    "sweep": {"search": {"prior": "none"}, "rungs": [{"epsilon": 0.2, "trials": 2}]}
}


def named(*names: str, **beside: Any) -> dict[str, Any]:
    return {"experiments": {name: dict(beside) for name in names}}


def test_a_release_that_both_choices_ask_for_decides_nothing() -> None:
    """A noised mean is the same with and without a guide."""
    noised = {"features": {"centre": "noised", "mean": {"epsilon": 0.2}}}
    release(asked(CLOSED, noised, public("gradient")), "estimate_mean", "train_final")
    assert asked(CLOSED, noised).main.learner.uses_public_gradient


IMAGES: dict[str, Any] = {
    "dataset": {"source": "npz:images.npz", "public_sample": None, "nominal_size": 300},
    "features": {"model": "efficientnet_lite0", "image_size": 32, "centre": "auto"},
}


@pytest.mark.parametrize(
    ("changes", "layers"),
    [
        ({}, "last"),  # n0 mu = 80
        ({"dataset": {"nominal_size": 2000}}, "auto"),
        ({"dataset": {"public_sample": "npz:sample.npz"}}, "auto"),
        ({"features": {"layers": ["blocks.5"]}}, ["blocks.5"]),
        ({"mode": "research", "dataset": {"declared_public": True}}, "auto"),
    ],
)
def test_few_images_are_seen_at_the_last_output_alone(
    changes: dict[str, Any], layers: str | list[str]
) -> None:
    np.savez("images.npz", images=np.zeros((9, 12, 12), np.uint8), labels=np.arange(9) % 3)
    project = asked(overlay(IMAGES, changes))
    found = project.main.features.layers
    assert (list(found) if isinstance(layers, list) else found) == layers
    said = project.choices.get("main", "")
    assert ("would lose more to noise" in said) == (layers == "last")
    assert project.main.features.centre == ("network" if layers == "last" else ANY)


def test_a_larger_total_keeps_the_depths_that_were_paid_for() -> None:
    np.savez("images.npz", images=np.zeros((9, 12, 12), np.uint8), labels=np.arange(9) % 3)
    release(asked(IMAGES))
    alone = {"final": {"targets": [8.0]}}
    assert asked(IMAGES, alone).main.features.layers == "auto"
    assert asked(IMAGES, {"final": {"targets": [1.0, 8.0]}}).main.features.layers == "last"


TABLE: dict[str, Any] = {
    "dataset": {
        **{"source": "csv:table.csv", "public_sample": None, "nominal_size": 20_000},
        "columns": [{"name": "age", "range": [0, 100]}, {"name": "sex", "levels": ["f", "m"]}],
    },
    "features": {"centre": "auto"},
}


def curves_asked(*changes: dict[str, Any]) -> tuple[Any, str]:
    """What became of features.curves, and what the plan says of it."""
    Path("table.csv").touch()
    project = asked(TABLE, *changes)
    return project.main.features.curves, project.choices.get("main", "")


LEVELS = {"columns": [{"name": "sex", "levels": ["f", "m"]}]}
LINE = {"columns": [{"name": "age", "range": [0, 100], "curve": False}]}
KNOTS = {"columns": [{"name": "age", "range": [0, 100], "knots": [18, 65]}]}


@pytest.mark.parametrize(
    ("changes", "curved"),
    [
        ({}, True),
        ({"dataset": {"nominal_size": 20}}, False),
        ({"dataset": LEVELS}, False),
        ({"dataset": LINE}, False),
        ({"dataset": KNOTS}, False),
        ({"learner": {"name": "dp_mlp"}}, False),
        ({"features": {"curves": 0}}, False),
        ({"mode": "research", "dataset": {"declared_public": True}}, False),
        ({"dataset": {"public_sample": "npz:sample.npz"}}, False),
    ],
)
def test_numbers_are_curves_where_noise_leaves_room_and_nobody_said_how(
    changes: dict[str, Any], curved: bool
) -> None:
    pieces, said = curves_asked(changes)
    assert (pieces > 0) == curved
    assert ("numbers are curves of" in said) == curved


UNCALIBRATED = {"dataset": {"census": None}, "final": {"calibrate": None}}


@pytest.mark.parametrize(
    "by_hand", [UNCALIBRATED, {**UNCALIBRATED, "features": {"centre": "none"}}]
)
@pytest.mark.parametrize("recorded", [True, False])
def test_a_project_that_paid_for_lines_before_there_were_curves_keeps_lines(
    by_hand: dict[str, Any], recorded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its documents lack the key, or there are none where all was chosen by hand."""
    lines = {"features": {"curves": 0}}
    curves_asked()
    with monkeypatch.context() as before:
        before.setattr(resolve, "pieces_for", lambda *_: 0)
        before.setattr(resolve, "resolved_choices", as_before(resolve.resolved_choices))
        release(asked(TABLE, by_hand, {} if recorded else lines))
    later = asked(TABLE, by_hand, {"final": {"targets": [1.0, 2.0]}})
    assert later.main.features.curves == 0
    assert known_by(later) == known_by(asked(TABLE, by_hand, lines))
    assert "kept as it was chosen when it was paid for (curves 0, today" in later.choices["main"]
    other = asked(TABLE, by_hand, {"dataset": {"nominal_size": 19_000}})
    assert other.main.features.curves > 0


def as_before(choices: Any) -> Any:
    """What was remembered when there were no curves."""
    return lambda config: {key: one for key, one in choices(config).items() if key != "curves"}


def test_a_count_that_lines_and_curves_share_decides_nothing() -> None:
    curves_asked()
    release(asked(TABLE, {"features": {"curves": 0}}), "count_units")
    assert asked(TABLE).main.features.curves > 0


def test_a_larger_total_keeps_the_pieces_that_were_paid_for() -> None:
    few = {"dataset": {"nominal_size": 400}}
    first, _ = curves_asked(few)
    release(asked(TABLE, few))
    alone = {"final": {"targets": [8.0]}}
    assert asked(TABLE, few, alone).main.features.curves > first > 0
    assert asked(TABLE, few, {"final": {"targets": [1.0, 8.0]}}).main.features.curves == first


NUMBER: dict[str, Any] = {
    **TABLE,
    "dataset": {**TABLE["dataset"], "classes": None, "target": {"range": [0, 9]}},
}


@pytest.mark.parametrize(
    ("changes", "learner"),
    [
        ({}, "dp_gd"),
        ({"dataset": {"nominal_size": 5}}, "dp_ridge"),  # too few for curves
        ({"dataset": {"nominal_size": 50_000}}, "dp_ridge"),
        ({"dataset": {"columns": ["age"]}}, "dp_ridge"),
        ({"features": {"curves": 0}}, "dp_ridge"),
        ({"features": {"curves": 8}}, "dp_ridge"),
        ({"learner": {"name": "dp_ridge"}}, "dp_ridge"),
        ({"learner": {"share": 0.4}}, "dp_ridge"),
        ({"sweep": {"search": {"eta": [0.1, 0.2]}}}, "dp_ridge"),
        ({"mode": "research", "dataset": {"declared_public": True}}, "dp_ridge"),
    ],
)
def test_a_number_is_learnt_by_descent_on_curves_where_nobody_said_how(
    changes: dict[str, Any], learner: str
) -> None:
    Path("table.csv").touch()
    small = {"dataset": {"nominal_size": 5000}}
    found = asked(NUMBER, small, changes)
    assert found.main.learner.name == learner
    by_law = learner == "dp_gd"
    assert ("learnt by dp_gd" in found.choices.get("main", "")) == by_law
    if by_law:
        named = asked(NUMBER, small, {"learner": {"name": "dp_gd"}}).main
        assert known_by(found) == known_by(asked(NUMBER, small, {"learner": {"name": "dp_gd"}}))
        assert found.main.features == named.features


@pytest.mark.parametrize("before", ["dp_ridge", "dp_gd"])
def test_a_number_keeps_the_learner_that_was_paid_for(
    before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ledgers of before name no learner."""
    Path("table.csv").touch()
    few, by_hand = {"dataset": {"nominal_size": 5000}}, {"final": {"calibrate": None}}
    with monkeypatch.context() as then:
        if before == "dp_ridge":
            then.setattr(resolve, "descends", lambda *_: False)
            plain = resolve.resolved_choices
            then.setattr(
                resolve,
                "resolved_choices",
                lambda config: {key: one for key, one in plain(config).items() if key != "learner"},
            )
        release(asked(NUMBER, few, by_hand))
        paid = known_by(asked(NUMBER, few, by_hand))
    if before == "dp_gd":
        monkeypatch.setattr(resolve, "descends", lambda *_: False)
    later = asked(NUMBER, few, by_hand)
    assert later.main.learner.name == before
    assert known_by(later) == paid
    assert "kept as it was chosen when it was paid for" in later.choices["main"]


def test_curves_give_rows_their_form_unless_the_config_has_one() -> None:
    curves_asked()
    found = asked(TABLE).main
    longest = found.features.mean.radius
    assert longest == pytest.approx(3**0.5, abs=2e-3)
    assert (found.features.length, found.features.constant) == ("as_is", 0.0)
    assert found.features.typical == pytest.approx(0.6 * longest, rel=1e-2)
    assert found.learner.clip == pytest.approx(found.features.typical / 4)
    assert found.learner.bias
    assert found.sweep.search.expected == (1.0, 1.7)
    for own in ({"features": {"length": 16.0}}, {"learner": {"clip": 0.5}}):
        plain = asked(TABLE, own).main
        assert plain.features.curves == found.features.curves
        assert (plain.features.constant, plain.learner.bias) == (0.2, False)
        assert plain.sweep.search.expected == (1.45, 1.7)


CROSSED = {"dataset": {"crosses": [["age", "sex"]]}}


@pytest.mark.parametrize("columns", [TABLE["dataset"]["columns"], LEVELS["columns"]])
def test_no_row_is_longer_than_the_plan_says(columns: Any) -> None:
    Path("table.csv").touch()
    marked = {"name": "dose", "range": [0, 9], "missing": 0, "mark_missing": True}
    crosses = [["age", "sex"], ["dose", "age"]] if len(columns) > 1 else [["dose", "sex"]]
    config = asked(TABLE, {"dataset": {"columns": [*columns, marked], "crosses": crosses}}).main
    dataset, pieces = config.dataset, config.features.curves
    people = {"age": [0, 100, 40, 100], "sex": ["f", "m", "f", "x"], "dose": [9, None, 2, None]}
    rows = matrix_of(dataset.columns, people.__getitem__)
    seen = with_curves(rows, curves_of(dataset.columns, pieces, dataset.crosses))
    lengths = np.linalg.norm(seen, axis=1)
    assert lengths.max() <= config.features.mean.radius <= lengths.max() * 1.001
    assert config.features.length == "as_is"


def test_check_says_how_wide_a_cross_is() -> None:
    curves_asked()
    pieces = asked(TABLE, CROSSED).main.features.curves
    [said] = crosses_as_text(asked(TABLE, CROSSED).main)
    width = 3 + (pieces + 1) * 3
    assert said == f"cross    age x sex: {2 * (pieces + 1)} products; a row has {width} numbers"
    assert not [*crosses_as_text(asked(TABLE).main)]


def test_a_cross_of_levels_keeps_rows_as_they_are_where_numbers_are_lines() -> None:
    curves_asked()
    found = asked(TABLE, CROSSED, {"dataset": {"nominal_size": 20}}).main
    assert (found.features.curves, found.features.length) == (0, "as_is")


@pytest.mark.parametrize(
    ("crosses", "says"),
    [
        ([["age", "height"]], "name height, which has no levels and no range in columns"),
        ([["age", "age"]], "name two columns each"),
        ([["age", "sex"], ["sex", "age"]], "each pair once"),
    ],
)
def test_a_cross_of_columns_that_have_no_hats_is_refused(crosses: Any, says: str) -> None:
    Path("table.csv").touch()
    with pytest.raises(BadInput, match=says):
        asked(TABLE, {"dataset": {"crosses": crosses}})


def rising(**more: Any) -> dict[str, Any]:
    age = {"name": "age", "range": [0, 100], "monotone": "up"} | more
    columns = [age, {"name": "sex", "levels": ["f", "m"]}]
    return {"dataset": {"columns": columns, "classes": ["a", "b"]}}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ([rising(range=None)], r"monotone .*is of numbers, and needs a range"),
        ([rising(), CROSSED], "name age, which is monotone, so that another column could turn it"),
        (
            [rising(), {"dataset": {"classes": ["a", "b", "c"]}}],
            "says that age is monotone; that is of two classes",
        ),
        (
            [rising(), {"hpo": {"name": "random_search"}, "sweep": {"rungs": []}}],
            "a private search releases no such model",
        ),
    ],
)
def test_what_has_no_direction_is_not_monotone(changes: list[Any], says: str) -> None:
    Path("table.csv").touch()
    with pytest.raises(BadInput, match=says):
        asked(TABLE, *changes)


@pytest.mark.parametrize(
    ("changes", "sums"),
    [
        ({}, True),
        ({"dataset": {"nominal_size": 20}}, False),  # numbers are lines there
        ({"dataset": {"nominal_size": 20}, "features": {"curves": 4}}, True),
        ({"features": {"length": 1.0}}, False),
        ({"features": {"mean": {"epsilon": 0.1, "radius": 0.5}}}, False),  # long rows are cut
        ({"features": {"mean": {"epsilon": 0.1, "radius": 3.0}}}, True),
    ],
)
def test_a_column_is_monotone_where_predictions_are_sums_over_columns(
    changes: dict[str, Any], sums: bool
) -> None:
    Path("table.csv").touch()
    project = asked(TABLE, rising(), changes)
    if sums:
        refuse_other_than_sums(project)
        return
    with pytest.raises(BadInput, match="main: columns say that age is monotone"):
        refuse_other_than_sums(project)


@pytest.mark.parametrize("curves", [{"features": {"curves": 4}}, {"dataset": KNOTS}, CROSSED])
def test_a_public_mean_of_curves_is_refused(curves: dict[str, Any]) -> None:
    Path("table.csv").touch()
    sampled = {"dataset": {"public_sample": "csv:sample.csv"}, "features": {"centre": "public"}}
    Path("sample.csv").touch()
    with pytest.raises(BadInput, match="a public mean is of lines"):
        asked(TABLE, sampled, curves)
    assert asked(TABLE, sampled).main.features.curves == 0


BEYOND: dict[str, Any] = {
    "dataset": {"nominal_size": 400_000, "public_sample": None},
    "features": {"centre": "none"},
    "privacy": {"delta": 1e-6},
    "sweep": {"rungs": None},
}


@pytest.mark.parametrize("answered", ["run_trial", "train_final"])
def test_trials_that_were_paid_for_are_kept_where_none_would_be_bought_today(
    answered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prior beyond the largest steps buys none."""
    assert asked(BEYOND).main.sweep.rungs == ()
    with monkeypatch.context() as before:
        before.setattr(resolve, "_kappa_out_of_reach", lambda _: None)
        paid = asked(BEYOND)
        release(paid, answered)
    assert paid.main.sweep.rungs
    for totals in ([1.0], [0.5, 1.0], [1.0, 2.0]):
        later = asked(BEYOND, {"final": {"targets": totals}})
        assert later.main.sweep.rungs == paid.main.sweep.rungs
        assert "kept as it was chosen when it was paid for" in later.choices["main"]
        assert "no sweep" not in later.choices["main"]
    assert asked(BEYOND, {"dataset": {"nominal_size": 390_000}}).main.sweep.rungs == ()


def test_a_search_that_ends_below_what_steps_reach_does_not_take_the_largest() -> None:
    ends = {"sweep": {"search": {"kappa": [0.05, 0.3], "expected": [2.0, 2.0]}}}
    assert "steps" in asked(BEYOND).choices["main"]
    assert "largest steps" not in asked(BEYOND, ends).choices["main"]
