"""A private search: one job with one output. What it trains beside the winner, and how often, is
secret (search/protocol.py).

The output is one model, and no score or count of trainings stands beside it. Its price is that of
the search as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np

from dpladder.config.learners import Learner
from dpladder.jobs.model_file import save_model
from dpladder.jobs.release import Release, single
from dpladder.jobs.reservation import find_reservation
from dpladder.jobs.seen import seen_part
from dpladder.jobs.task import Task
from dpladder.learn.interface import MAX_BATCHED_TRAININGS, Constants, Weights
from dpladder.learn.trainings import weights_of
from dpladder.plan.reads import SearchPrivately
from dpladder.privacy.accounting.events import Counted
from dpladder.privacy.release.meter import Draw, Meter
from dpladder.search.bench import Bench, NamedAsk, answers
from dpladder.search.protocol import Answer, Ask, SearchOutcome, Setting, run_alone, searcher_of
from dpladder.search.space import hyper_of
from dpladder.search.training import choice_as_text


def release_of(task: Task[SearchPrivately]) -> Release:
    """A private search's final weights, and nothing else of it.

    Guarantee: that of the events that its searcher declares. Trainings draw from streams of their
    own, which the meter holds to the mu that was declared for them (`meter.Within`). Losers, their
    scores and how many there were stay in this process.
    """
    reservation, train = find_reservation(task), seen_part(task, "train")
    constants, search = train.constants, task.reads.search
    events = tuple(Counted(spend.event, spend.count) for spend in reservation.spends.values())
    spends = [*reservation.spends.values()]
    learner = task.reads.learner
    setting = Setting(
        task.reads.target, search, constants, task.reads.select.share, events, learner
    )
    found_by = searcher_of(task.reads.hpo)
    declared = found_by.declare(setting)
    streams = [draw for draw in declared.draws if draw.distribution == "within"]
    uncharged = {draw.name for draw in streams if not draw.sensitivity}

    def produce(meter: Meter, folder: Path) -> None:
        data = train.read()
        assert data.units is not None, "caches name the unit of each record"
        bench = Bench(data, constants, task.resources, _meters(meter, declared.draws))
        numbers = count()

        def trained(asks: Sequence[Ask]) -> list[Answer]:
            # The number names the stream of a training's noise, so no two trainings of a search
            # share one.
            batch = [NamedAsk(str(next(numbers)), ask, learner, search) for ask in asks]
            return [
                # what costs nothing by itself is seen through its score alone
                replace(answer, weights=()) if ask.within in uncharged else answer
                for ask, answer in zip(asks, answers(bench, batch)[0], strict=True)
            ]

        outcome = run_alone(found_by.run(setting, meter, data.units), trained)
        head, choice = _head(outcome, learner, constants), _choice(setting, outcome)
        save_model(folder / "weights.safetensors", head, task, train, choice)

    # A search that masks records trains on parts of the data, whose passes have another batch size.
    on_parts = any(draw.distribution == "mask" for draw in declared.draws)
    ready = partial(
        weights_of(learner).ready,
        learner,
        constants,
        task.resources,
        MAX_BATCHED_TRAININGS,
        on_parts,
    )
    inputs = train.inputs("train")
    return single(reservation, spends, declared.draws, inputs, ("weights",), produce, ready)


def _meters(meter: Meter, draws: Sequence[Draw]) -> Callable[[NamedAsk, Sequence[Draw]], Meter]:
    """A meter for each training, of the streams that its search declared for it: its own draws
    follow from places that are secret.

    Args:
        meter: of the search as a whole.
        draws: all that the search declared; those `within` are budgets of its trainings.
    """
    streams = {
        draw.name: meter.inner_meters(draw.name) for draw in draws if draw.distribution == "within"
    }

    def inner(training: NamedAsk, declared: Sequence[Draw]) -> Meter:
        return streams[training.ask.within].meter(training.name, declared)

    return inner


def _head(outcome: SearchOutcome, learner: Learner, constants: Constants) -> Weights:
    """Where the number of runs came out as none, a head that knows nothing."""
    width = constants.dimension + learner.constant_feature
    return outcome.weights or (np.zeros((constants.classes, width), np.float32),)


def _choice(setting: Setting, outcome: SearchOutcome) -> dict[str, object]:
    """What the file says of how its model was trained: the winner's r, kappa and mu, which are
    released with it. Its noise scale is left out, for a search does not declare one for each
    training."""
    learner = setting.learner
    return choice_as_text(learner, hyper_of(learner, setting.search, outcome.r, outcome.mu)) | {
        "r": outcome.r,
        "kappa": setting.space.kappa(outcome.r, outcome.mu),
        "mu": outcome.mu,
        "sigma": None,
    }
