"""The config's sections. Everything a user can say is a field here, with its meaning and its unit.

Every value is public: config is written before the raw data is looked at, or from releases, never
from private values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from dpladder.config.apart import written
from dpladder.config.label_sets import Conflicts
from dpladder.config.learner_sections import Descent, Learner
from dpladder.config.search_sections import Hpo, Ladder
from dpladder.config.section import (
    NAME_PATTERN,
    Count,
    Fraction,
    Name,
    NonNegative,
    Positive,
    Section,
)
from dpladder.config.shift import Grouping, Spans
from dpladder.config.sources import FORMS, Takes, count_of_classes, kind_of


class Unit(Section):
    """Whose privacy is protected."""

    by: Literal["record", "document", "user"] = Field(
        "record",
        description="one record; with dataset.spans, one document with all its spans; or all "
        "records of one user",
    )
    cap: Count = Field(
        1,
        description="records kept per document or user, chosen by a key among that unit's own; 1 "
        "for records",
    )
    pool: Literal["none", "mean"] = Field(
        "none",
        description="mean: all records of a user are one record, whose features are the mean of "
        "theirs, under one label; cap is 1 then",
    )
    conflicts: Conflicts = Field(
        "nothing",
        description="with pool, a user whose records have different labels. nothing: the user "
        "counts as nothing; any: is of the class among them that comes last in dataset.classes; "
        "majority: of the most frequent, and among equals the last. Findings are told each by "
        "itself: nothing leaves one out, any is present in any record, majority in half of those "
        "that know",
    )

    @model_validator(mode="after")
    def _a_record_is_one_record(self) -> Unit:
        if self.by == "record" and self.cap != 1:
            raise ValueError(
                "cap must be 1 when the unit is a record; set by: user, or with dataset.spans by: "
                "document, to protect several records together"
            )
        return self

    @model_validator(mode="after")
    def _a_pool_is_one_record(self) -> Unit:
        if not self.pooled and self.conflicts != "nothing":
            raise ValueError("conflicts need pool: mean: they are between records of one user")
        if self.pooled and (self.by != "user" or self.cap != 1):
            raise ValueError("pool needs by: user, and no cap: it makes one record of a user's")
        return self

    @property
    def pooled(self) -> bool:
        return self.pool != "none"


HELD_OUT = 0.2


class Split(Section):
    """How a unit finds its part. A keyed hash of the unit's own id decides, never its position."""

    rule: Literal["hash", "given"] = Field(
        "hash",
        description="hash: keyed hash of the unit's id; given: the source names each unit's part",
    )
    test: Fraction | None = Field(
        None,
        description="expected fraction of units held out for evaluation; empty: 0.2, but 0 for a "
        "new lineage whose experiments all have dataset.public_test",
    )
    validation: Fraction = Field(
        0.0, description="expected fraction of units held out to score trials"
    )

    @model_validator(mode="after")
    def _something_is_left_to_train_on(self) -> Split:
        if self.held_out + self.validation >= 1:
            raise ValueError(
                "test + validation must stay below 1, so that something is left to train on"
            )
        return self

    @property
    def held_out(self) -> float:
        return HELD_OUT if self.test is None else self.test


class Column(Section):
    """What is publicly known of a table's column. Its values must not decide it: a scaler or a list
    of levels taken from private data is a leak."""

    name: Annotated[str, Field(min_length=1)]
    levels: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        (),
        description="all that it may hold, in quotes where they are numbers: a feature each, 1 "
        "or 0",
    )
    range: tuple[float, float] | None = Field(
        None, description="smallest and largest value: cut there, and scaled to -1 to 1"
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Column:
        if self.levels and self.range is not None:
            raise ValueError("a column has levels or a range, not both")
        if len(set(self.levels)) != len(self.levels):
            raise ValueError("levels must name each level once")
        if self.range is not None and not self.range[0] < self.range[1]:
            raise ValueError("range must be [smallest, largest]")
        return self


Words = Annotated[str, Field(min_length=1)]
RESERVED_COLUMNS = ("label", "id", "user", "split", "path", "text")
TAGS = ("a name", "a column")  # how pydantic tells which of both was meant
Chosen = Annotated[
    Annotated[str, Tag(TAGS[0])] | Annotated[Column, Tag(TAGS[1])],
    Discriminator(lambda given: TAGS[0] if isinstance(given, str) else TAGS[1]),
]


Groups = tuple[Annotated[str, Field(min_length=1)], ...]


class Group(Section):
    """Which of some publicly named groups a record is of, such as a region or a hospital; one of
    none counts as nothing."""

    names: Annotated[Groups, Field(min_length=1)] = Field(
        description="the groups; named beforehand, and never read off the data"
    )
    column: Annotated[str, Field(min_length=1)] | None = Field(
        None,
        description="of a table, or arrays: the column, or array, that holds each record's group",
    )
    level: Literal[1, 2] | None = Field(
        None,
        description="of folders, the one that is the group: 1 in group/class/file, 2 in "
        "class/group/file",
    )

    @model_validator(mode="after")
    def _names_are_a_set(self) -> Group:
        if len(set(self.names)) != len(self.names):
            raise ValueError("names must name each group once")
        if (self.column is None) == (self.level is None):
            raise ValueError(
                "names need to be found: give column for a table or arrays, level for folders"
            )
        if self.column in RESERVED_COLUMNS:
            raise ValueError(f"column must not be one of {', '.join(RESERVED_COLUMNS)}")
        return self

    @property
    def grouping(self) -> Grouping:
        return Grouping(self.names, self.column, self.level)


class TrainedGroup(Group):
    """Which of some publicly named groups a record is of, such as a region or a hospital; one of
    none counts as nothing."""

    train: Groups = Field(
        (),
        description="those that are trained on, the others are tested alone: a record of another "
        "group counts as nothing in the training and validation parts; empty: all",
    )

    @model_validator(mode="after")
    def _trained_are_some(self) -> TrainedGroup:
        if len(set(self.train)) != len(self.train) or not set(self.train) <= set(self.names):
            raise ValueError("train must name some of names, each once")
        return self

    @property
    def trained(self) -> tuple[str, ...]:
        return self.train or self.names


Where = Annotated[
    str,
    Field(min_length=1),
    BeforeValidator(written),
    WithJsonSchema({"type": ["string", "object"]}, mode="validation"),
]
Links = Literal["none", "inside"]
Counted = Literal["ignore", 0, 1]


class Dataset(Section):
    """The private data: a lineage for life, and where its current version lies."""

    lineage: Name = Field(
        description="the data's name for life; every later version of the same data keeps it"
    )
    source: Where = Field(
        description=" | ".join(FORMS),
    )
    columns: tuple[Chosen, ...] = Field(
        (),
        description="of a table, the columns that are features, in this order, each by its name or "
        "with its public levels or range; []: all but label, id, user, split and a "
        "pandas index. Of jsonl, which of id, user, split its lines have (or dataset.id and "
        "dataset.user)",
    )
    label: Words | tuple[Words, ...] | None = Field(
        None,
        description="of a table or arrays, the column that holds each record's class; empty: "
        "label. With labels: many also a list: a column for each class, in the order of "
        "dataset.classes, which may then be left out, with 1, 0, -1 or nothing in it",
    )
    id: str | None = Field(
        None,
        min_length=1,
        description="the column with each record's own id; empty: id, where there is one",
    )
    user: str | None = Field(
        None,
        min_length=1,
        description="the column that says whose a record is; empty: user, where there is one",
    )
    nominal_size: Count = Field(
        description="n0, units in the training part, declared publicly; sums are divided by it"
    )
    classes: Count | tuple[str, ...] | None = Field(
        None,
        description="class list, or how many; required for your own data, known for named datasets",
    )
    majority: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None,
        description="the largest class's share, where it is known from elsewhere, and never "
        "counted in the data: the report compares accuracy with it",
    )
    rare: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None,
        description="the share of the rarest class, or finding, where it is known from elsewhere, "
        "and never counted in the data: few of it stop no run then, and the plan says whether a "
        "test can tell anything of it",
    )
    labels: Count | Literal["many"] = Field(
        1,
        description="classes that a record may be of, at most, for learner dp_ls: above 1 its "
        "label is a list of them, or their names between bars, as in cat|dog; right is "
        "whatever names one of them. many: any number of them, and none, as findings in an image: "
        "each class is told by itself, and names of no class count as other findings",
    )
    unknown: Counted = Field(
        "ignore",
        description="with labels: many, what a class counts as that is -1 (uncertain) or blank for "
        "a record: ignore leaves the class out for this record, 0 is absent, 1 present",
    )
    blank: Counted | None = Field(
        None,
        description="the same for a blank alone, which is often not mentioned; empty: as unknown",
    )
    links: Links = Field(
        "none",
        description="of a folder: none follows no links, and a file that is one counts as nothing; "
        "inside follows those that lead to files and other folders of the source "
        "itself",
    )
    declared_public: bool = Field(
        False, description="true: the data is not private at all; required by mode: research"
    )
    spans: bool = Field(
        False,
        description="only with task: language_model: true makes several records of a text that is "
        "longer than features.tokens, of so many tokens each, of which "
        "dataset.unit.cap count; dataset.unit.by is then document or user",
    )
    new_lineage: bool = Field(
        False,
        description="true: confirms that a lineage as large as a known one is about other people, "
        "not the same data renamed or in another encoding",
    )
    few_usable: bool = Field(
        False,
        description="true: confirms that it is right when most records count as nothing, or nearly "
        "all that count are of one class; look with `dpladder check`",
    )
    group: TrainedGroup | None = Field(None, description=TrainedGroup.__doc__)
    unit: Unit = Field(default_factory=Unit, description=Unit.__doc__)
    split: Split = Field(default_factory=Split, description=Split.__doc__)
    public_test: Where | None = Field(
        None, description="another source, declared public, to evaluate on for free"
    )
    public_validation: Where | None = Field(
        None, description="another source, declared public, to score trials on for free"
    )
    public_sample: Where | None = Field(
        None,
        description="a few hundred records of the same kind, declared public, whose mean centres "
        "the features; with learner.init: public their labels train the head that "
        "trainings start from, and with learner.public they guide each step",
    )
    public_unlabelled: Where | None = Field(
        None,
        description="many records of the same kind, declared public, whose labels are not read: "
        "the final head labels them, and a student that learns those labels is released beside it, "
        "at no cost",
    )
    public_size: Count | None = Field(
        None,
        description="about how many records public_sample has, for the plan alone: with "
        "learner.public: gradient it says how much of a step is theirs, and whether trials pay "
        "beside them",
    )

    @model_validator(mode="after")
    def _class_names_are_a_set(self) -> Dataset:
        if isinstance(self.classes, tuple) and (
            len(self.classes) < 1 or len(set(self.classes)) != len(self.classes)
        ):
            raise ValueError("classes must name each class once, and at least one")
        return self

    @property
    def lopsided(self) -> bool:
        """Whether fewer than a tenth may be of another class than the most frequent one, or have a
        finding, by declaration. Each of the other classes has the rarest one's share at least."""
        if self.majority is not None:
            return 1.0 - self.majority < 0.1
        count = count_of_classes(self.source, self.classes) if self.labels == 1 else None
        return self.rare is not None and self.rare * ((count or 2) - 1) < 0.1

    @property
    def label_columns(self) -> tuple[str, ...]:
        """Those that hold labels, as far as they are named."""
        return (self.label,) if isinstance(self.label, str) else self.label or ()

    @model_validator(mode="after")
    def _named_columns_are_of_a_table(self) -> Dataset:
        named = [*self.label_columns, *filter(None, (self.id, self.user))]
        kind = kind_of(self.source)
        if named and kind is not None and (kind.folder or not kind.own):
            raise ValueError(
                "label, id and user name columns of a table or arrays, and this source has none: "
                "leave them out"
            )
        if len(set(named)) != len(named):
            raise ValueError("label, id and user must name a column each")
        return self

    @model_validator(mode="after")
    def _columns_are_a_set(self) -> Dataset:
        names = [column if isinstance(column, str) else column.name for column in self.columns]
        if len(set(names)) != len(names):
            raise ValueError("columns must name each column once")
        return self


class Mean(Section):
    """A noised feature mean, subtracted from train and test alike (Sun et al. 2023)."""

    epsilon: Positive = Field(
        description="epsilon of the noised mean alone, at the lineage's delta"
    )
    radius: Positive | None = Field(
        None,
        description="records are scaled into a ball of this public radius first; empty: they are "
        "all scaled to features.length",
    )


BUNDLED_TEXT = "minilm"
Pooling = Literal["mean", "cls", "last", "none", "each"]
BUNDLED_IMAGES = tuple(
    f"{stem}efficientnet_lite{size}" for size in range(3) for stem in ("", "tf_")
)
LARGEST_IMAGE = 2**27
HUGGING_FACE = "hf:"
HUB, FOLDER = "hf-hub:", "local-dir:"  # as timm calls networks that it has not by name


class Features(Section):
    """A public pretrained network turns each record into a feature vector, once."""

    model: str = Field(
        "efficientnet_lite0",
        min_length=1,
        description="for images, any timm model name (efficientnet_lite0, 1 and 2 come bundled), "
        "hf-hub:<owner/name>, or local-dir:<folder> as timm saves one; "
        "for texts, minilm (all-MiniLM-L6-v2), or hf:<name or folder> for any encoder "
        "of transformers; none: the source already holds features",
    )
    weights: str = Field(
        "bundled",
        min_length=1,
        description="bundled | pretrained | random (public ones, drawn by seed 0, for training "
        "from scratch) | path of a .safetensors, .pth, .pt or .bin checkpoint; with "
        "hf: the model's own, pretrained",
    )
    image_size: Annotated[int, Field(ge=8, le=2048)] | None = Field(
        None, description="pixels per side fed to the network; empty: the model's own"
    )
    largest_image: Annotated[int, Field(ge=64, le=2**32)] = Field(
        LARGEST_IMAGE,
        description="pixels of an image before it is scaled: a larger one counts as nothing, for a "
        "single file could fill a job's memory",
    )
    tokens: Annotated[int, Field(ge=4, le=8192)] = Field(
        64,
        description="tokens of a text that the network sees: a longer one is cut, a shorter one is "
        "filled up",
    )
    pooling: Pooling = Field(
        "mean",
        description="of a text's tokens in the last layer: their mean, the first, or the last one; "
        "none, which task: language_model sets: each token is followed by the next; each, which "
        "task: question_answering sets: each is told by itself",
    )
    mirror: bool = Field(
        False,
        description="with learner.augment: true mirrors every second view too, which pictures bear "
        "and letters do not",
    )
    layers: tuple[str, ...] = Field(
        (),
        description="named blocks whose pooled outputs are concatenated; empty: the pooled "
        "features",
    )
    until: str | None = Field(
        None,
        min_length=1,
        description="for learners that train the network (dp_finetune, hyfree_finetune, "
        "prodigy_finetune), the last layer that stays frozen: what it puts out is kept, and "
        "trained on; input: decoded pixels or a text's tokens, for training from the first layer "
        "on. centre, length and constant have no effect then",
    )
    normalize: bool = Field(False, description="scale every record to unit length")
    dtype: Literal["float16", "float32"] = Field("float16", description="how features are stored")
    batch_size: Count = Field(64, description="records per forward pass, one fixed padded shape")
    shards: Count | Literal["auto"] = Field(
        1, description="independent extraction jobs; auto: one per 20,000 declared units"
    )
    centre: Literal["auto", "public", "network", "noised", "none"] = Field(
        "auto",
        description="the mean that is taken away: of dataset.public_sample; the network's own, by "
        "its last norm; the data's, noised (features.mean, or a price that the plan "
        "chooses); auto: the best that is free, and else noised where that pays",
    )
    mean: Mean | None = Field(None, description=Mean.__doc__)
    length: Positive | Literal["as_is"] = Field(
        32.0,
        description="every record is scaled to this length, a public figure, after centring; "
        "or as_is",
    )
    typical: Positive = Field(
        32.0,
        description="with length: as_is, how long a record typically is, a public figure (32: "
        "EfficientNet-Lite0 on images)",
    )
    constant: Fraction = Field(
        0.2,
        description="share of a centred record's length that a constant feature takes: the mean "
        "had served as a bias",
    )

    @property
    def stored(self) -> str:
        """The type of what is kept: pixels and the numbers of tokens as they are, and all else as
        `dtype` says."""
        whole = "int32" if self.takes == "texts" else "uint8"
        return whole if self.until == "input" else self.dtype

    @property
    def takes(self) -> Takes:
        """What the network reads."""
        if self.model == BUNDLED_TEXT or self.model.startswith(HUGGING_FACE):
            return "texts"
        return "features" if self.model == "none" else "images"


class Lifetime(Section):
    """The most that may ever be spent on the lineage."""

    epsilon: Positive = Field(
        description="limit on everything ever spent on this lineage, at its delta"
    )
    loss: NonNegative = Field(
        0.0,
        description="part of that epsilon kept for the pure losses of private selections (hpo), "
        "all together",
    )
    weight: Annotated[float, Field(ge=1, allow_inf_nan=False)] = Field(
        1.0,
        description="product of the mean numbers of runs of all private selections (hpo) that may "
        "ever be",
    )

    @model_validator(mode="after")
    def _something_is_left_beside_selections(self) -> Lifetime:
        if self.loss >= self.epsilon:
            raise ValueError("loss must stay below the limit's own epsilon")
        return self


class Privacy(Section):
    """The guarantee."""

    epsilon: Positive = Field(
        description="total for an experiment's final artifact, hyperparameter search included"
    )
    delta: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = Field(
        description="fixed for the lineage's life; keep it well below 1/nominal_size"
    )
    relation: Literal["add_remove", "replace_one"] = Field(
        "add_remove",
        description="neighbouring datasets: one unit more or less, or one unit replaced; fixed for "
        "life",
    )
    share: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] | None = Field(
        None,
        description="share of delta for what is Gaussian only nearly: trainings on samples, some "
        "searches; fixed for life; empty: a tenth where an experiment needs it, else "
        "nothing",
    )
    lifetime: Lifetime | None = Field(
        None,
        description="the lineage's limit for life; without one no lifetime guarantee is stated",
    )


class Rung(Section):
    epsilon: Positive = Field(
        description="epsilon of each single trial of this rung, its score included"
    )
    trials: Annotated[int, Field(ge=1, le=10_000)] = Field(description="number of trials")


class Search(Section):
    """Where trials look for the total step size r = eta * steps."""

    unit: Literal["kappa", "r"] = Field(
        "kappa",
        description="what is drawn and fitted: kappa, the sd of the noise that a training puts "
        "into a logit; or r itself (the paper)",
    )
    kappa: tuple[Positive, Positive] = Field((0.05, 20.0), description="smallest and largest kappa")
    draw: Literal["stratified", "log_uniform", "uniform", "grid", "binary"] = Field(
        "stratified",
        description="how trials are placed: evenly over the prior or the range; at random in the "
        "range's logarithm; uniform, the paper's; grid and binary bisect",
    )
    eta: tuple[Positive, Positive] = Field(
        (1e-6, 0.5), description="smallest and largest learning rate, for records of length 32"
    )
    steps: tuple[Count, Count] = Field((30, 500), description="fewest and most training steps")
    decompose: Literal["eta_first", "steps_first", "balanced", "random"] = Field(
        "eta_first",
        description="how r splits into eta and steps: which of the two is pushed to its limit "
        "first, or both in step; random: the paper's random splits",
    )
    prior: Literal["lognormal", "none", "monotone", "proportional"] = Field(
        "lognormal",
        description="what is known before a rung: how the best kappa lies on public data; nothing; "
        "or, of the rung below, r as the lower end, or r scaled with epsilon as the "
        "centre",
    )
    expected: tuple[Positive, Annotated[float, Field(gt=1, allow_inf_nan=False)]] | None = Field(
        None,
        description="the lognormal prior's median, and the factor that is one deviation; empty: "
        "the learner's own, fitted on public data",
    )
    seed: Annotated[int, Field(ge=0)] = Field(
        0, description="public seed of the draws of r; noise never comes from it"
    )

    @model_validator(mode="after")
    def _ranges_ascend(self) -> Search:
        for name, (low, high) in (("eta", self.eta), ("steps", self.steps), ("kappa", self.kappa)):
            if low > high:
                raise ValueError(f"{name} must be [smallest, largest], and {low} > {high}")
        return self


class Select(Section):
    """How a rung's best trial is chosen. Nothing about a trial's quality is free on private
    data."""

    by: Literal["noisy_count", "public"] = Field(
        "noisy_count",
        description="noised count of correct predictions, or a declared-public validation source",
    )
    part: Literal["train", "validation"] = Field(
        "train", description="the private part whose correct predictions are counted"
    )
    share: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = Field(
        0.05, description="share of each rung's mu squared that pays for its scores"
    )


class Sweep(Section):
    """The ladder's rungs: cheap private trials. `sweep: auto` buys those that pay on public data of
    this strength, if any."""

    rungs: tuple[Rung, ...] | None = Field(
        None,
        description="by hand: one entry per rung, cheapest first; []: no trials, kappa by the "
        "prior alone; empty: auto, the rungs and the score share that pay",
    )
    search: Search = Field(default_factory=Search, description=Search.__doc__)
    select: Select = Field(default_factory=Select, description=Select.__doc__)
    together: bool = Field(
        True,
        description="true: a rung is one job, and its trials share a process and a pass over the "
        "features; false: one job per trial, for a cluster",
    )

    @property
    def ladder(self) -> tuple[Rung, ...]:
        """The rungs as far as they are known: what is left to the plan is settled there
        (plan/settle.py)."""
        return self.rungs or ()


class Fit(Section):
    """How r is extrapolated from the rungs to the final budget."""

    degree: Literal[1, 2] = Field(
        1,
        description="1: line, 2: parabola through the rungs' best; needs one rung more than its "
        "degree",
    )
    against: Literal["kappa", "epsilon", "mu"] = Field(
        "kappa",
        description="what r grows along from the rungs to the total: kappa, which stays as it is; "
        "epsilon (the paper); or mu",
    )
    using: Literal["best", "pooled"] = Field(
        "pooled",
        description="every trial's released score, in one response surface; or each rung's best "
        "trial alone (the paper)",
    )


class Final(Section):
    """The final private training."""

    budget: Literal["remaining"] | Positive = Field(
        "remaining",
        description="remaining: all that the total leaves; or the final run's own epsilon",
    )
    targets: tuple[Positive, ...] = Field(
        (), description="several totals that share one sweep; empty: privacy.epsilon alone"
    )

    without_noise: bool = Field(
        False,
        description="only in mode: research: true trains once more with a noise of a millionth, "
        "for up to eight times the steps that sweep.search allows, shown as epsilon = "
        "infinity, for the gap to privacy; no release, and it protects nobody",
    )

    @model_validator(mode="after")
    def _targets_are_a_set(self) -> Final:
        if len(set(self.targets)) != len(self.targets):
            raise ValueError("targets must name each total once")
        if self.targets and self.budget != "remaining":
            raise ValueError("targets are totals, so they need budget: remaining")
        return self


def _as_pairs(given: Any) -> Any:
    """A mapping, or a list that names the labels 0, 1, ..., as what each label counts as. What
    counts as null is left out."""
    if isinstance(given, Mapping):
        given = [*given.items()]
    elif not isinstance(given, list | tuple):
        return given
    elif not any(isinstance(one, list | tuple) for one in given):
        given = [(str(label), name) for label, name in enumerate(given)]
    return tuple(tuple(pair) for pair in given if pair[-1] is not None)


_WRITTEN = {
    "anyOf": [
        {"type": "array", "items": {"type": ["string", "null"]}},
        {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
    ],
    "default": [],
}
Renamed = Annotated[
    tuple[tuple[str, str], ...],
    BeforeValidator(_as_pairs),
    WithJsonSchema(_WRITTEN, mode="validation"),
]


class Also(Section):
    """Another test beside the test part, for a shift: another source, or the images of a test,
    corrupted."""

    name: Annotated[str, Field(pattern=NAME_PATTERN, max_length=32)] = Field(
        description="what it is called in tables and figures"
    )
    source: Where | None = Field(
        None,
        description="another source to evaluate on; empty: those of `of`, corrupted",
    )
    declared_public: bool = Field(
        False,
        description="true: nobody in that source needs protection, and its counts are exact "
        "and free",
    )
    classes: Renamed = Field(
        (),
        description="what its labels count as: a list that names the labels 0, 1, ... in the words "
        "of dataset.classes (null: left out), or a mapping of its own labels to those "
        "words; empty: each label counts under its own name",
    )
    group: Group | None = Field(
        None,
        description="of a source: the groups of its records, which may be called otherwise than "
        "those of dataset.group; for measures: groups, and for tests of some of them",
    )
    of: Name | None = Field(
        None,
        description="test, or another name here: that test's images, corrupted, one test for each "
        "severity; or those of its records that are of some groups",
    )
    groups: Groups = Field(
        (),
        description="of `of`, the groups whose records are counted; empty: those that it counts "
        "itself",
    )
    corruption: Literal["blur", "noise"] | None = Field(
        None,
        description="Gaussian, as in ImageNet-C, on the image that the network sees; noise is "
        "drawn from the image itself, so that it is the same every time",
    )
    severities: Annotated[tuple[Annotated[int, Field(ge=1, le=5)], ...], Field(min_length=1)] = (
        Field((1, 2, 3, 4, 5), description="how strong: 1 to 5")
    )
    epsilon: Positive | None = Field(
        None,
        description="of each count where its records are private ones of the test part: paid "
        "beside evaluate.epsilon",
    )


Measures = Literal["accuracy", "classes", "confusion", "auc", "groups"]
BY_CLASS: tuple[Measures, ...] = ("classes", "confusion", "auc")


class Evaluate(Section):
    """How the final model is measured on the test part."""

    of: Name | None = Field(
        None,
        description="only in experiments: another one, whose final models are measured on this "
        "one's private test part. Nothing is trained; other sections are as they are "
        "there, and this dataset.lineage alone pays, up to this privacy.epsilon for "
        "each model",
    )
    epsilon: Positive | None = Field(
        None,
        description="epsilon of the noised test count on the private test part; empty: as much as "
        "the final training",
    )
    measures: Measures = Field(
        "accuracy",
        description="what that buys: how many are right; how many of each class, or of each of "
        "dataset.group, at the same price and so with more noise in the sum; beside "
        "classes, with half of it, what each was taken for (confusion), or of two "
        "classes AUC",
    )
    also: tuple[Also, ...] = Field(
        (), description="further tests, each by a name, measured in the same way"
    )


class Research(Section):
    """Only in mode: research, on lineages declared public."""

    seed: Annotated[int, Field(ge=0)] = Field(
        0, description="seeds everything, noise included; not a release"
    )
    repeats: Count = Field(1, description="independent repetitions of the whole ladder")


class Resources(Section):
    """What one job may use."""

    threads: Count = Field(2, description="CPU threads of a training or extraction job")
    mem_mb: Count = Field(
        4000, description="memory of a job, in MB; on a cluster a retry asks for more"
    )
    runtime: Count = Field(60, description="wall time of a job, in minutes")
    gpu: Annotated[int, Field(ge=0)] = Field(0, description="GPUs of an extraction or training job")


class Paths(Section):
    """Where private files lie, relative to the working directory. Public outputs are always in
    results/."""

    private: str = Field(
        "private",
        min_length=1,
        description="manifest, feature caches, diagnostics: mode 0700, never shared",
    )
    cache: str | None = Field(
        None,
        description="feature caches that clones and projects share; empty: inside the "
        "private folder",
    )


class Deployment(Section):
    """What only people know of what is published, for the statement and for `dpladder register`.
    Nothing is computed from it."""

    name: Words = Field(description="what the published model is called")
    curators: Annotated[tuple[Words, ...], Field(min_length=1)] = Field(
        description="who publishes it: organisations"
    )
    authors: Annotated[tuple[Words, ...], Field(min_length=1)] = Field(
        description="who fills this in, and answers questions about it"
    )
    use: Words = Field(description="what it is meant for, and what not")
    data: Words = Field(
        description="what the private data is: about whom, from where, collected when and why"
    )
    region: Words = Field(description="the region that the data describes, or whose law applies")
    sector: Literal["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"] = (
        Field(description="the field that it belongs to, by the registry's list")
    )
    access: Words = Field(
        description="who may read the private data and DPLADDER_HOME, and what keeps everybody "
        "else out"
    )
    published: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = Field(
        None,
        description="day of first publication, in quotes: 'YYYY-MM-DD'; empty: the statement's day",
    )
    dynamic: bool = Field(False, description="true: new data comes in over time")


class Config(Section):
    """One experiment, fully resolved."""

    models: ClassVar[Literal["own", "others"]] = "own"
    """Whose final models it is about."""
    mode: Literal["release", "research"] = Field(
        "release",
        description="release: secret noise, ledger and limits; research: public data only, not a "
        "release",
    )
    task: Literal["classification", "language_model", "question_answering"] = Field(
        "classification",
        description="what is learnt: records' classes; or to write texts like them, which have no "
        "classes: a causal language model, trained by dp_finetune, hyfree_finetune "
        "or prodigy_finetune from its tokens on; or where in a text the answer to a question "
        "stands, by the same learners, on source squad:<path>",
    )
    respend: bool | tuple[Name, ...] = Field(
        False,
        description="true: allow a change that pays again for something already released; or the "
        "names of the mechanisms, rules or experiments that may",
    )
    dataset: Dataset = Field(description=Dataset.__doc__)
    features: Features = Field(default_factory=Features, description=Features.__doc__)
    privacy: Privacy = Field(description=Privacy.__doc__)
    sweep: Sweep = Field(default_factory=Sweep, description=Sweep.__doc__)
    hpo: Hpo = Field(
        default_factory=Ladder,
        description="How r is searched: by the ladder, or in one job with one output.",
    )
    fit: Fit = Field(default_factory=Fit, description=Fit.__doc__)
    final: Final = Field(default_factory=Final, description=Final.__doc__)
    learner: Learner = Field(default_factory=Descent, description="What one private training is.")
    evaluate: Evaluate = Field(default_factory=Evaluate, description=Evaluate.__doc__)
    research: Research = Field(default_factory=Research, description=Research.__doc__)
    resources: Resources = Field(default_factory=Resources, description=Resources.__doc__)
    paths: Paths = Field(default_factory=Paths, description=Paths.__doc__)
    deployment: Deployment | None = Field(None, description=Deployment.__doc__)

    @property
    def tested(self) -> str | None:
        """The experiment whose final models are measured, where they are not its own."""
        return None

    @property
    def totals(self) -> tuple[float, ...]:
        """The totals that its final models are trained at."""
        return self.final.targets or (self.privacy.epsilon,)

    @property
    def totals_key(self) -> str:
        """The key that says them."""
        return "final.targets" if self.final.targets else "privacy.epsilon"

    @property
    def spans(self) -> Spans | None:
        """How its documents are cut into records, where they are."""
        features = self.features
        return Spans(features.model, features.tokens) if self.dataset.spans else None

    def promised(self, total: float) -> float:
        """What the final model of a total may cost the lineage."""
        return total

    def repeat(self, number: int) -> Self:
        """A repeat, the first one by 0, with its own seeds for draws and noise."""
        own = {"seed": self.research.seed + number, "repeats": 1}
        search = self.sweep.search.model_copy(update={"seed": self.sweep.search.seed + number})
        update = {
            "research": self.research.model_copy(update=own),
            "sweep": self.sweep.model_copy(update={"search": search}),
        }
        return self.model_copy(update=update)


def repeat_name(experiment: str, number: int) -> str:
    """What a repeat is called, the first one by 0, which is the experiment itself."""
    return f"{experiment}-{number + 1}" if number else experiment


class Tester(Config):
    """An experiment that measures another one's final models on people of its own (evaluate.of). It
    trains nothing."""

    models = "others"

    @property
    def tested(self) -> str:
        assert self.evaluate.of is not None, "else it is a Config (config/load.py)"
        return self.evaluate.of

    @property
    def totals_key(self) -> str:
        return "privacy.epsilon"

    def promised(self, total: float) -> float:
        """What measuring the model of a total may cost the lineage."""
        return self.privacy.epsilon

    def repeat(self, number: int) -> Self:
        """It measures the same repeat of the other one."""
        evaluate = self.evaluate.model_copy(update={"of": repeat_name(self.tested, number)})
        return super().repeat(number).model_copy(update={"evaluate": evaluate})
