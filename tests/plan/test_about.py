"""What a page tells of a model is what the config declares, and not where the operator's files
lie."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import node_of

from dpladder.config.load import resolve
from dpladder.config.sources import SOURCES
from dpladder.plan.about import _data, about

BASE = {
    "dataset": {"lineage": "pets", "source": "digits", "nominal_size": 1400},
    "privacy": {"epsilon": 1.0, "delta": 1e-5},
}


def told(folder: Path, source: str = "digits", **features: object) -> dict[str, str]:
    dataset = BASE["dataset"] | {"source": source}
    if source != "digits":
        dataset |= {"classes": ["ill", "healthy"]}
    return about(resolve(BASE | {"dataset": dataset, "features": features}))["main"]


def test_a_model_is_told_by_what_was_declared(tmp_path):
    found = told(tmp_path)
    assert found["what it does"] == "tells 10 classes apart"
    assert found["private data"] == "digits; 1,400 records declared for training; lineage pets"
    (tmp_path / "secret.npz").touch()
    found = told(tmp_path, f"npz:{tmp_path}/secret.npz", model="none")
    assert found["what it does"] == "tells 2 classes apart: ill, healthy"
    assert found["public network"] == "none: the records are features"


@pytest.mark.parametrize("mark", ["./", "~/", ""])
def test_no_path_of_the_operators_is_told(mark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.jsonl").touch()
    place = f"{mark or tmp_path}/secret/mine"
    found = told(
        tmp_path, f"jsonl:{tmp_path}/secret.jsonl", model=f"hf:{place}", weights="pretrained"
    )
    assert found["public network"].startswith("mine")
    assert not [words for words in found.values() if "secret" in words or "/" in words]


@pytest.mark.parametrize("kind", [kind for kind, one in SOURCES.items() if one.is_private_file])
def test_no_path_of_a_source_is_told(kind):
    config = resolve(BASE).main
    dataset = config.dataset.model_copy(update={"source": f"{kind}:/secret/mine"})
    assert "secret" not in _data(config.model_copy(update={"dataset": dataset}))


def test_no_path_of_a_network_in_a_folder_is_told(tmp_path):
    network = tmp_path / "secret" / "mine"
    network.mkdir(parents=True)
    (network / "config.json").write_text("{}")
    (tmp_path / "images" / "ill").mkdir(parents=True)
    found = told(
        tmp_path, f"folder:{tmp_path}/images", model=f"local-dir:{network}", weights="pretrained"
    )
    assert found["public network"].startswith("mine")
    assert not [words for words in found.values() if "secret" in words or "/" in words]


def test_of_a_grid_the_first_cell_is_told_and_a_table_compares_the_others():
    grid = {"learner": {"slow": {"momentum": 0.9}, "fast": {"momentum": 0.5}}}
    project = resolve(BASE | {"grid": grid, "experiments": {"more": {"fit": {"using": "pooled"}}}})
    assert len(project.experiments) == 3
    assert [*about(project)] == ["main", "more"]


def test_contests_are_told_of_once_somebody_asked_for_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    project = resolve(BASE)
    assert node_of(project, "write_report").params["contests"] == {}
    drawing = Path("results/comparison/hpo.svg")
    drawing.parent.mkdir(parents=True)
    drawing.touch()
    contests = {str(drawing): "dpladder_papers"}
    assert node_of(project, "write_report").params["contests"] == contests
