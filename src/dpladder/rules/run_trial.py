"""One trial of a rung: draw r, train privately at the rung's budget, release the weights and a score.

Where trials share released statistics, weights are solutions of those, and a score is all that a trial pays for.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from dpladder.config.model import Search
from dpladder.job import Task, read_json, section, write_json
from dpladder.learn import score, statistics, weights
from dpladder.learn.interface import Constants, Data, Declaration, Weights
from dpladder.privacy.meter import Meter
from dpladder.rules.private import (
    constants_of,
    part_of,
    read,
    read_nothing,
    release_once,
    reserved,
    shared,
)
from dpladder.rules.record import write_record
from dpladder.rules.training import chosen, training_of
from dpladder.search.space import draw
from dpladder.search.trial import Trial

FREE = Declaration((), ())  # counting on a source declared public


class Silence:
    """Behind the meter of a trial that is wholly free."""

    def stream(self, name: str, index: int) -> bytes:
        raise AssertionError(f"{name} {index}: nothing is drawn in a free trial")


def run_trial(task: Task) -> None:
    search = section(task, "sweep.search", Search)
    train, scored = part_of(task, "train"), part_of(task, task.cfg["scored"]["part"])
    constants = constants_of(task, train)
    # What is free is so by the config: a plan that forgot a spend must fail.
    public, solved = task.cfg["sweep.select"]["by"] == "public", task.cfg["learner"].get("statistics")
    held = None if public and solved else reserved(task)
    paid = {} if held is None else {label: held.mu(label) for label in held.spends}

    rung, number = int(task.wildcards["rung"]), int(task.wildcards["trial"])
    epsilon = solved["epsilon"] if solved else task.cfg["rungs"][-1]["epsilon"]
    below = task.input["below"]
    before = Trial(**read_json(below[-1])["best"]) if below else None
    r = draw(search, epsilon, rung, number, before)
    training = training_of(task, r, 0.0 if solved else paid["weights"], constants, number)
    choice = chosen(training.learner, training.hyper)
    counting = FREE if public else score.declare(paid["score"], constants)

    def produce(meter: Meter, folder: Path) -> None:
        data = read_nothing(task, train) if solved else read(task, train)
        mu = training.hyper.mu if data.statistics is None else statistics.mu_of(data.statistics)
        found = training.run(data, meter, task)
        counted = data if scored == train and not solved else read(task, scored)
        if public:
            released, sd = float(score.correct_count(found, counted.features, counted.labels)), 0.0
            size = len(counted.labels)
        else:
            released, sd = _noised(paid["score"], constants, counted, found, meter)
            size = task.cfg["scored"]["nominal_size"]
        weights.save(
            folder / "weights.safetensors",
            found,
            choice | {"learner": task.cfg["learner"]},
        )
        trial = Trial(rung, number, epsilon, mu, r, released, sd, size)
        write_json(folder / "score.json", {"trial": dataclasses.asdict(trial), **choice})

    if held is None:
        produce(Meter((), Silence()), task.output["score"].parent)
        write_record(task, free="solved from released statistics, scored on a source declared public")
        return
    spends = held.concrete("weights", training.declared.events) + held.concrete("score", counting.events)
    inputs = {"train": train.seal, "scored": scored.seal, **shared(task), "r": r}
    draws = (*training.declared.draws, *counting.draws)
    release_once(task, held, spends, draws, inputs, ("weights", "score"), produce)


def _noised(mu: float, constants: Constants, data: Data, found: Weights, meter: Meter) -> tuple[float, float]:
    return (
        score.noised_count(found, data.features, data.labels, mu, constants, meter),
        score.noise_scale(mu, constants),
    )
