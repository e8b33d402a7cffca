"""The rules of contests on data declared public, which enter the workflow's table by an entry point
(config/plugins.py). They are no part of the DAG behind a statement: ask for them by name."""

from __future__ import annotations

from typing import Any

from dpladder.config import Config, Project
from dpladder.config.learners import Learner
from dpladder.config.load import BASE
from dpladder.config.search_sections import Ladder
from dpladder.config.sweep_sections import Fit, Sweep
from dpladder.plan.rule_params import Reads, RuleSpec, SeenReads, TrainingReads, Wildcards


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

    contestants: tuple[Contestant, ...]
    repeats: int


class CompareHpo(TrainingReads):
    """Research: searches against each other, with the first experiment's learner.

    Attributes:
        totals: at which they are compared.
        ablated: the total at which the ladder is also compared with itself, one part changed.
        searches: `research.searches`; none is all.
        repeats: of each search.
    """

    totals: tuple[float, ...]
    ablated: float
    searches: tuple[str, ...]
    repeats: int


def _train_and_test_parts(config: Config, wildcards: Wildcards) -> tuple[str, ...]:
    """The public sample is among them where its gradients guide private steps."""
    return ("train", "test", *(["sample"] if config.learner.uses_public_gradient else []))


def _repeats(project: Project, experiment: str) -> int:
    return 1 + len(project.repeats[BASE])


def _totals(project: Project, experiment: str) -> list[float]:
    config = project.experiments[experiment]
    return sorted({*config.totals, config.privacy.epsilon})


def _contestants(project: Project, experiment: str) -> list[dict[str, Any]]:
    """One document for each experiment with models, repeats left out."""
    # the table of rules imports this module
    from dpladder.plan.job_identity import effective_values, identity, sources_behind

    def basis(config: Config) -> tuple[object, ...]:
        """What two experiments must have in common to be compared on one set of features."""
        merged = config, "merge_features", {"part": "train"}
        return identity(*merged), sources_behind(*merged)

    return [
        {
            "experiment": name,
            "learner": effective_values(config)["learner"],
            # rungs that the plan chose are chosen anew for each total
            "sweep": effective_values(config)["sweep"]
            | ({"rungs": None} if name in project.choices else {}),
            "fit": effective_values(config)["fit"],
            "epsilon": config.privacy.epsilon,
            "comparable": basis(config) == basis(project.main)
            and config.features.until is None
            and config.features.mean is None
            and not config.learner.purchases
            and config.learner.uses_public_gradient <= project.main.learner.uses_public_gradient
            and isinstance(config.hpo, Ladder),
        }
        for name, config in project.experiments.items()
        if name in project.repeats
    ]


RULES = {
    "compare_learners": RuleSpec(
        CompareLearners,
        ("merge_features",),
        _train_and_test_parts,
        module="dpladder_papers.jobs.compare_learners",
        facts={"contestants": _contestants, "repeats": _repeats},
        figures={"results/comparison/learners.svg": "dpladder_papers"},
    ),
    "compare_hpo": RuleSpec(
        CompareHpo,
        ("merge_features",),
        _train_and_test_parts,
        module="dpladder_papers.jobs.compare_hpo",
        facts={
            "totals": _totals,
            "ablated": lambda project, name: project.experiments[name].privacy.epsilon,
            "searches": lambda project, name: [*project.experiments[name].research.searches],
            "repeats": _repeats,
        },
        figures={
            "results/comparison/hpo.svg": "dpladder_papers",
            "results/comparison/ablations.svg": "dpladder_papers",
        },
    ),
}
