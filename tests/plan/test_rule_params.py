"""What a rule is told: all of it, restored as the class that the rule names, and nothing that the
class does not have."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from support import TINY

from dpladder.config.load import overlay, resolve
from dpladder.config.section import from_document
from dpladder.plan import job_identity, rule_params, rule_specs
from dpladder.plan.resolve import resolve_defaults

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
    "dataset.version": None,
}  # left out of params at these values
BY_THE_PLAN = {"mu"}  # of a fit: what the final training stands on (plan/startup.py)


def given(change: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every rule of a project, and what Snakemake is told for one of its jobs."""
    project = resolve_defaults(resolve(overlay(TINY, change)))
    every = {"rung": "1", "trial": "0", "target": "1"}
    for (experiment, config), part in product(project.experiments.items(), PARTS):
        for rule, spec in rule_specs.RULE_SPECS.items():
            values = every | {
                "experiment": experiment,
                "part": part,
                "test": part.removeprefix("also-"),
            }
            wildcards = {name: values[name] for name in ("experiment", *WILDCARDS.get(rule, ()))}
            if issubclass(spec.reads, rule_params.Reads) and rule_specs.has_job(
                config, rule, wildcards
            ):
                yield rule, job_identity.params(project, rule, wildcards)


PARTS = ("test", "also-shifted", "also-dim-3")
WILDCARDS = {
    **dict.fromkeys(("prepare_public", "extract_features", "merge_features"), ("part",)),
    **dict.fromkeys(("run_trial", "select_rung"), ("rung", "trial")),
    **dict.fromkeys(("fit_radius", "train_final", "private_search", "evaluate"), ("target",)),
    "evaluate_also": ("target", "test"),
}


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
        kind = rule_specs.RULE_SPECS[rule].reads
        whole = params | dict.fromkeys(BY_THE_PLAN & {*rule_params.facts_of(kind)}, 1.0)
        back = TypeAdapter(kind).dump_python(from_document(kind, whole), mode="json", by_alias=True)
        if "dataset.unit" in back:
            assert back["dataset.unit"].pop("called") is None
        if "research" in back:
            assert back["research"].pop("searches") == []
        left_out = {name: value for name, value in NEUTRAL.items() if name in back}
        assert back == left_out | whole, rule
