"""How good the final model is on the test part: noised counts on private data, exact ones on a declared-public source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.job import Task, write_json
from dpladder.learn import score, weights
from dpladder.learn.interface import Data, Weights
from dpladder.privacy import gdp
from dpladder.privacy.meter import Draw, Meter
from dpladder.privacy.spend import Counted, Gaussian
from dpladder.rules.private import constants_of, file_digest, part_of, read, release_once, reserved, shared
from dpladder.rules.record import write_record


def evaluate(task: Task) -> None:
    model, _ = weights.load(Path(task.input["weights"]))
    if "test" in task.cfg["public_parts"]:
        write_json(
            task.output["metrics"], metrics(right_and_wrong(model, read(task, part_of(task, "test"))), 0.0)
        )
        write_record(task, free="the test source is declared public, and the model is a release")
        return

    held, test = reserved(task), part_of(task, "test")
    sigma = gdp.sigma(held.mu("test score"), 1)
    # A unit is right or wrong, so it moves one of the two counts; replaced, it may move from one to the other: the same
    # sensitivity as that of a count per class.
    sd = sigma * score.sensitivity(constants_of(task, test), per_class=True)

    def produce(meter: Meter, folder: Path) -> None:
        counts = right_and_wrong(model, read(task, test)) + meter.gaussian("counts", sd, (2,))
        write_json(folder / "metrics.json", metrics(counts, sd))

    spends = held.concrete("test score", [Counted(Gaussian(sigma))])
    inputs = {
        "test": test.seal,
        **shared(task),
        "weights": file_digest(task.input["weights"]),
    }
    release_once(task, held, spends, [Draw("counts", "gaussian", sd, (2,))], inputs, ("metrics",), produce)


def right_and_wrong(model: Weights, data: Data) -> NDArray[np.float64]:
    """Two counts. Private until noise is added. Records without a valid label are in neither."""
    known = data.labels >= 0
    right = score.correct_count(model, data.features, data.labels)
    return np.array([right, np.count_nonzero(known) - right], np.float64)


def metrics(counts: NDArray[np.float64], sd: float) -> dict[str, Any]:
    """From two noised counts, post-processing alone: with both of them, the part's true size is needed nowhere."""
    correct, wrong = (float(count) for count in counts)
    total = max(correct + wrong, 1.0)
    accuracy = min(max(correct / total, 0.0), 1.0)
    # delta method: accuracy = c / (c + w) moves by (1 - a)/total with c and by -a/total with w
    spread = sd * ((1 - accuracy) ** 2 + accuracy**2) ** 0.5 / total
    return {
        "accuracy": accuracy,
        "accuracy_sd": spread,
        "correct": correct,
        "total": total,
        "sd": sd,
        "noised": sd > 0,
    }
