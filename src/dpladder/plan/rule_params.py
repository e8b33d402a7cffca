"""What each rule reads, one frozen dataclass for each: keys of the config, and what the plan says
of the job beside them.

Snakemake compares it as a plain dictionary, by the config's own names, and runs a job again where
one value differs. The job gets the class back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cache
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import ConfigDict, Field

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
from dpladder.config.sweep_sections import Fit, Rung, Search, Select, Sweep

Mode = Literal["release", "research"]
Relation = Literal["add_remove", "replace_one"]


def key(name: str) -> Any:
    """Marks a field that is a key of the config. The others are facts of the job, which
    plan/job_identity.py knows by their names."""
    return Field(alias=name)


def keys_of(kind: Any) -> tuple[str, ...]:
    """The keys of the config among the fields of a class."""
    return tuple(name for name in _names(kind).values() if name is not None)


def facts_of(kind: Any) -> tuple[str, ...]:
    """The fields that no key of the config says."""
    return tuple(field for field, name in _names(kind).items() if name is None)


@cache
def _names(kind: Any) -> dict[str, str | None]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: _key_in(hints[field.name]) for field in fields(kind)}


def _key_in(hint: Any) -> str | None:
    names = (getattr(mark, "alias", None) for mark in getattr(hint, "__metadata__", ()))
    return next((name for name in names if name is not None), None)


@dataclass(frozen=True)
class Reads:
    """By itself: a rule that reads its input files alone."""

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")


# --- where private files lie; each by its part ---


@dataclass(frozen=True)
class Places(Reads):
    """Where private files lie. No path is part of a question, so folders may move."""

    diagnostics: str


@dataclass(frozen=True)
class Manifests(Places):
    """Which units are in which part, by its name."""

    manifests: dict[str, str]


@dataclass(frozen=True)
class Cached(Places):
    """Features of a part, by its name."""

    features: dict[str, str]


@dataclass(frozen=True)
class Merging(Cached):
    """The root of caches of single records, which several experiments share."""

    cache: str


@dataclass(frozen=True)
class Extracting(Manifests, Merging):
    pass


# --- what several rules read ---


@dataclass(frozen=True)
class Private(Reads):
    """A job that opens private files. `question_id` is its question's id (plan/job_identity.py), by
    which, with its wildcards, the ledger knows it; where its files lie changes no output."""

    places: Places
    question_id: str
    public_parts: tuple[str, ...]


@dataclass(frozen=True)
class LineageReads(Reads):
    """Whose records these are and how they are read: what every job on data depends on."""

    mode: Annotated[Mode, key("mode")]
    lineage: Annotated[str, key("dataset.lineage")]
    columns: Annotated[tuple[Chosen, ...], key("dataset.columns")]
    classes: Annotated[int | tuple[str, ...] | None, key("dataset.classes")]
    labels: Annotated[Labels, key("dataset.labels")]
    group: Annotated[TrainedGroup | None, key("dataset.group")]
    unit: Annotated[Unit, key("dataset.unit")]
    split: Annotated[Split, key("dataset.split")]
    label: Annotated[str | tuple[str, ...] | None, key("dataset.label")] = field(
        default=None, kw_only=True
    )
    unknown: Annotated[Counted, key("dataset.unknown")] = field(default="ignore", kw_only=True)
    blank: Annotated[Counted | None, key("dataset.blank")] = field(default=None, kw_only=True)
    id: Annotated[str | None, key("dataset.id")] = field(default=None, kw_only=True)
    user: Annotated[str | None, key("dataset.user")] = field(default=None, kw_only=True)
    multiline: Annotated[bool, key("dataset.multiline")] = field(default=False, kw_only=True)
    version: Annotated[int | None, key("dataset.version")] = field(default=None, kw_only=True)


@dataclass(frozen=True)
class NetworkReads(Reads):
    """The public map from a record to its features."""

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


@dataclass(frozen=True)
class ReleaseReads(LineageReads, Private):
    """What every release depends on."""

    places: Cached
    research: Annotated[Research, key("research")]
    nominal_size: Annotated[int, key("dataset.nominal_size")]
    delta: Annotated[float, key("privacy.delta")]
    relation: Annotated[Relation, key("privacy.relation")]


@dataclass(frozen=True)
class StoredReads(ReleaseReads):
    """The same from stored features. `tried`: the layers that sweep.choose chooses among."""

    mean: Annotated[Mean | None, key("features.mean")]
    model: Annotated[str, key("features.model")]
    layers: Annotated[Layers, key("features.layers")]
    length: Annotated[float | Literal["as_is"], key("features.length")]
    typical: Annotated[float, key("features.typical")]
    tried: tuple[Layers, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class SeenReads(StoredReads):
    """The same from features as a training sees them. `candidates`: of each candidate of
    sweep.choose, the keys that it has in place of these. `network_places`: where the features of
    each network lie, if several are tried; each is that of equally many candidates, in order."""

    weights: Annotated[str, key("features.weights")]
    centre: Annotated[str, key("features.centre")]
    constant: Annotated[float, key("features.constant")]
    candidates: tuple[dict[str, Any], ...] = field(default=(), kw_only=True)
    network_places: tuple[dict[str, Any], ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class TrainingReads(SeenReads):
    """What one training depends on, but for its total."""

    learner: Annotated[Learner, key("learner")]
    search: Annotated[Search, key("sweep.search")]


@dataclass(frozen=True)
class TotalReads(Reads):
    """What hangs on one total: all rungs below it, and what the final training may spend."""

    rungs: tuple[Rung, ...]
    target: float
    budget: Annotated[float | Literal["remaining"], key("final.budget")]


# --- one for each rule ---


@dataclass(frozen=True)
class PrepareDataset(LineageReads, Private):
    """`fingerprint` changes when the source's files do. `stops`: as far as the data is public.
    `different_rows`: how many a table without ids must be able to have; 0 where equal rows are one
    record by declaration. `spans`: how documents are cut, where they are."""

    places: Manifests
    source: str
    fingerprint: str
    stops: Stops
    different_rows: int
    spans: Spans | None
    links: Annotated[Links, key("dataset.links")] = field(default="none", kw_only=True)

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


@dataclass(frozen=True)
class PreparePublic(PrepareDataset):
    """`matched`: of a further test, how its labels find their class."""

    matched: Matching | None


@dataclass(frozen=True)
class ExtractFeatures(NetworkReads, Private):
    """`corruption`: of a further test whose images are another's, corrupted."""

    places: Extracting
    views: int
    mirror: bool
    corruption: Corruption | None

    @property
    def features(self) -> Features:
        return super().features.model_copy(update={"mirror": self.mirror})


@dataclass(frozen=True)
class MergeFeatures(Private):
    """It joins what shards have extracted, and adds nothing of its own."""

    places: Merging
    stops: Stops


@dataclass(frozen=True)
class CountUnits(ReleaseReads):
    """`stops`: what follows from the counts, which do not depend on it."""

    census: Annotated[UnitCounts, key("dataset.census")]
    stops: Stops


@dataclass(frozen=True)
class EstimateMean(StoredReads):
    """The noised mean of the features as they are stored."""


@dataclass(frozen=True)
class FindMean(NetworkReads, Private):
    """A mean that costs nothing: of a public sample, or by the network's own last norm."""

    places: Cached
    centre: Annotated[str, key("features.centre")]
    labels: Annotated[Labels, key("dataset.labels")]
    layers: Annotated[Layers, key("features.layers")]
    length: Annotated[float | Literal["as_is"], key("features.length")]
    typical: Annotated[float, key("features.typical")]
    tried: tuple[Layers, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class FindStart(TrainingReads):
    """The head that public records train, from which private steps start."""


@dataclass(frozen=True)
class EstimateSums(SeenReads):
    """No learner, so that several learners share a release."""

    radius: Annotated[float, key("learner.radius")]
    epsilon: Annotated[float, key("learner.shared.epsilon")]
    sums: Annotated[SumsShared, key("learner.shared.sums")]


@dataclass(frozen=True)
class HeadReads(SeenReads):
    """`head`: what it costs is reserved; the rest tells the head, and what guides it."""

    head: Annotated[Head, key("learner.head")]
    bias: Annotated[bool, key("learner.bias")]
    link: Annotated[LinkName, key("learner.link")]
    augment: Annotated[int, key("learner.augment")]
    public: Annotated[Literal["none", "gradient"], key("learner.public")] = field(
        default="none", kw_only=True
    )
    look: Annotated[float, key("learner.look")] = field(default=0.05, kw_only=True)

    @property
    def uses_public_gradient(self) -> bool:
        """Whether public records pull its steps."""
        return self.public == "gradient"


@dataclass(frozen=True)
class EstimateHead(HeadReads):
    """`network`: the learner whose trainings start from the head. It is looked at before the head
    is paid for, and changes no release."""

    network: Learner


@dataclass(frozen=True)
class EvaluateHead(HeadReads):
    """The released head on a public test."""


@dataclass(frozen=True)
class Scored(Reads):
    """The part that a trial's score is counted on."""

    part: str
    nominal_size: int


@dataclass(frozen=True)
class RunTrial(TrainingReads):
    """`below`: the rungs that its draw looks back on. `epsilon`: its own rung's; other trials of it
    change nothing here."""

    select: Annotated[Select, key("sweep.select")]
    below: tuple[Rung, ...]
    epsilon: float
    scored: Scored


@dataclass(frozen=True)
class SelectRung(Reads):
    """The rung's best trial follows from the scores in its inputs."""

    select: Annotated[Select, key("sweep.select")]
    rungs: tuple[Rung, ...]


@dataclass(frozen=True)
class FitRadius(TotalReads):
    """`mu`: what the final training stands on."""

    fit: Annotated[Fit, key("fit")]
    learner: Annotated[Learner, key("learner")]
    search: Annotated[Search, key("sweep.search")]
    delta: Annotated[float, key("privacy.delta")]
    mu: float


@dataclass(frozen=True)
class TrainFinal(TotalReads, TrainingReads):
    """A training with what its total leaves beside the rungs below it."""


@dataclass(frozen=True)
class SearchPrivately(TotalReads, TrainingReads):
    """Search and final training in one, with one output."""

    select: Annotated[Select, key("sweep.select")]
    hpo: Annotated[PrivateSearch, Field(discriminator="name"), key("hpo")]


@dataclass(frozen=True)
class TrainStudent(TrainingReads):
    """It learns what a released head says of public records."""

    target: float


@dataclass(frozen=True)
class EvaluateTest(TotalReads, SeenReads):
    """`exact`: whether it counts without noise."""

    exact: bool
    learner: Annotated[Learner, key("learner")]
    measures: Annotated[Measures, key("evaluate.measures")]


@dataclass(frozen=True)
class EvaluateFinal(EvaluateTest):
    """The count of a final model on the test part."""

    epsilon: Annotated[float | None, key("evaluate.epsilon")]


@dataclass(frozen=True)
class EvaluateOf(EvaluateFinal):
    """`total`: what its count may cost, where no epsilon says it; null where one does."""

    total: float | None


@dataclass(frozen=True)
class EvaluateAlso(EvaluateTest):
    """The same on a further test."""

    also: FurtherTest


@dataclass(frozen=True)
class TrainOpen(TrainingReads):
    """The same learner without noise, on data declared public."""

    without_noise: Annotated[bool, key("final.without_noise")]
    measures: Annotated[Measures, key("evaluate.measures")]
    further: tuple[FurtherTest, ...]


@dataclass(frozen=True)
class Summarise(Reads):
    """`measured_by`: the experiments that measure this one's final models, and on which lineage.
    `candidate_names`: what sweep.choose chooses among, in words. `learners`: the learner of each,
    where those are chosen."""

    mode: Annotated[Mode, key("mode")]
    lineage: Annotated[str, key("dataset.lineage")]
    labels: Annotated[Labels, key("dataset.labels")]
    majority: Annotated[float | None, key("dataset.majority")] = field(default=None, kw_only=True)
    rare: Annotated[float | None, key("dataset.rare")] = field(default=None, kw_only=True)
    nominal_size: Annotated[int, key("dataset.nominal_size")]
    privacy: Annotated[Privacy, key("privacy")]
    search: Annotated[Search, key("sweep.search")]
    learner: Annotated[Learner, key("learner")]
    further: tuple[FurtherTest, ...]
    measured_by: dict[str, str]
    candidate_names: tuple[str, ...]
    learners: tuple[Learner, ...]


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


@dataclass(frozen=True)
class WriteReport(Reads):
    """`cells`: of each cell's experiment, the name of its entry on each axis. `left_behind`:
    pictures of earlier configs. `about`: what the config says of each model, in words. `contests`:
    figures of comparisons that were asked for by name, as far as they are there."""

    contests: tuple[str, ...]
    about: dict[str, dict[str, str]]
    cells: dict[str, dict[str, str]]
    pictures: tuple[Picture, ...]
    left_behind: tuple[str, ...]


@dataclass(frozen=True)
class Contestant(Reads):
    """An experiment, as a comparison of learners repeats it itself: how it learns and searches, and
    whether its data and features are the first's."""

    experiment: str
    learner: Learner
    sweep: Sweep
    fit: Fit
    epsilon: float
    comparable: bool


@dataclass(frozen=True)
class CompareLearners(SeenReads):
    """Research: each experiment's learner with a ladder of its own, repeated."""

    contestants: tuple[Contestant, ...]
    repeats: int


@dataclass(frozen=True)
class CompareHpo(TrainingReads):
    """`ablated`: the total at which the ladder is also compared with itself, one part changed.
    `searches`: research.searches."""

    totals: tuple[float, ...]
    ablated: float
    searches: tuple[str, ...]
    repeats: int
