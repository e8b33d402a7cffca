"""A finished run's model, used as it lies: by its file alone, with what the statement beside it
says."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from counted import right_of
from support import Workspace, in_new_python, mixture

import dpladder
from dpladder.cli import main
from dpladder.data.cache import open_cache
from dpladder.learn import weights
from dpladder.learn.scorers import ClassScorer
from dpladder.privacy.ledger.home import open_home, subkey
from dpladder.privacy.statement.documents import SealedStatement
from dpladder.privacy.statement.facts import LineageFacts
from dpladder.section import from_document

pytestmark = pytest.mark.ci

FINAL = Path("results/main/final/1/weights.safetensors")
SERVED = """
import io, json, sys
sys.modules["dpladder"] = None
import mlflow, pandas
rows = pandas.read_json(io.StringIO(sys.argv[2]), orient="split", precise_float=True)
print(json.dumps(mlflow.pyfunc.load_model(sys.argv[1]).predict(rows).to_numpy().tolist()))
"""
"""MLflow's own loader, where dpladder cannot be imported."""


def test_a_finished_model_predicts_what_evaluate_counts_and_knows_its_guarantee(
    finished: Workspace,
) -> None:
    model = dpladder.load(FINAL)
    assert model.classes == ("0", "1", "2")
    (path,) = finished.folder.glob("private/tiny/features/*/test.h5")
    cache = open_cache(path, subkey(open_home(create=False), "cache"))
    prepared = model.preprocess(np.asarray(cache.features))
    assert np.array_equal(prepared, model.map(cache.features))
    found = np.array(
        [int(label or -1) for label in model.predict(np.asarray(cache.features)).labels]
    )
    right = right_of(ClassScorer(), weights.load(FINAL)[0], prepared, cache.labels)
    assert np.count_nonzero(found == cache.labels) == right > 0

    assert model.privacy is not None
    assert model.privacy.lineage.name == "tiny"
    assert model.privacy.price.epsilon == pytest.approx(1.0, abs=1e-3)
    shutil.copy(FINAL, "elsewhere.safetensors")
    assert dpladder.load("elsewhere.safetensors").privacy is None
    assert dpladder.load("elsewhere.safetensors").facts["target_epsilon"] == 1.0


def test_results_behind_a_link_are_this_configs_and_speak_for_their_models(
    finished: Workspace,
) -> None:
    """On clusters results lie in scratch space. A run called all of them foreign."""
    Path("results").rename("scratch")
    Path("results").symlink_to("scratch")
    Path("results/report.html").unlink()
    ended = finished.finish()
    assert "The whole report: results/report.html" in ended.stderr
    assert "are not of this config" not in ended.stderr
    for folder in ("results", "scratch"):
        assert dpladder.load(
            FINAL.parents[3] / ".." / folder / FINAL.relative_to("results")
        ).privacy
    shutil.copytree("scratch", "filed")
    assert dpladder.load("filed/main/final/1/weights.safetensors").privacy is not None


def test_the_card_of_a_finished_model_says_what_its_statement_says(finished: Workspace) -> None:
    assert main(["export", "results", "out"]) == 0
    card = Path("out/README.md").read_text()
    document = json.loads(Path("results/privacy.json").read_text())
    assert LineageFacts(from_document(SealedStatement, document), "tiny").guarantee in card
    assert (
        "Of this model: its own training and search compose to epsilon = 1.0000, at delta = 1e-05"
        in card
    )
    assert "% of the budget was spent, in mu squared" in card
    assert "In brackets stand 95 % intervals, over noise and sampling." in card


def test_mlflow_holds_each_final_model_with_its_statement(
    finished: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (finished.folder / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    assert main(["mlflow", "results", "--experiment", "tiny"]) == 0
    assert "each final model, 1 in all" in capsys.readouterr().out

    from mlflow import MlflowClient

    client = MlflowClient()
    (known,) = client.search_runs([client.get_experiment_by_name("tiny").experiment_id])
    statement = json.loads(Path("results/privacy.json").read_text())
    assert known.data.metrics["epsilon"] == pytest.approx(1.0, abs=1e-3)
    assert len(client.get_metric_history(known.info.run_id, "epsilon")) == 1
    assert known.data.metrics["own_epsilon"] == pytest.approx(1.0, abs=1e-3)
    assert known.data.params["lineage"] == "tiny"
    assert float(known.data.params["delta"]) == statement["delta"]
    assert known.data.tags["dpladder.statement"] == statement["id"]
    kept = {file.path for file in client.list_artifacts(known.info.run_id)}
    assert kept >= {"privacy.json", "report.html", "summary.json", "weights.safetensors"}

    import mlflow

    found = "metrics.epsilon < 1.01 AND params.lineage = 'tiny'"
    [model] = mlflow.search_logged_models([known.info.experiment_id], found, output_format="list")
    assert {one.key: one.value for one in model.metrics} == pytest.approx(known.data.metrics)
    assert model.params["unit"] == "record"
    rows = pd.DataFrame(mixture(20, seed=5)["features"])
    served = in_new_python(SERVED, model.model_uri, rows.to_json(orient="split"))
    wanted = dpladder.load(FINAL).predict(rows.to_numpy()).probabilities
    assert np.allclose(json.loads(served), wanted, atol=1e-3)
    rows.to_csv("new.csv", index=False)
    command = ["models", "predict", "-m", model.model_uri, "-i", "new.csv", "-t", "csv"]
    command += ["-o", "told.json", "--env-manager", "local"]
    subprocess.run([sys.executable, "-m", "mlflow", *command], check=True, timeout=300)
    told = pd.DataFrame(json.loads(Path("told.json").read_text())["predictions"])
    assert np.allclose(told.to_numpy(), wanted, atol=1e-3)

    Path("results/privacy.json").write_text(json.dumps(statement | {"delta": 1e-9}))
    assert main(["mlflow", "results"]) == 1
    assert "Nothing was logged" in capsys.readouterr().err
