"""What docs/reproductions.md calls "not run" runs from its first job to its last, on small
stand-ins in the published formats, through small networks: who has the data and a GPU types one
command. No figure comes of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from languages import tiny_language_model
from standins import BY_HAND, PUBLISHED, UNCHECKED, WORDS
from test_papers import papers

from dpladder.config.load import overlay

pytestmark = pytest.mark.long

PATIENCE = 3600  # seconds; two minutes on idle cores
FEW = {
    "dataset": {"nominal_size": 100},
    "final": {"targets": [4.0, 8.0]},
    "resources": {"threads": 1, "mem_mb": 2000, "gpu": 0},
}
IMAGES = {
    "features": {"model": "test_vit", "weights": "random", "image_size": 32, "batch_size": 32}
}
TEXTS = {"features": {"tokens": 12}}
SPEAKS = {"model": "hf:roberta", "weights": "pretrained"}
STEPS = {"sweep": {"search": {"steps": [5, 10]}}}
SEARCHES = IMAGES | {"research": {"repeats": 1}, "final": {"targets": [8.0]}}

OVER: Mapping[str, Mapping[str, Any]] = {
    "searches-cifar10": SEARCHES,
    "searches-cifar100": SEARCHES,
    "searches-imagenet": SEARCHES | {"dataset": {"classes": 3}},
    "cifar10": IMAGES | {"final": {"targets": [2.0, 4.0]}},
    "cifar100": IMAGES | {"final": {"targets": [2.0, 4.0]}},
    "grid-cifar": {
        "features": {"image_size": 32, "weights": "random"},
        "grid": {
            "features": {
                "vit": {"model": "test_vit"},
                "beit": {"model": "test_vit2"},
                "beitv2": {"model": "test_vit3"},
                "convnext": {"model": "test_convnext"},
            }
        },
    },
    "shift-cifar": IMAGES,
    "hospitals": IMAGES,
    "reviews": TEXTS
    | {
        "experiments": {
            name: {"features": {**SPEAKS, "until": "encoder.layer.1"}, **STEPS}
            for name in ("vectors", "adapters")
        }
    },
    "texts-glue": STEPS
    | {
        "features": {**SPEAKS, "tokens": 12},
        "grid": {"dataset": {name: {"nominal_size": 100} for name in ("qnli", "qqp", "mnli")}},
    },
    "learners-cifar100": IMAGES,
    "learners-imagenet": IMAGES | {"dataset": {"classes": 3}},
    "vision-vit": IMAGES
    | {
        "experiments": dict.fromkeys(("vectors", "adapters", "all"), STEPS)
        | {"free": {"learner": {"steps": 5}}}
    },
}
"""Of each row, what its size takes beside FEW."""


@pytest.mark.parametrize("key", OVER)
def test_a_row_that_was_not_run_runs_at_a_small_size(key: str, tmp_path: Path) -> None:
    row = next(row for row in papers.ROWS if row.key == key)
    for name, write in PUBLISHED.items():
        write(tmp_path / "cache" / "dpladder" / name)
    for name, write in BY_HAND.items():
        write(tmp_path / "data" / name)
    tiny_language_model(tmp_path / "roberta", WORDS, "roberta")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(UNCHECKED)
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(overlay(FEW, OVER[key])))

    command = papers.command_of(row, 2)
    last = max(place for place, word in enumerate(command) if word.endswith(".yaml"))
    command.insert(last + 1, "small.yaml")
    ended = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ
        | {
            "DPLADDER_HOME": str(tmp_path / "home"),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "PYTHONPATH": str(tmp_path / "site"),
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    logs = "\n".join(log.read_text() for log in (tmp_path / "logs").rglob("*.log"))
    assert ended.returncode == 0, f"{ended.stderr}\n{ended.stdout}\n{logs}"
    made = "hpo.md" if "compare_hpo" in command else "report.html"
    assert [*(tmp_path / "results").rglob(made)]
