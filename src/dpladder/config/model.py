"""The config's sections. Everything a user can say is a field here, with its meaning and its unit.

Every value is public: config is written before the raw data is looked at, or from releases, never
from private values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field

from dpladder.config.dataset_sections import Dataset
from dpladder.config.evaluate_sections import Evaluate
from dpladder.config.features_sections import Features
from dpladder.config.learners import DEFAULT, METHODS, Learner
from dpladder.config.records import Spans
from dpladder.config.search_sections import Ladder
from dpladder.config.searches import Hpo
from dpladder.config.sweep_sections import IN_RESEARCH, Final, Fit, Sweep
from dpladder.privacy.statement.deployment import Deployment
from dpladder.section import (
    Count,
    Epsilon,
    Name,
    NeutralAt,
    NonNegative,
    Section,
    Words,
)

DELTA = 1e-6
"""The delta of a new project and of an estimator in Python, where nobody gives another one."""


class Lifetime(Section):
    """The most that may ever be spent on the lineage."""

    epsilon: Epsilon
    """Limit on all that is ever spent on this lineage, at its delta. It cannot be raised. Example:
    8.0"""
    loss: NonNegative = 0.0
    """Part of that epsilon for the pure losses of all private selections (hpo)."""
    weight: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 1.0
    """Most that the mean numbers of runs of all private selections (hpo) may multiply to."""

    def _problems(self) -> Iterator[str]:
        if self.loss >= self.epsilon:
            yield "loss must stay below the limit's own epsilon"


class Privacy(Section):
    """The guarantee."""

    epsilon: Epsilon
    """Total of an experiment's final artifact, its search included. Example: 1.0"""
    delta: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
    """Probability of failure, fixed for the lineage's life. Keep it well below 1/nominal_size.
    A new project and an estimator in Python take the example. Example: 1.0e-06"""
    relation: Literal["add_remove", "replace_one"] = "add_remove"
    """What neighbouring data sets are, fixed for life. add_remove: one unit more or less.
    replace_one: one unit replaced."""
    share: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] | None = None
    """Share of delta for what is only nearly Gaussian: trainings on samples, which take a tenth of
    it each, and some searches. Fixed for life. Empty: 0.3 where an experiment samples, 0.1 for such
    a search, else nothing. Example: 0.1"""
    lifetime: Lifetime | None = None
    """The lineage's limit for life. Empty: no lifetime guarantee is stated. Example: {epsilon:
    8.0}"""


class Research(Section):
    """What research does, on lineages declared public."""

    seed: Annotated[int, Field(ge=0), IN_RESEARCH] = 0
    """Seeds everything, noise included; so nothing of it is a release."""
    repeats: Annotated[Count, IN_RESEARCH] = 1
    """Number of independent repetitions of the whole experiment."""
    searches: Annotated[tuple[str, ...], NeutralAt(()), IN_RESEARCH] = ()
    """Searches that compare_hpo compares; ablations: the ladder with one part changed. Empty: all.
    Example: [ladder, random_search]"""


class Resources(Section):
    """What one job may use."""

    threads: Count = 2
    """CPU threads of a training or extraction job."""
    mem_mb: Count = 4000
    """Memory of a job, in MB. On a cluster a retry asks for more."""
    runtime: Count = 60
    """Wall time of a job, in minutes."""
    gpu: Annotated[int, Field(ge=0)] = 0
    """Number of GPUs of an extraction or training job."""


class Paths(Section):
    """Where private files lie, relative to the working directory. Public outputs are always in
    results/."""

    private: str = Field("private", min_length=1)
    """Folder of manifest, feature caches and diagnostics. Its mode is 0700; never share it."""
    cache: str | None = None
    """Folder of feature caches that clones and projects share. Empty: inside the private folder.
    Example: /scratch/me/features"""


class Consent(Section):
    """A price up to which edits may pay again. Whatever is paid uses it up."""

    up_to: Epsilon
    """Most epsilon that the lineage may ever have spent, edits included. Example: 1.1"""


class Config(Section):
    """One experiment, fully resolved."""

    mode: Literal["release", "research"] = "release"
    """release: secret noise, ledger and limits. research: public data only, and no release."""
    task: Literal["classification", "regression", "language_model"] = "classification"
    """What is learnt: classes, a number (set by dataset.target), or to write texts like the
    records. The last needs a learner that trains the network, such as dp_finetune."""
    respend: bool | tuple[Name, ...] | Consent = False
    """Which edits may pay again for what was released. true: any. {up_to: 1.1}: any, until the
    lineage has spent an epsilon of 1.1 in all. A list: those of its mechanisms, rules or
    experiments. Example: [dp_gd]"""
    dataset: Dataset
    features: Features = Field(default_factory=Features)
    privacy: Privacy
    sweep: Sweep = Field(default_factory=Sweep)
    hpo: Hpo = Field(default_factory=Ladder)
    """How r is searched: by the ladder, or in one job with one output."""
    fit: Fit = Field(default_factory=Fit)
    final: Final = Field(default_factory=Final)
    learner: Learner = Field(default_factory=METHODS[DEFAULT].section)
    """What one private training is."""
    evaluate: Evaluate = Field(default_factory=Evaluate)
    research: Research = Field(default_factory=Research)
    resources: Resources = Field(default_factory=Resources)
    paths: Paths = Field(default_factory=Paths)
    deployment: Deployment | None = None
    on_end: Annotated[Words | None, NeutralAt(None)] = None
    """A shell command for the end of a run. Its standard input is JSON: `outcome`, succeeded or
    failed, and `text`, the run's last public lines. A config is public: leave a secret address in
    the environment. Empty: none. Example: 'curl -s --json @- "$HOOK"'"""

    @property
    def totals(self) -> tuple[float, ...]:
        """The totals that its final models are trained at."""
        return self.final.targets or (self.privacy.epsilon,)

    @property
    def exact_test(self) -> bool:
        """Whether counts of the test need no noise: it is a source declared public, or a part of
        data that is, in research."""
        return self.dataset.public_test is not None or self.mode == "research"

    @property
    def spans(self) -> Spans | None:
        """How its documents are cut into records; None where a text is one record."""
        features = self.features
        return Spans(features.model, features.tokens) if self.dataset.spans else None

    def repeat(self, number: int) -> Self:
        """A repeat, the first one by 0, with its own seeds for draws and noise.

        Args:
            number: which it is. It is added to both seeds, and the repeat has no repeats itself.
        """
        research = {"seed": self.research.seed + number, "repeats": 1}
        search = self.sweep.search.model_copy(update={"seed": self.sweep.search.seed + number})
        update = {
            "research": self.research.model_copy(update=research),
            "sweep": self.sweep.model_copy(update={"search": search}),
        }
        return self.model_copy(update=update)


def repeat_name(experiment: str, number: int) -> str:
    """What a repeat is called, the first one by 0, which is the experiment itself.

    Args:
        experiment: that is repeated.
        number: from 0. The second is called `<experiment>-2`.
    """
    return f"{experiment}-{number + 1}" if number else experiment
