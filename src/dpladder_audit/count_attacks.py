"""How counts of right answers are attacked, whatever a model says of a record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import get_args

import numpy as np

from dpladder.config.dataset_sections import NumberTarget
from dpladder.config.label_sets import (
    ABSENT,
    MANY,
    NUMBER,
    PRESENT,
    TARGET_STEPS,
    UNKNOWN,
    Labels,
    number_of_findings,
)
from dpladder.learn import counts, score
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.learn.measures.calibrate import Margins
from dpladder.learn.measures.tables import (
    NOTHING,
    AbsoluteErrors,
    MeasuredModel,
    RightAndWrong,
    Sizes,
    Squares,
    one_cell_each,
)
from dpladder.learn.queries import Cells, declared
from dpladder.learn.scorers import (
    ClassScorer,
    FindingScorer,
    LossScorer,
    NumberScorer,
    Scorer,
)
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.events import Composed, Relation
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release.meter import Meter
from dpladder_audit.engine.mechanism import Mechanism, neighbours
from dpladder_audit.engine.records import CLASSES, N0, Record, data_of

MU = 2.0  # of each count by itself


def attacks_on_counts() -> Iterator[Mechanism]:
    """Every way in which records are counted: right and wrong, losses, shares of
    findings, errors of numbers, and margins. All but the first run under both relations."""
    yield right_and_wrong()
    for relation in get_args(Relation):
        for each in (clipped_losses, shares_of_findings, errors_of_numbers):
            yield each(relation)
        yield from (margins(relation, labels) for labels in (1, MANY))


def counts_at(mu: float) -> Cells:
    """Right and wrong, two cells that share noise for this mu."""
    return Cells(name="counts", multiplier=gdp.sigma(mu, 1), cells=(2,))


def right_and_wrong() -> Mechanism:
    """The two counts of an evaluation. A unit is in one of them; replaced, it may go from one to
    the other."""
    constants = Constants(N0, CLASSES, 1, "replace_one")
    costs = declared([counts_at(MU)], constants)

    def run(data: Sequence[int], meter: Meter) -> Floats:
        answers = np.array(data, np.int64)  # right, wrong, or of no label
        places = one_cell_each(np.where(answers < 2, answers, -1))
        question = counts_at(MU).at(lambda _: places)
        return counts.ask(question, data_of([]), constants, meter)

    pairs = neighbours((0, 1, 1), (2, 0, 1), "replace_one")
    return Mechanism(
        name="right and wrong",
        event=Composed(costs.events),
        draws=costs.draws,
        scale=costs.draws[0].scale,
        run=run,
        neighbours=pairs,
        relation="replace_one",
        tight=True,
    )


def shares_of_findings(relation: Relation) -> Mechanism:
    """A score of findings, and its two sums of an evaluation, on units of two records, whose logits
    may be anything."""
    constants = Constants(N0, 1, 1, relation, cap=2, labels=MANY)
    scorer, weights = FindingScorer(lambda _, features: features), (np.zeros((2, 1), np.float32),)
    costs = declared([score.count_at(MU), counts_at(MU)], constants)
    alone, sums = costs.draws

    def run(units: Sequence[tuple[Record, Record]], meter: Meter) -> Floats:
        data = data_of([record for unit in units for record in unit], width=2)
        data = replace(data, features=np.asarray(data.features, np.float64))
        return _scored(MeasuredModel(weights, scorer, constants, ()), data, meter) / [
            *(sums.scale,) * 2,
            alone.scale,
        ]

    known = [number_of_findings(states) for states in ((PRESENT, ABSENT), (UNKNOWN, PRESENT))]
    logits = ((1e9, -1e9), (-1e9, 1e9), (math.inf, math.nan), (0.0, 1.0))
    units = [((logit, number),) * 2 for logit in logits for number in (*known, -1)]
    return Mechanism(
        name=f"shares of findings {relation}",
        event=Composed(costs.events),
        draws=costs.draws,
        scale=1.0,
        run=run,
        neighbours=neighbours(((((0.0, 0.0), known[0]),) * 2,), units, relation),
        relation=relation,
    )


def margins(relation: Relation, labels: Labels) -> Mechanism:
    """The histogram of margins that a final model is calibrated by, on units of two records. The
    model may say anything of a record, and its label may be none."""
    constants = Constants(N0, 2, 2, relation, cap=2, labels=labels)
    scorer = FindingScorer(lambda _, x: x) if labels == MANY else ClassScorer(lambda _, x: x)
    model = MeasuredModel((np.zeros((2, 2), np.float32),), scorer, constants, ())
    query = Margins().query(model, MU)
    costs = declared([query], constants)
    scale = query.scale(constants)

    def run(units: Sequence[tuple[Record, Record]], meter: Meter) -> Floats:
        data = data_of([record for unit in units for record in unit], width=2)
        data = replace(data, features=np.asarray(data.features, np.float64))
        answer = counts.ask(Margins().question(model, MU), data, constants, meter)
        return np.ravel(answer) / scale

    said = ((0.0, 9.0), (9.0, 0.0), (0.0, 0.7), (math.inf, math.nan), (-1e300, 1e300))
    units = [((logits, label),) * 2 for logits in said for label in (-1, 0, 1, 3)]
    return Mechanism(
        name=f"margins {labels} {relation}",
        event=Composed(costs.events),
        draws=costs.draws,
        scale=1.0,
        run=run,
        neighbours=neighbours(((((0.0, 0.0), -1),) * 2,), units, relation),
        relation=relation,
    )


SAID = (-1.0, 0.0, math.inf, math.nan)  # of a number, from -1 to 1, and what no model should say


def errors_of_numbers(relation: Relation) -> Mechanism:
    """A score of numbers, and the tables of an evaluation, on units of two records. The model may
    say anything of a record, whose number lies anywhere in the range or is none."""
    constants = Constants(N0, 1, 1, relation, cap=2, labels=NUMBER)
    weights, target = (np.ones((1, 1), np.float32),), NumberTarget(range=(0.0, 1.0))
    model = MeasuredModel(weights, NumberScorer(), constants, (), target=target, error=0.5)
    # what the last ones ask follows from the look, whatever that says: here from a declared error
    bought = (Sizes(), RightAndWrong(), AbsoluteErrors(), Squares())
    queries = [score.count_at(MU), *(table.query(model, MU) for table in bought)]
    costs = declared(queries, constants)
    scales = [query.scale(constants) for query in queries]

    def run(units: Sequence[tuple[Record, Record]], meter: Meter) -> Floats:
        data = data_of([record for unit in units for record in unit], width=1)
        data = replace(data, features=np.asarray(data.features, np.float64))
        questions = [queries[0].at(model.weights, model.scorer)]
        questions += [table.question(model, MU) for table in bought]
        answers = (counts.ask(question, data, constants, meter) for question in questions)
        return np.concatenate(
            [np.ravel(answer) / scale for answer, scale in zip(answers, scales, strict=True)]
        )

    numbers = (0, TARGET_STEPS // 2, TARGET_STEPS)
    known = [((said,), number) for said in SAID for number in numbers]
    units = [(record,) * 2 for record in (*known, ((0.0,), -1), ((0.0,), TARGET_STEPS + 1))]
    return Mechanism(
        name=f"errors of numbers {relation}",
        event=Composed(costs.events),
        draws=costs.draws,
        scale=1.0,
        run=run,
        neighbours=neighbours(((((0.0,), -1),) * 2,), units, relation),
        relation=relation,
    )


def _scored(model: MeasuredModel, data: Data, meter: Meter) -> Floats:
    """Right and wrong as an evaluation releases them, and a trial's score: three numbers, the score
    last."""
    alone = score.count_at(MU).at(model.weights, model.scorer)
    sums = counts_at(MU).at(lambda data: RightAndWrong().places(model, data, NOTHING))
    released = [counts.ask(one, data, model.constants, meter) for one in (sums, alone)]
    return np.append(*released)


# at, below and above the bound, and what no loss should be: a model that ran away gives these
LOSSES = (-1e9, 0.0, 0.5, 1.0, 7.0, 1e300, math.inf, -math.inf, math.nan)


def clipped_losses(relation: Relation) -> Mechanism:
    """A language model's summed losses. Each record's loss, which may be anything, is clipped by
    itself."""
    scorer = LossScorer(lambda _, features: features[:, 0], 1.0)
    return _of_no_class(f"clipped losses {relation}", scorer, relation)


def _of_no_class(name: str, scorer: Scorer, relation: Relation) -> Mechanism:
    """A score of a model that names no class, and its two sums of an evaluation, on units of two
    records. Replaced, a unit may go from one of the sums to the other."""
    constants = Constants(N0, 1, 1, relation, cap=2)
    weights = (np.zeros((1, 1), np.float32),)
    costs = declared([score.count_at(MU), counts_at(MU)], constants)
    alone, sums = costs.draws

    def run(units: Sequence[tuple[float, ...]], meter: Meter) -> Floats:
        losses = np.array([loss for unit in units for loss in unit], np.float64)[:, None]
        labels = np.zeros(len(losses), np.int64)
        model = MeasuredModel(weights, scorer, constants, ())
        return _scored(model, Data(losses, labels), meter) / [
            *(sums.scale,) * 2,
            alone.scale,
        ]

    # So many known records that neither sum comes near zero.
    units = [(loss, other) for loss in LOSSES for other in (0.0, 1.0)]
    return Mechanism(
        name=name,
        event=Composed(costs.events),
        draws=costs.draws,
        scale=1.0,
        run=run,
        neighbours=neighbours(((0.5, 0.5),), units, relation),
        relation=relation,
    )
