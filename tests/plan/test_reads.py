"""What a rule is told: all of it, restored as the class that the rule names, and nothing that the
class does not have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from support import TINY

from dpladder.config.load import overlay, resolve
from dpladder.plan.dag import build_dag
from dpladder.plan.node import FROM_PLAN, Reads, facts_of
from dpladder.plan.resolve import resolve_defaults
from dpladder.plan.rules import RULES
from dpladder.section import from_document

PUBLIC = "npz:public.npz"
CONFIGS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "bought mean and covariance": {
        "features": {"mean": {"epsilon": 0.1}},
        "learner": {"name": "dp_ls", "shared": {"epsilon": 0.1}},
    },
    "statistics": {
        "learner": {"name": "dp_ls", "shared": {"epsilon": 0.1, "sums": "all"}},
        "fit": {"using": "pooled"},
    },
    "a bought head": {
        "dataset": {"source": "folder:images", "public_test": "folder:images/."},
        "features": {"model": "efficientnet_lite0", "until": "blocks.5"},
        "learner": {"name": "dp_finetune", "head": {"epsilon": 0.1}},
    },
    "links": {
        "dataset": {"source": "folder:images", "links": "inside"},
        "features": {"model": "efficientnet_lite0"},
    },
    "private search": {"hpo": {"name": "koskela_kulkarni"}, "sweep": {"rungs": None}},
    "public parts, draws that look back": {
        "dataset": {"public_test": PUBLIC, "public_validation": PUBLIC, "public_sample": PUBLIC},
        "sweep": {"search": {"prior": "monotone", "unit": "r"}, "select": {"by": "public"}},
        "fit": {"against": "mu"},
    },
    "a guided descent": {
        "dataset": {"public_sample": PUBLIC},
        "learner": {"public": "gradient", "look": 0.1},
    },
    "a public head": {"dataset": {"public_sample": PUBLIC}, "learner": {"init": "public"}},
    "further tests": {
        "dataset": {"source": "digits", "classes": None},
        "features": {"model": "efficientnet_lite0"},
        "evaluate": {
            "also": [
                {
                    "name": "shifted",
                    "source": "mnist5k",
                    "declared_public": True,
                    "classes": {"3": "5"},
                },
                {"name": "dim", "of": "test", "corruption": "noise", "epsilon": 0.1},
            ]
        },
    },
    "groups": {
        "dataset": {"group": {"column": "region", "names": ["a", "b"], "train": ["a"]}},
        "evaluate": {
            "measures": "groups",
            "also": [
                {
                    "name": "shifted",
                    "source": PUBLIC,
                    "declared_public": True,
                    "classes": {"0": "1"},
                    "group": {"column": "place", "names": ["c"]},
                },
                {"name": "dim-3", "of": "test", "groups": ["b"], "epsilon": 0.1},
            ],
        },
    },
    "curves": {
        "dataset": {"source": "csv:a.csv", "columns": ["a"]},
        "features": {"curves": 4},
    },
    "research without noise": {
        "mode": "research",
        "dataset": {"declared_public": True},
        "final": {"without_noise": True},
    },
    "a network": {
        "dataset": {"source": "digits", "classes": None},
        "features": {"model": "efficientnet_lite0"},
    },
}
NEUTRAL = {
    "dataset.crosses": [],
    "dataset.version": None,
    "dataset.target": None,
    "dataset.target.error": None,
    "dataset.target.unit": None,
    "features.curves": 0,
    "final.calibrate": None,
    "evaluate.threshold": None,
    "monotone": None,
}  # left out of params at these values


def given(change: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every rule of a project, and what Snakemake is told for each of its jobs."""
    dag = build_dag(resolve_defaults(resolve(overlay(TINY, change))))
    for experiment in dag.project.experiments:
        for rule, row in RULES.items():
            if issubclass(row.reads, Reads):
                yield from ((rule, node.params) for node in dag.jobs(experiment, rule))


@pytest.mark.few(5)
@pytest.mark.parametrize("change", CONFIGS.values(), ids=CONFIGS.keys())
def test_what_a_job_gets_back_is_what_snakemake_was_given(
    change: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for source in (
        "data.npz",
        "public.npz",
        "a.csv",
    ):  # a config's sources must be there; nobody opens them
        Path(source).touch()
    Path("images").mkdir()
    for rule, params in given(change):
        kind = RULES[rule].reads
        planned = [name for name, mark in facts_of(kind).items() if mark is FROM_PLAN]
        whole = params | dict.fromkeys(planned, 1.0)
        back = TypeAdapter(kind).dump_python(from_document(kind, whole), mode="json", by_alias=True)
        if "dataset.unit" in back:
            assert back["dataset.unit"].pop("called") is None
        if "research" in back:
            assert back["research"].pop("searches") == []
        left_out = {name: value for name, value in NEUTRAL.items() if name in back}
        assert back == left_out | whole, rule
