"""r at the final budget, from the rungs' releases alone."""

from __future__ import annotations

import dataclasses

from dpladder.config.model import Fit, Search
from dpladder.job import Task, read_json, section, write_json
from dpladder.privacy import gdp
from dpladder.rules.record import write_record
from dpladder.search.fit import fit_radius as fit
from dpladder.search.select import best
from dpladder.search.trial import Trial


def fit_radius(task: Task) -> None:
    trials = [Trial(**trial) for path in task.input["rungs"] for trial in read_json(path)["trials"]]
    mu = task.cfg["final.mu"]
    epsilon = gdp.epsilon(mu, task.cfg["privacy.delta"])
    settings = section(task, "fit", Fit)
    found = fit(trials, epsilon, mu, section(task, "sweep.search", Search), settings)
    winner = best(trials)
    facts = dataclasses.asdict(found) | settings.model_dump(mode="json")
    facts |= {"epsilon": epsilon, "mu": mu, "best": {"rung": winner.rung, "trial": winner.trial}}
    # What r* and the best trial's number stand for is the learner's to say, when it trains.
    write_json(task.output["fit"], {name: facts[name] for name in facts if name not in ("eta", "steps")})
    write_record(task, free="computed from released scores alone")
