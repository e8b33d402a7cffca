"""The learner's section: one of several, chosen by its name, with its own options and no others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from dpladder.config.docs import DEMO, reference, schema
from dpladder.config.learners import SECTIONS, learner_of
from dpladder.config.load import overlay, resolve
from dpladder.config.method import name_of
from dpladder.config.model import Config
from dpladder.errors import BadInput
from dpladder.methods.dp_fc.section import FeatureCovariance
from dpladder.methods.dp_gd.section import Descent
from dpladder.methods.dp_ls.section import LeastSquares

NAMES = [name_of(section) for section in SECTIONS]


def main(**changes: Any) -> Config:
    return resolve(overlay(DEMO, changes)).main


def problem(**changes: Any) -> str:
    with pytest.raises(BadInput) as caught:
        main(**changes)
    return str(caught.value)


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


@pytest.mark.parametrize(
    ("learner", "says"),
    [
        (
            {"name": "dp_lss"},
            ["learner.name: given 'dp_lss'", "did you mean dp_ls?", "allowed: dp_gd, dp_mlp,"],
        ),
        ({"name": 5}, ["learner.name: given 5", "allowed: dp_gd"]),
        ({"name": ["dp_ls"]}, ["learner.name: given ['dp_ls']", "allowed: dp_gd"]),
        (
            {"name": "dp_ls", "momentum": 0.5},
            ["learner.momentum: given 0.5; unknown key", "allowed here: name, radius"],
        ),
        ({"name": "dp_ls", "radus": 2.0}, ["learner.radus", "did you mean radius?"]),
        (
            {"name": "dp_newton", "link": "softmx"},
            ["learner.link: given 'softmx'", "did you mean softmax?"],
        ),
        (
            {"name": "dp_fc", "shared": {}},
            ["learner.shared.epsilon: required", "shared sums together"],
        ),
        (
            {"name": "dp_ls", "shared": {"epsilon": 0.5, "alpha": [0.1, 1.0]}},
            ["needs all sums: set sums: all, or leave it out"],
        ),
        (
            {"name": "dp_fc", "shared": {"epsilon": 0.5, "sums": "all"}},
            ["learner.shared.sums: given 'all'"],
        ),
        (
            {"name": "dp_ls", "shared": {"epsilon": 0.5, "sums": "all", "alpha": [0.1, 2.0]}},
            ["learner.shared.alpha[1]: given 2.0"],
        ),
        (
            {"name": "dp_ls", "alpha": "much"},
            ["learner.alpha: given 'much'", "a number, without quotes"],
        ),
        ([1], ["learner: given [1]; write its keys under it"]),
        (None, ["learner: given nothing; write its keys under it"]),
    ],
    ids=str,
)
def test_a_mistake_is_told_by_its_key_without_the_names_of_branches(
    learner: Any, says: list[str]
) -> None:
    message = problem(learner=learner)
    assert [part for part in says if part not in message] == [], message
    assert message.count("\n") == 1, message


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


def test_a_learner_that_searches_needs_rungs_or_a_prior() -> None:
    assert main(learner={"name": "dp_ls"}, sweep={"rungs": []}).sweep.rungs == ()
    message = problem(learner={"name": "dp_ls"}, sweep={"rungs": [], "search": {"prior": "none"}})
    assert (
        "sweep.rungs: without rungs by hand, r of learner dp_ls follows from the prior in kappa"
        in message
    )


def test_trials_that_solve_shared_sums_need_one_rung_alone_and_a_pooled_fit() -> None:
    learner = {"name": "dp_ls", "shared": {"epsilon": 0.5, "sums": "all"}}
    one = {"rungs": [{"epsilon": 0.1, "trials": 4}]}
    assert main(learner=learner, sweep=one).fit.using == "pooled"
    assert "fit.using: given 'best'; all trials solve the same sums" in problem(
        learner=learner, sweep=one, fit={"using": "best"}
    )
    line = {"using": "best", "against": "mu"}
    assert "1 distinct epsilon" in problem(learner={"name": "dp_ls"}, sweep=one, fit=line)


def test_a_learner_that_searches_nothing_has_no_rungs() -> None:
    message = problem(learner={"name": "one_step"})
    assert "sweep.rungs: learner one_step has nothing to search; write rungs: []" in message


def test_the_reference_names_every_option_of_every_learner() -> None:
    page = reference()
    for section in SECTIONS:
        assert f"| *learner: {name_of(section)}* |" in page
        assert all(f"| `learner.{key}` |" in page for key in section.model_fields)


def test_the_reference_says_what_several_learners_have_once_and_who_has_it() -> None:
    page = reference()
    assert page.count("| `learner.name` |") == page.count("| `learner.look` |") == 1
    adam = next(line for line in page.splitlines() if line.startswith("| *learner: dp_adam* |"))
    assert "`look`" in adam
    assert "`betas`" not in adam
    assert page.count("| `learner.eta` | number > 0 | `1.0` | The first learning rate") == 1
    assert page.count("| `learner.eta` |") == 4  # of others it means something else


def test_the_schema_tells_learners_apart() -> None:
    """An editor checks against it: a section without a name is the default learner's, and no
    other's."""
    document = json.loads(schema())
    required = {
        name_of(s): "name" in document["$defs"][s.__name__].get("required", []) for s in SECTIONS
    }
    assert required == {name: name != name_of(Descent) for name in NAMES}


def test_options_of_one_learner_are_not_options_of_another() -> None:
    with pytest.raises(ValidationError):
        learner_of({"name": "dp_newton", "alpha": 0.1})
