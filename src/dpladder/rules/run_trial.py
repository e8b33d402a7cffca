"""One trial of a rung: draw r, train privately at the rung's budget, release the weights and a score."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from dpladder.config.learners import learner_of
from dpladder.config.model import Search
from dpladder.job import Task, read_json, section, write_json
from dpladder.learn import score, weights
from dpladder.learn.interface import Constants, Data, Declaration, Hyper, Weights
from dpladder.learn.registry import method
from dpladder.privacy.meter import Meter
from dpladder.rules.private import (
    Reserved,
    constants_of,
    file_digest,
    part_of,
    read,
    release_once,
    reserved,
)
from dpladder.search.space import decompose, draw
from dpladder.search.trial import Trial

PUBLIC = Declaration((), ())  # counting on a source declared public


def run_trial(task: Task) -> None:
    held, search, learner = (
        reserved(task),
        section(task, "sweep.search", Search),
        learner_of(task.cfg["learner"]),
    )
    train, scored = part_of(task, "train"), part_of(task, task.cfg["scored"]["part"])
    constants = constants_of(task, train)

    rung, number = int(task.wildcards["rung"]), int(task.wildcards["trial"])
    epsilon = task.cfg["rungs"][-1]["epsilon"]
    below = task.input["below"]
    before = Trial(**read_json(below[-1])["best"]) if below else None
    r = draw(search, epsilon, rung, number, before)
    eta, steps = decompose(r, search)
    hyper = Hyper(eta, steps, held.mu("weights"))
    training = method(learner.name).declare(learner, hyper, constants)
    public = (
        task.cfg["sweep.select"]["by"] == "public"
    )  # from the config: a plan that forgot the score must fail
    counting = PUBLIC if public else score.declare(held.mu("score"), constants)

    def produce(meter: Meter, folder: Path) -> None:
        data = read(task, train)
        found = method(learner.name).train(data, hyper, learner, constants, meter, task.resources)
        counted = data if scored == train else read(task, scored)
        if counting is PUBLIC:
            released, sd = float(score.correct_count(found, counted.features, counted.labels)), 0.0
            size = len(counted.labels)
        else:
            released, sd = _noised(held, constants, counted, found, meter)
            size = task.cfg["scored"]["nominal_size"]
        weights.save(
            folder / "weights.safetensors",
            found,
            {"eta": eta, "steps": steps, "learner": task.cfg["learner"]},
        )
        trial = Trial(rung, number, epsilon, held.mu("weights"), r, released, sd, size)
        write_json(folder / "score.json", {"trial": dataclasses.asdict(trial), "eta": eta, "steps": steps})

    spends = held.concrete("weights", training.events)
    if counting is not PUBLIC:
        spends += held.concrete("score", counting.events)
    inputs = {"train": train.seal, "scored": scored.seal, "mean": file_digest(task.input["mean"]), "r": r}
    release_once(
        task, held, spends, (*training.draws, *counting.draws), inputs, ("weights", "score"), produce
    )


def _noised(
    held: Reserved, constants: Constants, data: Data, found: Weights, meter: Meter
) -> tuple[float, float]:
    mu = held.mu("score")
    return (
        score.noised_count(found, data.features, data.labels, mu, constants, meter),
        score.noise_scale(mu, constants),
    )
