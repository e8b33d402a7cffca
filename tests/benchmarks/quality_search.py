"""How good is the search? Real ladders on public data in research mode, every score noised and charged.

python tests/benchmarks/quality_search.py mnist5k [--repeats 200] [--cache FOLDER] [--seed 0]
python tests/benchmarks/quality_search.py digits | mixture

Every method ends at the same total epsilon. RERR is the share of the gap between random search (one draw, the whole
budget) and the oracle (the best of a grid, tuned for free) that a method closes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpladder.config.learners import Descent
from dpladder.config.model import Features, Fit, Resources, Rung, Search, Select, Sweep
from dpladder.learn import dp_gd, score
from dpladder.learn.engine import train_many
from dpladder.learn.interface import Constants, Data, Hyper
from dpladder.privacy import gdp
from dpladder.privacy.ledger import Terms
from dpladder.privacy.meter import Meter
from dpladder.privacy.noise import ResearchNoise
from dpladder.privacy.spend import Job
from dpladder.search.fit import fit_radius
from dpladder.search.select import best
from dpladder.search.space import bounds, decompose, draw
from dpladder.search.trial import Trial

EPSILON, DELTA = 1.0, 1e-5
WIDE = 32  # trainings that share one pass over the features
GRID, GRID_REPEATS = 13, 12
LEARNER = Descent()
LADDER = (Rung(epsilon=0.1, trials=3), Rung(epsilon=0.2, trials=3))


@dataclass(frozen=True)
class Problem:
    """Public data, cut once into what is trained on and what is tested on."""

    name: str
    train: Data
    test: Data
    constants: Constants
    resources: Resources


@dataclass(frozen=True)
class Run:
    """One training to do: its r, its mu, what its score may spend, and a name that no other training has."""

    r: float
    mu: float
    score_mu: float
    name: str


@dataclass(frozen=True)
class Outcome:
    accuracy: NDArray[np.float64]  # of each repeat's final model on the test records
    r_star: NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problem", choices=["mnist5k", "digits", "mixture"])
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, help="where extracted features stay between runs")
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    problem = replace(load(asked.problem, asked.cache), resources=Resources(threads=asked.threads))
    compare(problem, asked.repeats, asked.seed)


def compare(problem: Problem, repeats: int, seed: int) -> None:
    """One line per method, as soon as it is known."""
    print(f"{problem.name}: {repeats} repeats, total epsilon {EPSILON:g} at delta {DELTA:g}", flush=True)
    r, curve = oracle(problem, seed)
    for radius, accuracy in zip(r, curve, strict=True):
        print(f"  r {radius:8.3g}  accuracy {accuracy:.3f}")
    top = float(curve.max())
    floor = {}
    for law in ("uniform", "log_uniform"):
        outcome = random_search(problem, Search(draw=law), repeats, seed)
        floor[law] = float(outcome.accuracy.mean())
        report(f"random search, {law}", outcome, floor, top)
    for name, (sweep, fit) in methods().items():
        report(name, ladder(problem, sweep, fit, repeats, seed), floor, top)
    print(f"  {'oracle':46s} mean {top:.4f}")


def methods() -> dict[str, tuple[Sweep, Fit]]:
    def sweep(draw: str, prior: str = "none") -> Sweep:
        return Sweep(rungs=LADDER, search=Search(draw=draw, prior=prior), select=Select())

    return {
        "ours: stratified, pooled": (sweep("stratified"), Fit(using="pooled")),
        "ours, proportional prior": (sweep("stratified", "proportional"), Fit(using="pooled")),
        "paper: uniform, line through best": (sweep("uniform"), Fit(using="best")),
    }


def report(name: str, outcome: Outcome, floor: dict[str, float], top: float) -> None:
    mean, low = outcome.accuracy.mean(), np.percentile(outcome.accuracy, 10)
    rerr = "  ".join(f"RERR over {law} {(mean - base) / (top - base):6.1%}" for law, base in floor.items())
    center = math.exp(np.log(outcome.r_star).mean())
    print(f"  {name:46s} mean {mean:.4f}  p10 {low:.4f}  r* {center:6.2f}  {rerr}", flush=True)


def ladder(
    problem: Problem, sweep: Sweep, fit: Fit, repeats: int, seed: int, epsilon: float = EPSILON
) -> Outcome:
    """Whole ladders at the same total, their draws' seeds the only difference between them."""
    searches = [sweep.search.model_copy(update={"seed": repeat}) for repeat in range(repeats)]
    histories: list[list[Trial]] = [[] for _ in searches]
    spent = []
    for index, rung in enumerate(sweep.rungs):
        mu = gdp.mu(rung.epsilon, DELTA)
        score_mu = math.sqrt(sweep.select.share) * mu
        spent += [mu] * rung.trials
        plans = [
            [draw(search, rung.epsilon, index, trial, below(history, index)) for trial in range(rung.trials)]
            for search, history in zip(searches, histories, strict=True)
        ]
        train_mu = gdp.remaining(mu, [score_mu])
        runs = [
            Run(r, train_mu, score_mu, f"{sweep}{fit}{epsilon} {repeat} {index} {trial}")
            for repeat, plan in enumerate(plans)
            for trial, r in enumerate(plan)
        ]
        scores, _ = train(problem, runs, seed)
        sd = score.noise_scale(score_mu, problem.constants)
        for place, (run, noised) in enumerate(zip(runs, scores, strict=True)):
            repeat, trial = divmod(place, rung.trials)
            histories[repeat].append(
                Trial(index, trial, rung.epsilon, train_mu, run.r, float(noised), sd, problem.constants.n0)
            )
    left = gdp.remaining(gdp.mu(epsilon, DELTA), spent)
    found = [
        fit_radius(history, gdp.epsilon(left, DELTA), left, search, fit).r_star
        for history, search in zip(histories, searches, strict=True)
    ]
    finals = [Run(r, left, left, f"{sweep}{fit}{epsilon} {repeat} final") for repeat, r in enumerate(found)]
    return Outcome(train(problem, finals, seed)[1], np.array(found))


def below(history: Sequence[Trial], rung: int) -> Trial | None:
    earlier = [trial for trial in history if trial.rung == rung - 1]
    return best(earlier) if earlier else None


def random_search(problem: Problem, search: Search, repeats: int, seed: int) -> Outcome:
    mu = gdp.mu(EPSILON, DELTA)
    r = [draw(search.model_copy(update={"seed": repeat}), EPSILON, 0, 0) for repeat in range(repeats)]
    runs = [Run(radius, mu, mu, f"random {search.draw} {repeat}") for repeat, radius in enumerate(r)]
    return Outcome(train(problem, runs, seed)[1], np.array(r))


def oracle(
    problem: Problem, seed: int, epsilon: float = EPSILON
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean test accuracy over a grid of r with the whole budget for each training: what no private method knows."""
    r = np.geomspace(*bounds(Search()), GRID)
    mu = gdp.mu(epsilon, DELTA)
    runs = [
        Run(float(x), mu, mu, f"oracle {epsilon} {x} {again}") for x in r for again in range(GRID_REPEATS)
    ]
    return r, train(problem, runs, seed)[1].reshape(GRID, GRID_REPEATS).mean(axis=1)


def train(
    problem: Problem, runs: Sequence[Run], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Each run's noised score on the training records, and its accuracy on the test records."""
    scores, accuracy = np.empty(len(runs)), np.empty(len(runs))
    # Like lengths together: a batch is as long as its longest.
    order = sorted(range(len(runs)), key=lambda place: decompose(runs[place].r, Search())[1])
    terms = Terms(problem.name, "add_remove", "record", 1, DELTA, "given", mode="research")
    for start in range(0, len(order), WIDE):
        batch = order[start : start + WIDE]
        hypers = [Hyper(*decompose(runs[place].r, Search()), runs[place].mu) for place in batch]
        meters = [
            Meter(
                (
                    *dp_gd.declare(LEARNER, hyper, problem.constants).draws,
                    *score.declare(runs[place].score_mu, problem.constants).draws,
                ),
                ResearchNoise(terms, Job(problem.name, "run_trial", (("name", runs[place].name),)), seed),
            )
            for place, hyper in zip(batch, hypers, strict=True)
        ]
        heads = train_many(problem.train, hypers, LEARNER, problem.constants, meters, problem.resources)
        for place, head, meter in zip(batch, heads, meters, strict=True):
            run, data = runs[place], problem.train
            scores[place] = score.noised_count(
                (head,), data.features, data.labels, run.score_mu, problem.constants, meter
            )
            meter.close()
            right = score.correct_count((head,), problem.test.features, problem.test.labels)
            accuracy[place] = right / len(problem.test.labels)
    return scores, accuracy


def load(name: str, cache: Path | None = None) -> Problem:
    """`mixture`: 5 Gaussian classes in 64 dimensions, off the origin."""
    if name == "mixture":
        random = np.random.default_rng(1)
        means = random.normal(size=(5, 64))
        means *= 2.1 / np.linalg.norm(means, axis=1, keepdims=True)
        labels = random.integers(5, size=5000)
        features = (means[labels] + random.normal(size=(5000, 64)) + 0.5).astype(np.float32)
        return split(name, features, labels, 3000)
    kept = None if cache is None else cache / f"{name}.npz"
    if kept is None or not kept.exists():
        features, labels = extract(name)
        if kept is not None:
            np.savez(kept, features=features, labels=labels)
    else:
        with np.load(kept) as arrays:
            features, labels = arrays["features"], arrays["labels"]
    return split(name, features, labels, len(labels) * 4 // 5)


def extract(name: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """mnist5k through the bundled network at 96 pixels; digits as raw pixels."""
    from dpladder.data.backbones import encoder
    from dpladder.data.datasets import open_source

    source = open_source(name)
    features = Features(model="none") if name == "digits" else Features(image_size=96, batch_size=50)
    network = encoder(features, source, threads=2)
    records = [network.load(source.read(index)) for index in range(len(source.labels))]
    if name == "digits":
        rows = np.stack(records)
    else:
        batches = (np.stack(records[start : start + 50]) for start in range(0, len(records), 50))
        rows = np.concatenate(list(network.encode(batches)))
    return rows.astype(np.float32), np.asarray(source.labels, dtype=np.int64)


def split(name: str, features: NDArray[np.float32], labels: NDArray[np.int64], count: int) -> Problem:
    order = np.random.default_rng(0).permutation(len(labels))
    features, labels = features[order], labels[order].astype(np.int64)
    constants = Constants(n0=count, classes=int(labels.max()) + 1, dimension=features.shape[1], delta=DELTA)
    train, test = Data(features[:count], labels[:count]), Data(features[count:], labels[count:])
    return Problem(name, train, test, constants, Resources(threads=1))


if __name__ == "__main__":
    main()
