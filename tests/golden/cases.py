"""All that the golden test records; here, of learners and of what mechanisms share: noise, its
grid, prices."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from golden import direct_cases, rule_cases
from golden.case import KEY, Case, Found, PlainMeter, drawn, order

from dpladder.config.label_sets import NUMBER, TARGET_STEPS
from dpladder.config.learners import METHODS, method
from dpladder.config.model import Resources
from dpladder.learn import descent_noise
from dpladder.learn.data import Data
from dpladder.learn.interface import Claim, Constants, Hyper
from dpladder.learn.trainings import declare, train
from dpladder.plan.mechanisms import GUIDE
from dpladder.privacy.accounting import booking
from dpladder.privacy.accounting.events import (
    ApproximateDp,
    Booked,
    Counted,
    DiscreteGaussian,
    Exponential,
    Gaussian,
    Laplace,
    MixtureOfGaussians,
    PureLoss,
    RepeatAndSelect,
    Sampled,
)
from dpladder.privacy.ledger.home import Home, subkey
from dpladder.privacy.release import grid, noise
from dpladder_audit import rules, searches
from dpladder_papers.methods.hyfree_dp import train as hyfree

CLASSES, WIDTH, UNITS, CAP = 3, 4, 40, 2
EVERY = (*METHODS, *rules.ATTACKED, *searches.ATTACKED)
CHARGED = {
    "sampled": (*direct_cases.SAMPLING, *direct_cases.LOOKING),
    "laplace": ("dp_zo", *direct_cases.LOOKING),
    "exponential": ("propose_test",),
    "selected": ("papernot_steinke", "liu_talwar", "dp_hypo"),
    # of other code alone
    **dict.fromkeys(("pure loss", "approximate", "discrete", "mixture"), ()),
}
HYPER = Hyper(0.5, 3, 2.0, 1e-7)


def records() -> Data:
    """Two records a unit, some of them far away, zero or without a label."""
    random = np.random.default_rng(29)
    features = random.normal(size=(UNITS * CAP, WIDTH)).astype(np.float32)
    features[0], features[1], features[2] = 1e6, 0.0, [1e-30, 0, 0, 0]
    labels = np.arange(len(features)) % CLASSES
    labels[5:8] = -1
    units = np.repeat(random.integers(0, 256, (UNITS, 16), dtype=np.uint8), CAP, axis=0)
    return Data(features, labels.astype(np.int64), units)


def beside_public() -> Data:
    """The same beside a few public records, and the head that they make."""
    sample = replace(records(), units=None, labels=np.roll(records().labels, 1))
    start = np.linspace(-0.1, 0.1, CLASSES * WIDTH, dtype=np.float32).reshape(CLASSES, WIDTH)
    return replace(records(), sample=sample, start=start, claim=Claim(0.6, 0.4))


def claimed_too_much() -> Data:
    return replace(beside_public(), claim=Claim(0.7, 0.1))


def numbered() -> Data:
    """The same with numbers as targets, some of them no record's."""
    labels = np.linspace(-1, TARGET_STEPS + 1, UNITS * CAP).round().astype(np.int64)
    return replace(records(), labels=labels)


def _of_numbers(learner: Any) -> bool:
    return not learner.classes or getattr(learner, "link", None) == "identity"


def constants(relation: str, learner: Any) -> Constants:
    about = Constants(UNITS, CLASSES, WIDTH, relation, cap=CAP)  # type: ignore[arg-type]
    return replace(about, classes=1, labels=NUMBER) if _of_numbers(learner) else about


def section(name: str) -> Any:
    found = METHODS[name].section
    small = {"trains": "head", "hidden": 6}
    further = {key: value for key, value in small.items() if key in found.model_fields}
    return found(**further)


def training(
    learner: Any,
    relation: str,
    hyper: Hyper = HYPER,
    data: Callable[[], Data] = records,
) -> Found:
    """A whole training. Where it samples, its noise multiplier is given, because solving for it
    takes long."""
    with (
        patch.object(descent_noise, "sampled_sigma", lambda *_: 1.25),
        patch.object(hyfree, "_least_scale", lambda *_: 1.25),
    ):
        about = constants(relation, learner)
        declared = declare(learner, hyper, about)
        meter = PlainMeter(declared.draws, noise.DerivedNoise(KEY))
        weights = train(data(), hyper, learner, about, meter, Resources(threads=1))
    meter.close()
    return {
        "events": repr(declared.events),
        "draws": drawn(declared.draws),
        "order of draws": order(meter),
        "output": [np.ravel(layer).tolist() for layer in weights],
    }


def kappa(learner: Any, mu: float) -> Found:
    hyper = replace(HYPER, mu=mu)
    found = method(learner.name).logit_noise(
        learner, hyper, replace(constants("replace_one", learner), length=2.0)
    )
    return {"kappa": [found]}


def loss_bound() -> Found:
    """HyFreeDP's rate and bound after losses that say something, in the middle of the bound's
    range."""
    import torch

    from dpladder_papers.methods.hyfree_dp.train import Rate, fit_rate

    losses = torch.tensor([[0.9, 0.5, 0.3], [0.4, 0.5, 0.9]], dtype=torch.float64)
    one = torch.ones((), dtype=torch.float64)
    found = [fit_rate(Rate(one, one), own, 0.01 * one, 1.0) for own in losses]
    return {"eta": [rate.eta.item() for rate in found], "bound": [r.bound.item() for r in found]}


def streams() -> Found:
    stream = noise.DerivedNoise(KEY).stream("noise", 3)
    ids = np.arange(16 * 16, dtype=np.uint8).reshape(16, 16)
    return {
        "gaussian": noise.gaussian(stream, (6,)).tolist(),
        "laplace": noise.laplace(stream, (6,)).tolist(),
        "uniform": noise.uniform(stream, (6,)).tolist(),
        "mask": noise.mask(stream, 0.5, ids).astype(int).tolist(),
    }


def grids() -> Found:
    scales = (0.3, 1.0, 7.0)
    onto = [
        grid.add_noise_on_grid(np.array([1.3, -2.7]), np.array([0.41, -1.2]), scale).tolist()
        for scale in scales
    ]
    return {"steps": [grid.grid(scale) for scale in scales], "published": onto}


def query_streams() -> Found:
    """Of a query's secret noise: another stream for the same query would answer it a second
    time."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        home.key.touch(mode=0o600)
        home.key.write_bytes(KEY)
        own = subkey(home, "noise")
    stream = noise.SecretNoise(KEY, "query", "nonce").stream("noise", 3)
    return {"stream": list(stream), "key": list(own)}


EVENTS = {
    "gaussian": Gaussian(1.3),
    "laplace": Laplace(2.0),
    "sampled": Booked((Counted(Sampled(0.2, Gaussian(1.1)), 3),), 1e-7),
    "exponential": Booked((Counted(Exponential(0.2), 3),), 1e-7),
    "pure loss": PureLoss(0.2),
    "approximate": Booked((Counted(ApproximateDp(0.2, 1e-8), 3),), 1e-7),
    "discrete": Booked((Counted(DiscreteGaussian(3.0, 2), 3),), 1e-7),
    "mixture": Booked((Counted(MixtureOfGaussians(1.1, (0.0, 1.0), (0.8, 0.2)), 3),), 1e-7),
    "selected": RepeatAndSelect(Gaussian(3.0), 2.0, 1.0),
}


def priced(event: Any, relation: str) -> Found:
    found = booking.price(event, relation)  # type: ignore[arg-type]
    return {"price": repr(found)}


def cases() -> list[Case]:
    return [
        *of_learners(),
        *direct_cases.of_parts(),
        *rule_cases.of_rules(),
        *rule_cases.of_searches(),
    ]


def of_learners() -> list[Case]:
    found = []
    for name in METHODS:
        learner = section(name)
        data = numbered if _of_numbers(learner) else records
        rated = "sampling_rate" in type(learner).model_fields
        rates = (1.0, 0.5) if rated else (None,)
        for rate in rates:
            own = learner if rate is None else learner.model_copy(update={"sampling_rate": rate})
            sampled = ", sampled" if rate == 0.5 else ""
            for relation in ("add_remove", "replace_one"):
                title = f"{name} {relation}{sampled}"
                found.append(Case(title, (name,), partial(training, own, relation, data=data)))
        if method(name).logit_noise is not None:
            for mu in (2.0, 0.01):
                found.append(
                    Case(f"{name} kappa at mu {mu:g}", (name,), partial(kappa, learner, mu))
                )
    options = {"schedule": "cosine", "average": "ema", "free_step": True, "weight_decay": 0.1}
    rich = section("dp_gd").model_copy(update=options)
    found.append(Case("dp_gd with options", ("dp_gd",), partial(training, rich, "add_remove")))
    of_numbers = section("dp_gd").model_copy(update={"link": "identity"})
    run = partial(training, of_numbers, "replace_one", data=numbered)
    found.append(Case("dp_gd of numbers", ("dp_gd",), run))
    for name in ("dp_gd", "dp_adam"):
        guided = section(name).model_copy(update={"public": "gradient"})
        run = partial(training, guided, "replace_one", data=beside_public)
        found.append(Case(f"{name} guided", (name,), run))
    guided = section("dp_gd").model_copy(update={"public": "gradient", "look": 0.5})
    run = partial(training, guided, "add_remove", replace(HYPER, mu=20.0), claimed_too_much)
    found.append(Case("a guide that claims too much", (GUIDE,), run))
    found.append(Case("the loss bound", ("hyfree_dp", "hyfree_finetune"), loss_bound))
    found.append(Case("noise streams", EVERY, streams))
    found.append(Case("streams of a query", EVERY, query_streams))
    found.append(Case("the grid", EVERY, grids))
    for name, event in EVENTS.items():
        for relation in ("add_remove", "replace_one")[: 1 if name == "mixture" else 2]:
            found.append(
                Case(
                    f"price {name} {relation}",
                    CHARGED.get(name, EVERY),
                    partial(priced, event, relation),
                    long=name == "mixture",
                )
            )
    return found
