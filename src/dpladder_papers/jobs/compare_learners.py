"""The learners of a project's experiments against each other, on data declared public and the first
experiment's features.

Each learner pays for its own search inside each total, as a release would. A learner with nothing
to search gets the whole total for one training.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from dpladder.config.learners import Learner
from dpladder.config.sweep_sections import Fit, Sweep
from dpladder.errors import BadInput
from dpladder.jobs.arena import arena_of
from dpladder.jobs.record import write_record
from dpladder.jobs.task import Task
from dpladder.learn.interface import Constants
from dpladder.search.prior import with_prior
from dpladder.search.protocol import Setting
from dpladder_papers.research.comparison_table import write_csv
from dpladder_papers.research.contest import Competitor, Straight, contest
from dpladder_papers.research.ladder import LadderSearcher
from dpladder_papers.research.learners_figure import plot_learners, write_markdown
from dpladder_papers.rules import CompareLearners

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)


def compare_learners(task: Task[CompareLearners]) -> None:
    """Train each experiment's learner at every total, its own sweep inside, and write what each
    reaches. All data is declared public: nothing is charged, and no model leaves.

    Raises:
        Refused: the data is not declared public, or its records have several classes.
        BadInput: an experiment has other data, features or purchases than the first.
    """
    arena, repeats = arena_of(task), task.reads.repeats
    rows = [asdict(row) for row in contest(arena, _entries_of(task, arena.constants), repeats)]
    about = (
        f"{arena.terms.lineage}, δ = {arena.terms.delta:g}, {repeats} repeats, seed {arena.seed}"
    )
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
    centred: bool = True,
) -> list[Competitor]:
    """A learner at every total, and how its r is found.

    Args:
        name: of its rows.
        learner: that is trained.
        sweep: its rungs and its range of r. `auto` buys for each total what pays there.
        fit: how r is carried to the final training.
        total: that the sweep's rungs are meant for; they scale with the totals.
        constants: public sizes and bounds.
        epsilons: the totals.
        centred: whether features lost their mean, which the prior depends on.

    Returns:
        One competitor for each total, in the order of `epsilons`. They share a name, and differ by
        total.
    """
    rungs = (
        None
        if sweep.rungs is None
        else tuple((rung.epsilon / total, rung.trials) for rung in sweep.rungs)
    )
    search = with_prior(sweep.search, learner, centred)
    ladder = LadderSearcher(rungs, fit, sweep.select.share)
    way = Straight() if learner.searches is None else ladder
    settings = (Setting(epsilon, search, constants, centred=centred) for epsilon in epsilons)
    return [Competitor(name, way, setting, learner) for setting in settings]


def _entries_of(task: Task, constants: Constants) -> list[Competitor]:
    """Those of each experiment, called by its learner where that tells them apart."""
    entered = task.reads.contestants
    if other := [entry.experiment for entry in entered if not entry.comparable]:
        raise BadInput(
            f"experiments {', '.join(other)} have other data, features or public records than the "
            "first, a noised mean or shared sums, or a search of their own (hpo), so "
            "their learners cannot be compared with the others. Leave them out of this config."
        )
    learners = [entry.learner.name for entry in entered]
    apart = len(set(learners)) == len(learners)
    return [
        one
        for entry, learner in zip(entered, learners, strict=True)
        for one in entries(
            name=learner if apart else entry.experiment,
            learner=entry.learner,
            sweep=entry.sweep,
            fit=entry.fit,
            total=entry.epsilon,
            constants=constants,
            centred=task.reads.centre != "none",
        )
    ]
