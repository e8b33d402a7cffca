"""The config's sections. Everything a user can say is a field here, with its meaning and its unit.

Every value is public: config is written before the raw data is looked at, or from releases, never
from private values.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from dpladder.config.dataset_sections import Dataset
from dpladder.config.evaluate_sections import Evaluate
from dpladder.config.features_sections import Features
from dpladder.config.learners import DEFAULT, METHODS, Learner
from dpladder.config.search_sections import Hpo, Ladder
from dpladder.config.section import Count, Name, NeutralAt, NonNegative, Positive, Section, Words
from dpladder.config.shift import Spans
from dpladder.config.sweep_sections import Final, Fit, Sweep


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
        "searches; fixed for life; a final training on samples is booked at a tenth of it; "
        "empty: 0.3 where an experiment samples, 0.1 where it searches so, else nothing",
    )
    lifetime: Lifetime | None = Field(
        None,
        description="the lineage's limit for life; without one no lifetime guarantee is stated",
    )


class Research(Section):
    """Only in mode: research, on lineages declared public."""

    seed: Annotated[int, Field(ge=0)] = Field(
        0, description="seeds everything, noise included; not a release"
    )
    repeats: Count = Field(1, description="independent repetitions of the whole ladder")
    searches: Annotated[tuple[str, ...], NeutralAt(())] = Field(
        (),
        description="ways to search that compare_hpo sets against each other, and ablations, the "
        "ladder with one part changed; empty: all",
    )


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


class Consent(Section):
    """A price up to which edits may pay again. Whatever is paid uses it up."""

    up_to: Positive = Field(
        description="the most that the lineage may ever have spent once an edit is paid for"
    )


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
    respend: bool | tuple[Name, ...] | Consent = Field(
        False,
        description="{up_to: 1.1}: allow edits of the config that pay again for something already "
        "released, until the lineage has spent an epsilon of 1.1 in all; true: all such edits, and "
        "changed data, for as long as it stands here; or the names of the mechanisms, rules or "
        "experiments that may",
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
    learner: Learner = Field(
        default_factory=METHODS[DEFAULT].section, description="What one private training is."
    )
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
    def exact_test(self) -> bool:
        """Whether counts of the test need no noise: it is a source declared public, or a part of
        data that is, in research."""
        return self.dataset.public_test is not None or self.mode == "research"

    @property
    def spans(self) -> Spans | None:
        """How its documents are cut into records, where they are."""
        features = self.features
        return Spans(features.model, features.tokens) if self.dataset.spans else None

    def promised_epsilon(self, total: float) -> float:
        """What the final model of a total may cost the lineage."""
        return total

    def repeat(self, number: int) -> Self:
        """A repeat, the first one by 0, with its own seeds for draws and noise."""
        research = {"seed": self.research.seed + number, "repeats": 1}
        search = self.sweep.search.model_copy(update={"seed": self.sweep.search.seed + number})
        update = {
            "research": self.research.model_copy(update=research),
            "sweep": self.sweep.model_copy(update={"search": search}),
        }
        return self.model_copy(update=update)


def repeat_name(experiment: str, number: int) -> str:
    """What a repeat is called, the first one by 0, which is the experiment itself."""
    return f"{experiment}-{number + 1}" if number else experiment


class ExternalEvaluation(Config):
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

    def promised_epsilon(self, total: float) -> float:
        """What measuring the model of a total may cost the lineage."""
        return self.privacy.epsilon

    def repeat(self, number: int) -> Self:
        """It measures the same repeat of the other one."""
        evaluate = self.evaluate.model_copy(update={"of": repeat_name(self.tested, number)})
        return super().repeat(number).model_copy(update={"evaluate": evaluate})
