"""The hpo section: one of several ways to search, and what may not stand beside a private one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dpladder.config.load import overlay, resolve
from dpladder.config.search_sections import SEARCHES, Ladder, LiuTalwar
from dpladder.errors import BadInput

BASE = {
    "dataset": {"lineage": "digits", "source": "digits", "nominal_size": 1400},
    "privacy": {"epsilon": 1.0, "delta": 1e-5},
}
SEARCHING = {"hpo": {"name": "liu_talwar"}, "sweep": {"rungs": []}}


def main(*overrides: dict[str, Any]) -> Any:
    values: dict[str, Any] = BASE
    for override in overrides:
        values = overlay(values, override)
    return resolve(values).main


def test_without_a_word_it_is_the_ladder() -> None:
    assert main().hpo == main({"hpo": {}}).hpo == Ladder()


@pytest.mark.parametrize("section", SEARCHES)
def test_every_way_is_chosen_by_its_name_and_comes_back_equal(section: Any) -> None:
    name = section().name
    found = main({"hpo": {"name": name}, "sweep": {"rungs": []}}).hpo
    assert found == section()
    assert section.model_validate_json(json.dumps(found.model_dump(mode="json"))) == found


def test_another_way_takes_nothing_over_from_the_one_below() -> None:
    below = SEARCHING | {"hpo": {"name": "dp_hypo", "adapting": 0.5, "mean": 3.0}}
    assert main(below, SEARCHING).hpo == LiuTalwar()
    assert main(below, {"hpo": {"mean": 4.0}}).hpo.adapting == 0.5


@pytest.mark.parametrize(
    ("beside", "says"),
    [
        ({"hpo": {"name": "liu_tallwar"}}, "did you mean liu_talwar"),
        (
            {"hpo": {"name": "liu_talwar", "law": "poisson"}},
            "hpo.law: given 'poisson'; allowed: geometric",
        ),
        ({"hpo": {"mean": 1.0}}, "hpo.mean: given 1.0; it should be greater than 1"),
        (
            {"sweep": {"rungs": [{"epsilon": 0.1, "trials": 2}]}},
            "write sweep: {rungs: []} beside it",
        ),
        ({"sweep": {"search": {"draw": "uniform"}}}, "it draws r by itself"),
        ({"sweep": {"search": {"prior": "monotone"}}}, "it draws r by itself"),
        ({"sweep": {"select": {"part": "validation"}}}, "it counts on the training part"),
        ({"features": {"mean": {"epsilon": 0.1}}}, "leave features.mean, learner.cov"),
        ({"learner": {"name": "dp_fc", "covariance": {"epsilon": 0.1}}}, "learner.covariance, "),
        ({"learner": {"name": "dp_ls", "statistics": {"epsilon": 0.1}}}, "learner.statistics and"),
        ({"learner": {"name": "one_step"}}, "learner one_step has nothing to search"),
        ({"final": {"budget": 0.5}}, "leave final.budget out"),
        (
            {"hpo": {"name": "koskela_kulkarni"}, "privacy": {"relation": "replace_one"}},
            "add_remove alone",
        ),
        ({"privacy": {"relation": "replace_one"}}, "the test part must cost nothing beside it"),
        ({"dataset": {"split": {"rule": "given"}}}, "the test part must cost nothing beside it"),
    ],
)
def test_what_a_private_search_cannot_stand_beside_is_told(
    beside: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadInput) as problem:
        main(SEARCHING, beside)
    assert says in str(problem.value)


def test_a_test_part_that_is_public_costs_nothing_under_any_relation() -> None:
    public = {"privacy": {"relation": "replace_one"}, "dataset": {"public_test": "mnist5k"}}
    assert main(SEARCHING, public).hpo == LiuTalwar()
