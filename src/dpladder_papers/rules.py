"""What enters the workflow's tables by an entry point (config/plugins.py): the rules of contests on
data declared public, and the pictures of research alone. Contests are no part of the DAG behind a
statement: ask for them by name."""

from __future__ import annotations

from typing import Annotated, Any

from dpladder.config import Config, Project
from dpladder.config.learners import Learner
from dpladder.config.load import BASE
from dpladder.config.search_sections import Ladder
from dpladder.config.sweep_sections import Fit, Sweep
from dpladder.plan.follows import plain_values
from dpladder.plan.inputs import FEATURES, MEAN
from dpladder.plan.node import Node, Reads, RuleSpec, Wildcards, fact
from dpladder.plan.pictures import Kind, Names
from dpladder.plan.reads import SeenReads, TrainingReads

PACKAGE = "dpladder_papers"


def _contestants(node: Node) -> list[dict[str, Any]]:
    """One document for each experiment with models, repeats left out."""
    project = node.project
    return [
        {
            "experiment": name,
            "learner": plain_values(config)["learner"],
            # rungs that the plan chose are chosen anew for each total
            "sweep": plain_values(config)["sweep"]
            | ({"rungs": None} if name in project.choices else {}),
            "fit": plain_values(config)["fit"],
            "epsilon": config.privacy.epsilon,
            "comparable": _features_of(node, name) == _features_of(node, BASE)
            and config.features.until is None
            and config.features.mean is None
            and not config.learner.purchases
            and config.learner.uses_public_gradient <= project.main.learner.uses_public_gradient
            and isinstance(config.hpo, Ladder),
        }
        for name, config in project.experiments.items()
        if name in project.repeats
    ]


def _features_of(node: Node, experiment: str) -> list[Node]:
    """The job that joins an experiment's training features: equal ones are one job."""
    return node.dag.jobs(experiment, "merge_features", part="train")


def _repeats(node: Node) -> int:
    return 1 + len(node.project.repeats[BASE])


def _totals(node: Node) -> list[float]:
    return sorted({*node.config.totals, node.config.privacy.epsilon})


def _ablated(node: Node) -> float:
    return node.config.privacy.epsilon


def _searches(node: Node) -> list[str]:
    return [*node.config.research.searches]


class Contestant(Reads):
    """An experiment, as a comparison of learners repeats it itself: how it learns and searches, and
    whether its data and features are the first's."""

    experiment: str
    learner: Learner
    sweep: Sweep
    fit: Fit
    epsilon: float
    comparable: bool


class CompareLearners(SeenReads):
    """Research: each experiment's learner with a ladder of its own, repeated."""

    contestants: Annotated[tuple[Contestant, ...], fact(_contestants)]
    repeats: Annotated[int, fact(_repeats)]


class CompareHpo(TrainingReads):
    """Research: searches against each other, with the first experiment's learner.

    Attributes:
        totals: at which they are compared.
        ablated: the total at which the ladder is also compared with itself, one part changed.
        searches: `research.searches`; none is all.
        repeats: of each search.
    """

    totals: Annotated[tuple[float, ...], fact(_totals)]
    ablated: Annotated[float, fact(_ablated)]
    searches: Annotated[tuple[str, ...], fact(_searches)]
    repeats: Annotated[int, fact(_repeats)]


def _train_and_test_parts(config: Config, wildcards: Wildcards) -> tuple[str, ...]:
    """The public sample is among them where its gradients guide private steps."""
    return ("train", "test", *(["sample"] if config.learner.uses_public_gradient else []))


RULES = {
    "compare_learners": RuleSpec(
        CompareLearners,
        {**FEATURES, **MEAN},
        _train_and_test_parts,
        per=None,
        stated=False,
        module="dpladder_papers.jobs.compare_learners",
        figures={"results/comparison/learners.svg": PACKAGE},
    ),
    "compare_hpo": RuleSpec(
        CompareHpo,
        {**FEATURES, **MEAN},
        _train_and_test_parts,
        per=None,
        stated=False,
        module="dpladder_papers.jobs.compare_hpo",
        figures={
            "results/comparison/hpo.svg": PACKAGE,
            "results/comparison/ablations.svg": PACKAGE,
        },
    ),
}


def _if_descents(project: Project, name: str) -> Names | None:
    """Gaps in r need the repeats of research to say anything; one picture shows them all."""
    config = project.experiments[name]
    drawn = config.learner.searches == "rate" and config.sweep.ladder
    repeated = config.mode == "research" and name in project.repeats
    return (name, *project.repeats[name]) if drawn and repeated else None


def _if_known_starts(project: Project, _: str) -> Names | None:
    """Final models of research that start where everybody knows; one alone says nothing."""
    totals = {
        name: config.totals
        for name, config in project.experiments.items()
        if config.mode == "research" and config.learner.starts_at_public_point
    }
    return tuple(totals) if sum(map(len, totals.values())) > 1 else None


OF_EXPERIMENT = (
    Kind(
        "gap",
        "figures/gap.svg",
        "Research",
        _if_descents,
        "research.gap_figure:plot_gap",
        "all",
        package=PACKAGE,
    ),
)
OF_ALL = (
    Kind(
        "distance",
        "figures/distance.svg",
        "Research",
        _if_known_starts,
        "research.distance_figure:plot_distance",
        "all",
        package=PACKAGE,
    ),
)
