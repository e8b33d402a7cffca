"""The ways to search against each other, and the ladder against itself with one part changed, on data declared public."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, replace

from dpladder.config.learners import HyperparameterFree, Learner, learner_of, shares_releases
from dpladder.config.model import Fit, Search
from dpladder.errors import BadInput
from dpladder.job import Task, section
from dpladder.privacy import gdp
from dpladder.report.hpo import publish
from dpladder.report.style import Document
from dpladder.rules.contest import GRID, Arena, Entry, Row, Straight, arena_of, contest, oracle
from dpladder.rules.record import write_record
from dpladder.search.compared import METHODS
from dpladder.search.hpo import Method, Setting
from dpladder.search.ladder import Ladder
from dpladder.search.subset import SubsetRuns

FREE = "hyperparameter_free"  # HyFreeDP, a learner that searches nothing
CONTESTANTS: dict[str, Method] = {**METHODS, FREE: Straight()}
FLOORS = ("random_search", "random_search_uniform")


def compare_hpo(task: Task) -> None:
    arena, learner, repeats = arena_of(task), _learner_of(task), task.cfg["repeats"]
    search = section(task, "sweep.search", Search)
    rows: list[Document] = []
    varied: list[Document] = []
    for epsilon in task.cfg["totals"]:
        setting = Setting(epsilon, search, arena.constants)
        ablated = epsilon == task.cfg["ablated"]
        own, ladders = compare(arena, setting, learner, repeats, _possible(arena), ablated)
        rows, varied = rows + own, varied + ladders
    about = f"{arena.terms.lineage}, δ = {arena.terms.delta:g}, {repeats} repeats, seed {arena.seed}"
    for name, lines in (("hpo", rows), ("ablations", varied)):
        publish(lines, about, *(task.output[f"{name}_{kind}"] for kind in ("csv", "table", "figure")))
    write_record(task, free="research on data declared public; no model is released")


def compare(
    arena: Arena,
    setting: Setting,
    learner: Learner,
    repeats: int,
    names: Iterable[str] = CONTESTANTS,
    ablated: bool = False,
) -> tuple[list[Document], list[Document]]:
    """The rows of the ways to search, and those of the ladder's ablations."""
    free = HyperparameterFree()
    entries = [Entry(name, CONTESTANTS[name], setting, free if name == FREE else learner) for name in names]
    varied = ablations(setting, learner) if ablated else []
    rows = contest(arena, [*entries, *varied], repeats)
    top = oracle(arena, setting, learner)
    floor = max((row.mean for row in rows if row.name in FLOORS), default=math.nan)
    judged = [judge(row, floor, top, arena.constants.delta) for row in rows]
    return judged[: len(entries)], judged[len(entries) :]


def judge(row: Row, floor: float, top: float, delta: float) -> Document:
    """RERR: the share of the oracle's lead over random search that a row closes, where there is such a lead."""
    honest = gdp.epsilon(math.sqrt(GRID) * gdp.mu(row.epsilon, delta), delta)
    rerr = (row.mean - floor) / (top - floor) if top > floor else math.nan
    return {**asdict(row), "rerr": rerr, "oracle": top, "oracle_epsilon": honest}


def ablations(setting: Setting, learner: Learner) -> list[Entry]:
    """The ladder with one part of it changed at a time."""
    best, pooled = Fit(using="best"), Fit(using="pooled")
    two, three = ((0.1, 3), (0.2, 3)), ((0.05, 2), (0.1, 2), (0.2, 2))
    ladders = {
        "line through 2": Ladder(two, fit=best),
        "line through 3": Ladder(three, fit=best),
        "parabola through 3": Ladder(three, fit=Fit(using="best", degree=2)),
        "pooled over 2": Ladder(two, fit=pooled),
        "pooled over 3": Ladder(three, fit=pooled),
        "pooled, against mu": Ladder(two, fit=Fit(using="pooled", against="mu")),
        "pooled, proportional prior": Ladder(two, fit=pooled, prior="proportional"),
        "pooled, uniform draws": Ladder(two, fit=pooled, draw="uniform"),
    }
    for cheap, dear in ((0.05, 0.1), (0.1, 0.3), (0.2, 0.3), (0.3, 0.4)):
        ladders[f"rungs at {cheap} and {dear} of the total"] = Ladder(((cheap, 3), (dear, 3)), fit=pooled)
    for trials in (1, 2, 5, 8):
        ladders[f"{trials} trials per rung"] = Ladder(((0.1, trials), (0.2, trials)), fit=pooled)
    low, high = setting.search.eta
    middle = (high / low) ** 0.25
    searches: dict[str, dict[str, object]] = {
        "range half as wide, in log eta": {"eta": (low * middle, high / middle)},
        "range 10 times wider": {"eta": (low / 10**0.5, high * 10**0.5)},
        "range 100 times wider": {"eta": (low / 10, high * 10)},
        "eta first": {"decompose": "eta_first"},
        "steps first": {"decompose": "steps_first"},
    }
    return [
        *(Entry(name, ladder, setting, learner) for name, ladder in ladders.items()),
        *(
            Entry(
                name,
                METHODS["ladder"],
                replace(setting, search=setting.search.model_copy(update=change)),
                learner,
            )
            for name, change in searches.items()
        ),
    ]


def _learner_of(task: Task) -> Learner:
    learner = learner_of(task.cfg["learner"])
    if learner.searches is None:
        raise BadInput(
            f"learner.name is {learner.name}, which has nothing to search. Choose one that has, such as dp_gd."
        )
    if task.cfg["features.mean"] is not None or shares_releases(learner):
        raise BadInput(
            "features.mean, learner.covariance and learner.statistics are releases of their own, and a comparison of "
            "searches has none. Remove them from this config."
        )
    return learner


def _possible(arena: Arena) -> list[str]:
    """Tuning on a subset is bounded under add_remove alone."""
    everywhere = arena.constants.relation == "add_remove"
    return [name for name, way in CONTESTANTS.items() if everywhere or not isinstance(way, SubsetRuns)]
