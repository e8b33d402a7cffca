"""The plan and the statement as others read them: their keys are these fields, and their JSON
schemas follow from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from dpladder.privacy.accounting.events import Job, Relation
from dpladder.privacy.ledger.state import Anchor, Mode


@dataclass(frozen=True)
class Cost:
    """What composes to what, at the lineage's delta.

    Attributes:
        epsilon: of the worst unit. It holds together with the lineage's delta.
        mu: of the one Gaussian release that costs the same; null where no single Gaussian says it.
            Then epsilon alone holds.
    """

    epsilon: float
    mu: float | None


@dataclass(frozen=True)
class NamedJob:
    """A job as documents name it: what is stated of it has this in common."""

    rule: str
    experiment: str
    wildcards: dict[str, str]

    @property
    def job(self) -> Job:
        """The job as the ledger and messages name it."""
        return Job.of(self.experiment, self.rule, self.wildcards)


TEST_SCORE = "test score"  # a charge's label; of several tables, with what each holds behind it
FINALS = ("train_final", "private_search")  # the one or the other puts out final models


# --- the plan: dpladder plan --json, results/plan.json ---


@dataclass(frozen=True)
class PlannedModel(Cost):
    """A final model, and its price.

    Attributes:
        path: of its weights, the file that the guarantee is about.
        experiment: whose it is.
        lineage: whose data its price is paid from.
        target_epsilon: the total that was promised for it beforehand, its search included.
        jobs: all that its price composes: the sweep's first, then its own and its tests.
    """

    path: str
    experiment: str
    lineage: str
    target_epsilon: float
    jobs: tuple[NamedJob, ...]


@dataclass(frozen=True)
class PlannedLineage(Cost):
    """What a plan spends on one lineage.

    Attributes:
        relation: which data sets are neighbours: one unit more or less, or one replaced.
        delta: one for the life of the lineage.
        lifetime_epsilon: the limit that was declared; null where none was.
        units: how many each part has by declaration, by the first experiment's nominal size. Where
            the source names each unit's part, those that train alone.
    """

    relation: Relation
    delta: float
    lifetime_epsilon: float | None
    units: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PricedSpend(NamedJob):
    """A spend with its price, as a plan will make it or as it was made.

    Attributes:
        question: what the ledger knows it by.
        label: what it buys, in words.
        partition: the parts that it reads, or all.
        count: how often its event happens.
        mu, epsilon: of this spend alone; mu is null where more than a Gaussian is behind it.
    """

    question: str
    label: str
    partition: str
    count: int
    mu: float | None
    epsilon: float


@dataclass(frozen=True, kw_only=True)
class PlannedSpend(PricedSpend):
    """A spend that a plan will make.

    Attributes:
        dataset: the lineage.
        event: as JSON (accounting/events.py).
        in_parallel: whether nobody bears it together with the training.
    """

    dataset: str
    relation: Relation
    event: dict[str, Any]
    in_parallel: bool = False


@dataclass(frozen=True)
class PlannedLifetime:
    """All that was ever spent on a lineage, by its ledger.

    Attributes:
        epsilon_spent: before this plan.
        epsilon_after: once it is carried out.
    """

    epsilon_spent: float
    epsilon_after: float


@dataclass(frozen=True)
class PlanDocument:
    """What a config will spend. The figures on top are the first lineage's.

    Four fields hang on the ledger, which changes while the plan is carried out: `feasible`,
    `problems`, `lifetimes` and `kept`. In results/plan.json they are left at their defaults.

    Attributes:
        target_epsilon: the greatest total of the first lineage's artifacts.
        config: a digest of all that private jobs read of the config.
        deployment: the config's section of that name.
        choices: what the plan chose where the config left it open, in words, by experiment.
        notes: what the config cannot hope for.
        artifacts: the final models.
        datasets: what is spent, by lineage.
        feasible, problems: whether the ledger has room for it, and else why not.
        lifetimes: each lineage's, before and after.
        kept: what is told of releases that are kept.
        mechanisms: the names of those behind each job that spends, by experiment and rule.
    """

    mode: Mode
    relation: Relation
    delta: float
    epsilon: float
    mu: float | None
    target_epsilon: float
    lifetime_epsilon: float | None
    config: str
    deployment: dict[str, Any] | None
    choices: dict[str, str]
    notes: tuple[str, ...]
    artifacts: tuple[PlannedModel, ...]
    datasets: dict[str, PlannedLineage]
    spends: tuple[PlannedSpend, ...]
    feasible: bool = True
    problems: tuple[str, ...] = ()
    lifetimes: dict[str, PlannedLifetime] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    mechanisms: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    format: int = 1


# --- the statement: results/privacy.json ---


@dataclass(frozen=True, kw_only=True)
class StatedSpend(PricedSpend):
    """One charge of the ledger, as the statement counts it.

    Attributes:
        rule, experiment, wildcards: a label, by the config of today; of what it no longer asks, by
            that of who asked first.
        superseded: whether it is of another answer to the question than the one that is stated.
        reserved, released: numbers of entries of the ledger.
        spend: as JSON (accounting/events.py).
        continued: the entry of the last run that took it up again, after something was released.
        made: by which other packages; else empty.
    """

    superseded: bool
    reserved: int
    released: int | None
    spend: dict[str, Any]
    continued: int | None = None
    made: str = ""


@dataclass(frozen=True)
class StatedModel(Cost):
    """A final model with its two figures (contract: all-that-steered). `epsilon` and `mu` are its
    price, which its total bounds.

    Attributes:
        experiment: whose model it is.
        target_epsilon: the total that was promised.
        with_earlier: the price together with what was released before it was planned, or taken up
            again; null where there was nothing. Where there was something, that is its figure.
        search_share: the search's share of mu squared; null of a private search, whose training and
            search are one.
        jobs: all that its price composes: its own and its ancestors'.
    """

    experiment: str
    target_epsilon: float
    with_earlier: Cost | None
    search_share: float | None
    jobs: tuple[NamedJob, ...]

    @property
    def stated(self) -> Cost:
        """The figure that a model is stated at: with all that may have steered it."""
        return self.with_earlier or Cost(self.epsilon, self.mu)


@dataclass(frozen=True)
class Outside(Cost):
    """What else was spent on the lineage: by others, and on what this config asks no longer.

    Attributes:
        jobs: how many jobs that were.
        spends: theirs. They count for the lifetime, and for a model's figure where they came before
            it.
    """

    jobs: int
    spends: tuple[StatedSpend, ...]


@dataclass(frozen=True)
class Costs(Cost):
    """What all spends of this DAG on a lineage cost, and those that read each part.

    Attributes:
        accountant: `exact` where all was Gaussian, so that mu says everything; else `booked`, a
            safe upper bound.
        partitions: the same for the units of each part, which bear only what reads it.
    """

    accountant: Literal["exact", "booked"]
    partitions: dict[str, Cost]


@dataclass(frozen=True)
class Stated(Costs):
    """One lineage, under its own relation and at its own delta.

    Attributes:
        relation: which data sets are neighbours: one unit more or less, or one replaced.
        delta: one for the life of the lineage.
        unit, cap: whose privacy is protected, and how many records of each count.
        lifetime_epsilon: the limit that was declared; null where none was.
        lifetime_mu: the limit as a Gaussian's; null where other events may be charged beside it.
        lifetime_spent: the epsilon of all that was ever charged. It is no guarantee by itself.
        planned: whether nothing about the lineage was planned after its first release.
        artifacts: the final models, by path.
        outside_this_dag: what else was spent on the same people.
        spends: each charge for what this DAG asks, superseded answers included.
        ledger: where it stood.
        chosen: the cost of whichever model is chosen among all that were ever released; null where
            there are no two.
    """

    relation: Relation
    delta: float
    unit: str
    cap: int
    lifetime_epsilon: float | None
    lifetime_mu: float | None
    lifetime_spent: float
    planned: bool
    artifacts: dict[str, StatedModel]
    outside_this_dag: Outside
    spends: tuple[StatedSpend, ...]
    ledger: Anchor
    chosen: Cost | None = None


@dataclass(frozen=True)
class Origin:
    """When a statement was composed, and by what.

    Attributes:
        date: the day in UTC.
        commit: of the clone, null outside one. It says so where the clone's files are not that
            commit's.
        versions: of dpladder and the packages that it computes with, by name.
    """

    date: str
    commit: str | None
    versions: dict[str, str]

    @property
    def packages(self) -> str:
        """The versions in words."""
        return ", ".join(f"{name} {version}" for name, version in self.versions.items())


@dataclass(frozen=True)
class Statement:
    """What a finished DAG guarantees.

    Attributes:
        relation, delta: those of all its lineages; null where they differ.
        target_epsilon: the plan's; of a ledger alone its lifetime limit, or 0.
        datasets: what is guaranteed and was spent, by lineage.
        records: the digest of each job's privacy record, by path.
        origin: when it was composed, and by what.
        config: the plan's digest of it; empty of a ledger alone.
        deployment: the config's section of that name; null where there is none.
        files: the digest of every other file that jobs before the statement published, weights and
            scores among them, by path.
    """

    mode: Mode
    relation: Relation | None
    delta: float | None
    target_epsilon: float
    datasets: dict[str, Stated]
    records: dict[str, str]
    origin: Origin
    config: str
    deployment: dict[str, Any] | None
    files: dict[str, str]
    format: int = 1


@dataclass(frozen=True, kw_only=True)
class SealedStatement(Statement):
    """A statement as it is written to results/privacy.json.

    Attributes:
        id: a digest of all the rest, which shows any slip.
        seal: a MAC of it, which shows any forgery to who has the key.
    """

    id: str
    seal: str
