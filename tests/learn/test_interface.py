"""What a learner declares, and what it costs."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Literal

import pytest
from support import in_new_python

from dpladder.config.label_sets import NUMBER
from dpladder.config.learner_sections import LearnerSection, Rated
from dpladder.config.learners import METHODS, learner_of, method
from dpladder.config.method import LearnerMethod
from dpladder.errors import BadInput, Refused
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.queries import GradientSum, LinearHead
from dpladder.learn.trainings import declare
from dpladder.methods.dp_gd import Descent
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import loss_distribution, price
from dpladder.privacy.accounting.draws import Draw, check_charge_matches_noise
from dpladder.privacy.accounting.events import (
    Booked,
    Composed,
    Counted,
    Gaussian,
    Sampled,
    mu,
)

LEARNERS_PAGE = Path(__file__).parents[2] / "docs" / "learners.md"
CONSTANTS = Constants(n0=1000, classes=10, dimension=64)
HYPER = Hyper(eta=0.5, steps=25, mu=0.3, delta0=1e-7)


def constants_for(name: str, constants: Constants) -> Constants:
    """As a task has them that the learner is for."""
    if METHODS[name].section.classes:
        return constants
    return replace(constants, classes=1, labels=NUMBER)


def test_the_papers_learner_declares_one_matrix_of_noise_a_step():
    declared = declare(Descent(clip=2.0), HYPER, CONSTANTS)
    sigma = gdp.sigma(0.3, 25)
    assert declared.events == (Counted(Gaussian(sigma), 25),)
    assert declared.draws == (Draw("noise", "gaussian", 2.0 * sigma, (10, 64), 25, 2.0),)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(("mu_of_run", "steps"), [(0.004102, 100), (0.268, 1), (1.67, 7)])
def test_a_run_costs_what_it_may_spend_and_never_more(name, mu_of_run, steps):
    constants = constants_for(name, CONSTANTS)
    declared = declare(learner_of({"name": name}), Hyper(1.0, steps, mu_of_run), constants)
    spent = mu(Composed(declared.events))
    assert spent <= mu_of_run
    assert spent == pytest.approx(mu_of_run, rel=1e-9)


SHAPES = [
    *({"name": name} for name in METHODS),
    {"name": "dp_zo", "noise": "laplace"},
    {"name": "dp_newton", "link": "sigmoid"},
    {"name": "dp_gd", "link": "sigmoid"},
    {"name": "dp_ls", "shared": {"epsilon": 1.0}},
    {"name": "dp_fc", "shared": {"epsilon": 1.0}, "clip": 0.3},
    {"name": "dp_gd", "sampling_rate": 0.2, "clip": 3.0},
    {"name": "dp_gd", "public": "gradient"},
    *(
        pytest.param(values, marks=pytest.mark.ci)
        for values in (
            {"name": "dp_adam", "public": "gradient", "sampling_rate": 0.2},
            {"name": "hyfree_dp", "sampling_rate": 0.2},
        )
    ),
]


@pytest.mark.ci
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("cap", [1, 3])
@pytest.mark.parametrize("values", SHAPES, ids=str)
def test_the_draws_of_a_training_cost_what_its_events_charge(values, cap, relation):
    constants = Constants(n0=1000, classes=10, dimension=8, relation=relation, cap=cap)
    constants = constants_for(values["name"], constants)
    declared = declare(learner_of(values), Hyper(1.0, 7, 0.3, 1e-7), constants)
    check_charge_matches_noise(declared.events, declared.draws, relation)
    draws = list(declared.draws)
    place = [draw.distribution in ("gaussian", "laplace") for draw in draws].index(True)
    for name, factor in (("sensitivity", 0.5), ("count", 2), ("scale", 0.9)):
        broken = replace(draws[place], **{name: factor * getattr(draws[place], name)})
        with pytest.raises(Refused):
            check_charge_matches_noise(
                declared.events, [*draws[:place], broken, *draws[place + 1 :]], relation
            )


class Wider(Descent):
    """Whose head is asked about with a constant that its section does not say."""

    name: Literal["own.wider"] = "own.wider"


def test_a_head_of_another_shape_than_was_tried_is_not_asked_about(monkeypatch):
    def queries(learner, hyper, constants):
        return (GradientSum(name="gradient", multiplier=1.0, model=LinearHead(bias=True)),)

    wider = LearnerMethod(section=Wider, queries=queries, train=queries, logit_noise=queries)
    monkeypatch.setitem(METHODS, "own.wider", wider)
    with pytest.raises(Refused, match="about a head with other features or views"):
        declare(Wider(), HYPER, CONSTANTS)
    assert declare(Wider(bias=True), HYPER, CONSTANTS).draws


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("key", [{"bias": True}, {"augment": 3}], ids=str)
def test_learners_ask_about_the_heads_that_their_sections_say(name, key):
    section = METHODS[name].section
    if not section.above_cut and key.keys() <= section.model_fields.keys():
        assert declare(learner_of({"name": name} | key), HYPER, CONSTANTS).draws


@pytest.mark.ci
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_sampled_steps_keep_the_epsilon_of_the_budget(relation):
    constants = Constants(n0=1000, classes=10, dimension=64, relation=relation, delta=1e-5)
    declared = declare(Descent(sampling_rate=0.1), HYPER, constants)
    (counted,) = declared.events
    assert isinstance(counted.event, Booked)
    (steps,) = counted.event.events
    sigma = steps.event.event.sigma
    assert counted == Counted(Booked((Counted(Sampled(0.1, Gaussian(sigma)), 25),), 1e-7))
    entry = price(counted.event, relation)
    assert 0.3 * 0.999 <= entry.mu <= 0.3
    assert entry.delta0 == 1e-7
    alone = loss_distribution((steps,), relation).get_epsilon_for_delta(1e-5)
    assert 0.97 * gdp.epsilon(0.3, 1e-5) <= alone <= gdp.epsilon(0.3, 1e-5 - 1e-7)
    assert sigma < gdp.sigma(0.3, 25) / 3  # sampling has to pay
    noise, sample = declared.draws
    assert noise.scale == sigma * (2.0 if relation == "replace_one" else 1.0)
    assert sample == Draw("sample", "mask", 0.1, count=25)


@pytest.mark.parametrize("eta", [0.0, -1.0, math.inf, math.nan])
def test_a_learning_rate_must_be_positive_and_finite(eta):
    with pytest.raises(BadInput, match="eta is"):
        Hyper(eta, 1, 1.0)


@pytest.mark.parametrize("name", ["n0", "classes", "dimension", "cap"])
def test_public_constants_are_positive(name):
    with pytest.raises(BadInput, match=f"{name} is 0"):
        Constants(**{"n0": 1, "classes": 1, "dimension": 1, name: 0})


def test_an_unknown_learner_is_refused_by_name():
    with pytest.raises(BadInput, match=r"learner.name is adam. Choose one of: dp_gd, dp_finetune"):
        method("adam")


@pytest.mark.ci
def test_declaring_and_measuring_need_no_torch():
    """But for a learner that has a network to put its weights into."""
    code = (
        "import sys\n"
        "from dpladder.config.learners import METHODS, learner_of\n"
        "from dpladder.learn.interface import Constants, Hyper\n"
        "from dpladder.learn.trainings import declare, scorer_of\n"
        "from dpladder.learn.scorers import ClassScorer, NumberScorer\n"
        "for name in METHODS:\n"
        "    learner, constants = learner_of({'name': name}), Constants(9, 2, 3)\n"
        "    if not learner.classes:\n"
        "        constants = Constants(9, 1, 3, labels='number')\n"
        "    declare(learner, Hyper(1.0, 5, 1.0), constants)\n"
        "    if not learner.above_cut:\n"
        "        scorer = ClassScorer() if learner.classes else NumberScorer()\n"
        "        assert scorer_of(learner, constants) == scorer\n"
        "print(*sorted({'torch', 'opacus', 'scipy', 'dp_accounting'} & set(sys.modules)))"
    )
    assert in_new_python(code).split() == []


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_all_its_parts(name: str) -> None:
    """What a new learner lacks is found here: what it asks, its training, what its weights mean,
    and a line in the docs."""
    known = METHODS[name]
    assert known.name == name
    for part in (known.queries, known.train, known.logit_noise):
        if part is not None:
            assert callable(getattr(import_module(part.__module__), part.__name__))
    weights = import_module(known.weights)
    for part in ("ready", "tensors", "logits", "scorer", "seen_by_head"):
        assert callable(getattr(weights, part))
    assert f"`{name}`" in LEARNERS_PAGE.read_text("utf-8")


@pytest.mark.parametrize("searches", ["rate", "ridge"])
def test_a_method_that_is_tuned_without_a_law_of_its_kappa_is_refused_at_import(searches) -> None:
    """Another one's law would steer its search to the wrong r."""

    class Lion(Rated):
        name: Literal["dp_lion"] = "dp_lion"

    Lion.searches = searches
    with pytest.raises(BadInput, match="learner dp_lion is tuned, and has no law of its kappa"):
        LearnerMethod(section=Lion, queries=len, train=len)
    LearnerMethod(section=Lion, queries=len, train=len, logit_noise=len)


def test_a_method_has_one_name() -> None:
    class Several(LearnerSection):
        name: Literal["a", "b"] = "a"

    with pytest.raises(BadInput, match="Several must have name: Literal"):
        LearnerMethod(section=Several, queries=len, train=len)


def test_a_section_is_found_whichever_of_its_package_and_the_config_is_imported_first() -> None:
    for first in ("dpladder.methods.dp_ls", "dpladder.config.model"):
        code = (
            f"import warnings; warnings.simplefilter('error'); import {first}\n"
            "from dpladder.config.learners import METHODS; print(METHODS['dp_ls'].name)"
        )
        assert in_new_python(code).split() == ["dp_ls"]
