"""What the golden test records of parts by themselves: draws of a sweep, the fit, the prior,
updates, noise solved for."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from golden.case import Case, Found
from support import Unrounded

from dpladder.config import Project
from dpladder.config.learner_sections import Rated
from dpladder.config.learners import SECTIONS
from dpladder.config.load import overlay, resolve
from dpladder.config.method import name_of
from dpladder.config.model import Resources
from dpladder.config.sweep_sections import Fit, Search
from dpladder.jobs.fit_radius import fit_radius
from dpladder.jobs.select_rung import select_rung
from dpladder.jobs.task import Task, read_json
from dpladder.learn import descent_noise
from dpladder.learn.descent import adam
from dpladder.learn.interface import Constants, Hyper
from dpladder.methods.dp_gd import Descent
from dpladder.methods.dp_ls import LeastSquares
from dpladder.plan.dag import build_dag
from dpladder.plan.resolve import resolve_defaults
from dpladder.plan.rules import code_of
from dpladder.privacy.accounting import gdp
from dpladder.search import fit
from dpladder.search.prior import Belief
from dpladder.search.protocol import Answer
from dpladder.search.space import Space, decompose, draw
from dpladder.search.trial import Trial
from dpladder_papers.methods.dp_adam import Adam
from dpladder_papers.methods.dp_adam_wosm import AdamNoSecondMoment
from dpladder_papers.methods.dp_adam_wosm.train import first_moment
from dpladder_papers.methods.hyfree_dp import HyperparameterFree
from dpladder_papers.methods.hyfree_dp.train import split
from dpladder_papers.searches.dp_hypo.search import Lean, proposal, upper_bounds
from dpladder_papers.searches.secret_runs import Chance

CONSTANTS = Constants(2000, 3, 16)
PRIOR = (1.5, 2.5)  # given, as plans settle it, so that priors may be fitted anew
EPSILONS = (0.3, 0.6)
SCORES = ((1402.5, 1688.25, 1511.0), (1490.75, 1745.5, 1385.25))
RATED = tuple(name_of(one) for one in SECTIONS if issubclass(one, Rated))
LOOKING = ("hyfree_dp", "hyfree_finetune")  # at losses, on the same samples
SAMPLING = tuple(
    name_of(one)
    for one in SECTIONS
    if "sampling_rate" in one.model_fields and name_of(one) not in LOOKING
)
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "stratified": {},
    "stratified, no prior": {"prior": "none"},
    "log_uniform": {"draw": "log_uniform", "prior": "none"},
    "uniform": {"draw": "uniform", "prior": "none"},
    "grid": {"draw": "grid", "prior": "none"},
    "binary": {"draw": "binary", "prior": "none"},
    "monotone": {"draw": "log_uniform", "prior": "monotone"},
    "proportional in r": {"draw": "uniform", "prior": "proportional", "unit": "r"},
}
FITS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "pooled": ({}, {}),
    "pooled along mu": ({"against": "mu"}, {}),
    "pooled along epsilon, no prior": ({"against": "epsilon"}, {"prior": "none"}),
    "best": ({"using": "best"}, {}),
    "best, a line in r": ({"using": "best", "against": "epsilon"}, {"unit": "r", "prior": "none"}),
}


def space(learner: Any = None, **changes: Any) -> Space:
    return Space(Search(expected=PRIOR, seed=7, **changes), learner or Descent(), CONSTANTS)


def trials(where: Space) -> list[Trial]:
    """Two rungs at fixed scores."""
    found: list[Trial] = []
    for rung, (epsilon, scores) in enumerate(zip(EPSILONS, SCORES, strict=True)):
        mu = gdp.mu_from_epsilon(epsilon, CONSTANTS.delta)
        below = found[1] if rung else None
        for number, score in enumerate(scores):
            kappa, r = draw(where, mu, epsilon, rung, number, below)
            found.append(Trial(rung, number, epsilon, mu, kappa, r, score, 60.0, CONSTANTS.n0))
    return found


def drawn_places(**changes: Any) -> Found:
    found = trials(space(**changes))
    return {"kappa": [one.kappa for one in found], "r": [one.r for one in found]}


def splits() -> Found:
    """r as learning rates and steps."""
    ways = ("eta_first", "steps_first", "balanced", "random")
    return {
        way: [
            list(decompose(r, Search(decompose=way, seed=7)))  # type: ignore[arg-type]
            for r in (0.01, 1.0, 40.0)
        ]
        for way in ways
    }


def ridge_places() -> Found:
    where = space(LeastSquares())
    return {"r": [where.r(kappa, 0.5) for kappa in (0.1, 1.0, 10.0)]}


def prior() -> Found:
    held = Belief(*PRIOR)
    return {
        "at": [held.at(share, wider) for share in (0.1, 0.25, 0.5) for wider in (1.0, 2.0)],
        "log density": [held.log_density(kappa) for kappa in (0.1, 1.5, 9.0)],
    }


def fitted(how: Mapping[str, Any], where: Space, given: list[Trial]) -> Found:
    target = fit.Target(1.0, gdp.mu_from_epsilon(1.0, CONSTANTS.delta), where)
    found = fit.fit_radius(given, target, Fit(**how))
    told = dataclasses.asdict(found) | {"uncertainty": list(found.uncertainty)}
    words = {name: told.pop(name) for name in ("method", "fallback", "clamped")}
    numbers = {name: [value] if isinstance(value, float) else value for name, value in told.items()}
    return {"how": json.dumps(words)} | {
        name: value for name, value in numbers.items() if value is not None
    }


# Of rules that ask no private data.
SWEPT: dict[str, Any] = {
    "dataset": {
        "lineage": "golden",
        "nominal_size": CONSTANTS.n0,
        "classes": 3,
        "source": "npz:none.npz",
    },
    "features": {"model": "none", "dtype": "float32"},
    "privacy": {"epsilon": 1.0, "delta": 1e-5},
    "sweep": {
        "rungs": [{"epsilon": epsilon, "trials": 3} for epsilon in EPSILONS],
        "search": {"expected": list(PRIOR), "seed": 7},
    },
}


def ladder() -> Found:
    """A rung's choice for each rung, and r at the target from both."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "none.npz").touch()
        source = {"dataset": {"source": f"npz:{folder}/none.npz"}}
        project = resolve_defaults(resolve(overlay(SWEPT, source)))
        rungs = [_selected(project, folder, rung) for rung in range(len(EPSILONS))]
        target = {"target": f"{project.main.privacy.epsilon:g}"}
        total = {"mu": gdp.mu_from_epsilon(1.0, CONSTANTS.delta)}  # by the plan
        fit_radius(
            _task(project, "fit_radius", target, {"rungs": rungs}, folder / "fit.json", total)
        )
        chosen = [read_json(Path(rung))["best"] for rung in rungs]
        found = read_json(folder / "fit.json")
    numbers = [found[key] for key in ("r_star", "kappa_star", "epsilon", "mu", "spread")]
    return {
        "best": [list(one.values()) for one in chosen],
        "fit": numbers,
        "from": list(found["best"].values()),
    }


def _selected(project: Project, folder: Path, rung: int) -> str:
    learns = dataclasses.asdict(dataclasses.replace(CONSTANTS, network=None))
    paths = []
    for trial in (one for one in trials(space()) if one.rung == rung):
        path = folder / f"score-{rung}-{trial.trial}.json"
        path.write_text(json.dumps({"trial": dataclasses.asdict(trial), "learns": learns}), "utf-8")
        paths.append(str(path))
    output = folder / f"rung-{rung}.json"
    select_rung(_task(project, "select_rung", {"rung": str(rung)}, {"scores": paths}, output))
    return str(output)


def _task(
    project: Project,
    rule: str,
    wildcards: Mapping[str, str],
    inputs: Mapping[str, Any],
    output: Path,
    further: Mapping[str, Any] | None = None,
) -> Task[Any]:
    named = {"experiment": "main", **wildcards}
    outputs = {"best": output, "fit": output, "privacy": output.with_suffix(".privacy")}
    node = build_dag(project).find(rule, named)
    assert node is not None
    cfg = node.params | dict(further or {})
    return Task(
        rule,
        named,
        cfg,
        code_of(rule),
        dict(inputs),
        outputs,
        Resources(),
    )


def leaning() -> Found:
    """Where dp_hypo's next run may lie, after three."""
    answers = [Answer((), correct) for correct in (410, 455, 430)]
    chance = Chance(3, np.zeros(3), Unrounded(np.zeros(3), 1.0), np.zeros(3))
    wished = upper_bounds([5, 20, 40], answers, chance, 15.0)
    return {"wished": wished.tolist(), "density": proposal(wished, Lean(0.7, 1.4)).tolist()}


# Of learners.


def update(learner: Adam | AdamNoSecondMoment) -> Found:
    """Where the gradient and the noise are of about the size of what keeps a division from zero,
    and far above it."""
    sizes = torch.tensor([[1e-9, 1e-8, -1e-7, 1e-3, -1.0]], dtype=torch.float64)
    begin = (
        first_moment(learner)
        if isinstance(learner, AdamNoSecondMoment)
        else adam(learner.betas, learner.stability)
    )
    step = begin(torch.zeros(1, 5, dtype=torch.float64), sizes.abs())
    return {"steps": [step(sizes * way, sizes).ravel().tolist() for way in (1.0, -0.5, 2.0)]}


def paces(schedule: str) -> Found:
    learner = Descent(schedule=schedule)  # type: ignore[arg-type]
    hyper = Hyper(0.5, 5, 0.5)
    return {
        "paces": list(descent_noise.relative_rates(learner, 5)),
        "kappa": [
            descent_noise.logit_noise(learner, hyper, CONSTANTS, momentum)
            for momentum in (0.0, 0.9)
        ],
    }


def sampled_sigma() -> Found:
    return {"sigma": [descent_noise.sampled_sigma(0.7, 1e-7, 4, 0.2, "add_remove")]}


def sampled_scale() -> Found:
    learner = HyperparameterFree(sampling_rate=0.2)
    found = split(learner, Hyper(1.0, 4, 0.7, 1e-7))
    return {"multipliers": [found.gradient, found.loss], "looks": [found.looks, learner.points]}


def of_parts() -> list[Case]:
    draws = [
        Case(f"draws {name}", ("run_trial",), partial(drawn_places, **how))
        for name, how in OPTIONS.items()
    ]
    fits = [
        Case(f"fit {name}", ("fit_radius",), partial(_fitted, how, changes))
        for name, (how, changes) in FITS.items()
    ]
    return [
        *draws,
        *fits,
        Case("r as rates and steps", ("run_trial", "train_final"), splits),
        Case("places of a ridge", ("run_trial", "train_final"), ridge_places),
        Case("the prior", ("run_trial", "fit_radius"), prior),
        Case("fit without trials", ("train_final",), _without_trials),
        Case("rule select_rung and fit_radius", ("select_rung", "fit_radius"), ladder),
        Case(
            "update of dp_adam",
            ("dp_adam", "one_step", "dp_finetune", *LOOKING),
            partial(update, Adam()),
        ),
        Case("update of dp_adam_wosm", ("dp_adam_wosm",), partial(update, AdamNoSecondMoment())),
        *(Case(f"schedule {name}", RATED, partial(paces, name)) for name in ("cosine", "linear")),
        Case("proposals of dp_hypo", ("dp_hypo",), leaning, long=True),
        Case("sampled noise", SAMPLING, sampled_sigma, long=True),
        Case("sampled noise of losses too", LOOKING, sampled_scale, long=True),
    ]


def _fitted(how: Mapping[str, Any], changes: Mapping[str, Any]) -> Found:
    where = space(**changes)
    return fitted(how, where, trials(where))


def _without_trials() -> Found:
    return fitted({}, space(), [])
