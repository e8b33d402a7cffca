"""How honest probabilities are: as they were trained, by the public law, by the map that is bought,
by a private temperature for the same price (Zhang et al. 2022, arXiv 2210.08248), and at the slope
that is best for the test itself, which nobody may use. Public data, seeded.

    python tests/benchmarks/bench_calibration.py [--data digits ...] [--epsilons 1] [--repeats 2]
        [--findings] [--cache FOLDER]

Each data set of tools/arena.py is trained with a whole total at the prior's kappa; with --findings
its classes are told each by itself. Prints slopes, and log-loss and calibration error (15 bins).
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from arena import centred, load
from terminal import print_head, print_row, read_options
from trainings import ask_for, heads

from dpladder.config.label_sets import MANY, number_of_findings, states_by_finding
from dpladder.config.learners import learner_of
from dpladder.learn.interface import Constants, Weights
from dpladder.learn.measures.calibrate import Calibrating
from dpladder.learn.score import log_odds, logits, sigmoid, softmax
from dpladder.plan.resolve import calibration_share
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import Entry
from dpladder.privacy.arrays import Floats
from dpladder.research.arena import Arena, PublicMeter

EPSILONS, STEPS = (0.3, 1.0, 4.0), 20
DATA = ("digits", "mixture", "mnist5k", "mnist5k-auto", "clothes", "clothes-auto", "bible-auto")
SLOPES = np.exp(np.linspace(math.log(0.05), math.log(4.0), 90))
HEADS = ("data", "epsilon", "n0*mu", "best slope", "law", "map", "as trained", "by the law")


def main() -> None:
    options = read_options(
        __doc__, data=list[str], epsilons=EPSILONS, repeats=2, findings=False, cache=Path
    )
    print_head(*HEADS, "bought", "private temperature", "best")
    for name in options.data or DATA:
        arena = load(name, options.cache)
        if options.findings:
            arena = as_findings(arena)
        learner = learner_of({"name": "dp_gd"} | ({"link": "sigmoid"} if options.findings else {}))
        for epsilon in options.epsilons:
            rows = [
                measured(arena, learner, epsilon, centred(name), again)
                for again in range(options.repeats)
            ]
            means = np.mean(rows, axis=0)
            slopes = [f"{value:.2f}" for value in means[1:4]]
            losses = [f"{one:.3f}, {other:.3f}" for one, other in means[4:].reshape(-1, 2)]
            print_row(name, f"{epsilon:g}", f"{means[0]:,.0f}", *slopes, *losses)


def as_findings(arena: Arena) -> Arena:
    """The same records, each class told by itself."""
    classes = arena.constants.classes
    parts = (
        replace(
            data,
            labels=np.array(
                [number_of_findings([*np.eye(classes, dtype=int)[one]]) for one in data.labels]
            ),
        )
        for data in (arena.train, arena.test)
    )
    train, test = parts
    return replace(arena, train=train, test=test, constants=replace(arena.constants, labels=MANY))


def measured(arena: Arena, learner: Any, epsilon: float, taken: bool, again: int) -> list[float]:
    """n0 mu, three slopes, and two figures of each way."""
    mu = gdp.mu_from_epsilon(epsilon, arena.constants.delta)
    share = calibration_share(arena.constants.n0 * mu)
    entry = Entry(math.sqrt(1.0 - share) * mu)
    [head] = heads(arena, [ask_for(f"slope {again}", arena, learner, entry, centred=taken)])
    nothing = Calibrating(learner, arena.constants, mu)
    law, by_law = nothing.run(head, arena.train, PublicMeter((), arena, "none"))
    bought = Calibrating(learner, arena.constants, mu, math.sqrt(share) * mu, share)
    meter = PublicMeter(bought.declared.draws, arena, f"map {again}")
    mapped, by_map = bought.run(head, arena.train, meter)
    cooled = turned(arena.constants, head, private_slope(arena, head, math.sqrt(share) * mu))
    tried = [scores(arena, turned(arena.constants, head, slope)) for slope in SLOPES]
    best = int(np.argmin([loss for loss, _ in tried]))
    figures = (scores(arena, one) for one in (head, law, mapped, cooled))
    return [
        arena.constants.n0 * mu,
        SLOPES[best],
        by_law.slope,
        by_map.slope,
        *(figure for pair in (*figures, tried[best]) for figure in pair),
    ]


def private_slope(arena: Arena, head: Weights, mu: float) -> float:
    """The inverse of a temperature that noisy descent finds, from 1 on: a record's gradient by the
    slope's logarithm is cut to 1 either way."""
    constants, data, log_slope = arena.constants, arena.train, 0.0
    noise = np.random.default_rng(0).normal(size=STEPS) * math.sqrt(STEPS) / mu
    if constants.labels == MANY:
        said = log_odds(constants.classes, logits, head, data.features)
        present = np.stack(
            [one for one, _ in states_by_finding(data.labels, constants.classes)], axis=1
        )
    else:
        said = logits(head, data.features)
        present = np.eye(constants.classes)[data.labels]
    for step in range(STEPS):
        odds = math.exp(log_slope) * said
        likely = sigmoid(odds) if constants.labels == MANY else softmax(odds)
        each = ((likely - present) * odds).sum(axis=1)
        log_slope -= (np.clip(each, -1.0, 1.0).sum() + noise[step]) / constants.n0
        log_slope = min(max(log_slope, math.log(SLOPES[0])), math.log(SLOPES[-1]))
    return math.exp(log_slope)


def turned(constants: Constants, head: Weights, slope: float) -> Weights:
    bias = np.zeros((constants.classes, 1), np.float32)
    if constants.labels == MANY:
        bias += (slope - 1.0) * -math.log(constants.classes - 1)
    return (np.concatenate([slope * head[0], bias], axis=1),)


def scores(arena: Arena, weights: Weights) -> tuple[float, float]:
    """Log-loss and calibration error of the test part; of findings, the mean over them."""
    constants, data = arena.constants, arena.test
    if constants.labels == MANY:
        odds = log_odds(constants.classes, logits, weights, data.features)
        states = states_by_finding(data.labels, constants.classes)
        present = np.stack([present for present, _ in states], axis=1)
        loss = np.logaddexp(0.0, odds) - present * odds
        there = 1.0 / (1.0 + np.exp(-odds))
        return float(loss.mean()), calibration_error(
            np.maximum(there, 1.0 - there).ravel(), ((there > 0.5) == present).ravel()
        )
    likely = softmax(logits(weights, data.features))
    of_label = likely[np.arange(len(data.labels)), data.labels]
    right = likely.argmax(axis=1) == data.labels
    return float(-np.log(of_label).mean()), calibration_error(likely.max(axis=1), right)


def calibration_error(sure: Floats, right: Any, bins: int = 15) -> float:
    """How far confidence and share right are apart, over bins of confidence (Guo et al. 2017,
    Eq. 5)."""
    places = np.minimum((sure * bins).astype(int), bins - 1)
    gaps = np.bincount(places, sure - right, minlength=bins)
    return float(np.abs(gaps).sum() / len(sure))


if __name__ == "__main__":
    main()
