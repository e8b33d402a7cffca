"""The kinds of questions that a method may ask about private records. No torch here: a plan asks
what they cost.

A method says what it will ask as a list of queries. From that list follow its events, its price,
its draws and their noise. The curator (learn/curator.py) clips by the same `bound`, adds up, adds
that noise, and refuses every other question. So each kind has one argument for its sensitivity,
which stands in its docstring.

A record adds a contribution of length `bound` at most to a sum, and a unit has `cap` records. A
unit that enters or leaves moves the sum by bound * cap. A unit that is replaced takes one
contribution out and puts another in: how far apart these can be is what a kind's `law` says.

| law | holds where | replaced, in units of bound * cap |
|---|---|---|
| opposite | always: triangle inequality | 2 |
| apart | no two have an inner product below 0: |P - Q|^2 <= |P|^2 + |Q|^2 | sqrt(2) |
| range | a contribution is a number from 0 to the bound | 1 |

Over a Poisson sample every law is `opposite`: neighbours there lie around "nobody sampled", not
only around each other (`sampled_sensitivity` in privacy/accounting/draws.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar, Literal

from dpladder.config.label_sets import MANY, NUMBER, Labels
from dpladder.config.learner_sections import Clipping, LinkName
from dpladder.errors import BadInput
from dpladder.learn.interface import Constants, Declaration, Shape
from dpladder.privacy.accounting.draws import Draw, sampled_sensitivity
from dpladder.privacy.accounting.events import (
    Booked,
    Composed,
    Counted,
    Event,
    Gaussian,
    Laplace,
    Sampled,
)

Law = Literal["opposite", "apart", "range"]
REPLACED = {"opposite": 2.0, "apart": math.sqrt(2.0), "range": 1.0}
SAMPLE = "sample"  # the name of the mask that sampled queries lie under


@dataclass(frozen=True)
class LinearHead:
    """Logits of a linear head. A bias is a last column."""

    bias: bool = False
    link: LinkName = "softmax"
    views: int = 1

    def shape(self, constants: Constants) -> Shape:
        """The shape of its weights: a row for each class."""
        return constants.classes, constants.dimension + self.bias


@dataclass(frozen=True)
class Flat:
    """A model whose weights lie in one vector.

    Attributes:
        engine: the module that adds up its gradients and losses, by its name.
        options: what the engine builds it from; equal options make equal models.
        numbers: how many weights there are.
        views: of each record, whose gradients are averaged before they are clipped.
    """

    engine: str
    options: Any
    numbers: int
    views: int = 1

    def shape(self, _: Constants) -> Shape:
        """The shape of its weights: one vector."""
        return (self.numbers,)


Model = LinearHead | Flat


@dataclass(frozen=True, kw_only=True)
class Query:
    """A question that is asked `count` times, each answer with noise of its own.

    Guarantee: an answer is a sum over records plus noise of scale `multiplier * sensitivity`. So it
    costs what `events` says: 1/multiplier-GDP for each of its `numbers`, or 1/multiplier-DP with
    Laplace noise. A kind adds nothing to that but a bound on one record's contribution, and a law.

    Args:
        name: of its draws.
        multiplier: the noise's scale over how far a unit moves one number, or one vector. Infinite:
            records are not asked, and what was released before is the whole answer.
        count: how often it is asked, at most.
        sampling_rate: below 1 the answers of one step are sums over one Poisson sample; of kinds
            that `samples` says can be.
        distribution: of the noise.
        charged: what Laplace noise is charged as, where that is not itself: a Gaussian that bounds
            it.
    """

    name: str
    multiplier: float
    count: int = 1
    sampling_rate: float = 1.0
    distribution: Literal["gaussian", "laplace"] = "gaussian"
    charged: Event | None = None
    law: ClassVar[Law] = "opposite"
    samples: ClassVar[bool] = False  # whether the curator adds it up over a sample, too

    def __post_init__(self) -> None:
        if self.sampling_rate != 1.0 and not self.samples:
            raise BadInput(
                f"query {self.name}: {type(self).__name__} is always added up over all records, so "
                f"it costs more than a sample's price at rate {self.sampling_rate}. Leave "
                "sampling_rate out."
            )

    @property
    def asks_records(self) -> bool:
        """Whether it has an answer of its own, beside what was released before."""
        return self.multiplier < math.inf

    @property
    def kind(self) -> Query:
        """The query without its name, noise and number: what the sum is that it asks for."""
        return replace(
            self, name="", multiplier=1.0, count=1, distribution="gaussian", charged=None
        )

    def bound(self, constants: Constants) -> float:
        """The largest length (L2; L1 with Laplace noise) of one record's contribution. The curator
        keeps records within it, whatever they are."""
        raise NotImplementedError

    def shape(self, constants: Constants) -> Shape:
        """The shape of one draw."""
        return ()

    def parts(self, constants: Constants) -> int:
        """How many draws make one answer, where it comes class by class. Each class is asked once,
        and all at the same arguments (`Curator`). So together they cost what one answer does."""
        return 1

    @property
    def stacks(self) -> bool:
        """Whether one pass over the records answers several trainings."""
        return False

    @property
    def numbers(self) -> int:
        """How many sums an answer holds, each of which a unit moves that far."""
        return 1

    def entering(self, constants: Constants) -> float:
        """How far a unit moves a sum when it enters, or leaves."""
        return self.bound(constants) * constants.cap

    def sensitivity(self, constants: Constants) -> float:
        """How far two neighbours' sums lie apart, at most: by the law of the kind, and over a
        Poisson sample by `sampled_sensitivity`."""
        entering = self.entering(constants)
        if self.sampling_rate < 1.0:
            return sampled_sensitivity(entering, constants.relation)
        return entering * (REPLACED[self.law] if constants.relation == "replace_one" else 1.0)

    def scale(self, constants: Constants) -> float:
        """The noise's own: the sd of a Gaussian, the scale of a Laplace."""
        return self.multiplier * self.sensitivity(constants)

    def draw(self, constants: Constants) -> Draw:
        """The noise of all answers, as a job declares it. It has the very sensitivity that its
        scale is made of, so that COMMIT can compute the charge from it.

        Raises:
            BadInput: Laplace noise on an answer of several numbers, which is not what it is priced
                for.
        """
        together, parts = math.sqrt(self.numbers), self.parts(constants)
        sampled = self.sampling_rate < 1.0
        shape = self.shape(constants)
        # in several numbers at once a unit moves further in L1 than the bound, a length in L2, says
        if self.distribution == "laplace" and parts * math.prod(shape) != self.numbers:
            raise BadInput(
                f"query {self.name}: Laplace noise is priced for single numbers, and an answer has "
                f"{parts * math.prod(shape)}. Take Gaussian noise."
            )
        return Draw(
            self.name,
            self.distribution,
            self.scale(constants),
            shape,
            self.count * parts,
            self.sensitivity(constants) * together,
            parts,
            SAMPLE if sampled else "",
            self.entering(constants) * together if sampled else 0.0,
        )

    def events(self) -> Counted:
        """What one answer costs."""
        kind = Laplace if self.distribution == "laplace" else Gaussian
        return Counted(self.charged or kind(self.multiplier), self.numbers)

    def at(self, *arguments: Any) -> QueryCall:
        """The question about these public arguments, such as weights."""
        return QueryCall(self, arguments)


@dataclass(frozen=True, eq=False)
class QueryCall:
    """What a method yields to its curator.

    Attributes:
        query: one that was declared; another one is not answered.
        arguments: public ones that it is asked about, such as weights: they follow from public
            inputs and earlier answers.
        step: where the public sample is asked for a gradient instead of private records, the number
            of the step.
    """

    query: Query
    arguments: tuple[Any, ...] = ()
    step: int | None = None


@dataclass(frozen=True, kw_only=True)
class OfModel(Query):
    """A query about a model at some weights. Its answers may be sums over a Poisson sample."""

    model: Model
    samples: ClassVar[bool] = True

    @property
    def stacks(self) -> bool:
        return isinstance(self.model, LinearHead)


@dataclass(frozen=True, kw_only=True)
class GradientSum(OfModel):
    """The sum of records' clipped gradients at some weights: `at(weights)`.

    A record's gradient, the mean over its views, is scaled to length clip / cap at most (Abadi et
    al. 2016, Algorithm 1). Automatic clipping is Bu et al. 2023, Eq. 5. So a unit adds `clip` at
    most. Two gradients may be opposite.

    Sensitivity: `clip` where a unit enters or leaves, 2 `clip` where one is replaced.
    """

    clip: float = 1.0
    clipping: Clipping = "flat"

    def bound(self, constants: Constants) -> float:
        return self.clip / constants.cap

    def shape(self, constants: Constants) -> Shape:
        return self.model.shape(constants)

    def public(self, weights: Any, step: int) -> QueryCall:
        """The mean gradient of the public sample's records instead, which costs nothing."""
        return QueryCall(self, (weights,), step)


# On a record's loss, or on a difference of two. A loss is a number of float64 and may be as large
# as a logit of 2^25: then it is rounded by 2^-28, one record by its place among the others. That is
# nothing to this bound, and was half of one of 1e-7.
LEAST_LOSS_BOUND = 1e-3


@dataclass(frozen=True, kw_only=True)
class LossSums(OfModel):
    """Sums of records' losses under `points` models each, in units of a public bound on a loss:
    `at(weights, most)`, where `most` is LEAST_LOSS_BOUND at least.

    A record's loss, the mean over its views, is cut to between 0 and the bound. So each sum is one
    of numbers from 0 to 1: replaced, a unit moves it no further than added. It moves `points` sums
    together by the root of their number. Over a sample a loss at its bound is one unit's bounds
    away from "nobody sampled", so the law is `opposite` there. By the range's an epsilon of 8.0 was
    stated and 31.3 was true (gamma 2, every 1, q 0.02, 50 steps).

    Sensitivity: cap sqrt(points) in units of the bound; over samples, 2 cap sqrt(points) where a
    unit is replaced.
    """

    points: int = 1
    law: ClassVar[Law] = "range"

    def bound(self, constants: Constants) -> float:
        return 1.0

    def shape(self, constants: Constants) -> Shape:
        return (self.points,) if self.points > 1 else ()

    @property
    def numbers(self) -> int:
        return self.points


@dataclass(frozen=True, kw_only=True)
class LossDifference(OfModel):
    """The sum of how much records' losses differ between two models: `at(ahead, behind)`.

    A record's difference is cut to between -clip / cap and clip / cap (Tang et al. 2024). Two
    differences may be opposite.

    Sensitivity: `clip` where a unit enters or leaves, 2 `clip` where one is replaced.
    """

    clip: float = 1.0

    def bound(self, constants: Constants) -> float:
        bound = self.clip / constants.cap
        if bound < LEAST_LOSS_BOUND:
            raise BadInput(
                f"query {self.name}: its clip of {self.clip:g} keeps each of {constants.cap} "
                f"records within {bound:g}. Large losses are told apart no finer than "
                f"{LEAST_LOSS_BOUND:g}: give at least {LEAST_LOSS_BOUND * constants.cap:g}."
            )
        return bound


Weigh = Callable[[Any, Any], Any]
"""From records in a ball (records, dimension) and their labels to weights (sums, records). Each
record's weights are a function of its own row alone, and are cut to length 1 together."""


LONGEST_CONSTANT = 1e3  # as a share of the radius: float32 holds it beside any record


def _refuse_constant(query: Query, constant: float, takes_one: bool) -> None:
    """Refuse a constant feature whose length is no usable share of the radius, or that a kind of
    sum does not add."""
    if not 0.0 <= constant <= LONGEST_CONSTANT or (constant and not takes_one):
        raise BadInput(
            f"query {query.name}: its constant is {constant}. Give a share of the radius from 0 to "
            f"{LONGEST_CONSTANT:g}, and 0 for sums of classes or findings."
        )


@dataclass(frozen=True, kw_only=True)
class WeighedSums(Query):
    """Sums of w x over records that are scaled into a ball, one for each row of their weights w.

    A record's weights have length 1 at most together, so w x^T has length |w| |x| <= radius. With a
    constant c, x has one more column of c times the radius, and is sqrt(1 + c^2) times as long. Two
    records may be opposite. `by`:
    - class: a sum of each class; a record of k classes weighs 1/sqrt(k) in each of them. `apart`:
      class by class, `at(label)`.
    - presence: of each finding a sum of the records that have it, then of those that lack it. Those
      that a record has share its weight out evenly, those that it lacks too.
    - lack: of each finding 1 - 1/m where it is present and -1/m where not, over 1 - 1/m, cut to
      length 1.
    - number: one sum, of where the target lies in its public range, from -1 to 1.
    - a function of a plug-in's, of `sums` weights a record.

    Sensitivity: cap radius, and sqrt(1 + c^2) times that with a constant; twice that where a unit
    is replaced.
    """

    radius: float
    by: Literal["class", "presence", "lack", "number"] | Weigh = "class"
    apart: bool = False
    constant: float = 0.0
    sums: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_constant(self, self.constant, self.by == "number" or callable(self.by))

    def bound(self, constants: Constants) -> float:
        return self.radius * math.hypot(1.0, self.constant)

    def shape(self, constants: Constants) -> Shape:
        width = constants.dimension + bool(self.constant)
        if self.apart:
            return (width,)
        return (self.sums or constants.classes * (2 if self.by == "presence" else 1), width)

    def parts(self, constants: Constants) -> int:
        return constants.classes if self.apart else 1


def coordinates(dimension: int) -> int:
    """How many coordinates a symmetric matrix has: dimension (dimension + 1) / 2.

    It is released by its coordinates in an orthonormal basis of the symmetric matrices: its
    diagonal, and sqrt(2) times what lies above it. Their L2 norm is the matrix's Frobenius norm,
    and an entry and its mirror share one draw.
    """
    return dimension * (dimension + 1) // 2


@dataclass(frozen=True, kw_only=True)
class SecondMoments(Query):
    """The sum of x x^T over records that are scaled into a ball, as coordinates. `by_class`: one of
    each class's own records, `at(label)`, in which a record of k classes weighs 1/sqrt(k). With a
    constant c, x has one more column of c times the radius, and is sqrt(1 + c^2) times as long.

    |x x^T| = |x|^2 <= radius^2, and a record's weights in the stack of all classes have length 1 at
    most. Positive semidefinite matrices have inner products of 0 or more, stack by stack.

    Sensitivity: cap radius^2, and 1 + c^2 times that with a constant; sqrt(2) times that where a
    unit is replaced.
    """

    radius: float
    by_class: bool = False
    constant: float = 0.0
    law: ClassVar[Law] = "apart"

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_constant(self, self.constant, not self.by_class)

    def bound(self, constants: Constants) -> float:
        return self.radius**2 * (1.0 + self.constant**2)

    def shape(self, constants: Constants) -> Shape:
        return (coordinates(constants.dimension + bool(self.constant)),)

    def parts(self, constants: Constants) -> int:
        return constants.classes if self.by_class else 1


def residual_length(link: LinkName, classes: int) -> float:
    """The largest length of a record's residuals p - y (`ResidualSum`)."""
    return math.sqrt(2.0) if link == "softmax" else math.sqrt(classes)


def curvature_length(link: LinkName, classes: int) -> float:
    """The largest length of a record's p (1 - p), over all classes (`Curvatures`)."""
    return 2.0 / (3.0 * math.sqrt(3.0)) if link == "softmax" else math.sqrt(classes) / 4.0


@dataclass(frozen=True, kw_only=True)
class ResidualSum(Query):
    """The sum of (p - y) x^T over records in a ball, the gradient of logistic regression,
    unclipped: `at(weights)`.

    Softmax: |p - y|^2 = (1 - p_y)^2 + sum of the other p_j^2 <= 2 (1 - p_y)^2 <= 2. One sigmoid a
    class: each of m residuals lies between -1 and 1, so |p - y| <= sqrt(m) (Mehta et al.). Two may
    be opposite.

    Sensitivity: cap times the bound, and twice that where a unit is replaced.
    """

    radius: float
    link: LinkName = "softmax"

    def bound(self, constants: Constants) -> float:
        return residual_length(self.link, constants.classes) * self.radius

    def shape(self, constants: Constants) -> Shape:
        return constants.classes, constants.dimension


@dataclass(frozen=True, kw_only=True)
class Curvatures(Query):
    """Each class's sum of p (1 - p) x x^T over records in a ball, as coordinates: `at(weights,
    label)`.

    Softmax: the length of (p_j (1 - p_j))_j is 2 / (3 sqrt(3)) at most. For p (1 - p)^2 <= 4/27,
    with equality at 1/3, so sum of p_j^2 (1 - p_j)^2 <= 4/27 sum of p_j = 4/27; three equal
    probabilities reach it. One sigmoid a class: p (1 - p) <= 1/4, so sqrt(m) / 4. Positive
    semidefinite matrices have inner products of 0 or more.

    Sensitivity: cap times the bound, and sqrt(2) times that where a unit is replaced.
    """

    radius: float
    link: LinkName = "softmax"
    law: ClassVar[Law] = "apart"

    def bound(self, constants: Constants) -> float:
        return curvature_length(self.link, constants.classes) * self.radius**2

    def shape(self, constants: Constants) -> Shape:
        return (coordinates(constants.dimension),)

    def parts(self, constants: Constants) -> int:
        return constants.classes


@dataclass(frozen=True, kw_only=True)
class RightCount(Query):
    """How many records a model is right about, or what they count by their losses or findings:
    `at(weights, scorer)`.

    A record counts a number from 0 to 1 (learn/scorers.py): replaced, a unit turns wrong into
    right.

    Sensitivity: cap, however neighbours differ.
    """

    law: ClassVar[Law] = "range"

    @property
    def stacks(self) -> bool:
        return True

    def bound(self, constants: Constants) -> float:
        return 1.0


@dataclass(frozen=True, kw_only=True)
class Cells(Query):
    """Counts of which a record is in `each`: `at(places)`, from records to the cells that each is
    in, and its shares of these. No two counts are below 0.

    Sensitivity: cap sqrt(each), and sqrt(2) times that where a unit is replaced.
    """

    cells: Shape
    each: int = 1
    law: ClassVar[Law] = "apart"

    def bound(self, constants: Constants) -> float:
        return math.sqrt(self.each)

    def shape(self, constants: Constants) -> Shape:
        return self.cells


@dataclass(frozen=True, kw_only=True)
class UnitsByClass(Query):
    """How many units count, and how many of them are of each class. A unit that counts adds 1 to
    the first and to one other, which is sqrt(2) long. Two units differ in their class, or in
    whether they count: by sqrt(2) again. So a replaced one moves no more than one that enters.

    Sensitivity: sqrt(2), however neighbours differ.
    """

    classes: int
    law: ClassVar[Law] = "range"

    def bound(self, constants: Constants) -> float:
        return math.sqrt(2.0)

    def shape(self, constants: Constants) -> Shape:
        return (1 + self.classes,)


@dataclass(frozen=True, kw_only=True)
class UnitMean(Query):
    """The sum of units' mean features, each record in a ball or, where `exact`, on its sphere: a
    unit's records are one record's worth together. Two may be opposite.

    Sensitivity: `radius` where a unit enters or leaves, twice that where one is replaced.
    """

    radius: float
    width: int
    exact: bool = False

    def bound(self, constants: Constants) -> float:
        return self.radius / constants.cap

    def shape(self, constants: Constants) -> Shape:
        return (self.width,)


@dataclass(frozen=True, kw_only=True)
class RecordSum(Query):
    """The sum of any function of single records, `of(x, label)` or `of(x, label, *arguments)`, each
    cut to length clip / cap: `at(*arguments)`. Two values may be opposite.

    Sensitivity: `clip` where a unit enters or leaves, 2 `clip` where one is replaced.
    """

    of: Callable[..., Any]
    of_shape: Shape
    clip: float = 1.0

    def bound(self, constants: Constants) -> float:
        return self.clip / constants.cap

    def shape(self, constants: Constants) -> Shape:
        return self.of_shape


def declared(queries: Sequence[Query], constants: Constants, delta0: float = 0.0) -> Declaration:
    """What a method costs and draws that asks these queries and no others, each as often as it says
    or less.

    Args:
        queries: with names of their own; those that sample have one rate, and share their samples.
            The curator holds them to it: a query that is asked less often shares the samples of
            those that are asked as rarely.
        constants: public sizes and bounds.
        delta0: what sampled answers are booked at.

    Returns:
        Sampled events first. Queries of one step see one sample, and compose inside it.

    Raises:
        BadInput: a query cannot read labels as `dataset.labels` makes them.
    """
    for query in queries:
        _refuse_labels(query, constants.labels)
    paid = [query for query in queries if query.asks_records]
    sampled = [query for query in paid if query.sampling_rate < 1.0]
    whole = [query for query in paid if query.sampling_rate == 1.0]
    events = _merged(
        Counted(one.event, one.count * query.count) for query in whole for one in [query.events()]
    )
    draws = [query.draw(constants) for query in whole]
    if sampled:
        (rate,) = {query.sampling_rate for query in sampled}
        steps = max(query.count for query in sampled)
        events = [Counted(Booked(_steps(sampled, rate), delta0)), *events]
        mask = Draw(SAMPLE, "mask", rate, count=steps)
        draws = [*(query.draw(constants) for query in sampled), mask, *draws]
    return Declaration(tuple(events), tuple(draws))


def _refuse_labels(query: Query, labels: Labels) -> None:
    """Refuse a query that takes a label for one class where it is a number for several (learn/
    links.py): a record of two classes would stop the run, whose label is no place among logits."""
    _refuse_number(query, labels)
    model = query.model if isinstance(query, OfModel) else None
    takes_findings = not isinstance(query, ResidualSum | Curvatures) and (
        not isinstance(model, LinearHead) or model.link == "sigmoid"
    )
    takes_sets = not isinstance(query, ResidualSum | Curvatures | OfModel) or (
        isinstance(model, Flat) and not model.engine.startswith("dpladder.")
    )
    if labels not in (1, NUMBER) and not (takes_findings if labels == MANY else takes_sets):
        raise BadInput(
            f"query {query.name}: {type(query).__name__} takes one class for each record, and "
            f"dataset.labels is {labels}. Set dataset.labels to 1, or ask for WeighedSums, "
            "SecondMoments or RecordSum; findings take a LinearHead whose link is sigmoid, too."
        )


def _refuse_number(query: Query, labels: Labels) -> None:
    """Refuse sums of classes where a number is learnt, and those of a number where classes are."""
    model = query.model if isinstance(query, OfModel) else None
    of_number = (isinstance(query, WeighedSums) and query.by == "number") or (
        isinstance(model, LinearHead) and model.link == "identity"
    )
    of_classes = not of_number and (
        isinstance(query, ResidualSum | Curvatures | OfModel)
        or (isinstance(query, SecondMoments) and query.by_class)
        or (isinstance(query, WeighedSums) and isinstance(query.by, str))
    )
    if labels == NUMBER and of_classes:
        raise BadInput(
            f"query {query.name}: {type(query).__name__} is of classes, and dataset.target is a "
            "number. Ask for WeighedSums by number, SecondMoments of all records, or RecordSum."
        )
    if labels != NUMBER and of_number:
        raise BadInput(
            f"query {query.name}: {type(query).__name__} is of a number, and dataset.target "
            "declares none. Declare it, or ask for sums of classes."
        )


def _steps(sampled: Sequence[Query], rate: float) -> tuple[Counted, ...]:
    """Queries of one step see one sample, so they compose inside the sampling: composed outside it,
    they would pass for independent samples. A query is asked once a sample at most, and of samples
    that answer queries asked `count` times or less there are `count` at most (`Curator._sample`).
    So however a method spreads its questions, each sample answers no more than one here."""
    starts, before = [], 0
    for count in sorted({query.count for query in sampled}):
        inside = _merged(query.events() for query in sampled if query.count >= count)
        alone = len(inside) == 1 and inside[0].count == 1
        event = inside[0].event if alone else Composed(tuple(inside))
        starts.append(Counted(Sampled(rate, event), count - before))
        before = count
    return tuple(starts)


def _merged(events: Iterable[Counted]) -> list[Counted]:
    """Equal neighbours as one event."""
    return [
        Counted(event, sum(one.count for one in same))
        for event, same in groupby(events, lambda counted: counted.event)
    ]
