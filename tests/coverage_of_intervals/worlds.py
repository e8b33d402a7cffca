"""Public populations, a model of each, and what is true of it there.

A draw is a test part of the population with the noise of its price. So what the product states of a
draw can be set beside what is true. Every figure has a row in some world: `test_intervals.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import f1_score, roc_auc_score

from dpladder.config.dataset_sections import NumberTarget
from dpladder.config.label_sets import MANY, NUMBER, TARGET_STEPS, number_of_findings
from dpladder.learn.counts import sum_of
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.learn.measures import tables
from dpladder.learn.measures.figures import DECISIONS
from dpladder.learn.measures.tables import MeasuredModel
from dpladder.learn.measures.tested import CountTable, GroupNames, Tested
from dpladder.learn.scorers import ClassScorer, FindingScorer, LossScorer, NumberScorer
from dpladder.privacy.accounting.gdp import mu_from_epsilon
from dpladder.privacy.accounting.rounding import NoisedFigure

DELTA = 1e-6
Figures = dict[str, NoisedFigure | None]


@dataclass(frozen=True)
class World:
    """One population, and what a test says of a model there.

    Attributes:
        name: of the world.
        measures: what is bought.
        model: it says of each record what the record's features are.
        population: all records.
        records: of a test part.
        epsilon: of a test.
        truth: what is true, by the name of a figure; of errors of numbers, up to the largest one
            that a test counted.
        wide: figures whose interval is wider than it need be, each with the reason.
    """

    name: str
    measures: tuple[Any, ...]
    model: MeasuredModel
    population: Data
    records: int
    epsilon: float
    truth: Callable[[Tested], Mapping[str, float]]
    wide: Mapping[str, str]

    def draws(self, count: int, seed: int = 0) -> Iterator[Tested]:
        """What so many tests say, each of other records, with other noise."""
        random = np.random.default_rng(seed)
        for _ in range(count):
            rows = random.integers(0, len(self.population.labels), self.records)
            yield told_of(self, rows, random)


def told_of(world: World, rows: Any, random: np.random.Generator) -> Tested:
    """What one test says of these records of the population."""
    model, everybody = world.model, world.population
    groups = None if everybody.groups is None else everybody.groups[rows]
    data = Data(everybody.features[rows], everybody.labels[rows], groups=groups)
    wanted = tables.tables_of(world.measures, model)
    prices = tables.prices_of(wanted, mu_from_epsilon(world.epsilon, DELTA))
    bought: dict[str, Any] = {}
    for table, mu in zip(wanted, prices, strict=True):
        exact = sum_of(table.question(model, mu, bought), data, model.constants)
        sd = table.query(model, mu).scale(model.constants)
        bought[table.holds] = exact + random.normal(0.0, sd, exact.shape), sd
    cells = {holds: CountTable(counts.tolist(), sd) for holds, (counts, sd) in bought.items()}
    return tables.figures_of_counts(tables.released(model, cells))


def figures_of(told: Tested) -> Figures:
    """All that a test states, by name: its score, and each figure, class, group and finding."""
    found: Figures = {"score": told.score, **told.figures}
    found |= {f"class {one.name}": one.score for one in told.classes or ()}
    found |= {f"group {one.name}": one.score for one in told.groups or ()}
    if told.worst is not None and told.worst.interval is not None:
        found["worst"] = NoisedFigure(told.worst.value, told.worst.sd, *told.worst.interval)
    for one in told.findings or ():
        found |= {f"{one.name}: {name}": figure for name, figure in one.figures.items()}
        found[f"{one.name}: accuracy"] = one.accuracy
    for cell in told.reliability or ():
        found[f"bin {cell.upper:.1f}"] = cell.accuracy
    return found


def says_its_features(rows: Any) -> Any:
    return np.asarray(rows, np.float64)


def of_classes(logits: Any, labels: Any, places: Any = None, **facts: Any) -> Any:
    classes = logits.shape[1]
    scorer = ClassScorer(lambda _, rows: says_its_features(rows))
    names = tuple("abcdefghij"[:classes])
    constants = Constants(1000, classes, classes)
    model = MeasuredModel((np.zeros((classes, 1), np.float32),), scorer, constants, names, **facts)
    return model, Data(logits, np.asarray(labels, np.int64), groups=places)


def calibration_of(logits: Any, labels: Any) -> dict[str, float]:
    sure, right = softmax(logits, axis=1).max(axis=1), logits.argmax(axis=1) == labels
    bins = np.minimum((sure * 10).astype(int), 9)
    gaps = [abs((sure[bins == one] - right[bins == one]).sum()) for one in range(10)]
    shares = {f"bin {(one + 1) / 10:.1f}": right[bins == one].mean() for one in {*bins.tolist()}}
    return {
        "calibration_error": sum(gaps) / len(labels),
        "overconfidence": sure.mean() - right.mean(),
        **shares,
    }


def rare_class() -> World:
    """Made-up scores, 12 % of them of the second class, of a model that is too sure."""
    random = np.random.default_rng(1)
    labels = (random.random(100_000) < 0.12).astype(int)
    distance = 1.5
    x = random.normal(size=len(labels)) + distance * labels
    margins = 1.5 * (distance * x - distance**2 / 2 + logit(0.12))
    logits = np.stack([np.zeros(len(labels)), margins], axis=1)
    model, everybody = of_classes(logits, labels)
    right = logits.argmax(axis=1) == labels
    by_class = {f"class {'ab'[one]}": float(right[labels == one].mean()) for one in (0, 1)}
    true = {
        "score": right.mean(),
        "auc": roc_auc_score(labels, margins),
        "balanced": np.mean([*by_class.values()]),
        **by_class,
        **calibration_of(logits, labels),
    }
    wide = {"calibration_error": "a sum of absolute values, each with an interval of its own"}
    measures = ("auc", "calibration", "decision")
    acts, has = margins >= logit(0.1), labels == 1
    true |= {
        "sensitivity_at_threshold": acts[has].mean(),
        "specificity_at_threshold": (~acts)[~has].mean(),
        "positive_predictive_value_at_threshold": has[acts].mean(),
        "negative_predictive_value_at_threshold": (~has)[~acts].mean(),
    }
    model = replace(model, threshold=0.1)
    return World("rare class", measures, model, everybody, 3000, 4.0, lambda _: true, wide)


def tumours() -> World:
    """scikit-learn's breast cancer, of a model fitted to a tenth of it."""
    x, labels = load_breast_cancer(return_X_y=True)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    fitted = LogisticRegression(C=0.003).fit(x[::10, :3], labels[::10])
    margins = fitted.decision_function(x[:, :3])
    model, everybody = of_classes(np.stack([0 * margins, margins], axis=1), labels)
    right = (margins > 0) == labels
    by_class = {f"class {'ab'[one]}": float(right[labels == one].mean()) for one in (0, 1)}
    true = {
        "score": right.mean(),
        "auc": roc_auc_score(labels, margins),
        "balanced": np.mean([*by_class.values()]),
        **by_class,
    }
    return World("tumours", ("auc",), model, everybody, 1500, 2.0, lambda _: true, {})


def digits() -> World:
    """scikit-learn's digits, three of them, of a weak model."""
    x, labels = load_digits(return_X_y=True)
    x, labels = x[labels < 3, :18], labels[labels < 3]
    logits = LogisticRegression(max_iter=500, C=0.01).fit(x[::9], labels[::9]).decision_function(x)
    model, everybody = of_classes(logits, labels)
    said = logits.argmax(axis=1)
    by_class = {
        f"class {'abc'[one]}": float((said == one)[labels == one].mean()) for one in range(3)
    }
    true = {
        "score": (said == labels).mean(),
        "balanced": np.mean([*by_class.values()]),
        "f1": f1_score(labels, said, average="macro"),
        **by_class,
    }
    return World("digits", ("confusion",), model, everybody, 2000, 2.0, lambda _: true, {})


def hospitals() -> World:
    """Made-up groups, of which one was not trained on."""
    random = np.random.default_rng(2)
    groups = random.integers(0, 3, 60_000)
    right = random.random(len(groups)) < np.array([0.93, 0.85, 0.99])[groups]
    logits = np.stack([right, ~right], axis=1).astype(float)
    names = GroupNames(("x", "y", "z"), ("x", "z"), ("x", "z"))
    model, everybody = of_classes(logits, np.zeros(len(groups)), groups, groups=names)
    each = [right[groups == one].mean() for one in range(3)]
    true = {
        "score": right[groups != 1].mean(),
        "elsewhere": each[1],
        "worst": min(each),
        **{f"group {name}": each[place] for place, name in enumerate("xyz")},
    }
    return World("hospitals", ("groups",), model, everybody, 1500, 2.0, lambda _: true, {})


ONE_FINDING = "the same records may be right about all findings, or wrong"


def findings(measure: str = "auc") -> World:
    """Made-up findings, with a cause in common."""
    random = np.random.default_rng(3)
    cause = random.normal(size=(40_000, 1))
    shares, distance = np.array([0.3, 0.1, 0.5]), 1.8
    present = cause + random.normal(size=(40_000, 3)) < math.sqrt(2.0) * np.array([-0.52, -1.28, 0])
    x = random.normal(size=present.shape) + distance * present
    logits = distance * x - distance**2 / 2 + logit(shares)
    labels = np.array([number_of_findings(row.astype(int).tolist()) for row in present])
    constants = Constants(1000, 3, 3, labels=MANY)
    scorer = FindingScorer(lambda _, rows: says_its_features(rows))
    model = MeasuredModel((np.zeros((3, 1), np.float32),), scorer, constants, tuple("abc"))
    true: dict[str, float] = {}
    for place, name in enumerate("abc"):
        has, said = present[:, place], logits[:, place] > 0
        sensitivity, specificity = said[has].mean(), (~said)[~has].mean()
        true |= {
            f"{name}: sensitivity": sensitivity,
            f"{name}: specificity": specificity,
            f"{name}: balanced": (sensitivity + specificity) / 2,
            f"{name}: f1": f1_score(has, said),
            f"{name}: auc": roc_auc_score(has, logits[:, place]),
            f"{name}: accuracy": (has == said).mean(),
        }
        acts = logits[:, place] >= logit(0.2)
        true |= {
            f"{name}: sensitivity_at_threshold": acts[has].mean(),
            f"{name}: specificity_at_threshold": (~acts)[~has].mean(),
            f"{name}: positive_predictive_value_at_threshold": has[acts].mean(),
            f"{name}: negative_predictive_value_at_threshold": (~has)[~acts].mean(),
        }
    for figure in ("sensitivity", "specificity", "balanced", "f1", "auc"):
        true[figure] = float(np.mean([true[f"{name}: {figure}"] for name in "abc"]))
    for one in DECISIONS:
        true[one.name] = float(np.mean([true[f"{name}: {one.name}"] for name in "abc"]))
    if measure != "accuracy":
        true["score"] = (present == (logits > 0)).mean()
    else:
        true = {"score": 1.0 - ((expit(logits) - present) ** 2).mean()}
    means = ("score", "sensitivity", "specificity", "balanced", "f1", "auc")
    wide = dict.fromkeys((*means, *(one.name for one in DECISIONS)), ONE_FINDING)
    everybody = Data(logits, labels)
    model = replace(model, threshold=0.2)
    name = f"{'probabilities' if measure == 'accuracy' else measure} of findings"
    return World(name, (measure,), model, everybody, 3000, 4.0, lambda _: true, wide)


def numbers(measures: tuple[str, ...]) -> World:
    """y = 5x + 10 and noise of 1, in a range of 70."""
    random = np.random.default_rng(4)
    said = 5.0 * random.uniform(0, 10, 100_000) + 10.0
    y = said + random.normal(size=len(said))
    return of_numbers("a line", measures, said, y, (0.0, 70.0), 2500)


def long_tails() -> World:
    """The same line with errors of Student's t of five degrees."""
    random = np.random.default_rng(7)
    said = 5.0 * random.uniform(0, 10, 100_000) + 10.0
    y = said + random.standard_t(5, size=len(said))
    return of_numbers("long tails", ("rmse",), said, y, (0.0, 70.0), 2500)


def diabetes() -> World:
    """scikit-learn's diabetes."""
    x, y = load_diabetes(return_X_y=True)
    said = Ridge(alpha=1.0).fit(x[::3], y[::3]).predict(x)
    return of_numbers("diabetes", ("mae", "r2"), said, y, (0.0, 400.0), 2500)


def of_numbers(
    name: str, measures: Any, said: Any, y: Any, limits: tuple[float, float], records: int
) -> World:
    length = limits[1] - limits[0]
    said, y = np.clip(said, *limits), np.clip(y, *limits)
    places = ((y - limits[0]) / length * TARGET_STEPS).round().astype(np.int64)
    everybody = Data((2 * (said - limits[0]) / length - 1)[:, None], places)
    constants = Constants(1000, 1, 1, labels=NUMBER)
    weights, target = (np.ones((1, 1), np.float32),), NumberTarget(range=limits)
    model = MeasuredModel(weights, NumberScorer(), constants, (), target=target)

    def truth(told: Tested) -> Mapping[str, float]:
        assert told.largest is not None
        errors = np.minimum(np.abs(said - y), told.largest)
        square = float((errors**2).mean())
        return {
            "rmse": math.sqrt(square),
            "mae": float(errors.mean()),
            "r2": 1.0 - square / float(y.var()),
            "rmse_of_mean": float(y.std()),
        }

    wide = {"r2": "errors and numbers are taken to be far off in different records"}
    return World(
        f"{name}, {' '.join(measures)}", measures, model, everybody, records, 2.0, truth, wide
    )


def words() -> World:
    """Losses of a language model. What is stated is of the records that were tested."""
    random = np.random.default_rng(5)
    losses = random.gamma(4.0, 0.5, 2000)
    scorer = LossScorer(lambda _, rows: says_its_features(rows)[:, 0], 8.0)
    model = MeasuredModel((), scorer, Constants(1000, 2, 1), ())
    data = Data(losses[:, None], np.zeros(len(losses), np.int64))
    true = {"perplexity": math.exp(np.minimum(losses, 8.0).mean())}
    return World("words", ("accuracy",), model, data, len(losses), 1.0, lambda _: true, {})


@cache
def worlds() -> tuple[World, ...]:
    """All of them."""
    return (
        rare_class(),
        tumours(),
        digits(),
        hospitals(),
        findings(),
        findings("decision"),
        findings("accuracy"),
        numbers(("rmse",)),
        numbers(("mae", "r2")),
        diabetes(),
        long_tails(),
    )
