"""The learners and the counts as `dpladder audit` sees them: on made-up records, through their own declarations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from dpladder.config.learners import (
    Adam,
    AdamNoSecondMoment,
    Descent,
    FeatureCovariance,
    HyperparameterFree,
    Learner,
    LeastSquares,
    Newton,
    OneStep,
    StepSizeFree,
    ZerothOrder,
    learner_of,
)
from dpladder.config.model import Resources
from dpladder.errors import BadInput
from dpladder.learn import dp_zo, hyfree_dp, score
from dpladder.learn.dp_ls import declare_sums
from dpladder.learn.interface import Constants, Data, Declaration, Hyper, releasing
from dpladder.learn.registry import LEARNERS, method
from dpladder.learn.second_order import declare_covariance
from dpladder.privacy.audit import Mechanism
from dpladder.privacy.audit_mechanisms import built_in, neighbours
from dpladder.privacy.meter import Meter
from dpladder.privacy.noise import Floats
from dpladder.privacy.spend import Composed, Counted, Laplace, Relation

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
STEADY = 1e6  # under a step's denominator, this makes an adaptive step as good as linear in the noise


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
        case Adam():
            return several(Adam(stability=STEADY))
        case AdamNoSecondMoment():
            return several(learner)
        case StepSizeFree():
            return several(StepSizeFree(gradient_bound=STEADY))
        case OneStep():
            return (training(OneStep(stability=STEADY), steps=1, mu=2.0, relation="replace_one"),)
        case HyperparameterFree():
            return first_look(learner, "add_remove"), first_look(learner, "replace_one")
        case ZerothOrder():
            laplace = ZerothOrder(noise="laplace")
            return (
                differences(learner, 1, "add_remove", tight=True),
                differences(learner, 3, "replace_one"),
                differences(laplace, 1, "add_remove", tight=True),
                differences(laplace, 3, "add_remove"),
            )
        case LeastSquares():
            return sums(learner, 1, tight=True), sums(learner, 1, "replace_one"), shared_statistics()
        case FeatureCovariance():
            return sums(learner, 1, tight=True), sums(learner, 3, "replace_one")
        case Newton():
            return sums(learner, 2), sums(Newton(link="sigmoid"), 2, "replace_one")
    return ()


def several(learner: Learner) -> tuple[Mechanism, ...]:
    return (
        training(learner, steps=3, mu=2.0, relation="add_remove"),
        training(learner, steps=2, mu=2.0, relation="replace_one"),
    )


def training(learner: Learner, steps: int, mu: float, relation: Relation, tight: bool = False) -> Mechanism:
    constants = Constants(N0, CLASSES, len(NOTHING[0]), relation)
    hyper = Hyper(ETA, steps, mu)
    declared = method(learner.name).declare(learner, hyper, constants)
    # Records that contribute nothing leave a gradient of pure noise, so the released weights are the first ones plus a
    # weighted sum of the steps' noises.
    noise = declared.draws[0].scale / constants.n0
    return Mechanism(
        name=f"{learner.name} {steps} step{'s' * (steps > 1)} {relation}",
        event=Composed(declared.events),
        draws=declared.draws,
        scale=noise * math.hypot(*_reach(learner, steps, noise)),
        run=partial(_train, learner, hyper, constants),
        neighbours=neighbours((NOTHING, NOTHING), CANARIES, relation),
        relation=relation,
        tight=tight,
    )


def first_look(learner: HyperparameterFree, relation: Relation, mu: float = 2.0) -> Mechanism:
    """A step that looks at the losses, by what it asks: how its rate follows from the answers is post-processing."""
    constants = Constants(N0, CLASSES, len(NOTHING[0]), relation)
    found = hyfree_dp.split(learner, Hyper(ETA, 1, mu))
    declared = hyfree_dp.declare(learner, Hyper(ETA, 1, mu), constants)
    scales = [draw.scale / N0 for draw in declared.draws]

    def run(records: Sequence[Record], meter: Meter) -> Floats:
        import torch

        from dpladder.learn.engine import resident
        from dpladder.learn.parabola import noised_gradient, noised_losses

        held, _ = resident(_data(records), constants, Resources(threads=1))
        weights, bound = torch.zeros(1, CLASSES, constants.dimension).double(), torch.ones(1).double()
        gradient = noised_gradient(held, weights, [found], constants, [meter])
        losses = noised_losses(held, weights, ETA * gradient, bound, [found], constants, [meter])
        return np.concatenate([gradient.ravel() / scales[0], losses.ravel() / scales[1]])

    return Mechanism(
        name=f"{learner.name} {relation}",
        event=Composed(declared.events),
        draws=declared.draws,
        scale=1.0,
        run=run,
        neighbours=neighbours((NOTHING, NOTHING), CANARIES, relation),
        relation=relation,
    )


def differences(learner: ZerothOrder, steps: int, relation: Relation, tight: bool = False) -> Mechanism:
    """The weights lie in the span of the public directions, and so are as good as the noised differences."""
    constants = Constants(N0, CLASSES, len(NOTHING[0]), relation)
    hyper = Hyper(ETA, steps, 2.0)
    declared = dp_zo.declare(learner, hyper, constants)
    sensitivity, scale = learner.clip * constants.doubling, declared.draws[0].scale
    laplace = (Counted(Laplace(scale / sensitivity), steps),)

    def run(records: Sequence[Record], meter: Meter) -> Floats:
        from dpladder.learn.zeroth_order import directions

        weights = _train(learner, hyper, constants, records, meter)
        public = directions(constants, 0)
        along = np.array([next(public).ravel() for _ in range(steps)])
        rate = hyper.eta / (2 * learner.smoothing * constants.n0)
        return np.asarray(np.linalg.lstsq(along.T, -weights / rate)[0])

    return Mechanism(
        name=f"{learner.name} {learner.noise} {steps} step{'s' * (steps > 1)} {relation}",
        event=Composed(declared.events if learner.noise == "gaussian" else laplace),
        draws=declared.draws,
        scale=scale,
        run=run,
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


def shared_statistics(mu: float = 2.0, radius: float = 2.0) -> Mechanism:
    """The sums that trainings share."""
    constants = Constants(N0, CLASSES, len(NOTHING[0]))
    declared = declare_sums(mu, radius, constants)
    scales = {draw.name: draw.scale for draw in declared.draws}

    def run(records: Sequence[Record], meter: Meter) -> Floats:
        from dpladder.learn.least_squares import release_sums

        release, seen = releasing(meter, declared.draws), []

        def keep(name: str, _: int | None, total: Any) -> None:
            seen.append(total / scales[name])

        release_sums(_data(records), radius, constants, release, keep, Resources(threads=1))
        return np.concatenate(seen)

    pairs = neighbours((NOTHING, NOTHING), CANARIES, "add_remove")
    return Mechanism("statistics", Composed(declared.events), declared.draws, 1.0, run, pairs, tight=True)


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


def _reach(learner: Learner, steps: int, noise: float) -> list[float]:
    """How far one unit of each step's mean gradient moves the last weights, where noise has this deviation in it."""
    match learner:
        case Descent():  # momentum carries it on, and the free step once more
            m = learner.momentum
            on = [sum(m**age for age in range(steps - step)) for step in range(steps)]
            return [
                ETA * (reach + learner.free_step * m ** (steps - 1 - step)) for step, reach in enumerate(on)
            ]
        case Adam():
            return [ETA / learner.stability * reach for reach in _corrected(learner.betas[0], steps)]
        case AdamNoSecondMoment():
            return [ETA / (noise + learner.stability) * reach for reach in _corrected(learner.beta, steps)]
        case OneStep():
            return [learner.eta / learner.stability]
        case StepSizeFree():
            return [learner.eta / learner.gradient_bound] * steps
    raise AssertionError(f"{learner.name} does not train by steps along noised gradients")


def _corrected(decay: float, steps: int) -> list[float]:
    """What each step's gradient weighs in all of Adam's first moments together, bias correction included."""
    return [
        sum((1 - decay) * decay ** (later - step) / (1 - decay**later) for later in range(step, steps + 1))
        for step in range(1, steps + 1)
    ]
