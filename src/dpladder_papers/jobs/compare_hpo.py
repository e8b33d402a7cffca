"""Searches against each other, and the ladder against itself with one part changed, on data
declared public.

RERR, the share of the oracle's lead over random search that a search closes, puts tables of
different data on one scale. The oracle chooses r by the test itself, so no search can have it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, replace

from dpladder.config.learners import Learner
from dpladder.config.sweep_sections import Fit, Search
from dpladder.errors import BadInput
from dpladder.jobs.arena import arena_of
from dpladder.jobs.record import write_record
from dpladder.jobs.task import Task
from dpladder.privacy.accounting import gdp
from dpladder.research.arena import Arena
from dpladder.research.without_noise import GRID
from dpladder.search.protocol import Setting
from dpladder_papers.research.comparison_table import Document
from dpladder_papers.research.contest import GRID_REPEATS, Competitor, Standing, contest, oracle
from dpladder_papers.research.contestants import METHODS, entry
from dpladder_papers.research.ladder import LadderSearcher
from dpladder_papers.research.searches_figure import write_results
from dpladder_papers.rules import CompareHpo
from dpladder_papers.searches.koskela_kulkarni.search import Searcher as SubsetRuns

ABLATIONS = "ablations"  # of the ladder, beside the searches
FLOORS = ("random_search", "random_search_uniform")


def compare_hpo(task: Task[CompareHpo]) -> None:
    """Run every search that is named at every total, and write what each reaches beside an oracle.
    All data is declared public: nothing is charged, and no model leaves.

    Raises:
        Refused: the data is not declared public, or its records have several classes.
        BadInput: the learner has nothing to search, or the config buys a mean or shared sums.
    """
    arena, learner, repeats = arena_of(task), _learner_of(task), task.reads.repeats
    names, with_ablations = methods_to_compare(task.reads.searches, _allowed_methods(arena))
    rows: list[Document] = []
    varied: list[Document] = []
    for epsilon in task.reads.totals:
        centred = task.reads.centre != "none"
        setting = Setting(epsilon, task.reads.search, arena.constants, centred=centred)
        ablated = with_ablations and epsilon == task.reads.ablated
        search_rows, ladders = compare(arena, setting, learner, repeats, names, ablated)
        rows, varied = rows + search_rows, varied + ladders
    about = (
        f"{arena.terms.lineage}, δ = {arena.terms.delta:g}, {repeats} repeats, seed {arena.seed}"
    )
    for name, lines in (("hpo", rows), ("ablations", varied)):
        write_results(
            lines, about, *(task.output[f"{name}_{kind}"] for kind in ("csv", "table", "figure"))
        )
    write_record(task, free="research on data declared public; no model is released")


def methods_to_compare(
    searches: Collection[str], possible: Sequence[str]
) -> tuple[list[str], bool]:
    """The ways to search that are compared, and whether the ladder is varied too.

    Args:
        searches: of `research.searches`; none is all.
        possible: those that fit the data, in the order of the tables.

    Raises:
        BadInput: a name is none of these, or the ladder's variants stand without any search.

    Returns:
        Names in the order of `possible`, and whether the ladder's variants are run beside them.
    """
    if unknown := sorted({*searches} - {*possible, ABLATIONS}):
        raise BadInput(
            f"research.searches: given {', '.join(unknown)}; allowed here: "
            f"{', '.join([*possible, ABLATIONS])}."
        )
    names = [name for name in possible if not searches or name in searches]
    if not names:
        raise BadInput(f"research.searches: {ABLATIONS} stand beside the ladder: name it too.")
    return names, not searches or ABLATIONS in searches


def compare(
    arena: Arena,
    setting: Setting,
    learner: Learner,
    repeats: int,
    names: Iterable[str] = METHODS,
    ablated: bool = False,
) -> tuple[list[Document], list[Document]]:
    """The rows of the searches, and those of the ladder's ablations, at one total.

    Args:
        arena: the data.
        setting: the total and the range of r.
        learner: that all of them train.
        repeats: searches of each.
        names: of the searches (research/contestants.py).
        ablated: whether the ladder is varied too; else there are no such rows.

    Returns:
        Rows in the order of `names`, and rows of the variants. All of them are judged by one oracle
        and one floor.
    """
    entries = [entry(name, setting, learner) for name in names]
    varied = ablations(setting, learner) if ablated else []
    rows = contest(arena, [*entries, *varied], repeats)
    top = oracle(arena, setting, learner, repeats=min(GRID_REPEATS, repeats))
    floor = max((row.mean for row in rows if row.name in FLOORS), default=math.nan)
    judged = [add_rerr(row, floor, top, arena.constants.delta) for row in rows]
    return judged[: len(entries)], judged[len(entries) :]


def add_rerr(row: Standing, floor: float, top: float, delta: float) -> Document:
    """A row with RERR: the share of the oracle's lead over random search that it closes.

    Args:
        row: of a search or a ladder.
        floor: random search's mean accuracy; NaN where it was not compared.
        top: the oracle's. Without a lead over the floor RERR is NaN.
        delta: of the epsilon that the oracle's grid would honestly cost, which the row has too.

    Returns:
        The row as a plain document, with `rerr`, `oracle` and `oracle_epsilon` beside its own
        fields. The last composes GRID trainings: sqrt(GRID) times one's mu.
    """
    honest = gdp.epsilon(math.sqrt(GRID) * gdp.mu_from_epsilon(row.epsilon, delta), delta)
    rerr = (row.mean - floor) / (top - floor) if top > floor else math.nan
    return {**asdict(row), "rerr": rerr, "oracle": top, "oracle_epsilon": honest}


def ablations(setting: Setting, learner: Learner) -> list[Competitor]:
    """Ladders that look whatever it costs, and with one part changed at a time. Those whose trials
    cost the whole total are left out, as the dearer ones do at a large delta.

    Shares of a rung are of the total epsilon, with the number of trials beside them.
    """
    two, best = ((0.1, 3), (0.2, 3)), Fit(using="best")
    three = ((0.05, 3), *two)
    ladders = {
        "two rungs of three": LadderSearcher(two),
        "one rung of three": LadderSearcher(two[:1]),
        "two rungs of six": LadderSearcher(((0.1, 6), (0.2, 6))),
        "dearer rungs, at 0.3 and 0.4 of the total": LadderSearcher(((0.3, 3), (0.4, 3))),
        "a fifth of each trial for its score": LadderSearcher(two, share=0.2),
        "each rung's best alone": LadderSearcher(two, best),
        "line in epsilon through each rung's best": LadderSearcher(
            two, Fit(using="best", against="epsilon")
        ),
        "line in epsilon, three rungs": LadderSearcher(three, Fit(using="best", against="epsilon")),
        "parabola in epsilon, three rungs": LadderSearcher(
            three, Fit(using="best", against="epsilon", degree=2)
        ),
        "r grows with epsilon": LadderSearcher(two, Fit(against="epsilon")),
        "r grows with mu": LadderSearcher(two, Fit(against="mu")),
    }
    searches: dict[str, dict[str, object]] = {
        "no prior": {"prior": "none"},
        "prior half as wide": {"expected": _scale_prior(setting, 1.0, 0.5)},
        "prior three times too high": {"expected": _scale_prior(setting, 3.0, 1.0)},
        "uniform draws": {"draw": "uniform"},
        "steps first": {"decompose": "steps_first", "steps": (30, 100)},
    }
    return [
        *(
            Competitor(name, ladder, setting, learner)
            for name, ladder in ladders.items()
            if ladder.leaves_enough(setting)
        ),
        *(
            Competitor(
                name,
                LadderSearcher(two),
                replace(setting, search=setting.search.model_copy(update=change)),
                learner,
            )
            for name, change in searches.items()
        ),
    ]


def _scale_prior(setting: Setting, higher: float, wider: float) -> tuple[float, float]:
    """The prior's median and factor, changed: `higher` multiplies the median, and `wider` is an
    exponent of the factor, for the prior is log-normal."""
    prior = replace(setting.space, search=Search(expected=setting.search.expected)).belief()
    assert prior is not None, "by default there is a prior"
    return prior.median * higher, prior.factor**wider


def _learner_of(task: Task[CompareHpo]) -> Learner:
    learner = task.reads.learner
    if learner.searches is None:
        raise BadInput(
            f"learner.name is {learner.name}, which has nothing to search. Choose one that has, "
            "such as dp_gd."
        )
    if task.reads.mean is not None or learner.purchases:
        raise BadInput(
            "features.mean and learner.shared are releases of their own, "
            "and a comparison of searches has none. Remove them from this config."
        )
    return learner


def _allowed_methods(arena: Arena) -> list[str]:
    """Tuning on a subset is bounded under add_remove alone.

    Under replace_one a unit and its replacement could lie on different sides
    (privacy/accounting/subset.py).
    """
    everywhere = arena.constants.relation == "add_remove"
    return [name for name, way in METHODS.items() if everywhere or not isinstance(way, SubsetRuns)]
