"""Data that cannot be meant stops a run once its units were counted under noise, before anything
else is spent; its owner is told where to look."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from support import Workspace, mixture

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
