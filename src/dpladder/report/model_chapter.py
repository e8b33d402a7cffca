"""What the page says in words: the sentence that each chapter opens with, results, warnings and
how to use models. From the config, the statement and releases alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from dpladder.learn.effects import ODDS, Effect
from dpladder.learn.measures.figures import OVERCONFIDENCE, R2
from dpladder.learn.measures.tested import FINDINGS_RIGHT, Tested, ends_text, figure_text
from dpladder.privacy.accounting.rounding import NoisedFigure, percent, round_up, round_up_short
from dpladder.privacy.statement.documents import SealedStatement
from dpladder.privacy.statement.facts import FALSE_ALARMS_PERCENT, LineageFacts
from dpladder.report.summary import FinalFound, Summary
from dpladder.report.tables import short_number

Fact = tuple[str, str]
WARNING_SDS = 2.0  # deviations
PARTED = 0.05  # of confidence from accuracy, that is worth a warning
MOST_HEADLINES = 4  # results on a first look
UNSAID = "What it may be used for is not said: fill in the section deployment of the config."


def promise(lineage: LineageFacts) -> Sequence[Fact]:
    """What an officer asks of a lineage, in figures; nothing in research."""
    stated = lineage.stated
    if lineage.statement.mode == "research":
        return []
    limit = stated.lifetime_epsilon
    figures = {
        "limit for life": limit and f"ε = {round_up_short(limit)}",
        "spent so far": f"ε = {round_up(stated.lifetime_spent)}",
        "would still fit: squares of μ add up, ε do not": lineage.epsilon_left
        and f"ε = {lineage.epsilon_left}",
        "who is protected": lineage.protected,
        f"found by an attacker who wrongly accuses {FALSE_ALARMS_PERCENT} % of others": (
            lineage.detectable
            and f"{lineage.detectable} at most".replace(" %", "\N{NO-BREAK SPACE}%")
        ),
    }
    return [(name, words) for name, words in figures.items() if words]


def lead_of_columns(summaries: Sequence[Summary]) -> Iterator[str]:
    """Which column of a table moves predictions most, of each experiment that tells it."""
    for summary in summaries:
        effects = summary.largest.effects if summary.targets else None
        if effects and effects.each:
            first = effects.each[0]
            values = max(first.values, key=lambda one: max(one) - min(one))
            name, _, way = course(first, values).partition(": ")
            unit = effects.unit
            if (len(effects.of), unit) == (1, ODDS):
                unit += f" of {effects.of[0]}, where 1 more is 2.7 times the odds"
            alone = sum(len(one.columns) == 1 for one in effects.each)
            crosses = " and their crosses" if alone < len(effects.each) else ""
            yield (
                f"Of {alone} columns{crosses} {name} moves predictions of {summary.experiment} "
                f"most: {way}, in {unit}."
            )


def course(effect: Effect, values: Sequence[float]) -> str:
    """Where a column's term is lowest and where highest."""
    places = [*product(*effect.at)]
    ends = [
        f"{short_number(value)} at {' and '.join(map(place_text, places[values.index(value)]))}"
        for value in (min(values), max(values))
    ]
    return f"{' x '.join(effect.columns)}: from {' to '.join(ends)}"


def place_text(at: float | str) -> str:
    """A number or a level of a column."""
    return at if isinstance(at, str) else short_number(at)


def lead_of_search(statement: SealedStatement, summaries: Sequence[Summary]) -> str:
    """How the final models' step sizes were found, and what share of a budget that took."""
    trials = sum(len(rung.trials) for one in summaries for rung in one.rungs)
    shares = [
        target.search_share or 0.0 for one in summaries for target in one.targets if one.rungs
    ]
    lines = [line for dataset in statement.datasets.values() for line in dataset.spends]
    if trials:
        rungs = sum(len(one.rungs) for one in summaries)
        return (
            f"{trials} private trials on {rungs} rung{'s' * (rungs > 1)} looked for how far to "
            f"step. All that came before a final training took {percent(max(shares))} of its "
            "budget at most."
        )
    if any(line.rule == "private_search" for line in lines):
        return "A private search trained and chose the final model in one."
    return "No trial read private data: how to train follows from the config and public figures."


def lead_of_charges(lineages: Sequence[LineageFacts]) -> Iterator[str]:
    """How many charges there were, and what everything composes to."""
    for one in lineages:
        yield (
            f"{len(one.stated.spends)} charges on {one.name} were paid here. All that was ever "
            f"released of it composes to ε = {round_up(one.stated.lifetime_spent)}."
        )


def purpose(statement: SealedStatement) -> str:
    """What the models may be used for, as the config says."""
    use = (statement.deployment or {}).get("use")
    return f"Meant for: {use}." if use else UNSAID


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


def lead_of_many(summaries: Sequence[Summary]) -> Iterator[str]:
    """What there is to compare, where `results` has too much to say."""
    models = [target for one in summaries for target in one.targets]
    if models and not results(summaries):
        names = len({one.experiment for one in summaries if one.targets})
        yield f"{len(models)} final models of {names} experiments, each a row of the table below."


def _result(summary: Summary) -> Fact:
    """The headline of one experiment: a figure, and in words what it is of and what it is
    beside."""
    target = summary.largest
    test, headline = target.test, target.test.headline
    whose = f"the final model of {summary.experiment}, at a total of ε = {target.total}"
    words = [f"{headline.name} {'by' if headline.name == FINDINGS_RIGHT else 'of'} {whose}"]
    if headline.figure is not None:
        over = "" if test.perplexity else f", over {test.spread_is_over}"
        words.append(headline.interval_text + over)
    words += [*_beside(summary, test)]
    return headline.value_text, "; ".join(words)


def _beside(summary: Summary, test: Tested) -> Iterator[str]:
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
            low, high = ends_text(r2, R2.style)
            yield f"R² {figure_text(r2, R2.style)} ({low} to {high})"
    if headline.baseline is not None:
        name = f"{headline.baseline_name} reaches"
        yield str(replace(headline, name=name, figure=headline.baseline))
    elif (share := summary.baseline(test)) is not None:
        yield (
            f"guessing reaches {percent(share)}, naming the largest class was not measured "
            "(evaluate.measures: classes)"
            if summary.majority is None
            else f"always naming the largest class reaches {percent(share)}"
        )
    if summary.open and test.perplexity is None and test.range is None:
        yield f"the same learner without noise reaches {percent(summary.open.test.accuracy)}"


def commands(summary: Summary, artifact: str) -> Sequence[str]:
    """How to use a final model.

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
    explain = f"dpladder predict {artifact} NEW_DATA --explain"
    more = [explain] if summary.largest.effects is not None else []
    return [use, *more, f"dpladder export {artifact} FOLDER"]


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
    baseline = test.majority or (None if declared is None else NoisedFigure(declared, 0.0))
    if baseline is not None:
        name = "always saying absent" if test.findings else "always naming the largest class"
        rivals[name] = (baseline.value, baseline.sd)
    for rival, (share, sd) in rivals.items():
        if test.accuracy - share < WARNING_SDS * math.hypot(test.spread, sd):
            return rival, share
    return None


def largest(majority: float | None, rare: float | None, classes: int | None) -> float | None:
    """The largest class's share by declaration; of two classes the rarer one's says it too.

    Args:
        majority: `dataset.majority`.
        rare: the rarer class's share.
        classes: of how many; None where a record has none.
    """
    return 1.0 - rare if majority is None and rare is not None and classes == 2 else majority
