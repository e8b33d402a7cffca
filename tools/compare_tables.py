"""Private models of tables beside their peers, at equal totals. Public data, seeded.

python tools/compare_tables.py [--packages PACKAGES] --out tables.csv [--tables income food]
[--splits 5] [--epsilons 0.1 0.3 1 4] [--methods curves lines]

Adds a line to the file for each table of the packages, split, total and method, and prints means
over splits; without packages it prints alone. public_tables.py says how the packages are had. n0
is the number of records that train, four fifths; delta is 1e-6. Methods:

- curves, lines: dpladder as its plan has it, and with features.curves: 0. What a run pays is paid
  here: the mean, trials, the final training and its calibration; but not the count of units, 1 % of
  mu^2 at most. Numbers are learnt by what the plan takes; curves-ridge, curves-gd and lines-gd name
  dp_ridge or dp_gd;
- curves-looks: the same where trials are bought in any case, as they pay at that strength;
- dp-ebm: DP-EBM of interpret-core, at its defaults, with the same public ranges;
- adassp: Wang (2018), Algorithm 2, at Gaussian prices, on the rows of lines; numbers alone;
- trees, linear: boosted trees and logistic or least squares without noise, whatever the total.

DP-EBM needs interpret-core, which dpladder does not: `pip install --no-deps interpret-core`. What
is not installed is left out, and named.
"""

from __future__ import annotations

import csv
import time
import warnings
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from arena import arena_of, cut
from compare_regression import Problem, adassp_gdp, with_constant
from numpy.typing import NDArray
from public_tables import KEPT_APART, TABLES, TUNED, Numbers, read
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from terminal import print_head, print_row, read_options
from trainings import trained

from dpladder.config import Config, Project
from dpladder.config.curves import curves_of
from dpladder.config.features_sections import row_length
from dpladder.config.label_sets import NUMBER, number_of_target, place_in_range
from dpladder.config.learners import OF_NUMBERS
from dpladder.config.load import BASE
from dpladder.config.sweep_sections import Fit, Rung
from dpladder.config.task_rules import apply_task
from dpladder.data.centre import Map, ball, shrink_mean
from dpladder.learn import counts
from dpladder.learn.interface import Weights
from dpladder.learn.measures.calibrate import Calibrating
from dpladder.learn.queries import UnitMean
from dpladder.learn.score import place_of_logit, row_by_row_logits, softmax
from dpladder.plan.resolve import resolve_defaults
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import Entry
from dpladder.privacy.arrays import Floats, clip_rows
from dpladder.research.arena import Arena, PublicMeter
from dpladder.search.fit import place_by_prior
from dpladder.search.protocol import Setting
from dpladder.search.space import Space
from dpladder.search.sweep_value import best_ladder
from dpladder.search.training import training_of
from dpladder.section import from_document, values_of
from dpladder_papers.research.contest import Competitor, answer, start_search
from dpladder_papers.research.ladder import LadderSearcher

DELTA = 1e-6
FIGURES = ("accuracy", "auc", "log_loss", "r2", "seconds")
HEAD = ("table", "split", "epsilon", "method", "pieces", *FIGURES)


@dataclass(frozen=True)
class Split:
    """A table that is cut.

    Attributes:
        name: of the table.
        table: all of it.
        train, test: places of records.
        split: seeds the cut and all noise.
    """

    name: str
    table: Numbers
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    split: int

    @property
    def of_number(self) -> bool:
        return TABLES[self.name].of_target is not None


def main() -> None:
    options = read_options(
        __doc__,
        choices={"tables": TABLES, "methods": METHODS},
        packages=Path,
        out=Path("tables.csv"),
        tables=[*TABLES],
        splits=5,
        epsilons=[0.1, 0.3, 1.0, 4.0],
        methods=[*METHODS],
    )
    if options.packages is not None:
        run(options)
    show(means_of(options.out))


def run(options: Namespace) -> None:
    """Measure, split by split, so that what is cut off has whole splits of all tables."""
    warnings.filterwarnings("ignore")  # DP-EBM says at each fit that it was given bounds
    missing: dict[str, str] = {}
    begun = options.out.exists()
    with options.out.open("a", encoding="utf-8", newline="") as file:
        lines = csv.DictWriter(file, HEAD)
        if not begun:
            lines.writeheader()
        for split, name in product(range(options.splits), options.tables):
            problem = problem_of(name, read(name, options.packages), split)
            for method in options.methods:
                totals = options.epsilons[:1] if method in NOISELESS else options.epsilons
                try:
                    for line in filter(None, (measured(problem, method, one) for one in totals)):
                        lines.writerow(line)
                except ImportError as error:
                    missing[method] = str(error)
                file.flush()
    for what, why in missing.items():
        print(f"{what} is left out: {why}.")


def problem_of(name: str, table: Numbers, split: int) -> Split:
    order = np.random.default_rng(split).permutation(len(table.targets))
    count = len(order) * 4 // 5
    return Split(name, table, order[:count], order[count:], split)


def measured(problem: Split, method: str, epsilon: float) -> dict[str, Any] | None:
    """A line of the file; None where a method does not learn such a target."""
    method_of, numbers, classes = METHODS[method]
    if not (numbers if problem.of_number else classes):
        return None
    began = time.perf_counter()
    said, pieces = method_of(problem, epsilon)
    line = {"table": problem.name, "split": problem.split, "epsilon": f"{epsilon:g}"}
    line |= {"method": method, "pieces": pieces, "seconds": f"{time.perf_counter() - began:.2f}"}
    truth = problem.table.targets[problem.test]
    if problem.of_number:
        said = np.clip(said, *TABLES[problem.name].of_target or ())
        return line | {"r2": f"{r2_score(truth, said):.4f}"}
    return line | {
        "accuracy": f"{np.mean((said > 0.5) == truth):.4f}",
        "auc": f"{roc_auc_score(truth, said):.4f}",
        "log_loss": f"{log_loss(truth, np.clip(said, 1e-6, 1 - 1e-6)):.4f}",
    }


# --- dpladder ---


def config_of(problem: Split, epsilon: float, curves: int | None, learner: str | None) -> Config:
    """A release's config, with nothing left to choose."""
    table, target = problem.table, TABLES[problem.name].of_target
    document: dict[str, Any] = {
        "task": "classification" if target is None else "regression",
        "dataset": {
            **{"lineage": "tables", "source": "csv:table.csv"},
            "nominal_size": len(problem.train),
            "columns": [values_of(one) for one in table.columns],
            **({"classes": ("no", "yes")} if target is None else {"target": {"range": target}}),
        },
        "features": {"model": "none"} | ({} if curves is None else {"curves": curves}),
        "privacy": {"epsilon": epsilon, "delta": DELTA},
    }
    if target is not None:
        document["learner"] = {"name": learner or OF_NUMBERS}
    config = from_document(Config, document)
    if learner is None:
        config.learner.model_fields_set.discard("name")  # as config/load.py leaves it to the plan
    config = apply_task(config)
    return resolve_defaults(Project({BASE: config})).experiments[BASE]


def with_looks(config: Config, epsilon: float) -> Config:
    """The config with the trials that pay at its strength, whatever r is within reach."""
    mu = gdp.mu_from_epsilon(epsilon, DELTA)
    ladder = best_ladder(config.dataset.nominal_size * mu, centred=True)
    rungs = tuple(
        Rung(epsilon=gdp.epsilon(look.part**0.5 * mu, DELTA), trials=look.trials)
        for look in ladder.rungs
    )
    select = config.sweep.select.model_copy(update={"share": ladder.share})
    sweep = config.sweep.model_copy(update={"rungs": rungs, "select": select})
    return config.model_copy(update={"sweep": sweep})


def dpladder(
    curves: int | None,
    learner: str | None,
    problem: Split,
    epsilon: float,
    looks: bool = False,
) -> tuple[Floats, int]:
    """All that a run does, on public records with seeded noise, and how many pieces it took."""
    config = config_of(problem, epsilon, curves, learner)
    config = with_looks(config, epsilon) if looks else config
    arena, left = seen(stored(problem, config), config, gdp.mu_from_epsilon(epsilon, DELTA))
    weights = taught(arena, config, left)
    logits = row_by_row_logits(weights, arena.test.features)
    pieces = int(config.features.curves or 0)
    if problem.of_number:
        low, high = TABLES[problem.name].of_target or (0.0, 1.0)
        return low + (high - low) * place_of_logit(logits[:, 0]), pieces
    return softmax(logits)[:, 1], pieces


def stored(problem: Split, config: Config) -> Arena:
    """The table's numbers as caches hold them."""
    table, target = problem.table, TABLES[problem.name].of_target
    labels = table.targets
    if target is not None:
        labels = np.array([number_of_target(float(one), *target) for one in labels], np.int64)
    order = np.concatenate([problem.train, problem.test])
    rows = table.rows.astype(config.features.dtype)
    train, test = cut(rows[order], labels[order], len(problem.train))
    return arena_of(
        f"tables-{problem.name}",
        train,
        test,
        1 if problem.of_number else 2,
        seed=problem.split,
        delta=DELTA,
        labels=NUMBER if problem.of_number else 1,
    )


def seen(arena: Arena, config: Config, mu: float) -> tuple[Arena, float]:
    """Records as trainings see them, and what is left of mu once their mean is paid for."""
    features, mean, left = config.features, None, mu
    seen_map = Map(curves=curves_of(config.dataset.columns, int(features.curves or 0)))
    length = None if isinstance(features.length, str) else features.length
    radius, exact = (features.typical if features.length == "at_most" else None), False
    if features.mean is not None:
        radius, exact = ball(features.mean.radius, features.length)
        bought = gdp.mu_from_epsilon(features.mean.epsilon, DELTA)
        left = gdp.remaining(mu, [bought])
        query = UnitMean(
            name="mean",
            multiplier=gdp.sigma(bought, 1),
            radius=radius,
            width=seen_map.width(arena.constants.dimension),
            exact=exact,
        )
        meter = PublicMeter([query.draw(arena.constants)], arena, f"mean {mu}")
        rows = replace(arena.train, features=seen_map(arena.train.features))
        total = counts.ask(query.at(), rows, arena.constants, meter)
        noise = query.scale(arena.constants) / arena.constants.n0
        mean = shrink_mean(total / arena.constants.n0, noise)
    seen_map = replace(
        seen_map, mean=mean, radius=radius, length=length, constant=features.constant, exact=exact
    )
    train, test = (
        replace(data, features=seen_map(data.features)) for data in (arena.train, arena.test)
    )
    width = seen_map.width(arena.constants.dimension)
    constants = replace(
        arena.constants, dimension=width, length=row_length(features.length, features.typical)
    )
    return replace(arena, train=train, test=test, constants=constants), left


def taught(arena: Arena, config: Config, mu: float) -> Weights:
    """The released weights: trials where the plan bought some, the final training, and what
    calibrates it."""
    space = Space(config.sweep.search, config.learner, arena.constants)
    rungs = tuple((rung.epsilon, rung.trials) for rung in config.sweep.ladder)
    trials = [gdp.mu_from_epsilon(one, DELTA) for one, number in rungs for _ in range(number)]
    final = gdp.remaining(mu, trials)
    calibrate = config.final.calibrate
    share = None if calibrate is None else calibrate.share
    bought = None if share is None else share**0.5 * final
    trains = final if bought is None else gdp.remaining(final, [bought])
    name = f"{config.learner.name} {config.features.curves} {mu}"
    if rungs:
        total = gdp.epsilon(gdp.remaining(mu, [bought or 0.0]), DELTA)
        ladder = LadderSearcher(
            tuple((epsilon / total, number) for epsilon, number in rungs),
            Fit(),
            config.sweep.select.share,
        )
        setting = Setting(
            total,
            config.sweep.search,
            arena.constants,
            centred=config.features.mean is not None,
            learner=config.learner,
        )
        search = start_search(arena, Competitor(name, ladder, setting, config.learner), 0)
        while search.asks:
            answer(arena, [search])
        assert search.outcome is not None
        assert search.outcome.weights is not None
        weights = search.outcome.weights
    else:
        r = place_by_prior(space, trains)[1]
        weights = trained(arena, training_of(space, r, Entry(trains)), name)
    calibrating = Calibrating(config.learner, arena.constants, trains, bought, share)
    meter = PublicMeter(calibrating.declared.draws, arena, f"calibrate {name}")
    return calibrating.run(weights, arena.train, meter)[0]


# --- peers, and what noise costs ---


def dp_ebm(split: Split, epsilon: float) -> tuple[Floats, None]:
    """DP-EBM at its defaults, with the ranges that dpladder has."""
    private, table = import_module("interpret.privacy"), split.table
    numbers = {one.name: one.range for one in table.columns if one.range is not None}
    facts: dict[str, Any] = {
        "feature_names": list(table.frame),
        "feature_types": ["continuous" if one in numbers else "nominal" for one in table.frame],
        "privacy_bounds": numbers,
        "epsilon": epsilon,
        "delta": DELTA,
        "random_state": split.split,
        "n_jobs": 1,
    }
    train, test = table.frame.iloc[split.train], table.frame.iloc[split.test]
    if (target := TABLES[split.name].of_target) is not None:
        model = private.DPExplainableBoostingRegressor(
            privacy_target_min=target[0], privacy_target_max=target[1], **facts
        )
        return np.asarray(model.fit(train, table.targets[split.train]).predict(test)), None
    model = private.DPExplainableBoostingClassifier(**facts)
    model.fit(train, table.targets[split.train])
    return np.asarray(model.predict_proba(test)[:, 1]), None


def adassp(split: Split, epsilon: float) -> tuple[Floats, None]:
    """AdaSSP in three Gaussian releases, on rows of length 1 at most."""
    low, high = TABLES[split.name].of_target or (0.0, 1.0)
    arena = stored(split, config_of(split, epsilon, 0, None))
    rows, test_rows = (
        with_constant(clip_rows(data.features, 1.0), 1.0) for data in (arena.train, arena.test)
    )
    goals = 2.0 * place_in_range(arena.train.labels) - 1.0
    said = adassp_gdp(Problem(arena, rows, test_rows, goals), epsilon)
    return low + (high - low) * place_of_logit(said), None


def trees(split: Split, _: float) -> tuple[Floats, None]:
    """Boosted trees without noise, at scikit-learn's defaults."""
    frame = split.table.frame
    words = [one.name for one in split.table.columns if one.levels]
    frame = frame.astype(dict.fromkeys(words, "category"))
    kinds = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
    return fitted(split, kinds, frame, categorical_features="from_dtype", random_state=0)


def linear(split: Split, _: float) -> tuple[Floats, None]:
    """Logistic regression or least squares without noise, on the rows of lines."""
    return fitted(split, (LogisticRegression, Ridge), split.table.rows)


def fitted(split: Split, kinds: tuple[Any, Any], rows: Any, **facts: Any) -> tuple[Floats, None]:
    """What a model of scikit-learn says of the test records, by which of the two a target takes."""
    targets, number = split.table.targets[split.train], split.of_number
    take = rows.iloc if hasattr(rows, "iloc") else rows
    model = kinds[number](**facts).fit(take[split.train], targets)
    said = (
        model.predict(take[split.test]) if number else model.predict_proba(take[split.test])[:, 1]
    )
    return np.asarray(said), None


METHODS: Mapping[str, tuple[Callable[[Split, float], tuple[Floats, int | None]], bool, bool]] = {
    # a method, and whether it learns numbers and classes
    "curves": (partial(dpladder, None, None), True, True),
    "curves-looks": (partial(dpladder, None, None, looks=True), False, True),
    "lines": (partial(dpladder, 0, None), True, True),
    "curves-ridge": (partial(dpladder, None, "dp_ridge"), True, False),
    "curves-gd": (partial(dpladder, None, "dp_gd"), True, False),
    "lines-gd": (partial(dpladder, 0, "dp_gd"), True, False),
    "dp-ebm": (dp_ebm, True, True),
    "adassp": (adassp, True, False),
    "trees": (trees, True, True),
    "linear": (linear, True, True),
}
NOISELESS = ("trees", "linear")  # which heed no total


# --- the table ---

Means = Mapping[tuple[str, str, str, str], float]
"""By table, method, total and figure."""
SHOWN = (
    *("curves", "lines", "dp-ebm", "adassp", "curves-ridge", "curves-gd", "lines-gd"),
    *("trees", "linear"),
)
PEERS = {"classes": ("dp-ebm",), "numbers": ("dp-ebm", "adassp")}
LOWER = ("log_loss",)  # is better


def show(means: Means) -> None:
    """A table for each figure, and how curves stand beside lines and peers at each total."""
    for title, names in (("kept apart", KEPT_APART), ("that curves were tuned on", TUNED)):
        for kind, figures in (("classes", ("accuracy", "auc", "log_loss")), ("numbers", ("r2",))):
            known = [one for one in names if (one, "linear", "1", figures[0]) in means]
            for figure in figures if known else ():
                print(f"\n{figure} of {kind}, tables {title}\n")
                print_figure(means, known, figure)
            totals = {epsilon for name, _, epsilon, _ in means if name in known}
            for epsilon in sorted(totals, key=float):
                for figure in figures:
                    print_bar(means, known, kind, figure, epsilon)


def means_of(path: Path) -> Means:
    found = defaultdict(list)
    with path.open(encoding="utf-8") as file:
        for line in csv.DictReader(file):
            for figure in FIGURES:
                if line[figure]:
                    key = (line["table"], line["method"], line["epsilon"], figure)
                    found[key].append(float(line[figure]))
    means = {key: float(np.mean(values)) for key, values in found.items()}
    totals = {epsilon for _, _, epsilon, _ in means}
    for name, method, epsilon, figure in [*means]:
        if method in NOISELESS:  # at every total
            mean = means[name, method, epsilon, figure]
            means |= {(name, method, one, figure): mean for one in totals}
    return means


def print_figure(means: Means, names: Sequence[str], figure: str) -> None:
    """A row for each table; in a cell the figure at each total."""
    totals = sorted({epsilon for name, _, epsilon, _ in means if name in names}, key=float)
    methods = [one for one in SHOWN if (names[0], one, totals[0], figure) in means]
    print_head(
        "table", *(f"{one} {'' if one in NOISELESS else ' / '.join(totals)}" for one in methods)
    )
    for name in (*names, "mean"):
        some = names if name == "mean" else [name]
        print_row(name, *(" / ".join(cells(means, some, one, figure, totals)) for one in methods))


def cells(
    means: Means, names: Sequence[str], method: str, figure: str, totals: Sequence[str]
) -> list[str]:
    """The mean over tables at each total; of what heeds no total, once."""
    some = totals[:1] if method in NOISELESS else totals
    each = [np.mean([means[name, method, one, figure] for name in names]) for one in some]
    return [f"{one:.3f}".replace("0.", ".", 1) for one in each]


def print_bar(means: Means, names: Sequence[str], kind: str, figure: str, epsilon: str) -> None:
    """How often, and by how much on average, curves are ahead of lines and of each peer."""
    sign = -1.0 if figure in LOWER else 1.0
    for other in ("lines", *PEERS[kind]):
        ahead = [
            sign * (means[name, "curves", epsilon, figure] - means[name, other, epsilon, figure])
            for name in names
            if (name, other, epsilon, figure) in means
        ]
        if ahead:
            print(
                f"{figure}, total {epsilon}: curves ahead of {other} on "
                f"{sum(one > 0 for one in ahead)} of {len(ahead)}, by {np.mean(ahead):+.4f} on "
                f"average and {min(ahead):+.4f} at worst"
            )


if __name__ == "__main__":
    main()
