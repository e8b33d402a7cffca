"""What each rule reads, one frozen dataclass for each. A field says beside its type where its value
comes from: a key of the config, a fact of the job, or what changes no output.

Snakemake compares a job's values as a plain dictionary, by the config's own names, and runs the job
again where one differs. The job gets the class back.

So a class is a promise in both directions: the job can depend on nothing else, and a change of
nothing else runs it again. All values are public, for they lie in `.snakemake`.

A key that is missing in the config's plain values stands there at its neutral default. That is why
some fields have defaults.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from dpladder.config.dataset_sections import (
    Chosen,
    Counted,
    Cross,
    Dataset,
    Links,
    NumberTarget,
    Split,
    Stops,
    TrainedGroup,
    Unit,
    UnitCounts,
)
from dpladder.config.evaluate_sections import Measures
from dpladder.config.features_sections import Features, Layers, Length, Mean, Pooling
from dpladder.config.label_sets import Labels
from dpladder.config.learner_sections import Head, LinkName, SumsShared
from dpladder.config.learners import Learner
from dpladder.config.model import Privacy, Research
from dpladder.config.records import Corruption, FurtherTest, Matching, Spans
from dpladder.config.searches import PrivateSearch
from dpladder.config.sweep_sections import Calibrate, Fit, Rung, Search, Select
from dpladder.plan import follows
from dpladder.plan.about import about
from dpladder.plan.follows import Keys
from dpladder.plan.node import FROM_PLAN, Fact, Node, Reads, aside, fact, find_facts, key, marks_of
from dpladder.plan.pictures import Picture, pictures_of, stale_pictures
from dpladder.plan.retired import NEVER
from dpladder.privacy.accounting.events import Relation
from dpladder.privacy.ledger.state import Mode

# --- facts of a job ---


def private_places(node: Node) -> Keys:
    """Where the private files lie that a job opens, by the public config that they follow from."""
    kind = get_type_hints(node.row.reads)["places"]
    return find_facts(node, kind)


def lineage_folder(node: Node) -> Path:
    """The lineage's own folder among the private ones, which nobody but the operator may read."""
    return Path(node.config.paths.private) / node.config.dataset.lineage


def diagnostics_folder(node: Node) -> str:
    return str(lineage_folder(node) / "diagnostics")


def manifest_folders(node: Node) -> dict[str, str]:
    """By part, the folder of the manifest. Another config of the data has another folder, so
    neither overwrites the other's. What names it are public config and source alone."""
    maker = node.inputs["data"][0] if "data" in node.inputs else node
    folder = lineage_folder(node) / "data" / maker.content[:12]
    return {part: str(folder) for part in node.parts}


def feature_folders(node: Node) -> dict[str, str]:
    """By part, the folder of the features, named like those of manifests by what extracts them."""
    root = lineage_folder(node) / "features"
    if node.rule == "extract_features":
        makers: tuple[Node, ...] = (node,)
    elif node.rule == "merge_features":
        makers = node.inputs["shards"][:1]
    else:
        makers = tuple(merge.inputs["shards"][0] for merge in node.inputs["features"])
    return {
        part: str(root / maker.content[:12]) for part, maker in zip(node.parts, makers, strict=True)
    }


def cache_folder(node: Node) -> str:
    """The root of caches of single records, which several experiments share."""
    paths = node.config.paths
    return paths.cache or str(Path(paths.private) / "cache")


def question_id(node: Node) -> str:
    return node.question_id


def public_parts(node: Node) -> list[str]:
    return [part for part in node.parts if follows.is_public(node.config, part)]


def exact(node: Node) -> bool:
    return all(follows.counts_exactly(node.config, part) for part in node.parts)


def source(node: Node) -> str:
    """Where the records of the main part come from."""
    return follows.source_of(node.config, node.parts[0])


def source_fingerprint(node: Node) -> str:
    return follows.fingerprint(source(node))


def stops(node: Node) -> Stops:
    return node.config.dataset.stops


def different_rows(node: Node) -> int:
    """How many rows a table without ids must be able to tell apart; 0 where equal rows are one
    record."""
    dataset = node.config.dataset
    return 0 if dataset.equal_rows == "one_record" else dataset.nominal_size


def spans(node: Node) -> Keys | None:
    return as_json(node.config.spans)


def whole_learner(node: Node) -> Keys:
    """For a job that buys its head looks at it before it is charged."""
    keys: Keys = follows.plain_values(node.config)["learner"]
    return keys


def scored_part(node: Node) -> Keys:
    """The part that a trial's score is counted on, and how many units it has by declaration."""
    part = follows.trial_parts(node.config)[-1]
    return {"part": part, "nominal_size": follows.nominal_size(node.config, part)}


def earlier_rungs(node: Node) -> list[Keys]:
    """The rungs that a rung's draws look back on."""
    looks_back = follows.looks_back(node.config)
    return _all_rungs(node)[: int(node.wildcards["rung"])] if looks_back else []


def rung_epsilon(node: Node) -> float:
    return node.config.sweep.ladder[int(node.wildcards["rung"])].epsilon


def rungs(node: Node) -> list[Keys]:
    """All below a total; of a rung, those that its draws look back on and itself."""
    every = _all_rungs(node)
    if "rung" not in node.wildcards:
        return every
    return [*earlier_rungs(node), every[int(node.wildcards["rung"])]]


def _all_rungs(node: Node) -> list[Keys]:
    return follows.plain_values(node.config)["sweep"]["rungs"] or []


def target(node: Node) -> float:
    return float(node.wildcards["target"])


def further_test(node: Node) -> FurtherTest | None:
    """The further test that a job is for, if it is one's."""
    return follows.further_test(node.config, node.parts[0])


def also(node: Node) -> Keys | None:
    return as_json(further_test(node))


def further(node: Node) -> list[Keys | None]:
    return [as_json(test) for test in follows.further_tests(node.config).values()]


def matched(node: Node) -> Keys | None:
    test = further_test(node)
    return as_json(test and test.matched)


def corruption(node: Node) -> Keys | None:
    test = further_test(node)
    return as_json(test and test.corruption)


def views(node: Node) -> int:
    """The number of views of each record: several in the training part alone."""
    return node.config.learner.views if "train" in node.parts else 1


def mirror(node: Node) -> bool:
    return node.config.features.mirror and views(node) > 1


def pictures(node: Node) -> list[Keys]:
    """All figures and tables of the project as plain values."""
    every = pictures_of(node.project)
    return [asdict(picture) | {"shows": [*picture.shows]} for picture in every]


def stale(node: Node) -> list[str]:
    return [*stale_pictures(node.project)]


def about_models(node: Node) -> dict[str, dict[str, str]]:
    return about(node.project)


def cells(node: Node) -> dict[str, dict[str, str]]:
    return follows.cells(node.project)


def contests(node: Node) -> dict[str, str]:
    """Figures of comparisons, which are no part of the DAG: those that somebody asked for, each
    with the package that has its caption.

    A file that is not there yet is no part of the report, and one that comes later runs it again.
    """
    figures = ((path, one) for row in node.dag.rules.values() for path, one in row.figures.items())
    return {path: package for path, package in figures if Path(path).is_file()}


def as_json(value: Any) -> Keys | None:
    """A dataclass of plain values as JSON has it; None stays."""
    document: Keys | None = None if value is None else json.loads(json.dumps(asdict(value)))
    return document


def monotone(node: Node) -> Any:
    """The columns that a prediction may only rise or fall with; no part of a question without."""
    return node.config.dataset.monotone or NEVER


# --- where private files lie; each by its part ---


class PrivatePaths(Reads):
    """Where private files lie. No path is part of a question, so folders may move."""

    diagnostics: Annotated[str, aside(diagnostics_folder)]


class Manifests(PrivatePaths):
    """Which units are in which part, by its name."""

    manifests: Annotated[dict[str, str], aside(manifest_folders)]


class Cached(PrivatePaths):
    """Features of a part, by its name."""

    features: Annotated[dict[str, str], aside(feature_folders)]


class Merging(Cached):
    """The root of caches of single records, which several experiments share."""

    cache: Annotated[str, aside(cache_folder)]


class Extracting(Manifests, Merging):
    pass


# --- what several rules read ---


class Private(Reads):
    """A job that opens private files.

    Attributes:
        places: where they lie; this changes no output, and is no part of a query.
        question_id: by which, with its wildcards, the ledger knows the job (plan/dag.py).
        public_parts: those of its parts whose sources are declared public.
    """

    private = True
    places: Annotated[PrivatePaths, aside(private_places)]
    question_id: Annotated[str, aside(question_id)]
    public_parts: Annotated[tuple[str, ...], fact(public_parts)]


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
    predicts: Annotated[NumberTarget | None, key("dataset.target")] = None
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

    releases = True
    places: Annotated[Cached, aside(private_places)]
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
        curves: in how many pieces the range of a table's column falls; 0 where it is a line.
        crosses: pairs of columns whose hats or levels are multiplied.
    """

    mean: Annotated[Mean | None, key("features.mean")]
    model: Annotated[str, key("features.model")]
    layers: Annotated[Layers, key("features.layers")]
    length: Annotated[Length, key("features.length")]
    typical: Annotated[float, key("features.typical")]
    curves: Annotated[int, key("features.curves")] = 0
    crosses: Annotated[tuple[Cross, ...], key("dataset.crosses")] = ()


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

    trains = descends = True
    learner: Annotated[Learner, key("learner")]
    search: Annotated[Search, key("sweep.search")]


class TotalReads(Reads):
    """What hangs on one total: all rungs below it, and what the final training may spend.

    `target` is the epsilon that a model promises; `budget` is the final training's own epsilon, or
    `remaining`.
    """

    rungs: Annotated[tuple[Rung, ...], fact(rungs)]
    target: Annotated[float, fact(target)]
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

    places: Annotated[Manifests, aside(private_places)]
    source: Annotated[str, Fact(source, in_question=False)]
    fingerprint: Annotated[str, aside(source_fingerprint)]
    stops: Annotated[Stops, aside(stops)]
    different_rows: Annotated[int, aside(different_rows)]
    spans: Annotated[Spans | None, fact(spans)]
    links: Annotated[Links, key("dataset.links")] = "none"

    @property
    def dataset(self) -> Dataset:
        """The section, as far as a manifest hangs on it. Its nominal size plays no part there."""
        kind: Any = type(self)
        keys = {
            key.removeprefix("dataset."): getattr(self, name)
            for name, key in marks_of(kind).items()
            if isinstance(key, str) and key.startswith("dataset.")
        }
        return Dataset(source=self.source, nominal_size=1, **keys)


class PreparePublic(PrepareDataset):
    """What `prepare_public` reads of a source that is declared public.

    Attributes:
        matched: of a further test with a source of its own, how its labels find their class.
    """

    matched: Annotated[Matching | None, fact(matched)]


class ExtractFeatures(NetworkReads, Private):
    """What a shard's features depend on.

    Attributes:
        views: of each record; 1 without augmentation.
        mirror: whether one of them is the mirror image.
        corruption: of a further test whose images are another's, corrupted.
    """

    places: Annotated[Extracting, aside(private_places)]
    views: Annotated[int, fact(views)]
    mirror: Annotated[bool, fact(mirror)]
    corruption: Annotated[Corruption | None, fact(corruption)]

    @property
    def features(self) -> Features:
        """The section as extraction reads it. Mirroring is decided by part, so it is a fact and no
        key."""
        return super().features.model_copy(update={"mirror": self.mirror})


class MergeFeatures(Private):
    """It joins what shards have extracted, and adds nothing of its own."""

    places: Annotated[Merging, aside(private_places)]
    stops: Annotated[Stops, aside(stops)]


class CountUnits(ReleaseReads):
    """`stops`: what follows from the counts, which do not depend on it."""

    census: Annotated[UnitCounts, key("dataset.census")]
    stops: Annotated[Stops, aside(stops)]


class EstimateMean(StoredReads):
    """The noised mean of the features as they are stored."""


class FindMean(NetworkReads, Private):
    """A mean that costs nothing: of a public sample, or by the network's own last norm."""

    places: Annotated[Cached, aside(private_places)]
    centre: Annotated[str, key("features.centre")]
    labels: Annotated[Labels, key("dataset.labels")]
    layers: Annotated[Layers, key("features.layers")]
    length: Annotated[Length, key("features.length")]
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

    descends = True
    network: Annotated[Learner, aside(whole_learner)]
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
    below: Annotated[tuple[Rung, ...], fact(earlier_rungs)]
    epsilon: Annotated[float, fact(rung_epsilon)]
    scored: Annotated[Scored, fact(scored_part)]


class SelectRung(Reads):
    """The rung's best trial follows from the scores in its inputs."""

    select: Annotated[Select, key("sweep.select")]
    rungs: Annotated[tuple[Rung, ...], fact(rungs)]


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
    mu: Annotated[float, FROM_PLAN]


class TrainFinal(TotalReads, TrainingReads):
    """A training with what its total leaves beside the rungs below it.

    Attributes:
        calibrate: what share of that buys the map of its margins.
        monotone: by column, whether released weights are to rise or to fall with it.
    """

    calibrate: Annotated[Calibrate | None, key("final.calibrate")] = None
    monotone: Annotated[dict[str, Literal["up", "down"]] | None, fact(monotone)] = None


class SearchPrivately(TotalReads, TrainingReads):
    """Search and final training in one, with one output.

    Losing trainings are not released, so none of them is a job.
    """

    runs_search = True
    select: Annotated[Select, key("sweep.select")]
    hpo: Annotated[PrivateSearch, key("hpo")]


class TrainStudent(TrainingReads):
    """It learns what a released head says of public records."""

    target: Annotated[float, fact(target)]


class EvaluateTest(TotalReads, SeenReads):
    """What a count on a test depends on.

    Attributes:
        exact: whether it counts without noise, for nothing.
        learner: that the model is of, which says how records are scored.
        measures: which tables are counted.
        error: of a number, up to where errors count. It is a key of tests alone.
        threshold: from which a decision is counted; None where none is.
    """

    trains = descends = True
    error: Annotated[float | None, key("dataset.target.error")] = None
    threshold: Annotated[float | None, key("evaluate.threshold")] = None
    exact: Annotated[bool, fact(exact)]
    learner: Annotated[Learner, key("learner")]
    measures: Annotated[Measures, key("evaluate.measures")]


class EvaluateFinal(EvaluateTest):
    """The count of a final model on the test part."""

    epsilon: Annotated[float | None, key("evaluate.epsilon")]


class EvaluateAlso(EvaluateTest):
    """What an evaluation on a further test reads."""

    also: Annotated[FurtherTest, fact(also)]


class TrainOpen(TrainingReads):
    """What a training without noise reads, on data declared public."""

    without_noise: Annotated[bool, key("final.without_noise")]
    error: Annotated[float | None, key("dataset.target.error")] = None
    threshold: Annotated[float | None, key("evaluate.threshold")] = None
    measures: Annotated[Measures, key("evaluate.measures")]
    further: Annotated[tuple[FurtherTest, ...], fact(further)]


class Summarise(Reads):
    """What one experiment's results are made of, beside released files.

    Attributes:
        further: its further tests.
    """

    mode: Annotated[Mode, key("mode")]
    lineage: Annotated[str, key("dataset.lineage")]
    labels: Annotated[Labels, key("dataset.labels")]
    target_unit: Annotated[str | None, key("dataset.target.unit")] = None
    majority: Annotated[float | None, key("dataset.majority")] = None
    rare: Annotated[float | None, key("dataset.rare")] = None
    nominal_size: Annotated[int, key("dataset.nominal_size")]
    privacy: Annotated[Privacy, key("privacy")]
    search: Annotated[Search, key("sweep.search")]
    learner: Annotated[Learner, key("learner")]
    further: Annotated[tuple[FurtherTest, ...], fact(further)]


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

    contests: Annotated[dict[str, str], fact(contests)]
    about: Annotated[dict[str, dict[str, str]], fact(about_models)]
    cells: Annotated[dict[str, dict[str, str]], fact(cells)]
    pictures: Annotated[tuple[Picture, ...], fact(pictures)]
    left_behind: Annotated[tuple[str, ...], fact(stale)]
