"""Depths that labelled public records choose: for nothing, and only where they beat the default."""

from __future__ import annotations

import numpy as np
import pytest

from dpladder.config.depths import OF_BUNDLED, alternatives
from dpladder.data.depths import depths_by_name
from dpladder.jobs.find_mean import best_depths
from dpladder.learn.data import Data

KNOWN = (("plain", 8), ("telling", 8), ("last", 8))
RANDOM = np.random.default_rng(0)
LABELS = np.arange(200) % 4


def sample(labels: np.ndarray, strength: float) -> Data:
    """Where the second depth alone tells classes apart, by so much."""
    features = RANDOM.normal(size=(len(labels), 24))
    features[:, 8:12] += strength * np.eye(4)[LABELS]
    return Data(features.astype(np.float16), labels)


CANDIDATES = [depths_by_name(names, KNOWN, 32.0) for names in (("plain",), ("telling",), ("last",))]


@pytest.mark.ci
def test_the_depth_whose_public_heads_lose_least_is_taken() -> None:
    found = best_depths(sample(LABELS, 3.0), CANDIDATES, 32.0, 4)
    assert found.names == ("telling",)


def test_the_default_stays_where_no_other_is_better_by_more_than_chance() -> None:
    assert best_depths(sample(LABELS, 0.0), CANDIDATES, 32.0, 4) is CANDIDATES[0]


def test_a_sample_without_labels_keeps_the_default() -> None:
    for labels in (np.full(200, -1), np.zeros(200, np.int64)):
        assert best_depths(sample(labels, 3.0), CANDIDATES, 32.0, 4) is CANDIDATES[0]


def test_public_records_choose_among_late_stages_the_default_first() -> None:
    lite = alternatives(OF_BUNDLED["efficientnet_lite0"], "images", "efficientnet_lite0")
    assert lite[0] == ("blocks.4", "blocks.5", "blocks.6")
    assert ("blocks.3", "blocks.4", "blocks.5") in lite
    assert ("blocks.5", "blocks.6") in lite
    assert lite[-1] == ("last",)
    assert len(lite) == len({*lite}) == 10
    texts = alternatives(OF_BUNDLED["minilm"], "texts", "minilm")
    assert texts[0] == ("embeddings", "last")
    assert ("layer.3", "last") in texts
    assert alternatives(("last",), "images", "x") == [("last",)]
