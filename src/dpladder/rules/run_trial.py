"""One trial of a rung: draw r, train privately at the rung's budget, release the weights and a score."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from dpladder.config.model import Search
from dpladder.job import Task, read_json, section, write_json
from dpladder.learn import score, weights
from dpladder.learn.interface import Constants, Data, Declaration, Weights
from dpladder.privacy.meter import Meter
from dpladder.rules.private import Reserved, constants_of, part_of, read, release_once, reserved, shared
from dpladder.rules.training import chosen, training_of
from dpladder.search.space import draw
from dpladder.search.trial import Trial

PUBLIC = Declaration((), ())  # counting on a source declared public


def run_trial(task: Task) -> None:
    held, search = reserved(task), section(task, "sweep.search", Search)
    train, scored = part_of(task, "train"), part_of(task, task.cfg["scored"]["part"])
    constants = constants_of(task, train)

    rung, number = int(task.wildcards["rung"]), int(task.wildcards["trial"])
    epsilon = task.cfg["rungs"][-1]["epsilon"]
    below = task.input["below"]
    before = Trial(**read_json(below[-1])["best"]) if below else None
    r = draw(search, epsilon, rung, number, before)
    training = training_of(task, r, held.mu("weights"), constants)
    choice = chosen(training.learner, training.hyper)
    public = (
        task.cfg["sweep.select"]["by"] == "public"
    )  # from the config: a plan that forgot the score must fail
    counting = PUBLIC if public else score.declare(held.mu("score"), constants)

    def produce(meter: Meter, folder: Path) -> None:
        data = read(task, train)
        found = training.run(data, meter, task)
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
            choice | {"learner": task.cfg["learner"]},
        )
        trial = Trial(rung, number, epsilon, held.mu("weights"), r, released, sd, size)
        write_json(folder / "score.json", {"trial": dataclasses.asdict(trial), **choice})

    spends = held.concrete("weights", training.declared.events)
    if counting is not PUBLIC:
        spends += held.concrete("score", counting.events)
    inputs = {"train": train.seal, "scored": scored.seal, **shared(task), "r": r}
    draws = (*training.declared.draws, *counting.draws)
    release_once(task, held, spends, draws, inputs, ("weights", "score"), produce)


def _noised(
    held: Reserved, constants: Constants, data: Data, found: Weights, meter: Meter
) -> tuple[float, float]:
    mu = held.mu("score")
    return (
        score.noised_count(found, data.features, data.labels, mu, constants, meter),
        score.noise_scale(mu, constants),
    )
