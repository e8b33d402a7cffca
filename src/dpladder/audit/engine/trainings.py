"""How learners are attacked: made-up records that tempt a clip, and a training on them as the
auditor sees it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from dpladder.audit.engine.built_in import neighbours
from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.mechanism import Mechanism, Run
from dpladder.config.label_sets import (
    ABSENT,
    MANY,
    PRESENT,
    STATES,
    UNKNOWN,
    Labels,
    number_of,
    number_of_findings,
)
from dpladder.config.learner_sections import Descent, FineTune, guided
from dpladder.config.model import Resources
from dpladder.learn import guide, score
from dpladder.learn.interface import (
    Constants,
    Data,
    Hyper,
    LogOdds,
    Losses,
    Rights,
    paces,
    publish,
)
from dpladder.learn.registry import method
from dpladder.learn.second_order import declare_covariance
from dpladder.network.cut import upper_of
from dpladder.network.facts import Network
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import gaussian
from dpladder.privacy.accounting.events import Composed, Counted, Gaussian, Relation
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release.meter import Meter

Record = tuple[tuple[float, ...], int]  # features and label

NOTHING: Record = ((0.0, 0.0, 0.0), 0)
CANARIES: tuple[Record, ...] = (
    NOTHING,
    ((1e6, 0.0, 0.0), 0),
    ((-1e6, 0.0, 0.0), 0),  # the opposite: a replaced unit moves a sum twice as far
    ((-1e6, 1e6, 1e6), 1),
    ((3e38, -3e38, 3e38), 1),
    ((1e-30, 0.0, 0.0), 0),
    ((1.0, 2.0, 3.0), -1),
    ((0.5, 0.5, 0.5), 7),
)
CLASSES, N0, ETA = 2, 50, 0.5
SEVERAL: tuple[Record, ...] = (
    NOTHING,
    *(
        ((pull, 0.0, 0.0), number_of(classes, 3))
        for pull in (1e6, -1e6)
        for classes in ((1,), (0, 2), (0, 1, 2))
    ),
)
"""Records of one, two and three classes out of 3."""
FINDINGS: tuple[Record, ...] = (
    NOTHING,
    *(
        ((pull, *[pull * across] * 2), number_of_findings(states))
        for pull in (1e6, -1e6)
        for across in (0.0, 1.0)
        for states in ((PRESENT, PRESENT), (PRESENT, ABSENT), (UNKNOWN, PRESENT))
    ),
    ((1.0, 2.0, 3.0), number_of_findings((UNKNOWN, UNKNOWN))),
    ((0.5, 0.5, 0.5), len(STATES) ** CLASSES),
)
"""Records of which two findings are known, one, none, and whose number is no record's."""
GUIDES: tuple[Record, ...] = (((1.0, 2.0, 3.0), 0), ((0.5, -1.0, 0.0), 1), ((4.0, 0.0, 1.0), 1))
"""Public records, of which no neighbour has others."""
DELTA0 = 1e-7  # what trainings on samples are booked at
# under a step's denominator, this makes an adaptive step as good as linear in the noise
STEADY = 1e6


Reach = Callable[[int, float], list[float]]
"""How far one unit of each step's mean gradient moves the last weights, given the steps and the
noise in a gradient."""


def training(
    learner: Any,
    steps: int,
    relation: Relation,
    reach: Reach,
    mu: float = 2.0,
    tight: bool = False,
    note: str = "",
    network: Network | None = None,
    cap: int = 1,
    labels: Labels = 1,
) -> Mechanism:
    """A training whose released weights are the first ones plus a weighted sum of the steps'
    noises. Under a network records are activations at its cut."""
    width = len(NOTHING[0]) if network is None else math.prod(network.shape)
    constants = Constants(N0, CLASSES, width, relation, cap=cap, labels=labels, network=network)
    hyper = Hyper(ETA, steps, mu, DELTA0)
    declared = method(learner.name).declare(learner, hyper, constants)
    # Records that contribute nothing leave a gradient of pure noise.
    noise = declared.draws[0].scale / (constants.n0 * getattr(learner, "sampling_rate", 1.0))
    cell = cell_of(learner, constants)
    return Mechanism(
        name=f"{cell}, {steps} step{'s' * (steps > 1)}{note}",
        event=Composed(declared.events),
        draws=declared.draws,
        scale=noise * math.hypot(*reach(steps, noise)),
        run=_run(learner, hyper, constants),
        neighbours=neighbours((NOTHING, NOTHING), canaries_of(labels), relation),
        relation=relation,
        tight=tight,
        effort=effort_of(cell, tight),
        cell=cell,
    )


def cell_of(learner: Any, constants: Constants) -> GridCell:
    """Where an attack stands in the grid, read off what it runs."""
    sampled = getattr(learner, "sampling_rate", 1.0) < 1.0
    views = getattr(learner, "augment", 1)
    return GridCell(learner.name, constants.relation, sampled, constants.cap, views)


def effort_of(cell: GridCell, tight: bool = False) -> float:
    """Fewer runs where units have several records, or records several views: that noise is what it
    claims to be is seen without them, and what moves sums shows at any effort."""
    return 1.0 if tight or cell.cap == cell.views == 1 else 0.2


def in_cell(learner: Any, cell: GridCell) -> Any:
    """A learner's section as a cell has it."""
    wanted = {"sampling_rate": 0.5 if cell.sampled else 1.0, "augment": cell.views}
    known = type(learner).model_fields
    return learner.model_copy(update={key: value for key, value in wanted.items() if key in known})


def trained(learner: Any, cell: GridCell, reach: Reach, **options: Any) -> Mechanism:
    """Two steps of a training, whose noise must be fresh in each, in one cell of the grid."""
    return training(in_cell(learner, cell), 2, cell.relation, reach, cap=cell.cap, **options)


def canaries_of(labels: Labels) -> tuple[Record, ...]:
    if labels == MANY:
        return FINDINGS
    return SEVERAL if labels > 1 else CANARIES


def of_findings(
    learner: Any, reach: Reach, cap: int = 1, tight: bool = True
) -> tuple[Mechanism, ...]:
    """One step on findings, each of which a canary may saturate, alone and all together."""
    each = learner.model_copy(update={"link": "sigmoid"})
    return tuple(
        training(each, 1, relation, reach, tight=tight, note=", findings", cap=cap, labels=MANY)
        for relation in get_args(Relation)
    )


def _run(learner: Any, hyper: Hyper, constants: Constants) -> Run:
    if method(learner.name).train_many is None:
        return partial(train, learner, hyper, constants)
    return Trainings(learner, hyper, constants)


def sums(
    learner: Any,
    steps: int,
    cell: GridCell,
    tight: bool = False,
    mu: float = 2.0,
    labels: Labels = 1,
) -> Mechanism:
    """A learner that computes its weights from noised sums: the sums are what it publishes. Three
    classes, because equal probabilities of three curve softmax the most."""
    constants = Constants(N0, 3, len(NOTHING[0]), cell.relation, cap=cell.cap, labels=labels)
    hyper = Hyper(ETA, steps, mu)
    declared = method(learner.name).declare(learner, hyper, constants)
    scales = {draw.name: draw.scale for draw in declared.draws}

    def run(records: Sequence[Record], meter: Meter) -> Floats:
        release, seen = partial(publish, meter), []

        def watched(name: str, total: Any) -> Any:
            noised = release(name, total)
            seen.append(np.ravel(noised.numpy()) / scales[name])
            return noised

        fit = method(learner.name).room("train").fit
        fit(
            learner_data(learner, constants, records),
            hyper,
            learner,
            constants,
            watched,
            Resources(threads=1),
        )
        return np.concatenate(seen)

    link = [learner.link] if hasattr(learner, "link") else []
    several = {1: [], MANY: ["findings"]}.get(labels, [f"up to {labels} classes"])
    return Mechanism(
        name=", ".join([str(cell), f"{steps} step{'s' * (steps > 1)}", *link, *several]),
        event=Composed(declared.events),
        draws=declared.draws,
        scale=1.0,
        run=run,
        neighbours=neighbours((NOTHING, NOTHING), canaries_of(labels), cell.relation),
        relation=cell.relation,
        tight=tight,
        effort=effort_of(cell, tight),
        cell=cell_of(learner, constants),
    )


def look(learner: Any, relation: Relation, cap: int = 1, mu: float = 2.0) -> Mechanism:
    """The count of a public head's right answers, before records are followed that guide steps."""
    guided = learner.model_copy(update={"public": "gradient", "look": 0.04})
    constants = Constants(N0, CLASSES, len(NOTHING[0]), relation, cap=cap)
    declared = guide.look(guided, Hyper(ETA, 1, mu / 0.2), constants)
    head = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], np.float32)

    def run(units: Sequence[Record], meter: Meter) -> Floats:
        data = replace(data_of(units, cap=cap), start=head)
        if isinstance(learner, FineTune):
            from dpladder.learn.dp_finetune.train import looked as looked_above

            return np.array(looked_above(data, guided, constants, meter)[:1])
        from dpladder.learn.linear import looked

        return np.array([right for right, _ in looked(data, guided, constants, [meter])])

    return Mechanism(
        name=f"{learner.name} {relation} cap {cap}, look at a sample",
        event=Composed(declared.events),
        draws=declared.draws,
        scale=declared.draws[0].scale,
        run=run,
        neighbours=neighbours((NOTHING, NOTHING), CANARIES, relation),
        relation=relation,
        tight=True,
    )


def shared_covariance(mu: float = 2.0, radius: float = 2.0) -> Mechanism:
    """The covariance that trainings share."""
    constants = Constants(N0, CLASSES, len(NOTHING[0]))
    declared = declare_covariance(mu, radius, constants)

    def run(records: Sequence[Record], meter: Meter) -> Floats:
        from dpladder.learn.moments import noised_covariance

        release = partial(publish, meter)
        return noised_covariance(data_of(records), radius, constants, release, Resources(threads=1))

    pairs = neighbours((NOTHING, NOTHING), CANARIES, "add_remove")
    scale = declared.draws[0].scale
    return Mechanism(
        "covariance", Composed(declared.events), declared.draws, scale, run, pairs, tight=True
    )


def right_and_wrong(mu: float = 2.0) -> Mechanism:
    """The two counts of an evaluation. A unit is in one of them; replaced, it may go from one to
    the other."""
    constants = Constants(N0, CLASSES, 1, "replace_one")
    sigma = gdp.sigma(mu, 1)
    counts = gaussian("counts", sigma, constants.moves_apart(1.0), (2,))

    def run(data: Sequence[int], meter: Meter) -> Floats:
        return meter.publish("counts", [data.count(0), data.count(1)])

    pairs = neighbours((0, 1, 1), (2, 0, 1), "replace_one")
    return Mechanism(
        name="right and wrong",
        event=Gaussian(sigma),
        draws=(counts,),
        scale=counts.scale,
        run=run,
        neighbours=pairs,
        relation="replace_one",
        tight=True,
    )


def shares_of_findings(relation: Relation, mu: float = 2.0) -> Mechanism:
    """A score of findings, and its two sums of an evaluation, on units of two records, whose logits
    may be anything."""
    constants = Constants(N0, 1, 1, relation, cap=2, labels=MANY)
    judge, weights = LogOdds(lambda _, features: features), (np.zeros((2, 1), np.float32),)
    declared, sigma = score.declare(mu, constants), gdp.sigma(mu, 1)
    sums = gaussian("counts", sigma, constants.moves_apart(1.0), (2,))

    def run(units: Sequence[tuple[Record, Record]], meter: Meter) -> Floats:
        data = data_of([record for unit in units for record in unit], width=2)
        given = weights, np.asarray(data.features, np.float64), data.labels
        told = score.noised_count(*given, meter, judge)
        found = meter.publish("counts", score.right_and_wrong(*given, judge))
        return np.append(found / sums.scale, told / declared.draws[0].scale)

    known = [number_of_findings(states) for states in ((PRESENT, ABSENT), (UNKNOWN, PRESENT))]
    logits = ((1e9, -1e9), (-1e9, 1e9), (math.inf, math.nan), (0.0, 1.0))
    units = [((own, number),) * 2 for own in logits for number in (*known, -1)]
    return Mechanism(
        name=f"shares of findings {relation}",
        event=Composed((*declared.events, Counted(Gaussian(sigma)))),
        draws=(*declared.draws, sums),
        scale=1.0,
        run=run,
        neighbours=neighbours(((((0.0, 0.0), known[0]),) * 2,), units, relation),
        relation=relation,
    )


LOSSES = (-1e9, 0.0, 0.5, 1.0, 7.0, 1e300, math.inf, -math.inf, math.nan)


def clipped_losses(relation: Relation) -> Mechanism:
    """Of a language model. Each record's loss, which may be anything, is clipped by itself."""
    judge = Losses(lambda _, features: features[:, 0], 1.0)
    return _judged(f"clipped losses {relation}", judge, relation)


def right_answers(relation: Relation) -> Mechanism:
    """Of a model that finds answers. Whatever it is told of a record, that is right or wrong."""
    judge = Rights(lambda _, features: features[:, 0])
    return _judged(f"right answers {relation}", judge, relation)


def _judged(name: str, judge: Losses | Rights, relation: Relation, mu: float = 2.0) -> Mechanism:
    """A score of a model that names no class, and its two sums of an evaluation, on units of two
    records. Replaced, a unit may go from one of the sums to the other."""
    constants = Constants(N0, 1, 1, relation, cap=2)
    weights = (np.zeros((1, 1), np.float32),)
    declared = score.declare(mu, constants)
    sigma = gdp.sigma(mu, 1)
    sums = gaussian("counts", sigma, constants.moves_apart(1.0), (2,))
    draws = (*declared.draws, sums)

    def run(units: Sequence[tuple[float, ...]], meter: Meter) -> Floats:
        losses = np.array([loss for unit in units for loss in unit], np.float64)[:, None]
        labels = np.zeros(len(losses), np.int64)
        told = score.noised_count(weights, losses, labels, meter, judge)
        found = meter.publish("counts", score.right_and_wrong(weights, losses, labels, judge))
        return np.append(found / sums.scale, told / declared.draws[0].scale)

    # So many known records that neither sum comes near zero.
    units = [(loss, other) for loss in LOSSES for other in (0.0, 1.0)]
    return Mechanism(
        name=name,
        event=Composed((*declared.events, Counted(Gaussian(sigma)))),
        draws=draws,
        scale=1.0,
        run=run,
        neighbours=neighbours(((0.5, 0.5),), units, relation),
        relation=relation,
    )


@dataclass(frozen=True)
class Trainings:
    """A training of a learner that makes many over one pass, as a rung's job does: that one pass is
    attacked too."""

    learner: Any
    hyper: Hyper
    constants: Constants

    def __call__(self, data: Sequence[Record], meter: Meter) -> Floats:
        return train(self.learner, self.hyper, self.constants, data, meter)

    def many(self, data: Sequence[Record], meters: Sequence[Meter]) -> NDArray[np.float32]:
        train_many = method(self.learner.name).train_many
        assert train_many is not None
        records = learner_data(self.learner, self.constants, data)
        alike = [self.hyper] * len(meters)
        return train_many(
            records, alike, self.learner, self.constants, meters, Resources(threads=1)
        )


def train(
    learner: Any, hyper: Hyper, constants: Constants, data: Sequence[Record], meter: Meter
) -> Floats:
    weights = method(learner.name).train(
        learner_data(learner, constants, data),
        hyper,
        learner,
        constants,
        meter,
        Resources(threads=1),
    )
    return np.concatenate([np.ravel(layer).astype(np.float64) for layer in weights])


def learner_data(learner: Any, constants: Constants, units: Sequence[Record]) -> Data:
    """Units as a learner gets them: of so many records as the cap allows, each of so many views,
    beside public records where those guide it."""
    data = data_of(units, getattr(learner, "augment", 1), constants.dimension, constants.cap)
    if not guided(learner):
        return data
    cut = constants.network
    width = constants.dimension if cut is None else upper_of(cut).width
    start = np.zeros((constants.classes, width + learner.bias), np.float32)
    return replace(data, sample=data_of(GUIDES, width=constants.dimension), start=start)


def data_of(
    units: Sequence[Record], views: int = 1, width: int = len(NOTHING[0]), cap: int = 1
) -> Data:
    """A unit's records are all alike, for nothing pulls a sum further; so are a record's views.
    Records' numbers come over and over where they have to be more."""
    records = [record for record in units for _ in range(cap)]
    features = np.array([np.resize(record[0], width) for record in records], np.float32)
    if views > 1:
        features = np.repeat(features[:, None], views, axis=1)
    numbers = np.repeat(np.arange(len(units), dtype=np.uint64), cap)
    ids = np.stack([numbers, numbers], axis=1).view(np.uint8)
    return Data(features, np.array([record[1] for record in records], np.int64), ids)


def corrected(decay: float, steps: int) -> list[float]:
    """What each step's gradient weighs in all of Adam's first moments together, bias correction
    included."""
    return [
        sum(
            (1 - decay) * decay ** (later - step) / (1 - decay**later)
            for later in range(step, steps + 1)
        )
        for step in range(1, steps + 1)
    ]


def along_momentum(learner: Descent | FineTune, steps: int, noise: float) -> list[float]:
    """Momentum carries a step on, and the free step once more."""
    m, rates = learner.momentum, [ETA * pace for pace in paces(learner, steps)]
    on = [
        sum(rates[later] * m ** (later - step) for later in range(step, steps))
        for step in range(steps)
    ]
    return [
        reach + learner.free_step * rates[-1] * m ** (steps - 1 - step)
        for step, reach in enumerate(on)
    ]
