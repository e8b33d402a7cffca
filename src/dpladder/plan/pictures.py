"""Every figure and table of the report: what a project has of them, whose results each shows, and
where it lies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dpladder.config import Config, Project
from dpladder.plan import stages
from dpladder.plan.reads import Picture

Names = tuple[str, ...]


@dataclass(frozen=True)
class Kind:
    """Pictures of one name: `shows` finds the experiments for a project (and an experiment), None
    where there is none."""

    name: str
    file: str
    category: str
    shows: Callable[[Project, str], Names | None]


def pictures_of(project: Project) -> tuple[Picture, ...]:
    """All pictures of a project, each once."""
    own = ((name, kind) for name in project.modelled for kind in OWN)
    return tuple(
        Picture(kind.name, str(Path("results", name, kind.file)), shows, kind.category, name)
        for name, kind in (*own, *(("", kind) for kind in OF_ALL))
        if (shows := kind.shows(project, name)) is not None
    )


def left_over(project: Project) -> tuple[str, ...]:
    """Pictures that an earlier config may have had: they would tell of what is no longer asked
    for."""
    own = [Path("results", name, kind.file) for name in project.modelled for kind in OWN]
    found = {str(path) for path in [*own, *(Path("results", kind.file) for kind in OF_ALL)]}
    return tuple(sorted(found - {picture.path for picture in pictures_of(project)}))


# --- whose summaries a picture of an experiment shows ---


def _own(project: Project, name: str) -> Names | None:
    return (name,)


def _climbed(project: Project, name: str) -> Names | None:
    return (name,) if project.experiments[name].sweep.ladder else None


def _totals(project: Project, name: str) -> Names | None:
    config = project.experiments[name]
    return (name,) if len(config.totals) > 1 or config.final.without_noise else None


def _shifted(project: Project, name: str) -> Names | None:
    further = project.experiments[name].evaluate.also or stages.measured_by(project, name)
    return (name,) if further else None


def _calibrated(project: Project, name: str) -> Names | None:
    return (name,) if project.experiments[name].evaluate.measures == "calibration" else None


def _descended(project: Project, name: str) -> Names | None:
    """Learning rates against steps, and gaps in r, need the repeats of research to say anything;
    one picture shows them all."""
    config = project.experiments[name]
    drawn = config.learner.searches == "rate" and config.sweep.ladder
    repeated = config.mode == "research" and name in project.repeats
    return (name, *project.repeats[name]) if drawn and repeated else None


# --- and one of all experiments ---


def _statement(project: Project, _: str) -> Names | None:
    return ()


def _modelled(project: Project, _: str) -> Names | None:
    return tuple(project.modelled)


def _frontier(project: Project, _: str) -> Names | None:
    """A point alone says nothing."""
    found = project.modelled
    return tuple(found) if _models(project, tuple(found)) > 1 else None


def _sampled(project: Project, _: str) -> Names | None:
    """Experiments of research that differ in their sampling rate."""
    rates = {name: config.learner.sampling for name, config in _research(project)}
    return tuple(rates) if len(set(rates.values())) > 1 else None


def _moved(project: Project, _: str) -> Names | None:
    """Final models of research that start where everybody knows."""
    found = tuple(name for name, config in _research(project) if config.learner.starts_known)
    return found if _models(project, found) > 1 else None


def _cells(project: Project, _: str) -> Names | None:
    return tuple(stages.cells(project)) or None


def _research(project: Project) -> Iterator[tuple[str, Config]]:
    yield from (item for item in project.modelled.items() if item[1].mode == "research")


def _models(project: Project, names: Names) -> int:
    return sum(len(project.experiments[name].totals) for name in names)


OWN = (
    Kind("finals", "tables/finals.html", "Final models", _own),
    Kind("utility", "figures/utility.svg", "Final models", _totals),
    Kind("shift", "figures/shift.svg", "Final models", _shifted),
    Kind("shift", "tables/shift.md", "", _shifted),
    Kind("reliability", "figures/reliability.svg", "Final models", _calibrated),
    Kind("ladder", "figures/ladder.svg", "Ladder", _climbed),
    Kind("scores", "figures/scores.svg", "Ladder", _climbed),
    Kind("trials", "tables/trials.html", "Ladder", _climbed),
    Kind("heatmap", "figures/heatmap.svg", "Research", _descended),
    Kind("gap", "figures/gap.svg", "Research", _descended),
)
OF_ALL = (
    Kind("models", "summary.csv", "", _modelled),
    Kind("grid", "tables/grid.html", "Final models", _cells),
    Kind("grid", "tables/grid.md", "", _cells),
    Kind("pareto", "figures/pareto.svg", "Final models", _frontier),
    Kind("batches", "figures/batches.svg", "Research", _sampled),
    Kind("batches", "tables/batches.md", "", _sampled),
    Kind("distance", "figures/distance.svg", "Research", _moved),
    Kind("budget", "figures/budget.svg", "Privacy", _statement),
    Kind("spends", "tables/spends.html", "Privacy", _statement),
)
