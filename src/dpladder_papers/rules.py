"""The rules of contests on data declared public, which enter the workflow's table by an entry point
(config/plugins.py). They are no part of the DAG behind a statement: ask for them by name."""

from __future__ import annotations

from typing import Annotated, Any

from dpladder.config import Config
from dpladder.config.learners import Learner
from dpladder.config.load import BASE
from dpladder.config.search_sections import Ladder
from dpladder.config.sweep_sections import Fit, Sweep
from dpladder.plan.follows import effective_values
from dpladder.plan.inputs import FEATURES, MEAN
from dpladder.plan.node import Node, Reads, RuleSpec, Wildcards, fact
from dpladder.plan.reads import SeenReads, TrainingReads


def _contestants(node: Node) -> list[dict[str, Any]]:
    """One document for each experiment with models, repeats left out."""
    project = node.project
    return [
        {
            "experiment": name,
            "learner": effective_values(config)["learner"],
            # rungs that the plan chose are chosen anew for each total
            "sweep": effective_values(config)["sweep"]
            | ({"rungs": None} if name in project.choices else {}),
            "fit": effective_values(config)["fit"],
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
        figures={"results/comparison/learners.svg": "dpladder_papers"},
    ),
    "compare_hpo": RuleSpec(
        CompareHpo,
        {**FEATURES, **MEAN},
        _train_and_test_parts,
        per=None,
        stated=False,
        module="dpladder_papers.jobs.compare_hpo",
        figures={
            "results/comparison/hpo.svg": "dpladder_papers",
            "results/comparison/ablations.svg": "dpladder_papers",
        },
    ),
}
