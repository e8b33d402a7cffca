"""Releases that are kept, and what is asked anew.

A question that the ledger has an answer to is restored, free, whoever asked it and whatever code
answered (contract: write-ahead). What `respend` names is asked anew instead, and pays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dpladder.config import Config, Project
from dpladder.errors import BadInput
from dpladder.plan import mechanisms
from dpladder.plan.dag import Dag, build_dag
from dpladder.plan.mechanisms import AUTHORS_WORD, BROUGHT
from dpladder.plan.node import Node
from dpladder.plan.plan import terms_of_project
from dpladder.plan.rules import RULES
from dpladder.privacy.ledger.state import Item, State
from dpladder.wording import did_you_mean, value_as_text


def under_terms(project: Project, states: Mapping[str, State]) -> dict[str, State]:
    """The ledgers as a run under the config's terms finds them.

    Args:
        project: all experiments, with nothing left to choose.
        states: what the ledgers hold, by lineage.
    """
    terms = terms_of_project(project, states)
    return {lineage: state.as_under(terms[lineage]) for lineage, state in states.items()}


def asked_anew(dag: Dag) -> frozenset[str]:
    """The questions that `respend` asks once more."""
    return frozenset(
        node.question
        for name, config in dag.project.experiments.items()
        if config.respend is True or isinstance(config.respend, tuple)
        for node in dag.asking_jobs(name)
        if _renews(config, name, node)
    )


def check_names(project: Project) -> None:
    """Refuse a `respend` that names nothing that can be asked anew.

    Raises:
        BadInput: a name is neither an experiment, a rule that releases, a method nor the guide.
    """
    rules = [rule for rule, row in RULES.items() if row.is_mechanism]
    known = {*project.experiments, *rules, *mechanisms.METHODS, mechanisms.GUIDE}
    configs = project.experiments.values()
    names = [name for one in configs if isinstance(one.respend, tuple) for name in one.respend]
    if wrong := [name for name in dict.fromkeys(names) if name not in known]:
        dag = build_dag(project)
        tests = (node for name in project.experiments for node in dag.jobs(name, "evaluate"))
        behind = {name for node in tests for name in node.mechanisms_behind}
        raise BadInput(
            f"config: respend names {', '.join(map(value_as_text, wrong))}; "
            f"{did_you_mean(wrong[0], known)}allowed: true, false, {{up_to: epsilon}}, or names of "
            f"experiments ({', '.join(project.experiments)}) and of what is behind their models "
            f"({', '.join(sorted(behind))})"
        )


def _renews(config: Config, name: str, node: Node) -> bool:
    """Whether an experiment asks for a job anew, if something about it is new. It asks for all of
    them, or by the name of the experiment, the rule, the learner or the search."""
    if not isinstance(config.respend, tuple):
        return config.respend is True
    return bool({name, node.rule, *node.mechanisms_behind} & {*config.respend})


def questions_to_repeat(dag: Dag, items: Iterable[Item]) -> frozenset[str]:
    """The questions that may be paid for once more: those that are asked anew; in research all, for
    it has no budget.

    Args:
        dag: all jobs.
        items: the jobs of this run, on one lineage.
    """
    if dag.project.main.mode == "research":
        return frozenset(item.question for item in items)
    return asked_anew(dag)


def mechanisms_text(names: Iterable[str]) -> str:
    """What a release by mechanisms of other packages rests on; else empty.

    Args:
        names: of the mechanisms that stand behind it.
    """
    return ", ".join(
        f"by {name} of {BROUGHT[name].package}: {AUTHORS_WORD}" for name in names if name in BROUGHT
    )
