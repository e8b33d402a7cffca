"""What one experiment found, in one file: the ladder, the fit, the final models, what they cost.

Nothing private is opened: the inputs are releases, the statement and the plan. So anything may be
computed here, and it is free (post-processing; docs/design.md, "Words").
"""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from dpladder.config.label_sets import MANY
from dpladder.config.learners import Learner
from dpladder.config.records import ALSO, FurtherTest
from dpladder.config.sweep_sections import Search
from dpladder.jobs.record import write_record
from dpladder.jobs.task import Task, read_json, write_json
from dpladder.learn import weights
from dpladder.learn.effects import effects_of
from dpladder.learn.interface import Weights
from dpladder.learn.measures.tables import figures_of_counts
from dpladder.learn.measures.tested import Tested
from dpladder.plan.reads import Summarise
from dpladder.privacy.accounting import gdp
from dpladder.privacy.statement.build import figure_of, lines_of_model
from dpladder.privacy.statement.documents import FINALS, SealedStatement, Stated, StatedModel
from dpladder.report.model_chapter import largest, warnings
from dpladder.report.summary import (
    AlsoTested,
    Best,
    FinalFound,
    FitFound,
    OpenCounts,
    OpenFound,
    RungFound,
    Summary,
    TrialFound,
    read_test,
)
from dpladder.report.tables import summary_table, write_table
from dpladder.search.space import bounds, hyper_of
from dpladder.search.sweep_value import ceiling
from dpladder.search.training import choice_as_text, learner_of_trial
from dpladder.section import from_document

SCORE_SDS = 4.0  # deviations of a score's noise


def summarise(task: Task[Summarise]) -> None:
    """Write an experiment's results as one document, from releases and the plan alone; the report
    draws and quotes nothing else.

    All lists of final models are in the order of the totals, as the statement has them.
    """
    reads, search = task.reads, task.reads.search
    rungs = tuple(
        RungFound(
            rung["trials"][0]["epsilon"],
            rung["trials"][0]["mu"],
            tuple(_trial(one, reads.learner, search) for one in rung["trials"]),
            Best(rung["best"]["trial"], rung["best"]["r"]),
        )
        for rung in map(read_json, task.input["rungs"])
    )
    learner = reads.learner
    targets, classes = _targets(task), _classes(task)
    # The smallest and largest r that was searched. In kappa it moves with mu: over all trainings.
    ratios = [one.r / one.kappa for rung in rungs for one in rung.trials if one.kappa]
    ratios += [one.r_star / one.kappa_star for one in targets if one.r_star and one.kappa_star]
    in_kappa = search.unit == "kappa" and ratios
    kappa = search.kappa
    summary = Summary(
        experiment=task.experiment,
        mode=reads.mode,
        lineage=reads.lineage,
        relation=reads.privacy.relation,
        delta=reads.privacy.delta,
        nominal_size=reads.nominal_size,
        learner=learner.name,
        searches=learner.searches,
        sampling_rate=learner.sampling,
        unit=search.unit,
        rungs=rungs,
        targets=targets,
        r_range=(kappa[0] * min(ratios), kappa[1] * max(ratios)) if in_kappa else bounds(search),
        classes=classes,
        findings=reads.labels == MANY,
        majority=largest(reads.majority, reads.rare, classes),
        open=_open_result(task.input["open"]) if task.input["open"] else None,
    )
    summary = replace(summary, warnings=tuple(warnings(summary)))
    write_json(task.output["summary"], asdict(summary))
    write_table(summary_table(summary), task.output["table"])
    write_record(task, free="computed from releases alone")


def _classes(task: Task[Summarise]) -> int | None:
    """How many the first final model tells apart, one for each record.

    None where the task is no classification, or a record may have several classes.
    """
    model, facts = weights.load(Path(task.input["finals"][0]))
    is_classification = facts.get("inference", {}).get("task", "classification") == "classification"
    return len(model[-1]) if is_classification and task.reads.labels == 1 else None


def distance(learner: Learner, weights: Weights) -> float | None:
    """The distance of a descent's released weights from their start: free, for it follows from them
    alone.

    Args:
        learner: that trained them. It must start at a public point; else None is returned.
        weights: one array for each layer; all zero is the start.

    Returns:
        The L2 norm over all layers.
    """
    if not learner.starts_at_public_point:
        return None
    return math.sqrt(
        math.fsum(float(np.square(layer, dtype=np.float64).sum()) for layer in weights)
    )


def _warn_if_too_accurate(
    test: Tested, stated: StatedModel, reads: Summarise, classes: int
) -> str | None:
    """What to ask where a score is better than its mu allows.

    Only a hint for people: `ceiling` is of balanced classes, so a frequent class may exceed it
    rightly.
    """
    if test.perplexity is not None or not isinstance(reads.labels, int):  # of how many classes?
        return None
    mu = stated.mu or gdp.mu_from_epsilon(stated.epsilon, reads.privacy.delta)
    most = ceiling(mu, reads.nominal_size, classes, reads.labels)
    if test.accuracy - SCORE_SDS * test.accuracy_sd <= most:
        return None
    text = f"{classes}" if reads.labels == 1 else f"up to {reads.labels} of {classes}"
    return (
        f"Test accuracy is above {most:.1%}, the most that mu = {mu:.3g} allows on unseen records "
        f"of {text} balanced classes. Are there copies of training records in the test, is one "
        "class most of it, or did something else leak?"
    )


def _trial(trial: dict[str, Any], learner: Learner, search: Search) -> TrialFound:
    """A trial with the choice that its r stands for, of the learner that this trial's number
    trains."""
    learner_of_trial_ = learner_of_trial(learner, trial["trial"])
    choice = choice_as_text(learner_of_trial_, hyper_of(learner, search, trial["r"], trial["mu"]))
    facts = {key: trial[key] for key in ("trial", "r", "score", "counted")}
    kappa = _kappa_or_none(search, trial["kappa"])
    return TrialFound(**facts, **choice, kappa=kappa, score_sd=trial["sd"])


def _kappa_or_none(search: Search, place: float | None) -> float | None:
    """A place of the search as a kappa; nothing where the search was in r, and places are r."""
    return place if search.unit == "kappa" else None


def _targets(task: Task[Summarise]) -> tuple[FinalFound, ...]:
    statement: SealedStatement = from_document(SealedStatement, read_json(task.input["statement"]))
    dataset = statement.datasets[task.reads.lineage]
    models = dataset.artifacts.values()
    models_here = [model for model in models if model.experiment == task.experiment]
    trained = [epsilon_of_training(model, dataset) for model in models_here]
    fits = [read_json(path) for path in task.input["fits"]] or [None] * len(models_here)
    totals = [model.target_epsilon for model in models_here]
    tests = {one.name: one for one in task.reads.further}
    # Snakemake lists them total by total
    of_further = dict(zip(product(totals, tests), task.input["also"], strict=True))
    also = [
        tuple(_further_test_result(one, of_further[total, name]) for name, one in tests.items())
        for total in totals
    ]
    files = zip(
        models_here, trained, fits, task.input["finals"], task.input["metrics"], also, strict=True
    )
    targets = tuple(_target(task.reads, *target_files) for target_files in files)
    # a student is tested on a public source alone; else its file holds null
    tested = [read_json(path) and read_test(path) for path in task.input["students"]]
    students = tested or [None] * len(models_here)
    return tuple(
        replace(target, student=student) for target, student in zip(targets, students, strict=True)
    )


def _open_result(metrics: str) -> OpenFound:
    """The model that was trained without noise, by exact counts: research has it alone."""
    open_counts: OpenCounts = from_document(OpenCounts, read_json(metrics))
    also = {name: figures_of_counts(counts) for name, counts in open_counts.also.items()}
    return OpenFound(open_counts.r, figures_of_counts(open_counts.test), also)


def _further_test_result(test: FurtherTest, metrics: str) -> AlsoTested:
    """A further test and what it measured. The test that it is `of`, its corruption and its
    severity are None where it has none."""
    how, is_same_part = test.corruption, test.records == test.part
    return AlsoTested(
        test.name,
        None if is_same_part else test.records.removeprefix(ALSO),
        None if how is None else how.kind,
        None if how is None else how.severity,
        read_test(metrics),
        test.groups or None,
    )


def epsilon_of_training(model: StatedModel, dataset: Stated) -> float:
    """What a final training costs by itself, as the statement booked it: a mu alone would leave out
    the delta of a training on samples, and the search of a model that one put out."""
    lines = [line for line in lines_of_model(model, dataset.spends) if line.rule in FINALS]
    return figure_of(lines, dataset.delta).epsilon


def _target(
    reads: Summarise,
    stated: StatedModel,
    trained: float,
    fit: dict[str, Any] | None,
    final: str,
    metrics: str,
    also: tuple[AlsoTested, ...],
) -> FinalFound:
    """One final model: what it cost, how it was trained, how good it is, and what may be wrong with
    it."""
    weights_found, facts = weights.load(Path(final))
    test = replace(read_test(metrics), unit=reads.target_unit or "")
    sums = effects_of(weights_found, facts)
    effects = None if sums is None else sums.effects()
    if effects and reads.target_unit:
        effects = replace(effects, unit=reads.target_unit)
    choice = {name: facts[name] for name in ("eta", "ridge", "alpha", "steps") if name in facts}
    return FinalFound(
        **choice,
        target_epsilon=stated.target_epsilon,
        stated=stated.stated,
        epsilon=stated.epsilon,
        mu=stated.mu,
        mu_final=facts["mu"],
        epsilon_final=trained,
        fit=None
        if fit is None
        else from_document(
            FitFound, fit | {"kappa_star": _kappa_or_none(reads.search, fit.get("kappa_star"))}
        ),
        r_star=facts.get("r"),
        kappa_star=_kappa_or_none(reads.search, facts.get("kappa")),
        sigma=facts["sigma"],
        test=test,
        suspect=_warn_if_too_accurate(test, stated, reads, len(weights_found[-1])),
        search_share=stated.search_share,
        distance=distance(reads.learner, weights_found) if reads.mode == "research" else None,
        also=also,
        headline=str(test.headline),
        effects=effects,
    )
