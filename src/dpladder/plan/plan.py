"""The plan: every spend that a config declares, known before any private record is read.

Rungs, trials and targets have fixed budgets, so the plan needs no data. A trial's step count may
still depend on an earlier release; its budget may not (Gaussian budgets are a filter:
docs/design.md, line 10). What the ledger already holds is taken as it was paid, never priced again.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dpladder.config import Config, Project
from dpladder.config.search_sections import KoskelaKulkarni, ProposeTest
from dpladder.errors import Refused
from dpladder.plan import cost, dag, stages
from dpladder.privacy.accounting import booking, gdp
from dpladder.privacy.accounting.composition import Composition, compose
from dpladder.privacy.accounting.events import Job, Spend, counts_for, families_of
from dpladder.privacy.accounting.shown import up
from dpladder.privacy.ledger.book import check_terms
from dpladder.privacy.ledger.state import Held, Item, State, Terms, called


@dataclass(frozen=True)
class Artifact:
    """One published final model, or the measuring of another lineage's: its file, the total it
    promises, and every job its guarantee composes. `earlier`: what other answers to its questions
    cost that were released before it was planned. `former`, `shared_with`, `families`: as in the
    plan's document."""

    path: str
    experiment: str
    target: float
    delta: float
    lineage: str
    jobs: tuple[Job, ...]
    earlier: tuple[Spend, ...] = ()
    former: tuple[str, ...] = ()
    shared_with: tuple[str, ...] = ()
    families: tuple[str, ...] = ()


@dataclass(frozen=True)
class OtherAnswer:
    """A release in the ledger, and the jobs whose question it answers, by all their names."""

    held: Held
    jobs: tuple[Job, ...]

    def is_of(self, asked: Collection[Job], statics: Mapping[Job, str]) -> bool:
        """Whether one of these jobs asks just that, of these records or of others."""
        return any(job in asked and statics[job] == self.held.static for job in self.jobs)


@dataclass(frozen=True)
class Plan:
    """`superseded`: what earlier versions of this DAG's jobs spent, which nobody can take back.
    `config`: a digest of all that the jobs read of the config, whatever their code."""

    items: dict[Job, Item]
    artifacts: tuple[Artifact, ...]
    terms: dict[str, Terms]
    superseded: tuple[Spend, ...]
    config: str

    def of(self, jobs: Iterable[Job]) -> tuple[Spend, ...]:
        return tuple(spend for job in jobs for spend in self.items[job].spends)

    def items_of(self, lineage: str) -> list[Item]:
        """The jobs that a lineage's ledger is charged for."""
        return [item for item in self.items.values() if item.spends[0].lineage == lineage]

    def of_lineage(self, lineage: str) -> tuple[Spend, ...]:
        """Every spend of the DAG on one lineage, charged once however many artifacts stand on
        it."""
        return tuple(s for s in (*self.of(self.items), *self.superseded) if s.lineage == lineage)


def make_plan(project: Project, states: Mapping[str, State]) -> Plan:
    """All jobs of all experiments, finished ones at what they cost. Terms come first: under others,
    no sum means a thing."""
    terms = terms_of_project(project, states)
    for lineage, state in states.items():
        if state.binding is not None:
            check_terms(state.binding, terms[lineage])
    asked = asked_of(project)
    made = {job: _identity(project, job, config) for job, config in asked.items()}
    statics = {job: one.static for job, one in made.items()}
    finished, superseded = _history(states, statics, project)
    answers = [] if project.main.mode == "research" else _answers(states)
    items: dict[Job, Item] = {}
    artifacts = []
    for name, config in project.experiments.items():
        ladder = cost.sweep_costs(project, name, config)
        ladder |= cost.known(finished, ladder)
        for target in config.totals:
            stands_on = (*ladder, *cost.final_jobs(project, name, config, target))
            known = states.get(config.dataset.lineage, State())
            families = _families(project, config.dataset.lineage, known)
            planned = _planned(stands_on, finished)
            paid = {
                job: finished[job].family if job in finished else families[job.experiment]
                for job in stands_on
            }
            own = families_of(name, paid) or {families[name]}
            counts = counts_for(own, paid)
            edited = [
                one
                for one in answers
                if counts(one.held.family, one.held.job) and not one.is_of(stands_on, statics)
            ]
            earlier = _earlier(edited, config.dataset.lineage, planned)
            most, path = config.promised(target), stages.artifact(name, config, target)
            tuned = any(
                not any(dag.asks_for(project, job, one.held) for job in one.jobs) for one in edited
            )
            with _explained(name, config, most, earlier, known, tuned):
                final = cost.final_costs(
                    project, name, config, target, [*cost.flat(ladder), *earlier], finished
                )
            items |= {
                job: replace(made[job], spends=spends) for job, spends in (ladder | final).items()
            }
            artifacts.append(
                Artifact(
                    path,
                    name,
                    most,
                    config.privacy.delta,
                    config.dataset.lineage,
                    stands_on,
                    earlier,
                    tuple(sorted(_names_of(known, own) - {name})),
                    tuple(
                        sorted(_names_of(known, {*paid.values()} - own) - {*project.experiments})
                    ),
                    tuple(sorted(own)),
                )
            )
    read = [
        (called(job), dag.identity(config, job.rule, dict(job.wildcards)))
        for job, config in asked.items()
    ]
    spent = tuple(spend for held in superseded for spend in held.spends)
    return Plan(items, tuple(artifacts), terms, spent, dag.digest(dict(read)))


def _identity(project: Project, job: Job, config: Config) -> Item:
    """A job as the ledger knows it, before it is priced: a kept one under the versions that it was
    released under."""
    code = stages.code_behind(job.rule, stages.mechanisms_of(config, job.rule))
    if (kept := project.kept.get(job)) is not None:
        return Item(job, kept.static, (), kept.versions, code)
    static = dag.static(
        config, job.rule, dict(job.wildcards), dag.modelled(project, job.experiment)
    )
    return Item(job, static, (), stages.versions_of(config, job.rule), code)


@contextlib.contextmanager
def _explained(
    experiment: str,
    config: Config,
    target: float,
    superseded: Sequence[Spend],
    state: State,
    tuned: bool,
) -> Iterator[None]:
    """Where earlier versions of the same jobs have eaten the total, say so, and what total would
    do. `tuned`: whether the config was edited. Else its mechanisms or its data changed, and another
    name would ask the same."""
    try:
        yield
    except Refused:
        if not superseded:
            raise
        paid = compose(superseded, config.privacy.delta)
        raise Refused(
            f"experiment {experiment} changed (config, code or data) after epsilon = "
            f"{up(paid.epsilon)} was paid for it, which cannot "
            f"be taken back, and its total of {target:g} has no room for the change beside that: "
            "it is infeasible. Undo the change and "
            f"nothing is spent; or {_raised(config, target, paid, state)}"
            f"{'; or run the change as an experiment with a name of its own' if tuned else ''}."
        ) from None


def _raised(config: Config, target: float, paid: Composition, state: State) -> str:
    """The total that buys the same again beside what was paid: mu squared adds. Trainings of other
    totals are no earlier versions of its own, so it may be left with all of itself to spend."""
    key = config.totals_key
    if paid.mu is None:
        return f"raise the total ({key}) and set respend: true"
    delta, lifetime = config.privacy.delta, config.privacy.lifetime
    enough = gdp.epsilon(math.hypot(gdp.mu(target, delta), paid.mu), delta)
    told = (
        f"raise the total ({key}) to {up(enough)}, which may pay all of that anew, and set "
        "respend: true"
    )
    spent = state.charged()
    if lifetime is not None and math.hypot(
        compose(spent, delta).entry.mu, gdp.mu(target, delta)
    ) > gdp.mu(lifetime.epsilon, delta):
        return (
            f"{told} (but the lineage's lifetime limit of {lifetime.epsilon:g} leaves no room for "
            "all of that)"
        )
    return told


def artifact_cost(plan: Plan, artifact: Artifact) -> Composition:
    """What an artifact costs beside its total: its own and its ancestors' spends, and what was paid
    for other answers to the same questions before it was planned. Older versions of the data are
    not among these: they stand in its stated figure."""
    return compose((*plan.of(artifact.jobs), *artifact.earlier), artifact.delta)


def _planned(jobs: Iterable[Job], finished: Mapping[Job, Held]) -> float:
    """The entry of the ledger that reserved the last of these jobs; of those that are yet to be
    reserved, any later one."""
    return max(
        (finished[job].reserved if job in finished else math.inf for job in jobs), default=math.inf
    )


def _earlier(edited: Iterable[OtherAnswer], lineage: str, planned: float) -> tuple[Spend, ...]:
    """What other versions of an artifact's jobs spent before it was planned. Whoever tunes by hand
    pays for each look; what was released later cannot have been a reason for it. What is known to
    have read records of before is no such look."""
    return tuple(
        spend
        for held in (one.held for one in edited)
        if (held.released or held.reserved) < planned
        for spend in held.spends
        if spend.lineage == lineage and not spend.partition.version
    )


def terms_of_project(project: Project, states: Mapping[str, State]) -> dict[str, Terms]:
    """What a config fixes for the life of each of its lineages. The share of delta for booked
    events may be left to us: what a lineage was opened with holds."""
    found: dict[str, Terms] = {}
    for config in project.experiments.values():
        lineage = config.dataset.lineage
        known = states[lineage].binding if lineage in states else None
        users = project.of_lineage(lineage).values()
        share = config.privacy.share
        if share is None:
            share = known.share if known else booking.SHARE * any(map(_needs_booking, users))
        found[lineage] = _terms_of(config, share)
    return found


def _needs_booking(config: Config) -> bool:
    """Whether what an experiment spends is Gaussian only up to a small probability."""
    searched = isinstance(config.hpo, KoskelaKulkarni | ProposeTest)
    return config.models == "own" and (cost.samples(config) or searched)


def _terms_of(config: Config, share: float) -> Terms:
    lifetime = config.privacy.lifetime
    return Terms(
        lineage=config.dataset.lineage,
        relation=config.privacy.relation,
        unit=config.dataset.unit.by,
        cap=config.dataset.unit.cap,
        delta=config.privacy.delta,
        split_rule=cost.partition(config).split_rule,
        lifetime_epsilon=None if lifetime is None else lifetime.epsilon,
        share=share,
        loss=0.0 if lifetime is None else lifetime.loss,
        weight=1.0 if lifetime is None else lifetime.weight,
        mode=config.mode,
    )


def asked_of(project: Project) -> dict[Job, Config]:
    """Every private job of the DAG, with the config that it follows."""
    asked: dict[Job, Config] = {}
    for name, config in project.experiments.items():
        alone = [*cost.sweep_costs(project, name, config)]
        for target in config.totals:
            alone += cost.final_jobs(project, name, config, target)
        asked |= dict.fromkeys(alone, config)
    return asked


def _history(
    states: Mapping[str, State], statics: Mapping[Job, str], project: Project
) -> tuple[dict[Job, Held], list[Held]]:
    """From the ledgers: what the current jobs already cost, and what other versions of them cost
    beside it, also under the names that experiments had before. In the order of their names: plans
    are compared, and ledgers may be given in another."""
    current: dict[Job, Held] = {}
    others: list[Held] = []
    for _, state in sorted(states.items()):
        own = {
            job: replace(held, spends=state.settled(held.spends))
            for job, held in state.by_name()
            if held.used and statics.get(job) == held.static
        }
        current |= own
        taken = {held.token for held in own.values()}
        families = {
            *map(state.family, project.experiments),
            *(held.family for held in own.values()),
        }
        before = itertools.chain(*project.former.values())
        names = {*project.experiments, *before, *_names_of(state, families)}
        others += {
            held.token: replace(held, spends=state.settled(held.spends))
            for job, held in state.by_name()
            if held.used and job.experiment in names and held.token not in taken
        }.values()
    return current, others


def _answers(states: Mapping[str, State]) -> list[OtherAnswer]:
    """All that was released, whoever asks for it today."""
    found: list[OtherAnswer] = []
    for _, state in sorted(states.items()):
        jobs: dict[str, list[Job]] = {}
        for job, held in state.by_name():
            jobs.setdefault(held.token, []).append(job)
        found += (
            OtherAnswer(replace(held, spends=state.settled(held.spends)), tuple(jobs[token]))
            for token, held in state.items.items()
            if held.used
        )
    return found


def _families(project: Project, lineage: str, state: State) -> dict[str, str]:
    """The family of each experiment."""
    noted = {name: state.family(name) for name in project.experiments}
    return noted | dict(project.families.get(lineage, {}))


def _names_of(state: State, families: Collection[str]) -> set[str]:
    """The names under which families paid."""
    return {
        held.job.experiment
        for held in state.items.values()
        if held.used and held.family in families
    }
