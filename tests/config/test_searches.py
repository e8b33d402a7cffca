"""The hpo section: one of several ways to search, and what may not stand beside a private one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from dpladder.config import searches
from dpladder.config.load import overlay, resolve
from dpladder.config.search_sections import Ladder
from dpladder.errors import BadInput
from dpladder_papers.searches.liu_talwar import LiuTalwar

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


@pytest.mark.parametrize("section", searches.SECTIONS)
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
    "beside",
    [
        {"hpo": {"name": "liu_tallwar"}},
        {"hpo": {"name": "liu_talwar", "law": "poisson"}},
        {"hpo": {"mean": 1.0}},
        {"sweep": {"rungs": [{"epsilon": 0.1, "trials": 2}]}},
        {"sweep": {"search": {"draw": "uniform"}}},
        {"sweep": {"search": {"prior": "monotone"}}},
        {"sweep": {"select": {"part": "validation"}}},
        {"features": {"mean": {"epsilon": 0.1}}},
        {"learner": {"name": "dp_fc", "shared": {"epsilon": 0.1}}},
        {"learner": {"name": "dp_ls", "shared": {"epsilon": 0.1, "sums": "all"}}},
        {"learner": {"name": "one_step"}},
        {"final": {"budget": 0.5}},
        {"hpo": {"name": "koskela_kulkarni"}, "privacy": {"relation": "replace_one"}},
        {"privacy": {"relation": "replace_one"}},
        {"dataset": {"split": {"rule": "given"}}},
    ],
    ids=lambda beside: "-".join(f"{key}.{inner}" for key in beside for inner in beside[key]),
)
def test_what_a_private_search_cannot_stand_beside_is_told(
    beside: dict[str, Any], approved: Callable[..., None]
) -> None:
    with pytest.raises(BadInput) as problem:
        main(SEARCHING, beside)
    approved(str(problem.value))


def test_a_test_part_that_is_public_costs_nothing_under_any_relation() -> None:
    public = {"privacy": {"relation": "replace_one"}, "dataset": {"public_test": "mnist5k"}}
    assert main(SEARCHING, public).hpo == LiuTalwar()
