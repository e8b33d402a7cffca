"""A run over data that cannot be meant stops before anything is spent, and tells nobody but its
owner why."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from support import Workspace, mixture

MEAN = "results/main/mean/mean.safetensors"


def mistyped_classes(project: Workspace) -> dict[str, Any]:
    arrays = mixture()
    np.savez(
        "data.npz",
        features=arrays["features"],
        labels=np.array(["cat", "dog", "owl"])[arrays["labels"]],
    )
    return {"dataset": {"classes": ["retina", "histology"]}}


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


@pytest.mark.long
@pytest.mark.parametrize(
    ("spoilt", "stopped"),
    [
        (mistyped_classes, "prepare_dataset"),
        (images_that_are_none, "features/train/merge"),
    ],
)
def test_data_that_cannot_be_meant_costs_nothing_and_one_message_says_where_to_look(
    project: Workspace, spoilt: Any, stopped: str
) -> None:
    project.configure(spoilt(project), {"features": {"mean": {"epsilon": 0.1}}})
    ended = project.run(MEAN)
    assert ended.returncode == 1
    assert re.search(r"\ndpladder: [a-z_]+ .* the data does not look like", ended.stderr[-3000:])
    said = project.log(f"main/{stopped}.log")
    assert "the data does not look like what the config describes" in said
    assert "private/tiny/diagnostics" in said
    assert not re.search(r"\b(cat|dog|300|160)\b", said + ended.stderr)
    assert {held.status for held in project.held()} <= {"RESERVED"}
    assert (project.folder / "private/tiny/diagnostics/check.txt").stat().st_mode & 0o077 == 0


@pytest.mark.long
def test_the_owner_may_say_that_it_is_right(project: Workspace) -> None:
    project.configure(
        mistyped_classes(project),
        {"dataset": {"few_usable": True}, "features": {"mean": {"epsilon": 0.1}}},
    )
    project.finish(MEAN)
