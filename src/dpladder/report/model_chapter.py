"""What the page says of the models themselves: facts in words, warnings, and how to use them. From
the config, the statement and releases alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from dpladder.privacy.accounting.shown import Shown
from dpladder.privacy.statement.documents import SealedStatement
from dpladder.report.reading import percent, plain
from dpladder.report.summary import FinalFound, Summary

Fact = tuple[str, str]
SURE = 2.0  # deviations
MOST = 4  # results on a first look
UNSAID = "not said: fill in the section deployment of the config"
UNCOUNTED = (
    "not released; dataset.majority declares what is known of it, and evaluate.measures: classes "
    "counts it at the price of the test count"
)


def facts(summary: Summary, about: Mapping[str, str], statement: SealedStatement) -> Sequence[Fact]:
    """What somebody asks who was never told of an experiment's models."""
    majority = _majority(summary, summary.targets[0]) if summary.targets else None
    chance = summary.classes and f"{percent(1 / summary.classes)}, one class of {summary.classes}"
    share = UNCOUNTED
    if majority is not None:
        spread = f"± {percent(majority.sd)}" if majority.sd else "as the config declares"
        share = f"{percent(majority.value)} {spread}"
    compared = [("guessing at random", chance), ("always the largest class", share)]
    return [
        *about.items(),
        *([(name, words) for name, words in compared if words] if chance else []),
        ("stated on", statement.origin.date),
        ("may be used for", str((statement.deployment or {}).get("use", UNSAID))),
    ]


def results(summaries: Sequence[Summary]) -> Sequence[Fact]:
    """What each experiment's final model of the largest total reaches, and what that figure is;
    nothing where there are too many for a first look."""
    trained = [one for one in summaries if one.targets]
    return [_result(one) for one in trained] if len(trained) <= MOST else []


def _result(summary: Summary) -> Fact:
    target = max(summary.targets, key=lambda one: one.target_epsilon)
    whose = f"of the final model of {summary.experiment}, at a total of ε = {target.total}"
    test = target.test
    if test.perplexity is not None:
        return plain(test.perplexity.value), f"perplexity {whose}"
    figure = f"{percent(test.accuracy)} ± {percent(test.spread)}"
    return figure, (
        f"{summary.counted('test accuracy')} {whose}; ± is one standard deviation, of noise and "
        "sampling"
    )


def commands(summary: Summary, artifact: str) -> Sequence[str]:
    """How to use a final model, and how to check what is said of it."""
    use = (
        f'dpladder generate {artifact} "To be,"'
        if summary.targets[0].test.perplexity
        else f"dpladder predict {artifact} NEW_DATA --output predictions.csv"
    )
    return [use, f"dpladder export {artifact} FOLDER", "dpladder verify results"]


def warnings(summary: Summary) -> Iterator[str]:
    """A model that is no better than what needs no model, in words."""
    for target in summary.targets:
        test = target.test
        if test.perplexity is not None:
            continue
        rivals = {"guessing at random": (1 / summary.classes, 0.0)} if summary.classes else {}
        if (found := _majority(summary, target)) is not None:
            rivals["always naming the largest class"] = (found.value, found.sd)
        for rival, (share, sd) in rivals.items():
            if test.accuracy - share < SURE * math.hypot(test.spread, sd):
                yield _told(summary.experiment, target, rival, share)
                break


def _majority(summary: Summary, target: FinalFound) -> Shown | None:
    """The largest class's share as it was counted, with noise, or else as it was declared."""
    declared = None if summary.majority is None else Shown(summary.majority, 0.0)
    return target.test.majority or declared


def _told(experiment: str, target: FinalFound, rival: str, share: float) -> str:
    return (
        f"The final model of {experiment} at a total of ε = {target.total} is not clearly better "
        f"than {rival}: {percent(target.test.accuracy)} ± {percent(target.test.spread)} of its "
        f"predictions are right, and {percent(share)} would be without a model."
    )
