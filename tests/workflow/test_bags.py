"""Slides of patients as bags of patches, whole: from the table of slides to what an export says of
a new patient."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
from support import Workspace
from use.test_export import alone

import dpladder
from dpladder.cli import main

WIDTH, CENTRES = 12, 1.5 * np.random.default_rng(0).normal(size=(2, 12))
BAGS = {
    "dataset": {
        "source": {
            "bags": "slides",
            "width": WIDTH,
            "table": "slides.csv",
            "key": "slide",
        },
        "user": "patient",
        "label": "diagnosis",
        "classes": ["benign", "tumour"],
        "unit": {"by": "user", "pool": "mean"},
    },
    "privacy": {"epsilon": 8.0, "delta": 1e-5, "lifetime": {"epsilon": 16.0}},
    "sweep": {"rungs": [{"epsilon": 0.5, "trials": 2}]},
}


def slides(folder: Path, patients: int, seed: int) -> pd.DataFrame:
    """One to three slides of each patient, with two to nine patches; some file is lost."""
    random, rows = np.random.default_rng(seed), []
    for patient in range(patients):
        ill = int(random.integers(2))
        for slide in range(random.integers(1, 4)):
            name = f"pat{patient:04}/s{slide}.h5"
            patches = CENTRES[ill] + 2 * random.normal(size=(random.integers(2, 10), WIDTH))
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if random.random() > 0.02:
                with h5py.File(folder / name, "w") as file:
                    file["feats"] = patches.astype(np.float16)
            told = {"slide": name, "patient": f"pat{patient:04}"}
            rows.append(told | {"diagnosis": BAGS["dataset"]["classes"][ill]})
    return pd.DataFrame(rows)


@pytest.mark.long
def test_slides_of_patients_become_a_model_of_patients(project: Workspace) -> None:
    slides(Path("slides"), 320, seed=1).to_csv("slides.csv", index=False)
    project.configure(BAGS)
    assert main(["check"]) == 0
    project.finish()
    assert main(["verify", "results"]) == 0
    said = Path("results/privacy.md").read_text("utf-8")
    assert "for each user, a limit declared beforehand and enforced" in said

    new = slides(Path("new"), 60, seed=2).groupby("patient")["diagnosis"].first()
    assert main(["predict", "results", "new", "--output", "told.csv"]) == 0
    told = pd.read_csv("told.csv").set_index("user")["class"]
    assert (told == new[told.index]).mean() > 0.9

    assert main(["export", "results", "out"]) == 0
    one = next(path for path in sorted(Path("new").iterdir()) if len([*path.iterdir()]) > 1)
    [weights] = Path("results").rglob("final/*/weights.safetensors")
    [wanted] = dpladder.load(weights).predict(one, users=["x"] * 2).probabilities
    means = []
    for file in sorted(one.iterdir()):
        with h5py.File(file) as held:
            means.append(held["feats"][:].astype(float).mean(axis=0).tolist())
    found = alone(Path("out"), f"c.together({means})")
    assert [*found.values()] == pytest.approx(wanted, abs=1e-3)
    assert not any(
        "pat0" in path.read_text("utf-8")
        for folder in ("results", "logs")
        for path in Path(folder).rglob("*")
        if path.suffix in (".json", ".md", ".html", ".log", ".yaml")
    )
