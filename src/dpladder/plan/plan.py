"""The plan: every spend that a config declares, known before any private record is read.

Rungs, trials and targets have fixed budgets, so the plan needs no data. A trial's step count may
still depend on an earlier release; its budget may not (Gaussian budgets are a filter:
contract: one-filter). What the ledger already holds is taken as it was paid, never priced again.

A plan is a function of the config and of the ledgers' state: two machines with equal ones make
equal plans. It is made at every parse and again before a run reserves (contract: refuse-first).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dpladder.config import Config, Project
from dpladder.errors import BadInput
from dpladder.plan import cost, follows, package
from dpladder.plan.curves import refuse_other_than_sums
from dpladder.plan.dag import Dag
from dpladder.plan.node import Node
from dpladder.privacy.accounting.composition import compose
from dpladder.privacy.accounting.events import Job, Spend
from dpladder.privacy.ledger.book import check_terms
from dpladder.privacy.ledger.state import Item, State, Terms
from dpladder.privacy.statement.documents import NamedJob, PlannedModel


@dataclass(frozen=True)
class Plan:
    """What a config will spend, on which terms, and for which models.

    Attributes:
        items: every private job by its label, priced, with its question.
        artifacts: every final model, in the order of experiments and totals.
        terms: what is fixed for the life of each lineage.
        config: a digest of all that the jobs ask, whatever their code.
    """

    items: dict[Job, Item]
    artifacts: tuple[PlannedModel, ...]
    terms: dict[str, Terms]
    config: str

    def spends_of(self, jobs: Iterable[Job]) -> tuple[Spend, ...]:
        """What these jobs spend together, in their order; jobs are looked up, so each must be
        planned.

        Raises:
            KeyError: a job is not planned.
        """
        return tuple(spend for job in jobs for spend in self.items[job].spends)

    def items_of(self, lineage: str) -> list[Item]:
        """The jobs that a lineage's ledger is charged for."""
        return [item for item in self.items.values() if item.spends[0].lineage == lineage]


def make_plan(dag: Dag, states: Mapping[str, State]) -> Plan:
    """All jobs of all experiments. What is finished costs what it cost, everything else what the
    first experiment says that asks it. Terms come first: under others, no sum means a thing.

    Args:
        dag: all jobs, with nothing left to choose.
        states: what the ledgers hold, by lineage; a lineage that is missing was never opened.

    Raises:
        BadInput: two experiments read different sources as one version, or ask one question of
            both.
        Refused: a lineage was opened under other terms, or a total leaves nothing for its model.
    """
    project = dag.project
    _refuse_two_versions(project)
    refuse_other_than_sums(project)
    terms = terms_of_project(project, states)
    for lineage, state in states.items():
        if state.binding is not None:
            check_terms(state.binding, terms[lineage])
    charged = charged_jobs(dag)
    _refuse_two_sources(charged)
    priced: cost.Spends = {}
    for node in charged:
        answer = states.get(node.config.dataset.lineage, State()).answer(node.question)
        if answer is not None:
            priced[node.job] = answer.declared
    artifacts = []
    for name, config in project.experiments.items():
        # What is paid is taken as it was paid; what an earlier experiment asks too keeps that one's
        # price.
        ladder = cost.sweep_costs(dag, name)
        priced = ladder | priced
        stood_on = {job: priced[job] for job in ladder}
        for target in config.totals:
            final = cost.final_costs(dag, name, target, cost.flatten_spends(stood_on), priced)
            priced |= final
            behind = {**stood_on, **final}
            price = compose(cost.flatten_spends(behind), config.privacy.delta)
            model = PlannedModel(
                epsilon=price.epsilon,
                mu=price.mu,
                path=follows.artifact(name, target),
                experiment=name,
                lineage=config.dataset.lineage,
                target_epsilon=target,
                jobs=tuple(NamedJob(j.rule, j.experiment, dict(j.wildcards)) for j in behind),
            )
            artifacts.append(model)
    items = {
        node.job: Item(node.job, node.question, priced[node.job], package.digest())
        for node in charged
    }
    questions = {str(job): item.question for job, item in items.items()}
    return Plan(items, tuple(artifacts), terms, follows.digest(questions))


def _refuse_two_sources(charged: Iterable[Node]) -> None:
    """A question that reads two sources would have answers of both, and nobody could tell whose
    ancestors they are."""
    first: dict[str, Node] = {}
    for node in charged:
        other = first.setdefault(node.question, node)
        if other is not node:
            raise BadInput(
                f"config: {other.job} and {node.job} ask the same question "
                "of different sources; give one of the experiments dataset.version, a number of "
                "its own"
            )


def _refuse_two_versions(project: Project) -> None:
    """A version of the data is one source: units of another would count as nothing."""
    first: dict[tuple[str, int | None], tuple[str, str]] = {}
    for name, config in project.experiments.items():
        dataset = config.dataset
        name_and_source = (name, dataset.source)
        other = first.setdefault((dataset.lineage, dataset.version), name_and_source)
        if other[1] != dataset.source:
            raise BadInput(
                f"config: experiments {other[0]} and {name} read different sources as one version "
                f"of lineage {dataset.lineage}; give one of them dataset.version, a number of its "
                "own"
            )


def terms_of_project(project: Project, states: Mapping[str, State]) -> dict[str, Terms]:
    """What a config fixes for the life of each of its lineages. The share of delta for booked
    events may be left to us: what a lineage was opened with holds.

    Args:
        project: all experiments. Those of one lineage agree in what is fixed (config/check.py).
        states: what the ledgers hold, by lineage.

    Returns:
        Terms by lineage. The share of delta is the config's, else the one that the lineage was
        opened with, else the largest that an experiment needs.
    """
    terms: dict[str, Terms] = {}
    for config in project.experiments.values():
        lineage = config.dataset.lineage
        known = states[lineage].binding if lineage in states else None
        users = project.of_lineage(lineage).values()
        share = config.privacy.share
        if share is None:
            share = known.share if known else max(map(cost.needed_share, users))
        terms[lineage] = _terms_of(config, share)
    return terms


def _terms_of(config: Config, share: float) -> Terms:
    """The terms that one experiment's config declares for its lineage."""
    lifetime = config.privacy.lifetime
    return Terms(
        lineage=config.dataset.lineage,
        relation=config.privacy.relation,
        unit=config.dataset.unit.word,
        cap=config.dataset.unit.cap,
        delta=config.privacy.delta,
        split_rule=cost.partition(config).split_rule,
        lifetime_epsilon=None if lifetime is None else lifetime.epsilon,
        share=share,
        loss=0.0 if lifetime is None else lifetime.loss,
        weight=1.0 if lifetime is None else lifetime.weight,
        mode=config.mode,
    )


def charged_jobs(dag: Dag) -> tuple[Node, ...]:
    """Every job that a ledger is charged for, once: what each experiment's models stand on, then
    their finals and tests."""
    nodes: list[Node] = []
    for name, config in dag.project.experiments.items():
        priced = {*cost.sweep_costs(dag, name)}
        nodes += [node for node in dag.asking_jobs(name) if node.job in priced]
        for target in config.totals:
            nodes += cost.final_jobs(dag, name, target)
    return tuple(dict.fromkeys(nodes))
