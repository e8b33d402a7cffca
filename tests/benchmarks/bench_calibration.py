"""How honest probabilities are: as they were trained, by the public law, by the map that is bought,
by a private temperature for the same price (Zhang et al. 2022, arXiv 2210.08248), and at the slope
that is best for the test itself, which nobody may use. Beside them stand the base rate, said to
everybody, and logistic regression without noise. Public data, seeded.

    python tests/benchmarks/bench_calibration.py [--data digits ...] [--epsilons 1] [--repeats 2]
        [--findings] [--learner dp_ls] [--cache FOLDER]

Each data set of tools/arena.py is trained with a whole total at the prior's kappa; with --findings
its classes are told each by itself. Prints slopes, and log-loss and calibration error (15 bins); a
release has the map where the plan buys it, else the law. At last it names rows where a release is
worse than the base rate, or as right as no noise and less honest.

`rated` are sentences of writers, who are its units: its files stand in data/rated
(tools/arena.py).
"""

from __future__ import annotations

import math
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from arena import DELTA, by_writers, less_own_mean, load
from compare_hpo import arena_at
from sklearn.linear_model import LogisticRegression
from terminal import print_head, print_row, read_options
from trainings import ask_for, heads

from dpladder.config.label_sets import MANY, number_of_findings, states_by_finding
from dpladder.config.learners import learner_of
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, Weights, sigmoid_bias
from dpladder.learn.layers import turn_head
from dpladder.learn.measures.calibrate import Calibrating
from dpladder.learn.score import log_odds, logits, sigmoid, softmax
from dpladder.plan.resolve import (
    CALIBRATES_MORE,
    CALIBRATES_TWO,
    MEAN,
    PAYS,
    calibration_share,
)
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import Entry
from dpladder.privacy.arrays import Floats
from dpladder.research.arena import Arena, PublicMeter

EPSILONS, STEPS = (0.3, 1.0, 4.0), 20
DATA = (
    *("digits", "mixture", "mnist5k", "mnist5k-auto", "clothes", "clothes-auto", "bible-auto"),
    "rated",
)
SLOPES = np.exp(np.linspace(math.log(0.05), math.log(4.0), 90))
HEADS = ("data", "epsilon", "n0*mu", "best slope", "law", "map", "as trained", "by the law")
INVERSE_RIDGES = tuple(10.0**power for power in range(-2, 5))  # of rows of length 1
RIGHT, HONEST = (
    0.01,
    0.03,
)  # how near no noise a release should be by its log-loss, where it is right


def main() -> None:
    options = read_options(
        __doc__,
        data=list[str],
        epsilons=EPSILONS,
        repeats=2,
        findings=False,
        learner="dp_gd",
        cache=Path,
    )
    print_head(
        *(*HEADS, "bought", "private temperature", "best"),
        *("base rate", "accuracy, log-loss without noise", "accuracy, log-loss released"),
    )
    notes = []
    for name in options.data or DATA:
        learner = learner_of(
            {"name": options.learner} | ({"link": "sigmoid"} if options.findings else {})
        )
        arena = by_writers(options.cache) if name == "rated" else load(name, options.cache)
        if options.findings:
            arena = as_findings(arena)
        base, (right, least) = base_rate(arena), without_noise(arena)
        for epsilon in options.epsilons:
            seen, mu, taken = seen_at(name, epsilon, options.cache)
            if options.findings:
                seen = as_findings(seen)
            rows = [measured(seen, learner, mu, taken, again) for again in range(options.repeats)]
            means = np.mean(rows, axis=0)
            slopes = [f"{value:.2f}" for value in means[1:4]]
            *pairs, (right_released, released) = means[4:].reshape(-1, 2)
            losses = [f"{one:.3f}, {other:.3f}" for one, other in pairs]
            ends = (
                f"{base:.3f}",
                f"{right:.3f}, {least:.3f}",
                f"{right_released:.3f}, {released:.3f}",
            )
            print_row(name, f"{epsilon:g}", f"{means[0]:,.0f}", *slopes, *losses, *ends)
            if released > base:
                notes.append(
                    f"{name} at {epsilon:g}: worse than the base rate by {released - base:.3f}"
                )
            if right_released > right - RIGHT:
                near = "within" if released < least + HONEST else "not within"
                notes.append(
                    f"{name} at {epsilon:g}: as right as no noise, log-loss "
                    f"{released - least:+.3f}, {near} {HONEST:g}"
                )
    print("", *notes, sep="\n")


def seen_at(name: str, epsilon: float, cache: Path | None) -> tuple[Arena, float, bool]:
    """Data as a release sees them at this total: less a mean that is bought where it pays. With
    what is left of mu, and whether there is a mean."""
    if name != "rated":
        told = Namespace(problem=name, centre="bought", cache=cache, seed=0)
        arena, left, taken = arena_at(told, epsilon)
        return arena, gdp.mu_from_epsilon(left, DELTA), taken
    arena, mu = by_writers(cache), gdp.mu_from_epsilon(epsilon, DELTA)
    share = MEAN if arena.constants.n0 * mu >= PAYS else 0.0
    return less_own_mean(arena, mu, share), math.sqrt(1.0 - share) * mu, share > 0.0


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


def measured(arena: Arena, learner: Any, mu: float, taken: bool, again: int) -> list[float]:
    """n0 mu, three slopes, two figures of each way, and accuracy and log-loss of a release."""
    share = calibration_share(arena.constants.n0 * mu)
    entry = Entry(math.sqrt(1.0 - share) * mu)
    [head] = heads(arena, [ask_for(f"slope {again}", arena, learner, entry, centred=taken)])
    nothing = Calibrating(learner, arena.constants, mu)
    law, by_law = nothing.run(head, arena.train, PublicMeter((), arena, "none"))
    bought = Calibrating(learner, arena.constants, mu, math.sqrt(share) * mu, share)
    meter = PublicMeter(bought.declared.draws, arena, f"map {again}")
    mapped, by_map = bought.run(head, arena.train, meter)
    cooled = turned(arena, learner, head, private_slope(arena, head, math.sqrt(share) * mu))
    tried = [scores(arena, turned(arena, learner, head, slope)) for slope in SLOPES]
    best = int(np.argmin([loss for loss, _ in tried]))
    figures = [scores(arena, one) for one in (head, law, mapped, cooled)]
    released = mapped if buys_map(arena.constants, mu) else law
    return [
        arena.constants.n0 * mu,
        SLOPES[best],
        by_law.slope,
        by_map.slope,
        *(figure for pair in (*figures, tried[best]) for figure in pair),
        share_right(arena, released),
        scores(arena, released)[0],
    ]


def buys_map(constants: Constants, mu: float) -> bool:
    """Whether the plan buys a map (plan/resolve.py)."""
    two = constants.classes == 2 and constants.labels == 1
    return constants.n0 * mu >= (CALIBRATES_TWO if two else CALIBRATES_MORE)


def share_right(arena: Arena, weights: Weights) -> float:
    """Accuracy on the test part; of findings, the mean over them."""
    constants, data = arena.constants, arena.test
    if constants.labels == MANY:
        odds = log_odds(constants.classes, logits, weights, data.features)
        return float(np.mean((odds > 0.0) == present_of(data, constants)))
    return float(np.mean(logits(weights, data.features).argmax(axis=1) == data.labels))


def present_of(data: Data, constants: Constants) -> Any:
    """What is true of each record: a column for each finding, or for each class."""
    if constants.labels != MANY:
        return data.labels[:, None] == np.arange(constants.classes)
    states = states_by_finding(data.labels, constants.classes)
    return np.stack([present for present, _ in states], axis=1)


def base_rate(arena: Arena) -> float:
    """The log-loss of saying to everybody how often each class is there in the training part."""
    rates = present_of(arena.train, arena.constants).mean(axis=0)
    true = present_of(arena.test, arena.constants)
    if arena.constants.labels == MANY:
        return float(-(np.log(rates) * true + np.log1p(-rates) * ~true).mean())
    return float(-(np.log(rates) * true).sum(axis=1).mean())


def without_noise(arena: Arena) -> tuple[float, float]:
    """Accuracy and log-loss of logistic regression, whose ridge a fifth of the training part
    chooses; of findings, the mean over them."""
    constants = arena.constants
    rows, test_rows = (
        data.features / np.linalg.norm(data.features, axis=1, keepdims=True)
        for data in (arena.train, arena.test)
    )
    if constants.labels == MANY:
        goals, truths = ([*present_of(data, constants).T] for data in (arena.train, arena.test))
    else:
        goals, truths = [arena.train.labels], [arena.test.labels]
    held_out = np.arange(len(rows)) % 5 == 0
    found = []
    for goal, truth in zip(goals, truths, strict=True):
        losses = [
            regressed(rows[~held_out], goal[~held_out], rows[held_out], goal[held_out], one)[1]
            for one in INVERSE_RIDGES
        ]
        best = INVERSE_RIDGES[int(np.argmin(losses))]
        found.append(regressed(rows, goal, test_rows, truth, best))
    right, loss = np.mean(found, axis=0)
    return float(right), float(loss)


def regressed(
    rows: Any, goals: Any, test_rows: Any, truths: Any, inverse_ridge: float
) -> tuple[float, float]:
    """Accuracy and log-loss on other records."""
    model = LogisticRegression(C=inverse_ridge, max_iter=300, tol=1e-3).fit(rows, goals)
    likely = np.maximum(model.predict_proba(test_rows), 1e-12)
    places = np.searchsorted(model.classes_, truths)
    own = likely[np.arange(len(truths)), places]
    return float(np.mean(likely.argmax(axis=1) == places)), float(-np.log(own).mean())


def private_slope(arena: Arena, head: Weights, mu: float) -> float:
    """The inverse of a temperature that noisy descent finds, from 1 on: a record's gradient by the
    slope's logarithm is cut to 1 either way."""
    constants, data, log_slope = arena.constants, arena.train, 0.0
    noise = np.random.default_rng(0).normal(size=STEPS) * math.sqrt(STEPS) / mu
    if constants.labels == MANY:
        said = log_odds(constants.classes, logits, head, data.features)
    else:
        said = logits(head, data.features)
    present = present_of(data, constants)
    for step in range(STEPS):
        odds = math.exp(log_slope) * said
        likely = sigmoid(odds) if constants.labels == MANY else softmax(odds)
        each = ((likely - present) * odds).sum(axis=1)
        log_slope -= (np.clip(each, -1.0, 1.0).sum() + noise[step]) / constants.n0
        log_slope = min(max(log_slope, math.log(SLOPES[0])), math.log(SLOPES[-1]))
    return math.exp(log_slope)


def turned(arena: Arena, learner: Any, head: Weights, slope: float) -> Weights:
    constants = arena.constants
    shifts = np.zeros(constants.classes)
    if constants.labels == MANY:
        shifts += (slope - 1.0) * sigmoid_bias(constants.classes)
    return turn_head(learner, constants, head, slope, shifts)


def scores(arena: Arena, weights: Weights) -> tuple[float, float]:
    """Log-loss and calibration error of the test part; of findings, the mean over them."""
    constants, data = arena.constants, arena.test
    if constants.labels == MANY:
        odds = log_odds(constants.classes, logits, weights, data.features)
        present = present_of(data, constants)
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
