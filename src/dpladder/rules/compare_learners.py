"""The learners of a project's experiments against each other, on data declared public and the first experiment's
features."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict

from dpladder.config.learners import Learner, learner_of
from dpladder.config.model import Fit, Sweep
from dpladder.errors import BadInput
from dpladder.job import Task
from dpladder.learn.interface import Constants
from dpladder.report.comparison import write_csv
from dpladder.report.learners import plot_learners, write_markdown
from dpladder.rules.contest import Entry, Straight, arena_of, contest
from dpladder.rules.record import write_record
from dpladder.search.hpo import Setting
from dpladder.search.ladder import Ladder

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)


def compare_learners(task: Task) -> None:
    arena, repeats = arena_of(task), task.cfg["repeats"]
    rows = [asdict(row) for row in contest(arena, _entries_of(task, arena.constants), repeats)]
    about = f"{arena.terms.lineage}, δ = {arena.terms.delta:g}, {repeats} repeats, seed {arena.seed}"
    write_csv(rows, task.output["csv"])
    write_markdown(rows, about, task.output["table"])
    plot_learners(rows, about, task.output["figure"])
    write_record(task, free="research on data declared public; no model is released")


def entries(
    name: str,
    learner: Learner,
    sweep: Sweep,
    fit: Fit,
    total: float,
    constants: Constants,
    epsilons: Iterable[float] = EPSILONS,
) -> list[Entry]:
    """A learner at every total, and how its r is found. The rungs are as for `total`, and scale with the totals."""
    rungs = tuple((rung.epsilon / total, rung.trials) for rung in sweep.rungs)
    search = sweep.search
    ladder = Ladder(rungs, search.draw, search.prior, fit, sweep.select.share)
    way = Straight() if learner.searches is None else ladder
    return [Entry(name, way, Setting(epsilon, search, constants), learner) for epsilon in epsilons]


def _entries_of(task: Task, constants: Constants) -> list[Entry]:
    """Those of each experiment, called by its learner where that tells them apart."""
    entered = task.cfg["contestants"]
    if other := [entry["experiment"] for entry in entered if not entry["comparable"]]:
        raise BadInput(
            f"experiments {', '.join(other)} have other data or features than the first, a noised mean, covariance or "
            "statistics, or a search of their own (hpo), so their learners cannot be compared with the others. Leave them out of this config."
        )
    learners = [entry["learner"]["name"] for entry in entered]
    apart = len(set(learners)) == len(learners)
    return [
        one
        for entry, learner in zip(entered, learners, strict=True)
        for one in entries(
            name=learner if apart else entry["experiment"],
            learner=learner_of(entry["learner"]),
            sweep=Sweep.model_validate_json(json.dumps(entry["sweep"])),
            fit=Fit.model_validate_json(json.dumps(entry["fit"])),
            total=entry["epsilon"],
            constants=constants,
        )
    ]
