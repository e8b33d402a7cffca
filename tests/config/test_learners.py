"""The learner's section: one of several, chosen by its name, with its own options and no others."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from support import DEMO

from dpladder.config.docs import reference, schema
from dpladder.config.learners import SECTIONS, learner_of
from dpladder.config.load import overlay, resolve
from dpladder.config.method import name_of
from dpladder.config.model import Config
from dpladder.methods.dp_gd import Descent
from dpladder.methods.dp_ls import LeastSquares
from dpladder_papers.methods.dp_fc import FeatureCovariance

NAMES = [name_of(section) for section in SECTIONS]


def main(**changes: Any) -> Config:
    return resolve(overlay(DEMO, changes)).main


@pytest.mark.parametrize("name", NAMES)
def test_a_name_alone_chooses_a_section(name: str) -> None:
    learner = learner_of({"name": name})
    assert learner.name == name
    assert learner_of(learner.model_dump(mode="json")) == learner


@pytest.mark.parametrize("section", SECTIONS)
def test_without_a_ladder_rate_and_steps_come_from_the_section(section: Any) -> None:
    learner = section()
    if learner.searches is None:
        assert learner.eta > 0
    if learner.searches != "rate":
        assert learner.steps >= 1


def test_without_a_name_the_section_is_the_papers_learner() -> None:
    assert main(learner={"momentum": 0.5}).learner == Descent(momentum=0.5)
    assert main().learner == Descent()


def test_another_learner_takes_nothing_over_from_the_one_below() -> None:
    base = {
        "learner": {"momentum": 0.5, "clip": 2.0},
        "experiments": {"ls": {"learner": {"name": "dp_ls"}}},
    }
    project = resolve(overlay(DEMO, base))
    assert project.main.learner == Descent(momentum=0.5, clip=2.0)
    assert project.experiments["ls"].learner == LeastSquares()


def test_the_same_learner_keeps_what_an_override_does_not_name() -> None:
    below = {"learner": {"name": "dp_fc", "damping": 0.3}}
    for above in ({"clip": 2.0}, {"name": "dp_fc", "clip": 2.0}):
        experiments = {"experiments": {"other": {"learner": above}}}
        found = resolve(overlay(DEMO, below | experiments)).experiments["other"].learner
        assert found == FeatureCovariance(damping=0.3, clip=2.0)
    named = {
        "learner": {"momentum": 0.5},
        "experiments": {"other": {"learner": {"name": "dp_gd", "clip": 2.0}}},
    }
    assert resolve(overlay(DEMO, named)).experiments["other"].learner == Descent(
        momentum=0.5, clip=2.0
    )


def test_trials_that_solve_shared_sums_fit_one_rung_alone() -> None:
    assert main(learner={"name": "dp_ls"}, sweep={"rungs": []}).sweep.rungs == ()
    learner = {"name": "dp_ls", "shared": {"epsilon": 0.5, "sums": "all"}}
    one = {"rungs": [{"epsilon": 0.1, "trials": 4}]}
    assert main(learner=learner, sweep=one).fit.using == "pooled"


def test_the_reference_names_every_option_of_every_learner_of_dpladder() -> None:
    """docs/papers.md names the others, and `dpladder keys` prints theirs."""
    page = reference()
    for section in SECTIONS:
        core = section.__module__.startswith("dpladder.")
        assert (f"### learner: {name_of(section)}\n" in page) == core
        assert not core or all(f"- `learner.{key}`" in page for key in section.model_fields)


def test_the_reference_says_what_several_learners_have_once_and_who_has_it() -> None:
    page = reference()
    assert page.count("- `learner.name` (") == page.count("- `learner.look` (") == 1
    shared = page.partition("### learner: dp_gd, dp_finetune\n")[2].partition("###")[0]
    assert "- `learner.look` (" in shared
    assert "- `learner.trains` (" not in shared
    descent = page.partition("### learner: dp_gd\n")[2].partition("###")[0]
    assert "- `learner.free_step` (**`true`**): " in descent
    assert page.count("- `learner.free_step` (") == 2  # of networks its default is another


def test_the_schema_tells_learners_apart() -> None:
    """An editor checks against it: a section without a name is the default learner's, and no
    other's."""
    document = yaml.safe_load(schema())
    required = {
        name_of(s): "name" in document["$defs"][s.__name__].get("required", []) for s in SECTIONS
    }
    assert required == {name: name != name_of(Descent) for name in NAMES}
