"""Several views of each training image, through the whole workflow: averaged before clipping, at no
further cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpladder.cli import main
from dpladder.data.cache import FeatureCache, open_cache
from dpladder.privacy.ledger.home import open_home, subkey

pytestmark = pytest.mark.long

VIEWED: dict[str, Any] = {
    "dataset": {"source": "folder:photos", "classes": ["dark", "light"], "nominal_size": 60},
    "features": {
        "model": "efficientnet_lite0",
        "image_size": 32,
        "batch_size": 8,
        "mean": {"epsilon": 0.1},
    },
    "learner": {"augment": 3},
}


def caches(part: str) -> list[FeatureCache]:
    key = subkey(open_home(create=False), "cache")
    return [
        open_cache(path, key) for path in sorted(Path("private/tiny/features").glob(f"*/{part}.h5"))
    ]


@pytest.mark.long
def test_several_views_run_from_images_to_statement_and_cost_what_one_view_costs(photos):
    photos.configure(VIEWED, {"experiments": {"plain": {"learner": {"augment": 1}}}})
    photos.finish("results/report.html")
    assert main(["verify", "results"]) == 0

    several, one = sorted(caches("train"), key=lambda cache: -cache.features.ndim)
    assert several.features.shape[1:] == (3, 2064)
    assert np.array_equal(several.features[:, 0], one.features)
    [test] = caches("test")  # what is only looked at has one view, and is shared
    assert test.features.shape[1:] == (2064,)

    tiny = json.loads(Path("results/privacy.json").read_text())["datasets"]["tiny"]
    figures = {artifact["epsilon"] for artifact in tiny["artifacts"].values()}
    assert len(tiny["artifacts"]) == 2
    assert all(0.99 < figure <= 1.0 for figure in figures)
    paid = [spend["spend"]["event"] for spend in tiny["spends"] if spend["label"] != "test score"]
    # each for the one experiment and the other
    assert all(paid.count(event) % 2 == 0 for event in paid)
