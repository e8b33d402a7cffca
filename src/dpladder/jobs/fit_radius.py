"""r at the final budget, from the rungs' releases alone."""

from __future__ import annotations

import dataclasses

from dpladder.jobs.record import write_record
from dpladder.jobs.task import Task, read_json, write_json
from dpladder.learn.interface import Constants
from dpladder.plan.reads import FitRadius
from dpladder.privacy.accounting import gdp
from dpladder.search.fit import Target
from dpladder.search.fit import fit_radius as fit
from dpladder.search.space import Space
from dpladder.search.training import learner_of_trial
from dpladder.search.trial import Trial, best


def fit_radius(task: Task[FitRadius]) -> None:
    """Carry r from the rungs to the final training. Free: scores are released, so whatever follows
    from them costs nothing.

    The output has r*, the fit behind it, the budget that it is for, and which trial was best. `mu`
    is what the final training stands on: a part of the total, for the rungs took theirs.
    """
    rungs = [read_json(path) for path in task.input["rungs"]]
    trials = [Trial(**trial) for rung in rungs for trial in rung["trials"]]
    reads, mu = task.reads, task.reads.mu
    epsilon = gdp.epsilon(mu, reads.delta)
    winner = best(trials)
    learner = learner_of_trial(reads.learner, winner.trial)
    # The public facts of the trials' training part, which this job has no features to read them
    # from.
    space = Space(reads.search, learner, Constants(**rungs[0]["learns"]))
    fitted = fit(trials, Target(epsilon, mu, space), reads.fit)
    facts = dataclasses.asdict(fitted) | reads.fit.model_dump(mode="json")
    facts |= {"epsilon": epsilon, "mu": mu, "best": {"rung": winner.rung, "trial": winner.trial}}
    # What r* and the best trial's number stand for is the learner's to say, when it trains.
    write_json(task.output["fit"], facts)
    write_record(task, free="computed from released scores alone")
