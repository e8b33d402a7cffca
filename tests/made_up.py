"""Documents of a made-up run, as the workflow writes them."""

from __future__ import annotations

import dataclasses
import math
from functools import wraps

import numpy as np

from dpladder.config.sweep_sections import Fit, Search
from dpladder.learn.effects import Effect, Effects
from dpladder.learn.interface import Constants
from dpladder.methods.dp_gd import Descent
from dpladder.privacy.accounting import gdp
from dpladder.report.summary import Summary
from dpladder.search.fit import Target, fit_radius
from dpladder.search.space import Space, bounds, decompose, draw
from dpladder.search.trial import Trial
from dpladder.section import from_document

SEARCH = Search(unit="r", prior="none", eta=(0.01, 5.0), steps=(5, 100), decompose="balanced")
KAPPA = Search()
LINE, POOLED = Fit(using="best", against="epsilon"), Fit(using="pooled", against="epsilon")
DELTA, N0, SHARE = 1e-5, 4000, 0.05
DEMO = ((0.1, 3), (0.2, 3))
AGE = Effect(("age",), ((0.0, 50.0, 100.0),), ((-1.25, 0.0, 2.5),), (0.1, 0.2, 0.1), 3.75)
SEX = Effect(("sex",), (("f", "m"),), ((0.5, -0.5),), (0.1, 0.1), 1.0)
EFFECTS = Effects(("ill",), "log-odds", (AGE, SEX))


def from_json(plot):
    """The same of one document, or of a list of documents."""

    @wraps(plot)
    def plotted(given, *rest):
        several = isinstance(given, list)
        return plot(
            [from_document(Summary, one) for one in given]
            if several
            else from_document(Summary, given),
            *rest,
        )

    return plotted


def accuracy(r, epsilon):
    """About what MNIST features give: better with epsilon, best at r = 18 epsilon."""
    return 0.1 + (0.8 - 0.25 * epsilon**-0.5 / 3) * math.exp(
        -(math.log(r / (18 * epsilon)) ** 2) / 8
    )


def summary(
    ladder=DEMO,
    totals=(1.0,),
    fit=LINE,
    search=SEARCH,
    experiment="main",
    seed=0,
    public=False,
    **changes,
):
    """A summary of a made-up run, fitted by the real fit."""
    rng = np.random.default_rng(seed)
    rungs, trials = [], []
    for place, (epsilon, count) in enumerate(ladder):
        whole = gdp.mu_from_epsilon(epsilon, DELTA)
        sd = 0.0 if public else 1 / (math.sqrt(SHARE) * whole)
        mu = whole if public else math.sqrt(1 - SHARE) * whole
        places = [draw(space(search), mu, epsilon, place, k) for k in range(count)]
        found = [
            Trial(
                place,
                k,
                epsilon,
                mu,
                kappa,
                r,
                N0 * accuracy(r, epsilon) + sd * rng.normal(),
                sd,
                N0,
            )
            for k, (kappa, r) in enumerate(places)
        ]
        trials += found
        best = max(found, key=lambda trial: trial.score)
        rungs.append(
            {
                "epsilon": epsilon,
                "mu": mu,
                "trials": [written(trial, search) for trial in found],
                "best": {"trial": best.trial, "r": best.r},
            }
        )
    spent = math.fsum(count * gdp.mu_from_epsilon(epsilon, DELTA) ** 2 for epsilon, count in ladder)
    return {
        "experiment": experiment,
        "mode": "release",
        "lineage": "mnist5k",
        "relation": "add_remove",
        "delta": DELTA,
        "nominal_size": N0,
        "learner": "dp_gd",
        "searches": "rate",
        "sampling_rate": 1.0,
        "unit": search.unit,
        "r_range": bounds(search),
        "rungs": rungs,
        "targets": [final(trials, total, spent, search, fit, rng, public) for total in totals],
    } | changes


def space(search):
    return Space(search, Descent(), Constants(N0, 10, 64, length=32.0))


def written(trial, search):
    eta, steps = decompose(trial.r, search)
    facts = {"trial": trial.trial, "r": trial.r, "score": trial.score, "counted": trial.counted}
    return facts | {"eta": eta, "steps": steps, "score_sd": trial.sd}


def final(trials, total, spent, search, fit, rng, public):
    budget = gdp.mu_from_epsilon(total, DELTA) ** 2
    mu = math.sqrt(budget - spent)
    epsilon = gdp.epsilon(mu, DELTA)
    found = dataclasses.asdict(
        fit_radius(trials, Target(epsilon, mu, space(search)), fit)
    ) | fit.model_dump(mode="json")
    eta, steps = decompose(found["r_star"], search)
    sd = 0.0 if public else 1 / mu
    right, wrong = (
        np.array([accuracy(found["r_star"], epsilon), 1 - accuracy(found["r_star"], epsilon)])
        * 1000
    )
    right, wrong = right + sd * rng.normal(), wrong + sd * rng.normal()
    share = right / (right + wrong)
    return {
        "target_epsilon": total,
        "epsilon": total * (1 - 1e-9),
        "stated": {"epsilon": total * (1 - 1e-9), "mu": None},
        "mu_final": mu,
        "epsilon_final": epsilon,
        "fit": found | {"epsilon": epsilon, "mu": mu},
        "r_star": found["r_star"],
        "eta": eta,
        "steps": steps,
        "sigma": gdp.sigma(mu, steps),
        "search_share": spent / budget,
        "test": {
            "accuracy": share,
            "accuracy_sd": sd * math.hypot(share, 1 - share) / (right + wrong),
            "correct": right,
            "total": right + wrong,
            "sd": sd,
            "noised": not public,
        },
    }


def statement(*summaries, relation="add_remove", lifetime=8.0):
    """The statement of the same made-up runs."""
    lines, artifacts = [], {}
    for one in summaries:
        sweep = sweep_lines(one)
        lines += sweep
        for target in one["targets"]:
            name = f"{target['target_epsilon']:g}"
            own = [
                line(one, "train_final", {"target": name}, "weights", "train", target["mu_final"]),
                line(one, "evaluate", {"target": name}, "test score", "test", target["mu_final"]),
            ]
            lines += own
            jobs = [
                {key: entry[key] for key in ("rule", "experiment", "wildcards")}
                for entry in [*sweep, *own]
            ]
            artifacts[f"results/{one['experiment']}/final/{name}/weights.safetensors"] = {
                "experiment": one["experiment"],
                "target_epsilon": target["target_epsilon"],
                "epsilon": target["epsilon"],
                "mu": gdp.mu_from_epsilon(target["epsilon"], DELTA),
                "with_earlier": None,
                "search_share": target["search_share"],
                "jobs": jobs,
            }
    mu = gdp.compose(entry["mu"] for entry in lines if entry["partition"] != "test")
    dataset = {
        "epsilon": gdp.epsilon(mu, DELTA),
        "mu": mu,
        "accountant": "exact",
        "partitions": {},
        "relation": relation,
        "delta": DELTA,
        "unit": "record",
        "cap": 1,
        "lifetime_epsilon": lifetime,
        "lifetime_mu": None,
        "lifetime_spent": 1.0,
        "planned": True,
        "artifacts": artifacts,
        "outside_this_dag": {
            "epsilon": 0.5,
            "mu": gdp.mu_from_epsilon(0.5, DELTA),
            "jobs": 3,
            "spends": [],
        },
        "spends": lines,
        "ledger": {"lineage": "mnist5k", "seq": 1, "sha256": ""},
    }
    about = {"mode": "release", "relation": relation, "delta": 1e-5, "target_epsilon": 1.0}
    origin = {"date": "2026-01-01", "commit": None, "versions": {}}
    datasets = {"datasets": {"mnist5k": dataset}, "records": {}, "files": {}}
    return about | datasets | {"origin": origin, "config": "", "deployment": None}


def sweep_lines(one):
    lines = []
    for rung, found in enumerate(one["rungs"]):
        for trial in found["trials"]:
            where = {"rung": str(rung), "trial": str(trial["trial"])}
            lines.append(line(one, "run_trial", where, "weights", "train", found["mu"]))
            if trial["score_sd"]:
                lines.append(line(one, "run_trial", where, "score", "train", 1 / trial["score_sd"]))
    return lines


def line(one, rule, wildcards, label, part, mu):
    return {
        "rule": rule,
        "experiment": one["experiment"],
        "wildcards": wildcards,
        "label": label,
        "partition": part,
        "mu": mu,
        "epsilon": gdp.epsilon(mu, DELTA),
        "count": 1,
        "superseded": False,
        "reserved": 1,
        "released": 2,
        "spend": {},
        "question": f"{one['experiment']} {rule} {wildcards}",
    }
