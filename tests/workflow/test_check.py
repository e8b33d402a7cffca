"""Data that cannot be meant stops a run once its units were counted under noise, before anything
else is spent; its owner is told where to look."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import Workspace, mixture

from dpladder.cli import main

MEAN = "results/main/mean/mean.safetensors"
MANY = {"dataset": {"nominal_size": 6000, "census": {"epsilon": 0.02}}}
CLASSES = ["cat", "dog", "owl"]


def mistyped_classes(project: Workspace) -> dict[str, Any]:
    arrays = mixture(8000)
    np.savez("data.npz", features=arrays["features"], labels=np.array(CLASSES)[arrays["labels"]])
    return {"dataset": {"classes": ["retina", "histology", "owls"]}}


def images_that_are_none(project: Workspace) -> dict[str, Any]:
    for name in ("cat", "dog"):
        (project.folder / "photos" / name).mkdir(parents=True)
        for place in range(80):
            (project.folder / "photos" / name / f"{place}.jpg").write_text(
                f"<html>{place} not found</html>"
            )
    return {
        "dataset": {"source": "folder:photos", "classes": ["cat", "dog"]},
        "features": {"model": "efficientnet_lite0", "image_size": 32, "batch_size": 8},
    }


def spent(project: Workspace) -> set[str]:
    return {held.job.rule for held in project.held() if held.status != "RESERVED"}


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("spoilt", [mistyped_classes, images_that_are_none])
def test_data_that_cannot_be_meant_costs_its_counts_alone_and_the_message_says_where_to_look(
    project: Workspace, spoilt: Any
) -> None:
    mean = {"features": {"mean": {"epsilon": 0.1}}}
    project.configure(MANY, mean, spoilt(project))
    ended = project.run(MEAN)
    assert ended.returncode == 1
    assert re.search(r"\ndpladder: count_units .* the data does not look", ended.stderr[-3000:])
    said = project.log("main/count_units.log")
    assert "most of it counts as nothing" in said
    assert "of the 6,000 that train by declaration" in said
    assert not re.search(r"\b(cat|dog)\b", said + ended.stderr)
    assert spent(project) == {"count_units"}
    assert (project.folder / "private/tiny/diagnostics/check.txt").stat().st_mode & 0o077 == 0


@pytest.mark.ci
def test_a_stop_is_kept_and_what_it_advises_works_without_another_word(project: Workspace) -> None:
    mean = {"features": {"mean": {"epsilon": 0.1}}}
    classes = mistyped_classes(project)
    project.configure(MANY, mean, classes)
    counted = [project.run(MEAN).stderr.partition("by class ")[2][:60] for _ in range(2)]
    assert counted[0] == counted[1] != ""
    assert len([held for held in project.held() if held.job.rule == "count_units"]) == 1
    project.configure(MANY, mean, {"dataset": {"classes": CLASSES}})
    project.finish(MEAN)
    assert spent(project) == {"count_units", "estimate_mean"}


@pytest.mark.ci
def test_the_owner_may_say_that_it_is_right(project: Workspace) -> None:
    project.configure(
        MANY,
        mistyped_classes(project),
        {"dataset": {"census": None}, "features": {"mean": {"epsilon": 0.1}}},
    )
    project.finish(MEAN)
    assert spent(project) == {"estimate_mean"}


def nearly_all_of_one_class(project: Workspace) -> dict[str, Any]:
    arrays = mixture(8000)
    labels = np.where(np.arange(8000) < 7980, "cat", "dog")
    np.savez("data.npz", features=arrays["features"], labels=labels)
    return {"dataset": {"classes": CLASSES, "nominal_size": 6000, "census": {"epsilon": 0.5}}}


def a_public_test_of_other_classes(project: Workspace) -> dict[str, Any]:
    arrays = mixture(300, seed=1)
    np.savez("test.npz", features=arrays["features"], labels=np.array(["?"] * 300))
    return {"dataset": {"public_test": "npz:test.npz", "split": {"test": 0.0}}}


def features_for_a_network_of_images(project: Workspace) -> dict[str, Any]:
    return {"features": {"model": "efficientnet_lite0", "image_size": 32}}


def table(project: Workspace, header: str, row: str, **more: Any) -> dict[str, Any]:
    (project.folder / "people.csv").write_text("\n".join([header, *[row] * 300]), "utf-8")
    columns = [{"name": "smokes", "levels": ["yes", "no"]}, {"name": "sex", "levels": ["f", "m"]}]
    dataset = {"source": "csv:people.csv", "classes": ["well", "ill"], "columns": columns}
    return {"dataset": dataset | more}


def answers_that_cannot_all_differ(project: Workspace) -> dict[str, Any]:
    return table(project, "smokes,sex,label", "yes,f,well")


def no_user_column(project: Workspace) -> dict[str, Any]:
    unit = {"by": "user", "cap": 2}
    return table(project, "id,smokes,sex,label", "1,yes,f,well", unit=unit)


def no_split_column(project: Workspace) -> dict[str, Any]:
    return table(project, "id,smokes,sex,label", "1,yes,f,well", split={"rule": "given"})


def arrays_of_unequal_length(project: Workspace) -> dict[str, Any]:
    np.savez("data.npz", features=mixture()["features"], labels=np.zeros(7, np.int64))
    return {}


CANNOT_BE = "this cannot be what the config means"


@pytest.mark.few(3)
@pytest.mark.ci
@pytest.mark.parametrize(
    ("spoilt", "foretold", "told"),
    [
        (mistyped_classes, CANNOT_BE, "most of it counts as nothing"),
        (nearly_all_of_one_class, CANNOT_BE, "nearly all of it is of one class"),
        (a_public_test_of_other_classes, CANNOT_BE, "most of it counts as nothing"),
        (features_for_a_network_of_images, "already holds features", "already holds features"),
        (answers_that_cannot_all_differ, "allow 8 different rows", "allow 8 different rows"),
        (no_user_column, "has no user column", "has no user column"),
        (no_split_column, "has no split column", "has no split column"),
        (arrays_of_unequal_length, "one value in each", "one value in each"),
    ],
)
def test_whatever_stops_a_run_is_foretold_by_check(
    project: Workspace,
    capsys: pytest.CaptureFixture[str],
    spoilt: Callable[[Workspace], dict[str, Any]],
    foretold: str,
    told: str,
) -> None:
    """Every stop of data/stops.py, and what a source is refused for when it is opened."""
    project.configure(MANY, spoilt(project))
    capsys.readouterr()
    main(["check"])
    said = capsys.readouterr()
    assert foretold in said.out + said.err
    ended = project.run()
    assert ended.returncode == 1
    assert told in ended.stderr
    assert spent(project) <= {"count_units"}


@pytest.mark.ci
def test_what_check_has_no_warning_of_goes_on(
    project: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez("data.npz", **mixture(8000))
    project.configure(MANY, {"features": {"mean": {"epsilon": 0.1}}})
    capsys.readouterr()
    assert main(["check"]) == 0
    assert CANNOT_BE not in capsys.readouterr().out
    project.finish(MEAN)
