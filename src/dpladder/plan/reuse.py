"""Releases that are kept, and what is asked anew.

A question that the ledger has an answer to is restored, free, whoever asked it and whatever code
answered (contract: write-ahead). What `respend` names is asked anew instead, and pays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dpladder.config import Config, Project
from dpladder.config.wording import did_you_mean, value_as_text
from dpladder.errors import BadInput
from dpladder.plan import job_identity, mechanisms, rule_specs
from dpladder.plan.mechanisms import BROUGHT, WORD
from dpladder.plan.plan import terms_of_project
from dpladder.privacy.accounting.events import Job
from dpladder.privacy.ledger.state import Item, State


def with_answers(project: Project, states: Mapping[str, State]) -> tuple[Project, dict[str, State]]:
    """The project with what respend asks anew. Beside it the ledgers, as a run under the config's
    terms finds them.

    Args:
        project: all experiments, with nothing left to choose.
        states: what the ledgers hold, by lineage.

    Returns:
        The project with `anew`, questions to ask once more. Beside it the states.
    """
    terms = terms_of_project(project, states)
    states = {lineage: state.as_under(terms[lineage]) for lineage, state in states.items()}
    anew = frozenset(
        question
        for name, config in project.experiments.items()
        for job, question in job_identity.questions(project, name)
        if _renews(config, job)
    )
    return replace(project, anew=anew), states


def check_names(project: Project) -> None:
    """Refuse a `respend` that names nothing that can be asked anew.

    Raises:
        BadInput: a name is neither an experiment, a rule that releases, a method nor the guide.
    """
    rules = [rule for rule in rule_specs.RULE_SPECS if rule_specs.is_mechanism(rule)]
    known = {*project.experiments, *rules, *mechanisms.METHODS, mechanisms.GUIDE}
    configs = project.experiments.values()
    names = [name for one in configs if isinstance(one.respend, tuple) for name in one.respend]
    if wrong := [name for name in dict.fromkeys(names) if name not in known]:
        behind = {name for one in configs for name in rule_specs.mechanisms_behind(one, "evaluate")}
        raise BadInput(
            f"config: respend names {', '.join(map(value_as_text, wrong))}; "
            f"{did_you_mean(wrong[0], known)}allowed: true, false, {{up_to: epsilon}}, or names of "
            f"experiments ({', '.join(project.experiments)}) and of what is behind their models "
            f"({', '.join(sorted(behind))})"
        )


def _renews(config: Config, job: Job) -> bool:
    """Whether an experiment asks for a job anew, if something about it is new. It asks for all of
    them, or by the name of the experiment, the rule, the learner or the search."""
    if not isinstance(config.respend, tuple):
        return config.respend is True
    return bool(
        {job.experiment, job.rule, *rule_specs.mechanisms_behind(config, job.rule)}
        & {*config.respend}
    )


def questions_to_repeat(project: Project, items: Iterable[Item]) -> frozenset[str]:
    """The questions that may be paid for once more: those that are asked anew; in research all, for
    it has no budget.

    Args:
        project: all experiments, with `anew`.
        items: the jobs of this run, on one lineage.
    """
    if project.main.mode == "research":
        return frozenset(item.question for item in items)
    return project.anew


def mechanisms_text(names: Iterable[str]) -> str:
    """What a release by mechanisms of other packages rests on; else empty.

    Args:
        names: of the mechanisms that stand behind it.
    """
    return ", ".join(
        f"by {name} of {BROUGHT[name].package}: {WORD}" for name in names if name in BROUGHT
    )
