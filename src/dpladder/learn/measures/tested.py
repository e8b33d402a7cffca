"""How good a model is on one test: the noised counts that a test releases, and the figures that
follow from them. Both are public, and stand in files that people script against."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from dpladder.config.evaluate_sections import score_name, spread_words
from dpladder.learn.scorers import TaskName
from dpladder.privacy.accounting.rounding import (
    SDS_OF_95_PERCENT,
    NoisedFigure,
    percent,
    plain_number,
    sampling_spread,
)


@dataclass(frozen=True)
class CountTable:
    """Counts, each with noise of deviation `sd`; exact ones, with 0, of a source declared
    public."""

    cells: list[Any]
    sd: float


@dataclass(frozen=True)
class GroupNames:
    """The groups of a test, by name.

    Attributes:
        counted: those whose records are in a count.
        summed: of these, those that the accuracy is of.
        trained: those that were trained on.
    """

    counted: tuple[str, ...]
    summed: tuple[str, ...]
    trained: tuple[str, ...]


@dataclass(frozen=True)
class ReleasedCounts:
    """metrics.json: what a test releases. All figures follow from it, for nothing.

    Attributes:
        task: of the scorer (learn/scorers.py).
        classes: their names.
        tables: named for what they hold (learn/measures/tables.py).
        groups: of records that are in groups.
        most: the bound that a language model's losses are clipped at, in nats a token; or the
            largest error of a number that is counted.
        range: of the number that is predicted.
        threshold: the probability from which people act, where decisions were counted.
    """

    task: TaskName
    classes: tuple[str, ...]
    tables: dict[str, CountTable]
    groups: GroupNames | None = None
    most: float | None = None
    range: tuple[float, float] | None = None
    threshold: float | None = None


def _with_interval(
    share: float, sd: float, spread: float, interval: tuple[float, float] | None
) -> NoisedFigure:
    half = SDS_OF_95_PERCENT * spread
    low, high = interval or (max(share - half, 0.0), min(share + half, 1.0))
    return NoisedFigure(share, sd, low, high)


@dataclass(frozen=True)
class ClassTested:
    """One class: noised counts of its records that are right and wrong, and the share that is
    right, with its 95 % interval over noise and sampling. The share is null where there is too
    little to tell."""

    name: str
    accuracy: float | None
    accuracy_sd: float | None
    correct: float
    wrong: float
    sd: float
    interval: tuple[float, float] | None = None

    @property
    def spread(self) -> float | None:
        """The accuracy's standard deviation, over noise and sampling."""
        if self.accuracy is None or self.accuracy_sd is None:
            return None
        return sampling_spread(self.accuracy, self.accuracy_sd, self.correct + self.wrong)

    @property
    def score(self) -> NoisedFigure | None:
        """The accuracy with its interval; in documents of before, that of its deviation."""
        if self.accuracy is None or self.accuracy_sd is None or self.spread is None:
            return None
        return _with_interval(self.accuracy, self.accuracy_sd, self.spread, self.interval)


@dataclass(frozen=True)
class GroupTested(ClassTested):
    """One group, in the same words. `trained`: whether its records were trained on."""

    trained: bool = True


@dataclass(frozen=True)
class WorstTested:
    """The group with the lowest noised share of right predictions, and the deviation of that
    group's noise. Of several noised shares the lowest is, on average, below the worst group's own:
    the interval is of the lowest share there is, whichever group has it.
    """

    name: str
    value: float
    sd: float
    interval: tuple[float, float] | None = None

    @property
    def score(self) -> NoisedFigure:
        """The share with its interval; in documents of before, that of its noise."""
        return NoisedFigure(self.value, self.sd, *(self.interval or ()))


@dataclass(frozen=True)
class FindingTested:
    """One finding (dataset.labels: many).

    Attributes:
        name: of the class.
        accuracy: the share of all records that are told right.
        figures: by name; null where noise hides them.
        counts: of the records that lack it, then of those that have it, how many are told right and
            wrong.
        sd: of the noise in each count.
    """

    name: str
    accuracy: NoisedFigure | None
    figures: dict[str, NoisedFigure | None]
    counts: list[list[float]]
    sd: float

    @property
    def absent(self) -> float:
        """How many records lack it, noised."""
        return sum(self.counts[0])

    @property
    def present(self) -> float:
        """How many records have it, noised."""
        return sum(self.counts[1])


@dataclass(frozen=True)
class Confusion:
    """For each class a row: how many of its records were taken for each class, noised."""

    cells: list[list[float]]
    sd: float

    def row_or_hidden(self, place: int) -> list[float | None]:
        """A class's row; null where noise hides whether there are any."""
        return [cell if cell > 2 * self.sd else None for cell in self.cells[place]]


@dataclass(frozen=True)
class ReliabilityBin:
    """The predictions whose confidence lies in a bin.

    Attributes:
        lower, upper: ends of the bin.
        total: how many predictions there are, noised.
        confidence: their mean; null where noise hides how many there are.
        accuracy: the share of them that is right; null likewise.
    """

    lower: float
    upper: float
    total: float
    confidence: float | None
    accuracy: NoisedFigure | None


@dataclass(frozen=True)
class Perplexity:
    """How many words a language model wavers between, on average.

    Attributes:
        value: the exponential of `loss`.
        low, high: hold the value with probability 0.95 over the noise. Which records happened to be
            in the test part is not in that.
        loss: the mean over records of their losses in nats a token, each cut at `most`.
        loss_sd: the deviation of the noise in the loss.
        most: the log of how many words there are.
    """

    value: float
    low: float
    high: float
    loss: float
    loss_sd: float
    most: float


@dataclass(frozen=True)
class Headline:
    """The one figure that a model is known by, wherever it is shown.

    Attributes:
        name: what the figure is.
        figure: with its 95 % interval; null where noise hides it.
        style: a share, or a number.
        baseline: what is reached without a model, where the test says it.
        baseline_name: how that is reached.
        unit: of a number, where the config names one.
    """

    name: str
    figure: NoisedFigure | None
    style: Literal["percent", "number"]
    baseline: NoisedFigure | None = None
    baseline_name: str = ""
    unit: str = ""

    @property
    def value_text(self) -> str:
        """The figure alone."""
        if self.figure is None:
            return HIDDEN
        return figure_text(self.figure, self.style) + (f" {self.unit}" if self.unit else "")

    @property
    def interval_text(self) -> str:
        """Its interval, in words; nothing where there is no figure."""
        if self.figure is None:
            return ""
        low, high = ends_text(self.figure, self.style)
        alone = ", over noise alone" if self.name == PERPLEXITY else ""
        return f"95 % interval {low} to {high}{alone}"

    def __str__(self) -> str:
        """Name, figure and interval on one line."""
        interval = f" ({self.interval_text})" if self.figure else ""
        return f"{self.name} {self.value_text}{interval}"


PERPLEXITY = "perplexity"
FINDINGS_RIGHT = "known findings told right"
HIDDEN = "hidden by noise"
TOO_FEW = "too few records to say"
MOST_SPREAD = 0.1  # deviation of a share, above which it says nothing


def says_little(figure: NoisedFigure, style: str) -> bool:
    """Whether a share is so uncertain that its value would only mislead."""
    return style != "number" and figure.spread > MOST_SPREAD


def figure_text(figure: NoisedFigure, style: str) -> str:
    """A figure as a reader sees it, with as many digits as its interval allows."""
    if says_little(figure, style):
        return TOO_FEW
    if style == "percent":
        return percent(figure.value)
    return plain_number(figure.value, figure.spread or None)


def ends_text(figure: NoisedFigure, style: str) -> tuple[str, str]:
    """The ends of its interval likewise."""
    low, high = figure.interval
    if style == "percent":
        return percent(low), percent(high)
    return plain_number(low, figure.spread or None), plain_number(high, figure.spread or None)


def with_interval(figure: NoisedFigure | None, style: str = "percent") -> str:
    """A figure and its 95 % interval in brackets, `87.2% (85.9–88.5)`; words where noise hides
    it."""
    if figure is None:
        return HIDDEN
    (low, high), text = ends_text(figure, style), figure_text(figure, style)
    if low == high:  # an exact figure of all there is
        return text
    within = f"{low} to {high}" if low.startswith("-") else f"{low.strip('%')}–{high.strip('%')}"
    return f"{text} ({within})"


@dataclass(frozen=True)
class Tested:
    """The final model on a test: all that follows from its counts.

    - `accuracy`: the share that is right, with the deviation of its noise. Of groups that were
      counted apart, it and `total` are of those that were trained on; of other people, of all. Of
      findings that were counted apart, it is the share of known findings that are told right. There
      `correct` and `total` are counts over how many classes there are. `brier`: whether it is one
      less the mean squared error of probabilities.
    - `figures`: by the name that learn/measures/figures.py gives them; null where noise hides one.
      Of findings, each is the mean over them.
    - `classes`, `groups`, `findings`: each by itself, where it was counted apart. `worst`: of the
      groups, null where one of them cannot be told.
    - `confusion`: what each class was taken for. `reliability`: how often predictions of a
      confidence are right. `perplexity`: of a language model, whose `accuracy` is one less its loss
      as a share of the most. `range`: of the number that is predicted, whose `accuracy` is one less
      the mean squared error in units of the largest one that is counted, `largest`.
    - `unit`: of the number, where the config names one.
    - `accuracy_interval`: of the accuracy, at 95 % over noise and sampling.
    - `threshold`: the probability from which people act, where decisions were counted.
    """

    accuracy: float
    accuracy_sd: float
    correct: float
    total: float
    sd: float
    noised: bool
    figures: dict[str, NoisedFigure | None] = field(default_factory=dict)
    classes: tuple[ClassTested, ...] | None = None
    groups: tuple[GroupTested, ...] | None = None
    worst: WorstTested | None = None
    findings: tuple[FindingTested, ...] | None = None
    confusion: Confusion | None = None
    reliability: tuple[ReliabilityBin, ...] | None = None
    perplexity: Perplexity | None = None
    brier: bool = False
    range: tuple[float, float] | None = None
    largest: float | None = None
    unit: str = ""
    accuracy_interval: tuple[float, float] | None = None
    threshold: float | None = None

    @property
    def spread(self) -> float:
        """The accuracy's standard deviation, over noise and sampling."""
        return sampling_spread(self.accuracy, self.accuracy_sd, self.total)

    @property
    def score(self) -> NoisedFigure:
        """The accuracy with its interval; in documents of before, that of its deviation."""
        return _with_interval(self.accuracy, self.accuracy_sd, self.spread, self.accuracy_interval)

    @property
    def headline(self) -> Headline:
        """The one figure that it is known by."""
        if self.perplexity is not None:
            one = self.perplexity
            loss = NoisedFigure(one.value, one.value * one.loss_sd, one.low, one.high)
            return Headline(PERPLEXITY, loss, "number")
        if self.range is not None:
            mean = self.figures.get("rmse_of_mean")
            words = "always saying the mean" if mean else ""
            return Headline("RMSE", self.figures.get("rmse"), "number", mean, words, self.unit)
        name = score_name(self.brier, perplexity=False)
        if self.findings is not None and not self.brier:
            name = FINDINGS_RIGHT
        words = "always saying absent" if self.findings else "always naming the largest class"
        return Headline(name, self.score, "percent", self.majority, words if self.majority else "")

    @property
    def spread_is_over(self) -> str:
        """What the spread of the accuracy is over, in words."""
        return spread_words(self.noised)

    @property
    def majority(self) -> NoisedFigure | None:
        """The share that naming the most frequent class would get right, where records were counted
        by class; of findings, saying that all are absent."""
        if self.findings:
            counts = [one.absent for one in self.findings], [one.present for one in self.findings]
            absent, known = sum(counts[0]), sum(map(sum, counts))
            noise = 2.0 * math.hypot(*(one.sd for one in self.findings)) / known if known > 0 else 0
            return NoisedFigure(absent / known, noise) if known > 0 else None
        if not self.classes:
            return None
        most = max(one.correct + one.wrong for one in self.classes) / self.total
        return NoisedFigure(
            most, sampling_spread(most, math.sqrt(2) * self.classes[0].sd / self.total, self.total)
        )
