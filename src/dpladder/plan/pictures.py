"""Every figure and table of the report, one row each. A row has its name, when there is one, what
draws it, and where it lies and is shown.

The tables below and those of packages are the whole list: no other place decides which pictures a
project has. What a picture shows are summaries and the statement, which are public.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dpladder.config import Project
from dpladder.config.plugins import rules_of_packages
from dpladder.plan import follows
from dpladder.plan.curves import in_form

Names = tuple[str, ...]
When = Callable[[Project, str], Names | None]
Takes = Literal["one", "each", "all", "compared", "statement"]


@dataclass(frozen=True)
class Picture:
    """A figure or a table.

    Args:
        name: What its caption is called.
        path: Its file, whose suffix tells a figure (.svg) from a table; empty: a table that stands
            on the page alone.
        shows: The experiments whose summaries it shows; none where it shows the statement.
        category: Its chapter in Snakemake's own report; empty where it is not filed there.
        experiment: Whose folder it lies in; empty where it is about the whole project.
        draw, takes, on_page, package, folded: As its row says (plan/pictures.py).
    """

    name: str
    path: str
    shows: tuple[str, ...]
    category: str
    experiment: str
    draw: str
    takes: Takes
    on_page: bool
    package: str
    folded: bool


@dataclass(frozen=True)
class Kind:
    """One figure or table, whole: a new one is a row below, a function and a caption.

    Args:
        name: Of its caption, in captions/<name>.rst of its package.
        file: Below its experiment's results, or those of all; .svg is a figure. Empty: a table that
            stands on the page alone.
        chapter: In Snakemake's report and on the page (report/page.py); empty: it is not filed.
        when: The experiments that it shows, for a project and an experiment; None: there is none.
        draw: The function of its package, as module:function. A figure's last argument is its path.
        takes: What the function is given: the summary of one experiment, or of each in turn, whose
            tables are joined; all summaries, with the cells that compare them or without; or the
            statement.
        on_page: Whether the page shows it.
        package: Whose the function and the caption are.
        folded: Whether the page opens it on a click.
    """

    name: str
    file: str
    chapter: str
    when: When
    draw: str
    takes: Takes = "one"
    on_page: bool = True
    package: str = "dpladder.report"
    folded: bool = False


def kinds() -> tuple[tuple[Kind, ...], tuple[Kind, ...]]:
    """The rows of an experiment and those of all, each with what packages add."""
    packages = rules_of_packages()
    return (
        (*OF_EXPERIMENT, *(kind for package in packages for kind in package.OF_EXPERIMENT)),
        (*OF_ALL, *(kind for package in packages for kind in package.OF_ALL)),
    )


def pictures_of(project: Project) -> tuple[Picture, ...]:
    """All pictures of a project, each once.

    Returns:
        Those of each experiment first, then those of all, each in the order of the table. Their
        paths are relative to the project's folder.
    """
    of_experiment, of_all = kinds()
    of_experiments = ((name, kind) for name in project.experiments for kind in of_experiment)
    return tuple(
        Picture(
            kind.name,
            str(Path("results", name, kind.file)) if kind.file else "",
            shows,
            kind.chapter,
            name,
            kind.draw,
            kind.takes,
            kind.on_page,
            kind.package,
            kind.folded,
        )
        for name, kind in (*of_experiments, *(("", kind) for kind in of_all))
        if (shows := kind.when(project, name)) is not None
    )


def stale_pictures(project: Project) -> tuple[str, ...]:
    """Pictures that an earlier config may have had: they would tell of what is no longer asked
    for.

    Returns:
        Paths that no picture of today has, whether a file is there or not, in alphabetical order.
    """
    of_experiment, of_all = kinds()
    possible = {
        str(Path("results", name, kind.file))
        for name, rows in (("", of_all), *((name, of_experiment) for name in project.experiments))
        for kind in rows
        if kind.file
    }
    possible |= {
        str(Path("results", name, file)) for name in project.experiments for file in RETIRED
    }
    return tuple(sorted(possible - {picture.path for picture in pictures_of(project)}))


# --- whose summaries a picture of an experiment shows ---


# Each function has the signature `When`. It returns the experiments whose summaries are shown, or
# None where the picture does not exist for this project.
def _for_experiment(project: Project, name: str) -> Names | None:
    return (name,)


def _if_trials(project: Project, name: str) -> Names | None:
    """Only where trials were run."""
    return (name,) if project.experiments[name].sweep.ladder else None


def _if_shifted(project: Project, name: str) -> Names | None:
    """Only where a model is tested on further records."""
    return (name,) if project.experiments[name].evaluate.also else None


def _calibrated(project: Project, name: str) -> Names | None:
    """Only where the test counted how sure the model was."""
    return (name,) if "calibration" in project.experiments[name].evaluate.measures else None


def _additive(project: Project, name: str) -> Names | None:
    """Only where predictions are sums over the columns of a table."""
    return (name,) if in_form(project.experiments[name]) else None


# --- and one of all experiments ---


def _statement(project: Project, _: str) -> Names | None:
    """No summary is shown: the picture follows from the statement alone."""
    return ()


def _modelled(project: Project, _: str) -> Names | None:
    """All experiments that have models."""
    return tuple(project.experiments)


def _frontier(project: Project, _: str) -> Names | None:
    """Two models of one experiment say no more than their two rows."""
    models = sum(
        len(config.totals) + config.final.without_noise for config in project.experiments.values()
    )
    experiments = tuple(project.experiments)
    return experiments if models > 2 or len(experiments) > 1 else None


def _cells(project: Project, _: str) -> Names | None:
    """The experiments that one table compares; no table without a grid or repeats."""
    return tuple(follows.cells(project)) or None


def _figure(name: str, chapter: str, when: When, takes: Takes = "one", draw: str = "") -> Kind:
    """A figure where all are called alike: its caption, its file, its module and its function."""
    drawn_by = draw or f"{name}_figure:plot_{name}"
    return Kind(name, f"figures/{name}.svg", chapter, when, drawn_by, takes)


# of an experiment, that an earlier dpladder drew
RETIRED = ("figures/utility.svg", "figures/scores.svg")
OF_EXPERIMENT = (
    Kind(
        "finals",
        "tables/finals.html",
        "How good it is",
        _for_experiment,
        "tables:finals_table",
        on_page=False,
    ),
    _figure("shift", "How good it is", _if_shifted),
    Kind("shift", "", "How good it is", _if_shifted, "tables:shift_table"),
    Kind("shift", "tables/shift.md", "", _if_shifted, "tables:shift_table", on_page=False),
    _figure("reliability", "How good it is", _calibrated),
    _figure("curves", "What moves a prediction", _additive),
    _figure("ladder", "How it was tuned", _if_trials),
    Kind("trials", "tables/trials.html", "How it was tuned", _if_trials, "tables:trials_table"),
)
OF_ALL = (
    Kind("models", "summary.csv", "", _modelled, "tables:models_table", "compared", on_page=False),
    Kind("grid", "tables/grid.html", "How good it is", _cells, "tables:grid_table", "compared"),
    Kind("grid", "tables/grid.md", "", _cells, "tables:grid_table", "compared", on_page=False),
    *(
        Kind(name, "", "How good it is", _modelled, f"tables:{name}_table", "each")
        for name in ("finals", "figures", "classes", "confusion", "findings", "groups")
    ),
    Kind(
        "training",
        "",
        "How it was tuned",
        _modelled,
        "tables:training_table",
        "each",
        folded=True,
    ),
    _figure("pareto", "How good it is", _frontier, "compared"),
    _figure("budget", "What was paid for", _statement, "statement"),
    Kind(
        "spends",
        "tables/spends.html",
        "What was paid for",
        _statement,
        "tables:spends_table",
        "statement",
    ),
)
