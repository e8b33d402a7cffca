"""results/<experiment>/summary.json: what one experiment found. Its keys are these fields, and its
JSON schema follows from them.

Others script against it, so a field keeps its name and meaning (docs/design.md, what others script
against). Everything in it follows from releases, the config and the statement (contract: no-tell).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from dpladder.config.evaluate_sections import BRIER, score_name
from dpladder.learn.effects import Effects
from dpladder.learn.measures.tables import figures_of_counts
from dpladder.learn.measures.tested import ReleasedCounts, Tested
from dpladder.privacy.accounting.rounding import NoisedFigure, round_up_short
from dpladder.privacy.statement.documents import Cost
from dpladder.public_files import read_json
from dpladder.search.trial import FitResult
from dpladder.section import from_document


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A training in its learner's own words: its rate, or ridge and alpha, and its steps.

    Attributes:
        eta: learning rate of a step; null of a learner without one.
        ridge: lambda of ridge regression.
        alpha: weight of all records beside a class's own, of learner dp_ls.
        steps: T, how many there were.
    """

    eta: float | None = None
    ridge: float | None = None
    alpha: float | None = None
    steps: int | None = None

    @property
    def choice(self) -> dict[str, float | None]:
        """The four values by name; None is what the learner has not."""
        return {"eta": self.eta, "ridge": self.ridge, "alpha": self.alpha, "steps": self.steps}


@dataclass(frozen=True, kw_only=True)
class TrialFound(Choice):
    """One private trial of a rung, or a free one where its score is public.

    Attributes:
        trial: its number in the rung, from 0.
        kappa: noise that the training put into a logit; null where the search is in r.
        r: what the ladder searched.
        score: correct predictions, noised by `score_sd`; it may lie below 0.
        score_sd: deviation of the score's noise, in records; 0 of an exact count.
        counted: units of the part by declaration, which the score is a share of.
    """

    trial: int
    kappa: float | None = None
    r: float
    score: float
    score_sd: float
    counted: int

    @property
    def share(self) -> float:
        """The score as a share of the records counted by declaration; noise may leave [0, 1]."""
        return self.score / self.counted

    @property
    def noised_share(self) -> NoisedFigure:
        """The same with its noise, and an interval over that alone."""
        return NoisedFigure(self.share, self.score_sd / self.counted)


@dataclass(frozen=True)
class Best:
    """The trial of a rung whose noised score is largest, and its r."""

    trial: int
    r: float


@dataclass(frozen=True)
class RungFound:
    """A rung. `epsilon`: of each of its trials, score included, at the lineage's delta. `mu`: of a
    trial's training alone."""

    epsilon: float
    mu: float
    trials: tuple[TrialFound, ...]
    best: Best


@dataclass(frozen=True)
class Place:
    """A trial by its rung and number, both from 0."""

    rung: int
    trial: int


@dataclass(frozen=True, kw_only=True)
class FitFound(FitResult):
    """How r was carried to a total. There is no kappa where the search is in r.

    Attributes:
        degree: of the curve.
        against: what r grows along.
        using: which scores were fitted.
        mu: that the final training stands on.
        epsilon: its place on the axis by epsilon, of a Gaussian of that mu. It is no price.
        best: the trial that looked best.
    """

    degree: int
    against: Literal["kappa", "epsilon", "mu"]
    using: Literal["best", "pooled"]
    epsilon: float
    mu: float
    best: Place | None = None


@dataclass(frozen=True)
class AlsoTested:
    """A further test.

    Attributes:
        name: as tables and figures call it.
        of: whose records it takes, where they are another test's.
        corruption, severity: of corrupted images, how.
        test: what it released.
        groups: those whose records it takes, where it names some.
    """

    name: str
    of: str | None
    corruption: Literal["blur", "noise"] | None
    severity: int | None
    test: Tested
    groups: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class FinalFound(Choice):
    """One final model.

    Attributes:
        target_epsilon: the total that it was trained for.
        epsilon, mu: its own price, with its search; mu is null where that is not Gaussian.
        epsilon_final: of its own training; of a private search, whose training is a part of it.
        mu_final: of its own training alone, whatever chose it.
        fit: how r was carried to this total; null where there is nothing to search.
        r_star, kappa_star: what its training took; null of a learner without r.
        sigma: deviation of the training's noise over its L2 sensitivity; null where it has no one
            such figure.
        test: what the test part released.
        suspect: what to ask where a score is better than mu allows.
        search_share: of mu^2 of what reads the training part.
        distance: in research, how far the weights are from where they started, where that was zero
            or the public network.
        also: further tests.
        student: what learned its labels of dataset.public_unlabelled, on a public test.
        stated: the figure that it is stated at, with all that may have steered it.
        headline: the one figure that it is known by, with its interval, in words.
        effects: how each column of a table moves its predictions, where these are sums over
            columns.
    """

    target_epsilon: float
    epsilon: float
    mu: float | None = None
    mu_final: float
    epsilon_final: float
    fit: FitFound | None = None
    r_star: float | None = None
    kappa_star: float | None = None
    sigma: float | None = None
    test: Tested
    suspect: str | None = None
    search_share: float | None = None
    distance: float | None = None
    also: tuple[AlsoTested, ...] = ()
    student: Tested | None = None
    stated: Cost
    headline: str = ""
    effects: Effects | None = None

    @property
    def tests(self) -> dict[str, Tested]:
        """Every test of it by its name, the test part first."""
        return {"test": self.test} | {one.name: one.test for one in self.also}

    @property
    def total(self) -> str:
        """Its total in words."""
        return "∞" if self.target_epsilon == math.inf else round_up_short(self.target_epsilon)


@dataclass(frozen=True)
class OpenCounts:
    """open/metrics.json: what a training without noise releases, as `OpenFound` has it.

    Its data is declared public, so its counts are exact and cost nothing (contract: research).
    """

    r: float | None
    test: ReleasedCounts
    also: dict[str, ReleasedCounts]


@dataclass(frozen=True)
class OpenFound:
    """A learner trained without noise, epsilon = infinity, in research. It protects nobody.

    Attributes:
        r: chosen on records held out of the training part.
        test: what it reaches on the test part, counted exactly.
        also: likewise on each further test, by its name.
    """

    r: float | None
    test: Tested
    also: dict[str, Tested]


@dataclass(frozen=True)
class Summary:
    """One experiment: what it searched, what its final models cost and how good they are.

    Attributes:
        experiment: its name; a repeat has a summary of its own.
        mode, lineage, relation, delta, nominal_size: as the config has them.
        learner: by its name in the config.
        searches: what r stands for, a rate or a ridge; null where there is nothing to search.
        sampling_rate: of units at each step, 1 for the full batch.
        unit: what the search draws and fits.
        rungs: cheapest first; empty without trials.
        targets: the final models, one for each total.
        r_range: the smallest and largest r that was searched.
        open: null unless final.without_noise.
        classes: how many the final models tell apart, null of a language model and where a record
            may be of several.
        findings: whether each class is told by itself.
        majority: the largest class's share by declaration, or by the rare one's.
        warnings: which models are no better than what needs no model, in words.
    """

    experiment: str
    mode: Literal["release", "research"]
    lineage: str
    relation: Literal["add_remove", "replace_one"]
    delta: float
    nominal_size: int
    learner: str
    searches: Literal["rate", "ridge"] | None
    sampling_rate: float
    unit: Literal["kappa", "r"]
    rungs: tuple[RungFound, ...]
    targets: tuple[FinalFound, ...]
    r_range: tuple[float, float]
    open: OpenFound | None = None
    classes: int | None = None
    findings: bool = False
    majority: float | None = None
    warnings: tuple[str, ...] = ()

    @property
    def without_noise(self) -> FinalFound | None:
        """A research run's training without noise, told as a final model.

        Returns:
            A model at an epsilon of infinity, with those further tests that it was measured on.
            None where the config asked for none.
        """
        if self.open is None:
            return None
        tests = self.open.also
        also = tuple(replace(one, test=tests[one.name]) for one in self.targets[0].also)
        return FinalFound(
            target_epsilon=math.inf,
            epsilon=math.inf,
            stated=Cost(math.inf, None),
            mu_final=math.inf,
            epsilon_final=math.inf,
            r_star=self.open.r,
            test=self.open.test,
            also=also,
        )

    @property
    def largest(self) -> FinalFound:
        """The final model of the largest total."""
        return max(self.targets, key=lambda one: one.target_epsilon)

    @property
    def models(self) -> Iterator[FinalFound]:
        """All that it trained, the one without noise last."""
        yield from self.targets
        if self.without_noise is not None:
            yield self.without_noise

    @property
    def noised(self) -> bool:
        """Whether noise was paid for to see the trials' scores; scores on public data need none."""
        return any(trial.score_sd > 0 for rung in self.rungs for trial in rung.trials)

    @property
    def r_label(self) -> str:
        """What the ladder's r stands for."""
        return "1/λ, r of the ladder" if self.searches == "ridge" else "total step size r = η·T"

    def baseline(self, test: Tested) -> float | None:
        """The share that is right without a model: of always naming the largest class, as it was
        counted or declared, or else of a guess. None of what has no such share."""
        if test.perplexity is not None or test.brier or test.range is not None:
            return None
        counted = test.majority
        chance = 1 / self.classes if self.classes else None
        return counted.value if counted else self.majority or chance

    def counted(self, otherwise: str) -> str:
        """What a share of the test records' counts is, in words: of a language model, whose records
        count by their losses, and of findings.

        Args:
            otherwise: the words for a share of correct predictions, which most tests count.
        """
        return score_name(
            any(target.test.brier for target in self.targets),
            any(target.test.perplexity for target in self.targets),
            otherwise,
            any(target.test.range for target in self.targets),
        )

    def scored(self, otherwise: str) -> str:
        """What trials count. With findings that is the Brier score, whatever the test counts.

        Args:
            otherwise: the words for a share of correct predictions.
        """
        return BRIER if self.findings else self.counted(otherwise)


def read_test(path: Path | str) -> Tested:
    """The figures of one test, from its counts in a metrics.json.

    Raises:
        pydantic.ValidationError: the file is no such document.
    """
    return figures_of_counts(from_document(ReleasedCounts, read_json(Path(path))))


def read_summary(path: Path | str) -> Summary:
    """A summary.json, of this format or an earlier one.

    Raises:
        pydantic.ValidationError: a key is missing that every format has, or of another type.
    """
    summary: Summary = from_document(Summary, read_json(Path(path)))
    return summary
