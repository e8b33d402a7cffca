"""A finished run's model, used as it lies: by its file alone, with what the statement beside it says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from support import Workspace

import dpladder
from dpladder.cli import main
from dpladder.config.section import restored
from dpladder.data.cache import open_cache
from dpladder.jobs.evaluate import right_and_wrong
from dpladder.learn import weights
from dpladder.learn.interface import Data
from dpladder.privacy.ledger.home import open_home, subkey
from dpladder.privacy.statement.documents import Statement
from dpladder.privacy.statement.page import first_line

pytestmark = pytest.mark.long

FINAL = Path("results/main/final/1/weights.safetensors")


def test_a_finished_model_predicts_what_evaluate_counts_and_knows_its_guarantee(finished: Workspace) -> None:
    model = dpladder.load(FINAL)
    assert model.classes == ("0", "1", "2")
    (path,) = finished.folder.glob("private/tiny/features/*/test.h5")
    cache = open_cache(path, subkey(open_home(create=False), "cache"))
    prepared = model.preprocess(np.asarray(cache.features))
    assert np.array_equal(prepared, model.map(cache.features))
    found = np.array([int(label or -1) for label in model.predict(np.asarray(cache.features)).labels])
    right, _ = right_and_wrong(weights.load(FINAL)[0], None, Data(prepared, cache.labels))
    assert np.count_nonzero(found == cache.labels) == right > 0

    assert model.privacy is not None
    assert model.privacy["lineage"] == "tiny"
    assert model.privacy["epsilon"] == pytest.approx(1.0, abs=1e-3)
    shutil.copy(FINAL, "elsewhere.safetensors")
    assert dpladder.load("elsewhere.safetensors").privacy is None
    assert dpladder.load("elsewhere.safetensors").facts["target_epsilon"] == 1.0


def test_the_card_of_a_finished_model_says_what_its_statement_says(finished: Workspace) -> None:
    assert main(["export", "results", "out"]) == 0
    card = Path("out/README.md").read_text()
    assert (
        first_line(restored(Statement, json.loads(Path("results/privacy.json").read_text())), "tiny") in card
    )
    assert "Of this model: its own training and search compose to epsilon = 1.0000, at delta = 1e-05" in card
    assert "% of the budget, in mu squared" in card
    assert "noised, standard deviation" in card
