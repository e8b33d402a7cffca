"""The config's sections. Everything a user can say is a field here, with its meaning and its unit.

Every value is public: config is written before the raw data is looked at, or from releases, never from private values.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from dpladder.config.learners import Descent, Learner
from dpladder.config.searches import Hpo, Ladder
from dpladder.config.section import Count, Fraction, Name, Positive, Section


class Unit(Section):
    """Whose privacy is protected."""

    by: Literal["record", "user"] = Field("record", description="one record, or all records of one user")
    cap: Count = Field(
        1, description="records kept per user, chosen from that user's own rows; 1 for records"
    )

    @model_validator(mode="after")
    def _a_record_is_one_record(self) -> Unit:
        if self.by == "record" and self.cap != 1:
            raise ValueError(
                "cap must be 1 when the unit is a record; set by: user to protect several records together"
            )
        return self


class Split(Section):
    """How a unit finds its part. A keyed hash of the unit's own id decides, never its position."""

    rule: Literal["hash", "given"] = Field(
        "hash", description="hash: keyed hash of the unit's id; given: the source names each unit's part"
    )
    test: Fraction = Field(0.2, description="expected fraction of units held out for evaluation")
    validation: Fraction = Field(0.0, description="expected fraction of units held out to score trials")

    @model_validator(mode="after")
    def _something_is_left_to_train_on(self) -> Split:
        if self.test + self.validation >= 1:
            raise ValueError("test + validation must stay below 1, so that something is left to train on")
        return self


class Dataset(Section):
    """The private data: a lineage for life, and where its current version lies."""

    lineage: Name = Field(
        description="the data's name for life; every later version of the same data keeps it"
    )
    source: str = Field(
        min_length=1,
        description="mnist5k | digits | torchvision:<Name> | folder:<path> | csv:<path> | hdf5:<path> | npz:<path> | parquet:<path>",
    )
    nominal_size: Count = Field(
        description="n0, units in the training part, declared publicly; sums are divided by it"
    )
    classes: Count | tuple[str, ...] | None = Field(
        None, description="class list, or how many; required for your own data, known for named datasets"
    )
    declared_public: bool = Field(
        False, description="true: the data is not private at all; required by mode: research"
    )
    unit: Unit = Field(default_factory=Unit, description=Unit.__doc__)
    split: Split = Field(default_factory=Split, description=Split.__doc__)
    public_test: str | None = Field(
        None, description="another source, declared public, to evaluate on for free"
    )
    public_validation: str | None = Field(
        None, description="another source, declared public, to score trials on for free"
    )

    @model_validator(mode="after")
    def _class_names_are_a_set(self) -> Dataset:
        if isinstance(self.classes, tuple) and (
            len(self.classes) < 1 or len(set(self.classes)) != len(self.classes)
        ):
            raise ValueError("classes must name each class once, and at least one")
        return self


class Mean(Section):
    """A noised feature mean, subtracted from train and test alike (Sun et al. 2023)."""

    epsilon: Positive = Field(description="epsilon of the noised mean alone, at the lineage's delta")
    radius: Positive = Field(1.0, description="records are scaled into a ball of this public radius first")


class Features(Section):
    """A public pretrained network turns each record into a feature vector, once."""

    model: str = Field(
        "efficientnet_lite0",
        min_length=1,
        description="any timm model name; none: the source already holds features",
    )
    weights: str = Field(
        "bundled",
        min_length=1,
        description="bundled | pretrained | path of a .safetensors or .pth checkpoint",
    )
    image_size: Annotated[int, Field(ge=8, le=2048)] | None = Field(
        None, description="pixels per side fed to the network; empty: the model's own"
    )
    layers: tuple[str, ...] = Field(
        (), description="named blocks whose pooled outputs are concatenated; empty: the pooled features"
    )
    normalize: bool = Field(False, description="scale every record to unit length")
    dtype: Literal["float16", "float32"] = Field("float16", description="how features are stored")
    batch_size: Count = Field(64, description="images per forward pass, one fixed padded shape")
    shards: Count | Literal["auto"] = Field(
        1, description="independent extraction jobs; auto: one per 20,000 declared units"
    )
    mean: Mean | None = Field(None, description=Mean.__doc__)


class Lifetime(Section):
    """The most that may ever be spent on the lineage."""

    epsilon: Positive = Field(description="limit on everything ever spent on this lineage, at its delta")
    selections: bool = Field(
        False,
        description="true: private selections (hpo) may share the limit; a tenth of delta is then theirs, for life",
    )


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
        description="neighbouring datasets: one unit more or less, or one unit replaced; fixed for life",
    )
    lifetime: Lifetime | None = Field(
        None, description="the lineage's limit for life; without one no lifetime guarantee is stated"
    )


class Rung(Section):
    epsilon: Positive = Field(description="epsilon of each single trial of this rung, its score included")
    trials: Annotated[int, Field(ge=1, le=10_000)] = Field(description="number of trials")


class Search(Section):
    """Where trials look for the total step size r = eta * steps."""

    draw: Literal["stratified", "log_uniform", "uniform", "grid", "binary"] = Field(
        "stratified",
        description="how trials draw r in its range; uniform is the paper's; binary bisects on earlier scores",
    )
    eta: tuple[Positive, Positive] = Field((0.01, 5.0), description="smallest and largest learning rate")
    steps: tuple[Count, Count] = Field((5, 100), description="fewest and most training steps")
    decompose: Literal["eta_first", "steps_first", "balanced"] = Field(
        "balanced",
        description="how r splits into eta and steps; which of the two is pushed to its limit first",
    )
    prior: Literal["none", "monotone", "proportional"] = Field(
        "none",
        description="what a later rung takes from an earlier one's release: nothing, r as its lower end, or r scaled with epsilon as its centre",
    )
    seed: Annotated[int, Field(ge=0)] = Field(
        0, description="public seed of the draws of r; noise never comes from it"
    )

    @model_validator(mode="after")
    def _ranges_ascend(self) -> Search:
        for name, (low, high) in (("eta", self.eta), ("steps", self.steps)):
            if low > high:
                raise ValueError(f"{name} must be [smallest, largest], and {low} > {high}")
        return self


class Select(Section):
    """How a rung's best trial is chosen. Nothing about a trial's quality is free on private data."""

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
    """The ladder's rungs: cheap private trials."""

    rungs: tuple[Rung, ...] = Field(
        (Rung(epsilon=0.1, trials=3), Rung(epsilon=0.2, trials=3)),
        description="one entry per rung, cheapest first; none, [], for a learner that searches nothing",
    )
    search: Search = Field(default_factory=Search, description=Search.__doc__)
    select: Select = Field(default_factory=Select, description=Select.__doc__)


class Fit(Section):
    """How r is extrapolated from the rungs to the final budget."""

    degree: Literal[1, 2] = Field(
        1, description="1: line, 2: parabola through the rungs' best; needs one rung more than its degree"
    )
    against: Literal["epsilon", "mu"] = Field("epsilon", description="the axis the fit runs along")
    using: Literal["best", "pooled"] = Field(
        "pooled",
        description="every trial's released score, in one response surface; or each rung's best trial alone (the paper)",
    )


class Final(Section):
    """The final private training."""

    budget: Literal["remaining"] | Positive = Field(
        "remaining", description="remaining: all that the total leaves; or the final run's own epsilon"
    )
    targets: tuple[Positive, ...] = Field(
        (), description="several totals that share one sweep; empty: privacy.epsilon alone"
    )

    @model_validator(mode="after")
    def _targets_are_a_set(self) -> Final:
        if len(set(self.targets)) != len(self.targets):
            raise ValueError("targets must name each total once")
        if self.targets and self.budget != "remaining":
            raise ValueError("targets are totals, so they need budget: remaining")
        return self


class Evaluate(Section):
    """How the final model is measured on the test part."""

    epsilon: Positive | None = Field(
        None,
        description="epsilon of the noised test count on the private test part; empty: as much as the final training",
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
    mem_mb: Count = Field(4000, description="memory of a job, in MB; on a cluster a retry asks for more")
    runtime: Count = Field(60, description="wall time of a job, in minutes")
    gpu: Annotated[int, Field(ge=0)] = Field(0, description="GPUs of an extraction or training job")


class Paths(Section):
    """Where private files lie, relative to the working directory. Public outputs are always in results/."""

    private: str = Field(
        "private", min_length=1, description="manifest, feature caches, diagnostics: mode 0700, never shared"
    )
    cache: str | None = Field(
        None, description="feature caches that clones and projects share; empty: inside the private folder"
    )


class Config(Section):
    """One experiment, fully resolved."""

    mode: Literal["release", "research"] = Field(
        "release",
        description="release: secret noise, ledger and limits; research: public data only, not a release",
    )
    respend: bool = Field(
        False, description="true: allow a change that pays again for something already released"
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
