"""A grid: an experiment for every combination of named entries, the first of them the base
itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from support import TINY

from dpladder.config.load import overlay, resolve
from dpladder.plan import follows
from dpladder.report.summary import Tested
from dpladder.report.tables import grid_table

DIGITS: dict[str, Any] = overlay(TINY, {"dataset": {"source": "digits", "classes": None}})
GRID: dict[str, Any] = {
    "features": {
        "lite0": {"model": "efficientnet_lite0", "image_size": 32},
        "lite2": {"model": "efficientnet_lite2"},
    },
    "learner": {"plain": {"momentum": 0.0}, "fast": None, "slow": {"momentum": 0.5}},
}


def grid(**changes: Any) -> dict[str, Any]:
    return DIGITS | {"grid": GRID} | changes


def test_every_combination_is_an_experiment_and_the_first_is_the_base() -> None:
    project = resolve(grid())
    assert list(project.experiments) == [
        "main",
        *("lite0-fast", "lite0-slow", "lite2-plain", "lite2-fast", "lite2-slow"),
    ]
    assert project.main.features.image_size == 32
    last = project.experiments["lite2-slow"]
    assert (last.features.model, last.learner.momentum) == ("efficientnet_lite2", 0.5)
    assert last.features.image_size is None  # of the first entry, which the others do not inherit
    assert project.grid["main"] == {"features": "lite0", "learner": "plain"}
    assert project.grid["lite2-fast"] == {"features": "lite2", "learner": "fast"}


def test_a_grid_alone_completes_a_base_that_is_none_without_it() -> None:
    dataset = {
        key: value for key, value in DIGITS["dataset"].items() if key not in ("source", "lineage")
    }
    axis = {name: {"lineage": name, "source": name} for name in ("digits", "mnist5k")}
    cells = {"dataset": axis, "features": {"lite0": {"model": "efficientnet_lite0"}}}
    project = resolve(DIGITS | {"dataset": dataset, "grid": cells})
    assert [config.dataset.lineage for config in project.experiments.values()] == [
        "digits",
        "mnist5k",
    ]


def test_repeats_are_of_their_cell() -> None:
    public = overlay(grid(), {"mode": "research", "research": {"repeats": 2}})
    project = resolve(overlay(public, {"dataset": {"declared_public": True}}))
    cells = follows.cells(project)
    assert len(cells) == 12
    assert cells["main-2"] == cells["main"]


def test_without_a_grid_repeats_are_of_their_experiment() -> None:
    public = {"mode": "research", "dataset": {"declared_public": True}}
    images = overlay(DIGITS, {"features": {"model": "efficientnet_lite0"}})
    repeated = overlay(images, public | {"research": {"repeats": 2}})
    two = overlay(repeated, {"experiments": {"other": {"fit": {"using": "best"}}}})
    assert follows.cells(resolve(two)) == {
        "main": {"experiment": "main"},
        "main-2": {"experiment": "main"},
        "other": {"experiment": "other"},
        "other-2": {"experiment": "other"},
    }
    assert follows.cells(resolve(images)) == {}


def test_the_table_has_a_row_for_each_cell_and_the_mean_of_its_repeats() -> None:
    def summary(*found: float, open_found: float | None = None) -> Any:
        models = [
            SimpleNamespace(total=total, test=tested(accuracy, 0.01))
            for total, accuracy in zip(("0.5", "4"), found, strict=True)
        ]
        if open_found is not None:
            models.append(SimpleNamespace(total="∞", test=tested(open_found, 0.0)))
        return SimpleNamespace(models=models)

    def tested(accuracy: float, sd: float) -> Tested:
        return Tested(accuracy, sd, correct=0.0, total=1e12, sd=0.0, noised=True)

    summaries = {
        "main": summary(0.5, 0.8),
        "main-2": summary(0.7, 0.8),
        "big-b": summary(0.6, 0.9, open_found=0.99),
    }
    cells = {
        "main": {"features": "small", "dataset": "a"},
        "main-2": {"features": "small", "dataset": "a"},
        "big-b": {"features": "big", "dataset": "b"},
    }
    for name, one in summaries.items():
        one.experiment = name
    rows = grid_table([*summaries.values()], cells).to_dict("records")
    assert rows[0] | {"ε = ∞": ""} == {
        "features": "small",
        "dataset": "a",
        "ε = 0.5": "too few records to say (32.3–87.7)",
        "ε = 4": "80.0%",
        "ε = ∞": "",
    }
    assert (rows[1]["ε = 4"], rows[1]["ε = ∞"]) == ("90.0% (88.0–92.0)", "99.0%")
