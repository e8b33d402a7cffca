"""What the page says of the models themselves: facts in words, warnings, and how to use them. From
the config, the statement and releases alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from dpladder.learn.measures.figures import OVERCONFIDENCE, R2
from dpladder.learn.measures.tested import Tested, ends_text, figure_text
from dpladder.privacy.accounting.rounding import NoisedFigure, percent
from dpladder.privacy.statement.documents import SealedStatement
from dpladder.report.summary import FinalFound, Summary
from dpladder.report.tables import short_number

Fact = tuple[str, str]
WARNING_SDS = 2.0  # deviations
PARTED = 0.05  # of confidence from accuracy, that is worth a warning
MOST_HEADLINES = 4  # results on a first look
UNSAID = "not said: fill in the section deployment of the config"
UNCOUNTED = (
    "not released; dataset.majority declares what is known of it, and evaluate.measures: classes "
    "counts it at the price of the test count"
)


def facts(summary: Summary, about: Mapping[str, str], statement: SealedStatement) -> Sequence[Fact]:
    """What somebody asks who was never told of an experiment's models. First come the config's
    facts, then what needs no model and how often that is right. Last come the statement's date and
    what the models may be used for.

    Args:
        summary: the experiment's. Of it, the first total's test is read.
        about: facts from the config, which come first.
        statement: for its date and its deployment.
    """
    majority = most_frequent(summary.targets[0].test, summary.majority) if summary.targets else None
    chance = summary.classes and f"{percent(1 / summary.classes)}, one class of {summary.classes}"
    share = UNCOUNTED
    if majority is not None:
        spread = f"± {percent(majority.sd)}" if majority.sd else "as the config declares"
        share = f"{percent(majority.value)} {spread}"
    needs_none = "always saying absent" if summary.findings else "always the largest class"
    compared = [("guessing at random", chance), (needs_none, share)]
    return [
        *about.items(),
        *(
            [(name, words) for name, words in compared if words]
            if chance or summary.findings
            else []
        ),
        ("stated on", statement.origin.date),
        ("may be used for", str((statement.deployment or {}).get("use", UNSAID))),
    ]


def results(summaries: Sequence[Summary]) -> Sequence[Fact]:
    """What each experiment's final model of the largest total reaches, and what that figure is;
    nothing where there are too many for a first look.

    Args:
        summaries: of all experiments. Those without a final model are left out.

    Returns:
        Pairs of a figure and what it is; none where more than `MOST_HEADLINES` experiments have
        one.
    """
    trained = [one for one in summaries if one.targets]
    return [_result(one) for one in trained] if len(trained) <= MOST_HEADLINES else []


def _result(summary: Summary) -> Fact:
    """The headline of one experiment: a figure, and in words what it is of and what it is
    beside."""
    target = max(summary.targets, key=lambda one: one.target_epsilon)
    whose = f"of the final model of {summary.experiment}, at a total of ε = {target.total}"
    test, headline = target.test, target.test.headline
    words = [f"{headline.name} {whose}"]
    if headline.figure is not None:
        over = "noise alone" if test.perplexity else test.spread_is_over
        words.append(f"{headline.interval_text}, over {over}")
    words += [*_beside(test)]
    return headline.value_text, "; ".join(words)


def _beside(test: Tested) -> Iterator[str]:
    """What a headline has to be read with: what needs no model, and what its errors are cut to."""
    headline = test.headline
    if test.range is not None:
        least, largest = map(short_number, test.range)
        cut = "" if test.largest is None else short_number(test.largest)
        yield f"of a number from {least} to {largest}" + (
            f", where an error above {cut} counts as {cut}" if cut else ""
        )
        r2 = test.figures.get(R2.name)
        if r2 is not None:
            low, high = ends_text(r2, "number")
            yield f"R² {figure_text(r2, 'number')} ({low} to {high})"
    if headline.baseline is not None:
        rival = figure_text(headline.baseline, headline.style)
        yield f"{headline.baseline_name} reaches {rival}"


def commands(summary: Summary, artifact: str) -> Sequence[str]:
    """How to use a final model, and how to check what is said of it.

    Args:
        summary: the experiment's, with one target at least; a language model writes, others
            predict.
        artifact: the model's path below the working directory, as the statement names it.

    Returns:
        Lines for a shell, in the order in which somebody would try them.
    """
    use = (
        f'dpladder generate {artifact} "To be,"'
        if summary.targets[0].test.perplexity
        else f"dpladder predict {artifact} NEW_DATA --output predictions.csv"
    )
    return [use, f"dpladder export {artifact} FOLDER", "dpladder verify results"]


def warnings(summary: Summary) -> Iterator[str]:
    """A model that is no better than what needs no model, or surer than it is right, in words.

    They follow from noised counts and what the config declares, so they are post-processing
    (contract: no-tell).

    Args:
        summary: the experiment's, whose `warnings` these become (jobs/summarise.py).

    Yields:
        A text for each model and each thing that is wrong with it.
    """
    for target in summary.targets:
        yield from _too_sure(summary, target)
        rival = baseline_as_good(target.test, summary.classes, summary.majority)
        if rival is not None:
            name, share = rival
            low, high = ends_text(target.test.score, "percent")
            yield (
                f"The final model of {summary.experiment} at a total of ε = {target.total} is not "
                f"clearly better than {name}: {percent(target.test.accuracy)} of its predictions "
                f"are right (95 % interval {low} to {high}), and {percent(share)} would be without "
                "a model."
            )


def _too_sure(summary: Summary, target: FinalFound) -> Iterator[str]:
    """Where confidence and accuracy part, beyond what noise and sampling explain."""
    apart = target.test.figures.get(OVERCONFIDENCE.name)
    if apart is None:
        return
    low, high = apart.interval
    if abs(apart.value) <= PARTED or low <= 0.0 <= high:
        return
    yield (
        f"The final model of {summary.experiment} at a total of ε = {target.total} is "
        f"{'surer' if apart.value > 0 else 'less sure'} than it is right: its mean confidence is "
        f"{percent(abs(apart.value))} {'above' if apart.value > 0 else 'below'} the share that is "
        "right. Do not take its probabilities at their word."
    )


def baseline_as_good(
    test: Tested, classes: int | None, declared: float | None
) -> tuple[str, float] | None:
    """What needs no model and does about as well, by two deviations of the noise of both.

    Args:
        test: of the final model. Perplexity, Brier scores and errors of numbers have no such rival.
        classes: how many there are; None where a record has none.
        declared: the largest class's share by `dataset.majority`, where no test counted it.

    Returns:
        Its name and the share that it gets right; None where the model is clearly better.
    """
    if test.perplexity is not None or test.brier or test.range is not None:
        return None
    rivals = {"guessing at random": (1 / classes, 0.0)} if classes else {}
    if (baseline := most_frequent(test, declared)) is not None:
        name = "always saying absent" if test.findings else "always naming the largest class"
        rivals[name] = (baseline.value, baseline.sd)
    for rival, (share, sd) in rivals.items():
        if test.accuracy - share < WARNING_SDS * math.hypot(test.spread, sd):
            return rival, share
    return None


def most_frequent(test: Tested, declared: float | None) -> NoisedFigure | None:
    """The largest class's share as it was counted, with noise, or else as it was declared.

    Args:
        test: of the final model. It counted the share only where records were counted by class or
            by finding.
        declared: by `dataset.majority`, which has no noise.

    Returns:
        None where neither says it.
    """
    return test.majority or (None if declared is None else NoisedFigure(declared, 0.0))


def largest(majority: float | None, rare: float | None, classes: int | None) -> float | None:
    """The largest class's share by declaration; of two classes the rarer one's says it too.

    Args:
        majority: `dataset.majority`.
        rare: the rarer class's share.
        classes: of how many; None where a record has none.
    """
    return 1.0 - rare if majority is None and rare is not None and classes == 2 else majority
