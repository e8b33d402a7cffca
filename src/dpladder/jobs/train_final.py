"""The final private training, at all that the total leaves. It is at the ladder's r* where the
learner has an r."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path

from dpladder.jobs.model_file import save_model
from dpladder.jobs.release import Release, single
from dpladder.jobs.reservation import find_reservation
from dpladder.jobs.seen import seen_part
from dpladder.jobs.task import Task, read_json
from dpladder.learn.effects import with_monotone
from dpladder.learn.measures.calibrate import Calibrating
from dpladder.plan.reads import TrainFinal
from dpladder.privacy.release.meter import Meter
from dpladder.search.fit import place_by_prior
from dpladder.search.space import Space
from dpladder.search.training import choice_as_text, learner_of_trial, training_of


def release_of(task: Task[TrainFinal]) -> Release:
    """The final model's weights, at r* and the budget that the plan left it.

    Guarantee: that of the training, and of the histogram that calibrates it where one is bought. r*
    follows from releases alone, and monotone curves from the weights.

    Where no trial found an r, it is the prior's. What is left of the total was reserved for this
    job as `weights`. Its query names the choice that r stands for, so another choice is another
    query.
    """
    fit = read_json(task.input["fit"]) if task.input["fit"] else None
    reservation, train = find_reservation(task), seen_part(task, "train")
    learner = learner_of_trial(task.reads.learner, 0 if fit is None else fit["best"]["trial"])
    space = Space(task.reads.search, learner, train.constants)
    mu = reservation.mu("weights")
    r = r_by_prior(space, mu) if fit is None else fit["r_star"]
    training = training_of(space, r, reservation.entry("weights"))
    share = None if task.reads.calibrate is None else task.reads.calibrate.share
    bought = None if share is None else reservation.mu("calibration")
    calibrating = Calibrating(training.learner, train.constants, mu, bought, share)
    ready = partial(training.ready, task.resources)
    choice = choice_as_text(training.learner, training.hyper)

    def produce(meter: Meter, folder: Path) -> None:
        data = train.read()
        trained = training.run(data, meter, task.resources)
        if directions := task.reads.monotone:
            curves, columns = train.map.curves, task.reads.columns
            target, labels = task.reads.predicts, task.reads.labels
            trained = with_monotone(trained, columns, curves, directions, target, labels)
        weights, calibration = calibrating.run(trained, data, meter)
        facts = {
            "calibration": asdict(calibration),
            "r": r,
            "kappa": None if r is None else space.kappa(r, mu),
            "mu": training.hyper.mu,
            "sigma": getattr(training.declared.events[0].event, "sigma", None),
        }
        save_model(folder / "weights.safetensors", weights, task, train, choice | facts)

    spends = reservation.actual_spends("weights", training.declared.events)
    if bought is not None:
        spends += reservation.actual_spends("calibration", calibrating.declared.events)
    draws = [*training.declared.draws, *calibrating.declared.draws]
    inputs = {**train.inputs("train"), **choice}
    return single(reservation, spends, draws, inputs, ("weights",), produce, ready)


def r_by_prior(space: Space, mu: float) -> float | None:
    """Without trials for it: r by the prior, where the learner has an r at all.

    Args:
        space: of the learner that is trained.
        mu: of the training; kappa's prior becomes an r by it.
    """
    return None if space.learner.searches is None else place_by_prior(space, mu)[1]
