"""The learners and the counts as `dpladder audit` sees them: on made-up records, through their own declarations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from dpladder.config.learners import Descent, FeatureCovariance, Learner, LeastSquares, Newton, learner_of
from dpladder.config.model import Resources
from dpladder.errors import BadInput
from dpladder.learn import score
from dpladder.learn.interface import Constants, Data, Declaration, Hyper, noise_scale, releasing
from dpladder.learn.registry import LEARNERS, method
from dpladder.learn.second_order import declare_covariance
from dpladder.privacy.audit import Mechanism
from dpladder.privacy.audit_mechanisms import built_in, neighbours
from dpladder.privacy.meter import Meter
from dpladder.privacy.noise import Floats
from dpladder.privacy.spend import Composed, Relation

Record = tuple[tuple[float, ...], int]  # features and label

NOTHING: Record = ((0.0, 0.0, 0.0), 0)
CANARIES: tuple[Record, ...] = (
    NOTHING,
    ((1e6, 0.0, 0.0), 0),
    ((-1e6, 1e6, 1e6), 1),
    ((3e38, -3e38, 3e38), 1),
    ((1e-30, 0.0, 0.0), 0),
    ((1.0, 2.0, 3.0), -1),
    ((0.5, 0.5, 0.5), 7),
)
CLASSES, N0, ETA = 2, 50, 0.5


def mechanisms(only: str | None = None) -> tuple[Mechanism, ...]:
    """Every mechanism that can publish something, or one learner's."""
    if only is not None and only not in LEARNERS:
        raise BadInput(f"--learner {only}: not a learner. Choose one of: {', '.join(LEARNERS)}.")
    learners = [
        mechanism
        for name in LEARNERS
        if only in (None, name)
        for mechanism in of_learner(learner_of({"name": name}))
    ]
    return tuple(learners) if only else (*built_in(), right_and_wrong(), shared_covariance(), *learners)


def of_learner(learner: Learner) -> tuple[Mechanism, ...]:
    """One step, which a canary can saturate, and several, whose noise must be fresh in each."""
    match learner:
        case Descent():
            linear = learner.name == "dp_gd"
            return (
                training(learner, steps=1, mu=2.0, relation="add_remove", tight=linear),
                training(learner, steps=3, mu=2.0, relation="add_remove"),
                training(learner, steps=1, mu=2.0, relation="replace_one"),
            )
        case LeastSquares():
            return sums(learner, 1, tight=True), sums(learner, 1, "replace_one")
        case FeatureCovariance():
            return sums(learner, 1, tight=True), sums(learner, 3, "replace_one")
        case Newton():
            return sums(learner, 2), sums(Newton(link="sigmoid"), 2, "replace_one")
    return ()


def training(learner: Descent, steps: int, mu: float, relation: Relation, tight: bool = False) -> Mechanism:
    constants = Constants(N0, CLASSES, len(NOTHING[0]), relation)
    hyper = Hyper(ETA, steps, mu)
    declared = method(learner.name).declare(learner, hyper, constants)
    # Records that contribute nothing leave a gradient of pure noise, so the released weights are the first ones plus a
    # weighted sum of the steps' noises.
    reach = math.hypot(*_reach(learner, steps))
    scale = ETA / constants.n0 * noise_scale(learner, hyper, constants) * reach
    return Mechanism(
        name=f"{learner.name} {steps} step{'s' * (steps > 1)} {relation}",
        event=Composed(declared.events),
        draws=declared.draws,
        scale=scale,
        run=partial(_train, learner, hyper, constants),
        neighbours=neighbours((NOTHING, NOTHING), CANARIES, relation),
        relation=relation,
        tight=tight,
    )


def sums(
    learner: Any, steps: int, relation: Relation = "add_remove", tight: bool = False, mu: float = 2.0
) -> Mechanism:
    """A learner that computes its weights from noised sums: the sums are what it publishes. Three classes, because equal
    probabilities of three curve softmax the most."""
    constants = Constants(N0, 3, len(NOTHING[0]), relation)
    hyper = Hyper(ETA, steps, mu)
    module: Any = method(learner.name)
    declared: Declaration = module.declare(learner, hyper, constants)
    scales = {draw.name: draw.scale for draw in declared.draws}

    def run(records: Sequence[Record], meter: Meter) -> Floats:
        release, seen = releasing(meter, declared.draws), []

        def watched(name: str, total: Any) -> Any:
            noised = release(name, total)
            seen.append(np.ravel(noised.numpy()) / scales[name])
            return noised

        module.fit(_data(records), hyper, learner, constants, watched, Resources(threads=1))
        return np.concatenate(seen)

    link = [learner.link] if isinstance(learner, Newton) else []
    return Mechanism(
        name=" ".join([learner.name, *link, f"{steps} step{'s' * (steps > 1)}", relation]),
        event=Composed(declared.events),
        draws=declared.draws,
        scale=1.0,
        run=run,
        neighbours=neighbours((NOTHING, NOTHING), CANARIES, relation),
        relation=relation,
        tight=tight,
    )


def shared_covariance(mu: float = 2.0, radius: float = 2.0) -> Mechanism:
    """The covariance that trainings share."""
    constants = Constants(N0, CLASSES, len(NOTHING[0]))
    declared = declare_covariance(mu, radius, constants)

    def run(records: Sequence[Record], meter: Meter) -> Floats:
        from dpladder.learn.moments import noised_covariance

        release = releasing(meter, declared.draws)
        return noised_covariance(_data(records), radius, constants, release, Resources(threads=1))

    pairs = neighbours((NOTHING, NOTHING), CANARIES, "add_remove")
    scale = declared.draws[0].scale
    return Mechanism("covariance", Composed(declared.events), declared.draws, scale, run, pairs, tight=True)


def right_and_wrong(mu: float = 2.0) -> Mechanism:
    """The two counts of an evaluation. A unit is in one of them; replaced, it may go from one to the other."""
    constants = Constants(N0, CLASSES, 1, "replace_one")
    declared: Declaration = score.declare(mu, constants, per_class=True)

    def run(data: Sequence[int], meter: Meter) -> Floats:
        noise = meter.gaussian("score", declared.draws[0].scale, (CLASSES,))
        return np.array([data.count(0), data.count(1)]) + noise

    pairs = neighbours((0, 1, 1), (2, 0, 1), "replace_one")
    return Mechanism(
        name="right and wrong",
        event=Composed(declared.events),
        draws=declared.draws,
        scale=declared.draws[0].scale,
        run=run,
        neighbours=pairs,
        relation="replace_one",
        tight=True,
    )


def _train(
    learner: Learner, hyper: Hyper, constants: Constants, data: Sequence[Record], meter: Meter
) -> Floats:
    weights = method(learner.name).train(_data(data), hyper, learner, constants, meter, Resources(threads=1))
    return np.concatenate([np.ravel(layer).astype(np.float64) for layer in weights])


def _data(records: Sequence[Record]) -> Data:
    features = np.array([record[0] for record in records], np.float32)
    return Data(features, np.array([record[1] for record in records], np.int64))


def _reach(learner: Descent, steps: int) -> list[float]:
    """By how many learning rates one unit of each step's gradient moves the last weights: momentum carries it on, and
    the free step once more."""
    m = learner.momentum
    return [
        sum(m**later for later in range(steps - step)) + learner.free_step * m ** (steps - 1 - step)
        for step in range(steps)
    ]
