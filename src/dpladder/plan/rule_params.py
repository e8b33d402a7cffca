"""What each rule reads, one frozen dataclass for each: keys of the config, and what the plan says
of the job beside them. And what a rule is (`RuleSpec`); plan/rule_specs.py has all of them.

Snakemake compares it as a plain dictionary, by the config's own names, and runs a job again where
one value differs. The job gets the class back.

So a class is a promise in both directions: the job can depend on nothing else, and a change of
nothing else runs it again. All values are public, for they lie in `.snakemake`.

A key that is missing in the config's plain values stands there at its neutral default. That is why
some fields have defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Annotated, Any, Literal, dataclass_transform, get_type_hints

from pydantic import ConfigDict, Field

from dpladder.config import Config, Project
from dpladder.config.dataset_sections import (
    Chosen,
    Counted,
    Dataset,
    Links,
    Split,
    Stops,
    TrainedGroup,
    Unit,
    UnitCounts,
)
from dpladder.config.evaluate_sections import Measures
from dpladder.config.features_sections import Features, Layers, Mean, Pooling
from dpladder.config.label_sets import Labels
from dpladder.config.learner_sections import Head, LinkName, SumsShared
from dpladder.config.learners import Learner
from dpladder.config.model import Privacy, Research
from dpladder.config.searches import PrivateSearch
from dpladder.config.shift import Corruption, FurtherTest, Matching, Spans
from dpladder.config.sweep_sections import Fit, Rung, Search, Select

Mode = Literal["release", "research"]
Relation = Literal["add_remove", "replace_one"]
Wildcards = Mapping[str, str]


def key(name: str) -> Any:
    """Marks a field that is a key of the config. The others are facts of the job, which
    plan/job_identity.py knows by their names.

    Args:
        name: the key's full name, such as `dataset.columns`.
    """
    return Field(alias=name)


ASIDE = ("places", "question_id", "network", "stops")
"""Params that change no output: where private files lie, and what is looked at before a charge."""


def public_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """The params of a job that its output depends on. A query and its question both name these, so
    what changes a query changes the question.

    Args:
        params: all of a job's, by their names.
    """
    return {name: value for name, value in params.items() if name not in ASIDE}


def keys_of(kind: Any) -> tuple[str, ...]:
    """The keys of the config among the fields of a class.

    Args:
        kind: a subclass of `Reads`.

    Returns:
        Full names, in the order of the fields.
    """
    return tuple(name for name in _names(kind).values() if name is not None)


def facts_of(kind: Any) -> tuple[str, ...]:
    """The fields that no key of the config says.

    Args:
        kind: a subclass of `Reads`.

    Returns:
        Names of fields, each a function of job_identity: FACTS, or OF_PROJECT for a whole project.
        `mu` alone comes from the plan (`Parsed.params`).
    """
    return tuple(field for field, name in _names(kind).items() if name is None)


@cache
def _names(kind: Any) -> dict[str, str | None]:
    """By field, the key that it is, or None for a fact. Fields of parent classes are among them."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: _key_in(hints[field.name]) for field in fields(kind)}


def _key_in(hint: Any) -> str | None:
    """The alias among a field's annotations. A discriminator is a mark without one."""
    names = (getattr(mark, "alias", None) for mark in getattr(hint, "__metadata__", ()))
    return next((name for name in names if name is not None), None)


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True)
class Reads:
    """By itself: a rule that reads its input files alone. Every class below is a frozen dataclass,
    whose fields are told by their names.

    Unknown fields are refused, and values must have the very types of the class: a workflow and a
    job of two versions must not understand each other half.
    """

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")

    # Every subclass is made a dataclass here, so that none can forget to be frozen.
    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


# --- where private files lie; each by its part ---


class Places(Reads):
    """Where private files lie. No path is part of a question, so folders may move."""

    diagnostics: str


class Manifests(Places):
    """Which units are in which part, by its name."""

    manifests: dict[str, str]


class Cached(Places):
    """Features of a part, by its name."""

    features: dict[str, str]


class Merging(Cached):
    """The root of caches of single records, which several experiments share."""

    cache: str


class Extracting(Manifests, Merging):
    pass


# --- what several rules read ---


class Private(Reads):
    """A job that opens private files.

    Attributes:
        places: where they lie; this changes no output, and is no part of a query.
        question_id: by which, with its wildcards, the ledger knows the job (plan/job_identity.py).
        public_parts: those of its parts whose sources are declared public.
    """

    places: Places
    question_id: str
    public_parts: tuple[str, ...]


class LineageReads(Reads):
    """Whose records these are and how they are read: what every job on data depends on.

    Keys with defaults here are those that the plain config leaves out at their neutral values.
    """

    mode: Annotated[Mode, key("mode")]
    lineage: Annotated[str, key("dataset.lineage")]
    columns: Annotated[tuple[Chosen, ...], key("dataset.columns")]
    classes: Annotated[int | tuple[str, ...] | None, key("dataset.classes")]
    labels: Annotated[Labels, key("dataset.labels")]
    group: Annotated[TrainedGroup | None, key("dataset.group")]
    unit: Annotated[Unit, key("dataset.unit")]
    split: Annotated[Split, key("dataset.split")]
    label: Annotated[str | tuple[str, ...] | None, key("dataset.label")] = None
    unknown: Annotated[Counted, key("dataset.unknown")] = "ignore"
    blank: Annotated[Counted | None, key("dataset.blank")] = None
    id: Annotated[str | None, key("dataset.id")] = None
    user: Annotated[str | None, key("dataset.user")] = None
    version: Annotated[int | None, key("dataset.version")] = None


class NetworkReads(Reads):
    """The public map from a record to its features.

    One record at a time: nothing here depends on other records (contract: per-record).
    """

    model: Annotated[str, key("features.model")]
    weights: Annotated[str, key("features.weights")]
    image_size: Annotated[int | None, key("features.image_size")]
    largest_image: Annotated[int, key("features.largest_image")]
    tokens: Annotated[int, key("features.tokens")]
    pooling: Annotated[Pooling, key("features.pooling")]
    until: Annotated[str | None, key("features.until")]
    normalize: Annotated[bool, key("features.normalize")]
    dtype: Annotated[Literal["float16", "float32"], key("features.dtype")]
    batch_size: Annotated[int, key("features.batch_size")]

    @property
    def features(self) -> Features:
        """The section, as far as extraction hangs on it."""
        return Features(**{field.name: getattr(self, field.name) for field in fields(NetworkReads)})


class ReleaseReads(LineageReads, Private):
    """What every release depends on.

    `research` has an effect in research alone; a release has it at its default.
    """

    places: Cached
    research: Annotated[Research, key("research")]
    nominal_size: Annotated[int, key("dataset.nominal_size")]
    delta: Annotated[float, key("privacy.delta")]
    relation: Annotated[Relation, key("privacy.relation")]


class StoredReads(ReleaseReads):
    """What depends on features as they are stored.

    Attributes:
        mean: what a noised mean costs; None where none is bought.
        model: the network by its name.
        layers: the depths that are seen.
        length: that features are scaled to.
        typical: length of features that are seen as they are.
    """

    mean: Annotated[Mean | None, key("features.mean")]
    model: Annotated[str, key("features.model")]
    layers: Annotated[Layers, key("features.layers")]
    length: Annotated[float | Literal["as_is"], key("features.length")]
    typical: Annotated[float, key("features.typical")]


class SeenReads(StoredReads):
    """What depends on features as a training sees them.

    Attributes:
        weights: of the network, for trainings that go on from activations at a cut.
        centre: which mean features lose.
        constant: share of a centred record's length that a constant feature takes.
    """

    weights: Annotated[str, key("features.weights")]
    centre: Annotated[str, key("features.centre")]
    constant: Annotated[float, key("features.constant")]


class TrainingReads(SeenReads):
    """What one training depends on, but for its total."""

    learner: Annotated[Learner, key("learner")]
    search: Annotated[Search, key("sweep.search")]


class TotalReads(Reads):
    """What hangs on one total: all rungs below it, and what the final training may spend.

    `target` is the epsilon that a model promises; `budget` is the final training's own epsilon, or
    `remaining`.
    """

    rungs: tuple[Rung, ...]
    target: float
    budget: Annotated[float | Literal["remaining"], key("final.budget")]


# --- one for each rule ---


class PrepareDataset(LineageReads, Private):
    """What a manifest depends on.

    Attributes:
        source: where the records come from.
        fingerprint: changes when the source's files do, so that a changed source is prepared again.
        stops: what may stop the run, as far as the data is public.
        different_rows: how many a table without ids must be able to have. It is 0 where equal rows
            are one record by declaration.
        spans: how documents are cut, where they are.
        links: which links in folders are followed.
    """

    places: Manifests
    source: str
    fingerprint: str
    stops: Stops
    different_rows: int
    spans: Spans | None
    links: Annotated[Links, key("dataset.links")] = "none"

    @property
    def dataset(self) -> Dataset:
        """The section, as far as a manifest hangs on it. Its nominal size plays no part there."""
        kind: Any = type(self)
        keys = {
            name: getattr(self, name)
            for name, key in _names(kind).items()
            if key is not None and key.startswith("dataset.")
        }
        return Dataset(source=self.source, nominal_size=1, **keys)


class PreparePublic(PrepareDataset):
    """What `prepare_public` reads of a source that is declared public.

    Attributes:
        matched: of a further test with a source of its own, how its labels find their class.
    """

    matched: Matching | None


class ExtractFeatures(NetworkReads, Private):
    """What a shard's features depend on.

    Attributes:
        views: of each record; 1 without augmentation.
        mirror: whether one of them is the mirror image.
        corruption: of a further test whose images are another's, corrupted.
    """

    places: Extracting
    views: int
    mirror: bool
    corruption: Corruption | None

    @property
    def features(self) -> Features:
        """The section as extraction reads it. Mirroring is decided by part, so it is a fact and no
        key."""
        return super().features.model_copy(update={"mirror": self.mirror})


class MergeFeatures(Private):
    """It joins what shards have extracted, and adds nothing of its own."""

    places: Merging
    stops: Stops


class CountUnits(ReleaseReads):
    """`stops`: what follows from the counts, which do not depend on it."""

    census: Annotated[UnitCounts, key("dataset.census")]
    stops: Stops


class EstimateMean(StoredReads):
    """The noised mean of the features as they are stored."""


class FindMean(NetworkReads, Private):
    """A mean that costs nothing: of a public sample, or by the network's own last norm."""

    places: Cached
    centre: Annotated[str, key("features.centre")]
    labels: Annotated[Labels, key("dataset.labels")]
    layers: Annotated[Layers, key("features.layers")]
    length: Annotated[float | Literal["as_is"], key("features.length")]
    typical: Annotated[float, key("features.typical")]


class FindStart(TrainingReads):
    """The head that public records train, from which private steps start."""


class EstimateSums(SeenReads):
    """No learner, so that several learners share a release."""

    radius: Annotated[float, key("learner.radius")]
    epsilon: Annotated[float, key("learner.shared.epsilon")]
    sums: Annotated[SumsShared, key("learner.shared.sums")]


class EstimateHead(SeenReads):
    """What a head that trainings of a network start from depends on.

    Attributes:
        network: the learner whose trainings start from the head. It is looked at before the head is
            paid for, and changes no release.
        head: what it costs; that is reserved.
        bias: whether it has one.
        link: from logits to probabilities.
        augment: how many views each record has.
        public: whether public records guide its steps.
        look: share of its mu^2 that asks the private records whether the public head fits.
    """

    network: Learner
    head: Annotated[Head, key("learner.head")]
    bias: Annotated[bool, key("learner.bias")]
    link: Annotated[LinkName, key("learner.link")]
    augment: Annotated[int, key("learner.augment")]
    public: Annotated[Literal["none", "gradient"], key("learner.public")] = "none"
    look: Annotated[float, key("learner.look")] = 0.05

    @property
    def uses_public_gradient(self) -> bool:
        """Whether public records pull its steps."""
        return self.public == "gradient"


class Scored(Reads):
    """The part that a trial's score is counted on."""

    part: str
    nominal_size: int


class RunTrial(TrainingReads):
    """What one trial depends on.

    Attributes:
        select: how its score is counted, and what share of its mu^2 that takes.
        below: the rungs that its draw looks back on; empty where draws do not.
        epsilon: its own rung's. How many other trials the rung has changes nothing here.
        scored: the part that is counted.
    """

    select: Annotated[Select, key("sweep.select")]
    below: tuple[Rung, ...]
    epsilon: float
    scored: Scored


class SelectRung(Reads):
    """The rung's best trial follows from the scores in its inputs."""

    select: Annotated[Select, key("sweep.select")]
    rungs: tuple[Rung, ...]


class FitRadius(TotalReads):
    """What r of a final training follows from.

    Attributes:
        fit: which line is laid through trials.
        mu: what the final training stands on.
    """

    fit: Annotated[Fit, key("fit")]
    learner: Annotated[Learner, key("learner")]
    search: Annotated[Search, key("sweep.search")]
    delta: Annotated[float, key("privacy.delta")]
    mu: float


class TrainFinal(TotalReads, TrainingReads):
    """A training with what its total leaves beside the rungs below it."""


class SearchPrivately(TotalReads, TrainingReads):
    """Search and final training in one, with one output.

    Losing trainings are not released, so none of them is a job.
    """

    select: Annotated[Select, key("sweep.select")]
    hpo: Annotated[PrivateSearch, key("hpo")]


class TrainStudent(TrainingReads):
    """It learns what a released head says of public records."""

    target: float


class EvaluateTest(TotalReads, SeenReads):
    """What a count on a test depends on.

    Attributes:
        exact: whether it counts without noise, for nothing.
        learner: that the model is of, which says how records are scored.
        measures: which tables are counted.
    """

    exact: bool
    learner: Annotated[Learner, key("learner")]
    measures: Annotated[Measures, key("evaluate.measures")]


class EvaluateFinal(EvaluateTest):
    """The count of a final model on the test part."""

    epsilon: Annotated[float | None, key("evaluate.epsilon")]


class EvaluateAlso(EvaluateTest):
    """What an evaluation on a further test reads."""

    also: FurtherTest


class TrainOpen(TrainingReads):
    """What a training without noise reads, on data declared public."""

    without_noise: Annotated[bool, key("final.without_noise")]
    measures: Annotated[Measures, key("evaluate.measures")]
    further: tuple[FurtherTest, ...]


class Summarise(Reads):
    """What one experiment's results are made of, beside released files.

    Attributes:
        further: its further tests.
    """

    mode: Annotated[Mode, key("mode")]
    lineage: Annotated[str, key("dataset.lineage")]
    labels: Annotated[Labels, key("dataset.labels")]
    majority: Annotated[float | None, key("dataset.majority")] = None
    rare: Annotated[float | None, key("dataset.rare")] = None
    nominal_size: Annotated[int, key("dataset.nominal_size")]
    privacy: Annotated[Privacy, key("privacy")]
    search: Annotated[Search, key("sweep.search")]
    learner: Annotated[Learner, key("learner")]
    further: tuple[FurtherTest, ...]


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
        draw, takes, on_page: As its row says (plan/pictures.py).
    """

    name: str
    path: str
    shows: tuple[str, ...]
    category: str
    experiment: str
    draw: str
    takes: Takes
    on_page: bool


class WriteReport(Reads):
    """What the page shows beside summaries and statement.

    Attributes:
        contests: figures of comparisons that were asked for by name, as far as they are there; of
            each the package with its caption.
        about: what the config says of each model, in words.
        cells: of each cell's experiment, the name of its entry on each axis.
        pictures: all figures and tables, in the order of the page.
        left_behind: pictures of earlier configs, which are removed.
    """

    contests: dict[str, str]
    about: dict[str, dict[str, str]]
    cells: dict[str, dict[str, str]]
    pictures: tuple[Picture, ...]
    left_behind: tuple[str, ...]


# --- a rule, whole ---


def _train_part(config: Config, wildcards: Wildcards) -> tuple[str, ...]:
    return ("train",)


@dataclass(frozen=True)
class RuleSpec:
    """One rule.

    Args:
        reads: What the rule's output depends on.
        after: The rules whose outputs the rule reads.
        parts: Whose private files the rule opens.
        when: Which configs have the rule.
        buys: The key of the config that asks for what the rule releases once for all trainings of
            an experiment. Empty: it releases nothing of that kind.
        per: The wildcards that an experiment's jobs are spread over; None: the rule is not behind
            the statement.
        module: The module of `jobs`, where it has not the rule's name; with dots, one elsewhere.
        facts: Fields of `reads` that no other rule has, each a function of the project and of the
            experiment's name.
        figures: Figures that the page shows once they are there, and the package whose captions/
            has theirs. They are no part of the DAG behind the report.
    """

    reads: type[Any]
    after: tuple[str, ...] = ()
    parts: Callable[[Config, Wildcards], tuple[str, ...]] = _train_part
    when: Callable[[Config], bool] = lambda config: True
    buys: str = ""
    per: tuple[str, ...] | None = None
    module: str = ""
    facts: Mapping[str, Callable[[Project, str], Any]] = field(default_factory=dict)
    figures: Mapping[str, str] = field(default_factory=dict)

    @property
    def private(self) -> bool:
        """Whether it opens private files."""
        return issubclass(self.reads, Private)

    @property
    def releases(self) -> bool:
        """Whether what it makes comes from records, and leaves."""
        return issubclass(self.reads, ReleaseReads)

    @property
    def prepares(self) -> bool:
        """Whether it comes before all releases. What it makes is known by its bytes, not by its
        code."""
        return self.private and not self.releases

    @property
    def trains(self) -> bool:
        """Whether its learner's own code is behind it: training, or telling what weights are
        worth."""
        return issubclass(self.reads, TrainingReads | EvaluateTest)

    @property
    def searches(self) -> bool:
        """Whether a search other than the ladder is behind it."""
        return issubclass(self.reads, SearchPrivately)

    @property
    def keys(self) -> tuple[str, ...]:
        """The config keys that the rule reads, by their full names."""
        return keys_of(self.reads)
