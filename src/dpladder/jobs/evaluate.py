"""How good the final model is on the test part: noised counts on private data, exact ones on a declared-public source."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpladder.jobs.private import (
    Part,
    Release,
    constants_of,
    part_of,
    read,
    release_once,
    reserved,
    shared,
    single,
)
from dpladder.jobs.record import write_record
from dpladder.jobs.task import Task, write_json
from dpladder.learn import score, weights
from dpladder.learn.interface import Data, Logits, Weights
from dpladder.learn.registry import method
from dpladder.plan.reads import EvaluateFinal
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import gaussian
from dpladder.privacy.accounting.events import Counted, Gaussian
from dpladder.privacy.release.meter import Meter
from dpladder.privacy.statement.records import file_digest
from dpladder.report.summary import Tested


def evaluate(task: Task[EvaluateFinal]) -> None:
    if "test" in task.reads.public_parts:
        test = part_of(task, "test")
        counted = right_and_wrong(*_model(task, test), read(task, test))
        write_json(task.output["metrics"], asdict(metrics(counted, 0.0)))
        write_record(task, free="the test source is declared public, and the model is a release")
        return
    release_once(release_of(task))


def release_of(task: Task[EvaluateFinal]) -> Release:
    held, test = reserved(task), part_of(task, "test")
    model, own = _model(task, test)
    sigma = gdp.sigma(held.mu("test score"), 1)
    # A unit is right or wrong, so it moves one of the two counts; replaced, it may move from one to the other.
    counts = gaussian("counts", sigma, constants_of(task, test).moves_apart(1.0), (2,))

    def produce(meter: Meter, folder: Path) -> None:
        found = meter.publish(counts.name, right_and_wrong(model, own, read(task, test)))
        write_json(folder / "metrics.json", asdict(metrics(found, counts.scale)))

    spends = held.concrete("test score", [Counted(Gaussian(sigma))], test)
    inputs = {
        "test": test.seal,
        **shared(task),
        "weights": file_digest(Path(task.input["weights"])),
    }
    return single(task, held, spends, [counts], inputs, ("metrics",), produce)


def _model(task: Task[EvaluateFinal], test: Part) -> tuple[Weights, Logits | None]:
    model, _ = weights.load(Path(task.input["weights"]))
    learner = task.reads.learner
    return model, method(learner.name).logits(learner, constants_of(task, test))


def right_and_wrong(model: Weights, own: Logits | None, data: Data) -> NDArray[np.float64]:
    """Two counts. Private until noise is added. Records without a valid label are in neither."""
    known = data.labels >= 0
    right = score.correct_count(model, data.features, data.labels, own)
    return np.array([right, np.count_nonzero(known) - right], np.float64)


def metrics(counts: NDArray[np.float64], sd: float) -> Tested:
    """From two noised counts, post-processing alone: with both of them, the part's true size is needed nowhere."""
    correct, wrong = (float(count) for count in counts)
    total = max(correct + wrong, 1.0)
    accuracy = min(max(correct / total, 0.0), 1.0)
    # delta method: accuracy = c / (c + w) moves by (1 - a)/total with c and by -a/total with w
    spread = sd * ((1 - accuracy) ** 2 + accuracy**2) ** 0.5 / total
    return Tested(accuracy, spread, correct, total, sd, noised=sd > 0)
