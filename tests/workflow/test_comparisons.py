"""Comparisons on data declared public, asked for by name: what they write, what they leave alone,
and what they refuse."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from dpladder_papers.research.contestants import METHODS

pytestmark = pytest.mark.long

PUBLIC = {
    "mode": "research",
    "dataset": {"declared_public": True},
    "research": {"repeats": 2},
    "privacy": {"lifetime": {"epsilon": 100.0}},
    "final": {"targets": [1.0, 4.0]},
    "experiments": {"free": {"learner": {"name": "hyfree_dp"}, "sweep": {"rungs": []}}},
}
WRITTEN = ("hpo", "ablations", "learners")


def lines(name):
    with Path(f"results/comparison/{name}.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.long
def test_searches_and_learners_are_compared_on_public_data_and_charge_nothing(project):
    project.configure(PUBLIC)
    project.finish("compare_hpo", "compare_learners")
    methods, varied, learners = map(lines, WRITTEN)
    assert [(line["name"], line["epsilon"]) for line in methods] == [
        (name, total) for total in ("1.0", "4.0") for name in METHODS
    ]
    assert {line["epsilon"] for line in varied} == {"1.0"}
    assert {line["name"] for line in learners} == {"dp_gd", "hyfree_dp"}
    assert all(0 <= float(line["mean"]) <= 1 for line in (*methods, *varied, *learners))
    assert {line["repeats"] for line in (*methods, *varied, *learners)} == {"2"}
    for name in WRITTEN:
        assert Path(f"results/comparison/{name}.md").read_text().startswith("Test accuracy")
        assert Path(f"results/comparison/{name}.svg").stat().st_size > 1000
    record = json.loads(Path("results/comparison/hpo.privacy.json").read_text())
    assert (record["rule"], record["free"][:8]) == ("compare_hpo", "research")
    assert project.held() == []
    again = project.finish("compare_hpo", "compare_learners")
    assert "Nothing to be done" in again.stdout + again.stderr


def test_a_comparison_has_the_searches_that_were_chosen(project):
    project.configure(PUBLIC, {"research": {"searches": ["ladder", "random_search"]}})
    project.finish("compare_hpo")
    assert {line["name"] for line in lines("hpo")} == {"ladder", "random_search"}
    assert Path("results/comparison/ablations.csv").read_text() == ""
    project.configure(PUBLIC, {"research": {"searches": ["leader"]}})
    assert project.run("compare_hpo").returncode == 1
    assert "research.searches: given leader; allowed here:" in project.log("comparison/hpo.log")


def test_comparisons_are_refused_on_private_data(project):
    for rule, log in (("compare_hpo", "hpo"), ("compare_learners", "learners")):
        assert project.run(rule).returncode == 1
        assert "declared public" in project.log(f"comparison/{log}.log")
    assert not Path("results/comparison/hpo.csv").exists()
