"""A private search: one job with one output. What it trains beside the winner, and how often, is secret (search/hpo.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

import numpy as np

from dpladder.config.learners import Learner, learner_of
from dpladder.config.model import Search
from dpladder.config.searches import search_of
from dpladder.job import Task, section
from dpladder.learn import weights
from dpladder.learn.interface import Constants, Weights
from dpladder.privacy.meter import Draw, Meter
from dpladder.privacy.noise import DerivedNoise
from dpladder.privacy.spend import Counted
from dpladder.rules.bench import Bench, Training, answers
from dpladder.rules.private import constants_of, part_of, read_raw, release_once, reserved
from dpladder.rules.training import chosen, hyper_of
from dpladder.search.hpo import Answer, Ask, Found, Setting, alone
from dpladder.search.registry import method_of

TRAININGS = Draw("trainings", "within")  # their own draws follow from places that are secret


def private_search(task: Task) -> None:
    held, train = reserved(task), part_of(task, "train")
    constants, search = constants_of(task, train), section(task, "sweep.search", Search)
    spends = list(held.spends.values())
    events = tuple(Counted(spend.event, spend.count) for spend in spends)
    setting = Setting(task.cfg["target"], search, constants, task.cfg["sweep.select"]["share"], events)
    learner = learner_of(task.cfg["learner"])
    found_by = method_of(search_of(task.cfg["hpo"]))
    declared = found_by.declare(setting)

    def produce(meter: Meter, folder: Path) -> None:
        data = read_raw(train)
        assert data.units is not None, "caches name the unit of each record"
        bench = Bench(data, constants, task.resources, _meters(meter.within(TRAININGS.name)))
        numbers = count()

        def trained(asks: Sequence[Ask]) -> list[Answer]:
            return answers(bench, [Training(str(next(numbers)), ask, learner, search) for ask in asks])[0]

        found = alone(found_by.run(setting, meter, data.units), trained)
        weights.save(
            folder / "weights.safetensors", _head(found, constants), _facts(task, learner, search, found)
        )

    release_once(
        task, held, spends, (*declared.draws, TRAININGS), {"train": train.seal}, ("weights",), produce
    )


def _meters(source: DerivedNoise) -> Callable[[str, Sequence[Draw]], Meter]:
    """A meter for each training, of streams below those of its name."""

    def meter(name: str, draws: Sequence[Draw]) -> Meter:
        return Meter(draws, DerivedNoise(source.stream(name, 0)))

    return meter


def _head(found: Found, constants: Constants) -> Weights:
    """Where the number of runs came out as none, a head that knows nothing."""
    return found.weights or (np.zeros((constants.classes, constants.dimension), np.float32),)


def _facts(task: Task, learner: Learner, search: Search, found: Found) -> dict[str, object]:
    return chosen(learner, hyper_of(learner, search, found.r, found.mu)) | {
        "r": found.r,
        "mu": found.mu,
        "sigma": None,
        "experiment": task.experiment,
        "target_epsilon": task.cfg["target"],
        "statement": task.cfg["static"],
        "config": {key: value for key, value in task.cfg.items() if key not in ("places", "static")},
    }
