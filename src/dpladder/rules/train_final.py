"""The final private training, at r* and at all that the total leaves."""

from __future__ import annotations

from pathlib import Path

from dpladder.config.learners import learner_of
from dpladder.job import Task, read_json
from dpladder.learn import weights
from dpladder.learn.interface import Hyper
from dpladder.learn.registry import method
from dpladder.privacy.meter import Meter
from dpladder.rules.private import constants_of, file_digest, part_of, read, release_once, reserved


def train_final(task: Task) -> None:
    held, learner, train = reserved(task), learner_of(task.cfg["learner"]), part_of(task, "train")
    constants = constants_of(task, train)
    fit = read_json(task.input["fit"])
    hyper = Hyper(fit["eta"], fit["steps"], held.mu("weights"))
    training = method(learner.name).declare(learner, hyper, constants)

    def produce(meter: Meter, folder: Path) -> None:
        found = method(learner.name).train(
            read(task, train), hyper, learner, constants, meter, task.resources
        )
        facts = {
            "eta": hyper.eta,
            "steps": hyper.steps,
            "mu": hyper.mu,
            "experiment": task.experiment,
            "target_epsilon": task.cfg["target"],
            "statement": task.cfg["static"],
            "config": {key: value for key, value in task.cfg.items() if key not in ("places", "static")},
        }
        weights.save(folder / "weights.safetensors", found, facts)

    inputs = {
        "train": train.seal,
        "mean": file_digest(task.input["mean"]),
        "eta": hyper.eta,
        "steps": hyper.steps,
    }
    spends = held.concrete("weights", training.events)
    release_once(task, held, spends, training.draws, inputs, ("weights",), produce)
