"""Private searches in the DAG: one job with one output, charged as the plan says, and nothing else
of it to be seen."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dpladder.config import searches
from dpladder.config.load import load
from dpladder.learn import weights
from dpladder.plan.pictures import pictures_of
from dpladder.plan.resolve import resolve_defaults
from dpladder.privacy.statement.check import check, read_statement

RUNGS = [{"epsilon": 0.1, "trials": 1}, {"epsilon": 0.2, "trials": 1}]
SECRET = {"papernot_steinke", "liu_talwar", "dp_hypo", "koskela_kulkarni"}
NAMES = [section().name for section in searches.SECTIONS]
# one that looks at nothing, one that puts out the best of many, one on a part of the records
KINDS = ["random_search", "papernot_steinke", "koskela_kulkarni"]


def searching(names=NAMES, **experiments):
    """An experiment for each way to search, at a mean of few runs."""
    few = {name: {"name": name} | ({"mean": 1.5} if name in SECRET else {}) for name in names}
    return {
        "privacy": {"lifetime": {"epsilon": 20.0, "loss": 4.0, "weight": 1e4}},
        "sweep": {"rungs": RUNGS, "search": {"steps": [2, 4]}},
        "experiments": {
            name: {"hpo": hpo | experiments.get(name, {}), "sweep": {"rungs": []}}
            for name, hpo in few.items()
        },
    }


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(KINDS, marks=pytest.mark.ci, id="a kind each"),
        pytest.param(NAMES, marks=pytest.mark.long, id="all"),
    ],
)
def test_every_way_to_search_runs_as_one_job_and_pays_for_all_that_it_tried(names, project, walk):
    project.configure(searching(names))
    project.finish()
    statement = read_statement(project.results)
    assert check(statement, project.results) == []
    tiny = statement["datasets"]["tiny"]
    for name in names:
        held = [held.job.rule for held in project.held() if held.job.experiment == name]
        assert sorted(held) == ["evaluate", "private_search"]
        artifact = tiny["artifacts"][f"results/{name}/final/1/weights.safetensors"]
        assert 0.9999 < artifact["epsilon"] <= 1.0
        (head,), facts = weights.load(project.results / name / "final/1/weights.safetensors")
        assert np.isfinite(head).all()
        assert facts["config"]["hpo"]["name"] == name
        (target,) = json.loads((project.results / name / "summary.json").read_text())["targets"]
        assert target["r_star"] == facts["r"] == pytest.approx(facts["eta"] * facts["steps"])
    page = (project.results / "privacy.md").read_text()
    assert "not separable" in page
    assert "Of a private selection nothing is known" in page
    assert not walk().charged
    pictures = {picture.path for picture in pictures_of(resolve_defaults(load(["config.yaml"])))}
    assert {f"results/{name}/tables/finals.html" for name in names} < pictures


@pytest.mark.long
def test_what_a_search_leaves_behind_does_not_tell_how_many_runs_counted(project):
    """The ledger's draws, the log and the record are the same whatever the secret number is; only
    bytes of equal size differ."""
    project.configure(searching())
    project.finish("results/liu_talwar/final/1/weights.safetensors")
    (held,) = [held for held in project.held() if held.job.rule == "private_search"]
    draws = {draw["name"]: draw for draw in held.draws}
    assert set(draws) == {"runs", "place", "score", "tie", "trainings"}
    (spend,) = held.declared
    assert draws["place"]["shape"] == draws["score"]["shape"] == [spend.event.limit]
    assert (project.folder / "logs/liu_talwar/final/1/search.log").read_bytes() == b""
