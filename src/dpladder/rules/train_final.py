"""The final private training, at all that the total leaves: at the ladder's r* where the learner has an r."""

from __future__ import annotations

from pathlib import Path

from dpladder.job import Task, read_json
from dpladder.learn import weights
from dpladder.privacy.meter import Meter
from dpladder.rules.private import constants_of, part_of, read, release_once, reserved, shared
from dpladder.rules.training import chosen, training_of


def train_final(task: Task) -> None:
    held, train = reserved(task), part_of(task, "train")
    fit = read_json(task.input["fit"]) if task.input["fit"] else None
    r, trial = (None, 0) if fit is None else (fit["r_star"], fit["best"]["trial"])
    constants = constants_of(task, train)
    training = training_of(task, r, held.mu("weights"), constants, trial)
    choice = chosen(training.learner, training.hyper)

    def produce(meter: Meter, folder: Path) -> None:
        found = training.run(read(task, train), meter, task)
        facts = {
            "r": r,
            "mu": training.hyper.mu,
            "sigma": getattr(training.declared.events[0].event, "sigma", None),
            "experiment": task.experiment,
            "target_epsilon": task.cfg["target"],
            "statement": task.cfg["static"],
            "config": {key: value for key, value in task.cfg.items() if key not in ("places", "static")},
        }
        weights.save(folder / "weights.safetensors", found, choice | facts)

    spends = held.concrete("weights", training.declared.events)
    inputs = {"train": train.seal, **shared(task), **choice}
    release_once(task, held, spends, training.declared.draws, inputs, ("weights",), produce)
