"""The curator holds the records and the meter. It answers the questions that a method declared,
noised and on the public grid, and no others.

A method is a generator. It yields questions and is sent answers; all that it knows are public
inputs (`PublicInputs`) and these answers, so what it returns is post-processing. Several trainings
run side by side: questions of one kind are answered over one pass of the records.

What is said of a sum's sensitivity stands with its query (learn/queries.py). The same `bound` that
is declared there is what records are kept within here. Products are float32 inside a chunk; clip
factors, sums over chunks and noise are float64.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpladder.config.model import Resources
from dpladder.errors import BadInput, Refused
from dpladder.learn import counts, linear, moments
from dpladder.learn.bounds import SLACK, scale_of
from dpladder.learn.data import Data
from dpladder.learn.interface import Claim, Constants
from dpladder.learn.links import Link
from dpladder.learn.queries import (
    LEAST_LOSS_BOUND,
    SAMPLE,
    Curvatures,
    GradientSum,
    LinearHead,
    LossDifference,
    LossSums,
    Model,
    OfModel,
    Query,
    QueryCall,
    RecordSum,
    ResidualSum,
    RightCount,
    SecondMoments,
    WeighedSums,
)
from dpladder.learn.records import Guide, Records, Rows, Sums, prepare
from dpladder.privacy.release.meter import Meter
from dpladder.progress import LONG, progress

Result = TypeVar("Result")
Training = Generator[QueryCall | list[QueryCall], Any, Result]
"""A method at work: it yields a question, or several that are answered side by side, and is sent
the answer, or their answers."""


@dataclass(frozen=True)
class PublicInputs:
    """All that a method knows beside answers: public inputs, and what was released before. No
    record, and no figure that follows from the private part.

    Attributes:
        device: where answers lie.
        number: of the training among those that run together.
        start: a head trained on public data.
        claim: how good that head is about public records.
        worth: as how many private records of the same kind a public one counts, by a look that was
            released before.
        units: of the public sample.
        directions: that its features take up (learn/guide.py).
    """

    device: torch.device
    threads: int = 1
    number: int = 0
    start: NDArray[np.float32] | None = None
    claim: Claim | None = None
    worth: float | None = None
    units: int | None = None
    directions: float | None = None

    def zeros(self, *shape: int) -> Tensor:
        """float64 zeros where answers lie."""
        return torch.zeros(shape, dtype=torch.float64, device=self.device)

    def map_in_threads(self, work: Callable[..., Result], *each: Iterable[Any]) -> list[Result]:
        """`map`, shared out to the threads; results in the order of the items."""
        return _map_in_threads(self.threads, work, *each)


Begin = Callable[[PublicInputs, tuple[Query, ...]], Training[Result]]


@dataclass(eq=False)
class _Seat:
    """One training at work.

    Attributes:
        kinds: which of the curator's kinds each declared query is, by the query's identity.
        mask: the present sample, which is secret.
        seen: names of the queries that were asked on it.
        counts: how often each sampled query is asked, each number once.
        rarest: how often the rarest query on the present sample is asked.
        samples: by each number of `counts`, how many samples answered a query that is asked so
            often or less.
        releases: of each query that comes class by class, what its present release is asked at, and
            which classes are left of it.
    """

    training: Training[Any]
    kinds: dict[int, int]
    meter: Meter
    mask: NDArray[np.bool_] | None = None
    seen: set[str] = field(default_factory=set)
    counts: tuple[int, ...] = ()
    rarest: float = math.inf
    samples: Counter[int] = field(default_factory=Counter)
    releases: dict[str, tuple[list[Any], set[int]]] = field(default_factory=dict)


class Curator:
    """Answers for one set of records.

    Args:
        data: private features and labels, with what was released before.
        constants: public sizes and bounds; queries are checked against them.
        resources: threads, memory and device, which no answer depends on but by rounding.
    """

    def __init__(self, data: Data, constants: Constants, resources: Resources) -> None:
        self._data, self._constants, self._resources = data, constants, resources
        self._device = prepare(resources)
        self._ready: dict[Any, Any] = {}
        # of the last residuals: their query's radius and link, their weights, and its levels
        self._levels: tuple[float, str, Tensor, moments.Levels] | None = None

    def run(
        self,
        begin: Begin[Result],
        queries: Sequence[tuple[Query, ...]],
        meters: Sequence[Meter],
        guided: bool = False,
    ) -> list[Result]:
        """Run methods side by side and answer their questions.

        Guarantee: that of the declared draws. A query that was not declared is refused before any
        record is read. A question that is none of the declared queries is not answered.

        Args:
            begin: starts one method, of its public inputs and its queries.
            queries: of each method, all that it may ask.
            meters: of each method, all its noise.
            guided: whether public records guide them.

        Returns:
            What each method returns, such as released weights.

        Raises:
            Refused: a query's draw was not declared, or a question is none of the queries.
        """
        inputs = self._prepare(queries, guided)
        kinds: list[Query] = []
        seats = []
        for number, (queries_of_training, meter) in enumerate(zip(queries, meters, strict=True)):
            for query in queries_of_training:
                if query.asks_records:
                    counts.refuse_undeclared(query, self._constants, meter)
            training = begin(replace(inputs, number=number), queries_of_training)
            kinds_by_id = {id(query): _kind_of(query, kinds) for query in queries_of_training}
            sampled = {query.count for query in queries_of_training if query.sampling_rate < 1.0}
            seats.append(_Seat(training, kinds_by_id, meter, counts=tuple(sampled)))
        return self._run_trainings(
            seats, max(queries[0], key=lambda query: query.count, default=None)
        )

    def ask(self, question: QueryCall, meter: Meter) -> Tensor:
        """The noised answer to one question, of a query that is asked once.

        Args:
            question: a declared query with its public arguments.
            meter: its noise.

        Returns:
            float64 on the public grid, of the query's shape.
        """

        def begin(_: PublicInputs, __: tuple[Query, ...]) -> Training[Tensor]:
            answer: Tensor = yield question
            return answer

        [answer] = self.run(begin, [(question.query,)], [meter])
        return answer

    @torch.no_grad()
    def _run_trainings(self, seats: Sequence[_Seat], longest: Query | None) -> list[Any]:
        """Ask every training for its next question until all have returned."""
        results: dict[int, Any] = {}
        waiting: dict[int, Any] = dict.fromkeys(range(len(seats)))
        steps = longest.count if longest else 1
        with progress("training", steps, "steps", after=LONG) as advance:
            while waiting:
                questions: dict[int, QueryCall | list[QueryCall]] = {}
                for number, answer in waiting.items():
                    try:
                        questions[number] = seats[number].training.send(answer)
                    except StopIteration as done:
                        results[number] = done.value
                flat = [
                    (seats[number], _tame(question))
                    for number, call in questions.items()
                    for question in (call if isinstance(call, list) else [call])
                ]
                answers = iter(self._answer(flat))
                waiting = {
                    number: [next(answers) for _ in call]
                    if isinstance(call, list)
                    else next(answers)
                    for number, call in questions.items()
                }
                advance(any(question.query is longest for _, question in flat))
        return [results[number] for number in range(len(seats))]

    def _answer(self, questions: Sequence[tuple[_Seat, QueryCall]]) -> list[Tensor]:
        """Sums of one kind over one pass; each with the noise that its own meter declares, and
        joined by what was released of it before."""
        groups: dict[Any, list[int]] = {}
        masks: list[NDArray[np.bool_] | None] = []
        asked_before: Counter[Any] = Counter()
        for place, (seat, question) in enumerate(questions):
            kind = seat.kinds.get(id(question.query))
            if kind is None:
                raise Refused(
                    "a method asks what it did not declare. Nothing was answered: yield questions "
                    "of the queries that it is given."
                )
            self._take_class(seat, question)
            sampled = question.query.sampling_rate < 1.0 and question.step is None
            asks = question.query.asks_records
            masks.append(self._sample(seat, question.query) if sampled and asks else None)
            if not asks:
                continue
            # trainings share a pass, but each has samples of its own
            key: tuple[Any, ...] = (kind, question.step, id(masks[place]) if sampled else 0)
            if not question.query.stacks:
                key = (*key, place)
            elif isinstance(question.query, GradientSum):
                # one of each training, for so many a machine was tried with (linear.refuse_places)
                asked_before[id(seat), key] += 1
                key = (*key, asked_before[id(seat), key])
            groups.setdefault(key, []).append(place)
        totals: list[Any] = [None] * len(questions)
        # classes share out the threads; what is answered over one pass shares out its chunks
        by_class = all(question.query.parts(self._constants) > 1 for _, question in questions)
        query_sums = _map_in_threads(
            self._threads if by_class else 1,
            lambda group: self._sums_of([questions[place][1] for place in group], masks[group[0]]),
            groups.values(),
        )
        for group, sums in zip(groups.values(), query_sums, strict=True):
            for place, total in zip(group, sums, strict=True):
                totals[place] = total
        return [
            # what the public sample says carries no noise: no private record is near it
            total if question.step is not None else self._release(seat, question, total)
            for (seat, question), total in zip(questions, totals, strict=True)
        ]

    def _release(self, seat: _Seat, question: QueryCall, total: Tensor | None) -> Tensor:
        """The answer from all its releases: this one, and that which trainings share.

        Two of one sum have independent noise of variances proportional to multiplier^2. They weigh
        as multiplier^-2, which has the least variance: what one release at the mu of both together
        would have.
        """
        query, shared = question.query, self._data.shared
        fresh = None if total is None else _publish_sum(seat.meter, query, total)
        place = question.arguments[-1] if query.parts(self._constants) > 1 else 0
        known = None if shared is None else shared.find(query, place)
        if known is None:
            if fresh is None:
                raise Refused(f"the sum {query.name} was to be released before, and was not.")
            return fresh
        before, multiplier = torch.from_numpy(known[0]).to(self._device), known[1]
        if fresh is None:
            return before
        return before.lerp(fresh, multiplier**2 / (multiplier**2 + query.multiplier**2))

    def _take_class(self, seat: _Seat, question: QueryCall) -> None:
        """Refuse a class again, or at other arguments, before all classes of a release were asked.

        A unit moves all classes together no further than one answer, so that is what they cost.
        Asked twice, a class would cost more than was charged.
        """
        query, parts = question.query, question.query.parts(self._constants)
        if parts == 1:
            return
        *at, label = question.arguments
        before, left = seat.releases.get(query.name, (None, set(range(parts))))
        if type(label) is not int or label not in left:
            raise Refused(
                f"query {query.name} comes class by class, each class once, as a number from 0 to "
                f"{parts - 1}. Nothing was answered: ask for each class, then begin again."
            )
        if before is not None and not _are_equal(before, at):
            raise Refused(
                f"query {query.name} comes class by class, all at the same arguments. Nothing was "
                "answered: ask for all classes before the weights change."
            )
        if before is None:  # copies, for a method may change its weights in place
            before = [one.clone() if isinstance(one, Tensor) else one for one in at]
        if left := left - {label}:
            seat.releases[query.name] = (before, left)
        else:
            seat.releases.pop(query.name, None)

    def _sample(self, seat: _Seat, query: Query) -> NDArray[np.bool_]:
        """The present sample, or the next one.

        A query is asked once a sample: asked again, it begins the next one. So no sample answers
        more than was declared of it, and the meter refuses one sample too many. Queries that are
        asked less often must share samples as `queries._steps` prices them.
        """
        if seat.mask is None or query.name in seat.seen:
            if self._data.units is None:
                raise BadInput(
                    "learner.sampling_rate below 1 samples units by id, and these have none. Set "
                    "it to 1."
                )
            seat.mask, seat.seen = seat.meter.mask(SAMPLE, self._data.units), set()
            seat.rarest = math.inf
        for count in seat.counts:
            if query.count <= count < seat.rarest:
                seat.samples[count] += 1
                if seat.samples[count] > count:
                    raise Refused(
                        f"query {query.name} is asked on a sample more than those that are priced "
                        "with it. Nothing was answered: ask queries of equal counts in the same "
                        "steps, and rarer ones in some of these."
                    )
        seat.rarest = min(seat.rarest, query.count)
        seat.seen.add(query.name)
        return seat.mask

    def _sums_of(
        self, questions: Sequence[QueryCall], mask: NDArray[np.bool_] | None
    ) -> Sequence[Tensor]:
        """The sums, without noise, of questions of one kind; over a sample where there is one."""
        query, arguments = questions[0].query, questions[0].arguments
        if questions[0].step is not None:
            return self._public_gradients(query, questions, questions[0].step)
        constants = self._constants
        label = arguments[-1] if query.parts(constants) > 1 else None
        match query:
            case GradientSum():
                sums = self._model(query.model)
                bound = query.bound(constants) * (1.0 - sums.records.slack)
                weights = torch.stack([question.arguments[0] for question in questions])
                scale = scale_of(query.clipping)
                return [*sums.gradients(weights, bound, _rows(sums.records, mask), scale)]
            case LossSums():
                return self._losses(query, questions, mask)
            case LossDifference():
                return self._differences(query, questions, mask)
            case WeighedSums():
                return [self._weighed_sums(query, label)]
            case SecondMoments():
                records = self._records()
                if label is None:
                    chunks, constant = records.chunks(), query.constant
                    return [moments.second_moment(records, query.radius, chunks, constant=constant)]
                return [moments.class_moment(records, query.radius, self._labels, label)]
            case ResidualSum():
                return [self._residuals(query, arguments[0])[0]]
            case Curvatures():
                weights, radius, link = arguments[0], query.radius, self._link(query.link)
                levels = self._levels_at(query, weights)
                return [
                    moments.curvature(self._records(), weights, levels, radius, link, label or 0)
                ]
            case RightCount():
                each = [counts.sum_of(question, self._data, constants) for question in questions]
                return [torch.from_numpy(np.asarray(total)) for total in each]
            case RecordSum():
                return [self._sum_of_records(query, arguments)]
        raise Refused(f"{type(query).__name__} is no kind of query that the curator knows.")

    def _public_gradients(
        self, query: Query, questions: Sequence[QueryCall], step: int
    ) -> Sequence[Tensor]:
        """Answers that carry no noise, for no private record is near them."""
        if not isinstance(query, GradientSum):
            raise Refused(
                f"query {query.name} asks the public sample for more than gradients. Nothing was "
                "answered: leave step out."
            )
        guide = self._guide(query.model)
        bound = query.bound(self._constants) * (1.0 - self._model(query.model).records.slack)
        weights = torch.stack([question.arguments[0] for question in questions])
        return [*guide.mean(weights, bound, step, scale_of(query.clipping))]

    def _residuals(
        self, query: ResidualSum | Curvatures, weights: Tensor
    ) -> tuple[Tensor, moments.Levels]:
        """The sum of logistic regression's residuals, and what curvatures at these weights need."""
        link = self._link(query.link)
        total, levels = moments.residual_sum(self._records(), weights, query.radius, link)
        self._levels = query.radius, query.link, weights, levels
        return total, levels

    def _levels_at(self, query: Curvatures, weights: Tensor) -> moments.Levels:
        """What curvatures at these very weights need, in this very ball.

        With others, a record's probabilities would not add to 1, and its curvatures would not keep
        their bound.
        """
        known = self._levels
        if known is None or not _are_equal(known[:3], (query.radius, query.link, weights)):
            return self._residuals(query, weights)[1]
        return known[3]

    def _losses(
        self, query: LossSums, questions: Sequence[QueryCall], mask: NDArray[np.bool_] | None
    ) -> Sequence[Tensor]:
        """Sums of records' losses, each in units of the public bound and cut to it."""
        sums = self._model(query.model)
        weights = torch.cat([question.arguments[0] for question in questions])
        most = torch.stack([question.arguments[1] for question in questions])
        if not bool((most >= LEAST_LOSS_BOUND).all()):
            raise Refused(
                f"query {query.name} cuts losses at {float(most.min()):g}. They are told no finer "
                f"than {LEAST_LOSS_BOUND:g}: nothing was answered."
            )
        bounds = most.repeat_interleave(query.points)[:, None]

        def bounded(losses: Tensor) -> Tensor:
            # A loss that overflows counts as the largest: a rule that looks at this record alone.
            return (losses / bounds).nan_to_num_(nan=1.0).clamp_(0.0, 1.0 - SLACK)

        loss_sums = sums.losses(weights, bounded, _rows(sums.records, mask))
        return [*loss_sums.view(len(questions), *query.shape(self._constants))]

    def _differences(
        self, query: LossDifference, questions: Sequence[QueryCall], mask: NDArray[np.bool_] | None
    ) -> Sequence[Tensor]:
        """Sums of differences of records' losses, each cut to the query's bound."""
        sums = self._model(query.model)
        bound = query.bound(self._constants) * (1.0 - SLACK)
        heads = [question.arguments[side] for side in (0, 1) for question in questions]

        def bounded(losses: Tensor) -> Tensor:
            ahead, behind = losses.chunk(2)
            # Where both overflow there is no difference: a rule that looks at this record alone.
            return (ahead - behind).clamp_(-bound, bound).nan_to_num_(nan=0.0)

        return [*sums.losses(torch.stack(heads), bounded, _rows(sums.records, mask))]

    def _weighed_sums(self, query: WeighedSums, label: int | None) -> Tensor:
        """Sums of w x, by the weights that the query names, of one class or of all classes."""
        records, constants, radius = self._records(), self._constants, query.radius
        if query.by == "class":
            classes = range(constants.classes) if label is None else [label]
            each = [moments.class_sum(records, radius, self._labels, one) for one in classes]
            return each[0] if query.apart else torch.stack(each)
        if callable(query.by):
            weigh = self._trace_function(query.by, ())
            return moments.sums_weighed_per_record(records, radius, weigh, query.constant)
        if query.by == "number":
            weights = moments.number_weights(records.labels)
            return moments.weighed_sums(records, radius, weights, query.constant)
        of = moments.presence_weights if query.by == "presence" else moments.absence_weights
        return moments.weighed_sums(records, radius, of(records.labels, constants.classes))

    def _sum_of_records(self, query: RecordSum, arguments: tuple[Any, ...]) -> Tensor:
        """The sum of a plug-in's function of single records, each value cut to the query's
        bound."""
        records = self._records()
        bound = query.bound(self._constants) * (1.0 - records.slack)
        each = self._trace_function(query.of, arguments)
        return moments.sum_of_records(records, each, arguments, query.of_shape, bound)

    def _trace_function(
        self, of: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> moments.OfRecord:
        """Traced once. Of other tensors it is the same but for their values; what is no tensor
        stands in the trace."""
        key = ("trace", of, *(o.shape if isinstance(o, Tensor) else repr(o) for o in arguments))
        return self._cached(key, lambda: moments.trace_per_record(self._records(), of, *arguments))

    def _prepare(self, queries: Sequence[tuple[Query, ...]], guided: bool) -> PublicInputs:
        """Make records ready for all queries. Returns the public inputs."""
        models = [
            one.model
            for queries_of_training in queries
            for one in queries_of_training
            if isinstance(one, OfModel)
        ]
        for model in models:
            self._model(model)
        if all(isinstance(model, LinearHead) for model in models):
            # from here on threads share out chunks and classes, and no two meet inside an operation
            torch.set_num_threads(1)
        data, guide = self._data, self._guide(models[0]) if guided else None
        return PublicInputs(
            self._device,
            self._threads,
            start=data.start,
            claim=data.claim,
            worth=data.worth,
            units=None if guide is None else guide.units,
            directions=None if guide is None else guide.directions,
        )

    @property
    def _threads(self) -> int:
        return 1 if self._device.type == "cuda" else self._resources.threads

    def _cached(self, key: Any, make: Callable[[], Result]) -> Result:
        """What was made before under this key, or is made now. Records never change while a curator
        holds them."""
        if key not in self._ready:
            self._ready[key] = make()
        result: Result = self._ready[key]
        return result

    def _records(self, views: int = 1, bias: bool = False) -> Records:
        """The records, ready for a linear head."""
        data, constants = self._data, self._constants
        return self._cached(
            ("records", views, bias),
            lambda: linear.resident(data, constants, self._resources, views, bias),
        )

    @property
    def _labels(self) -> Tensor:
        return self._cached(
            "labels", lambda: moments.class_labels(self._records(), self._constants)
        )

    def _link(self, name: Any) -> Link:
        return Link(name, self._constants.classes, self._constants.labels)

    def _model(self, model: Model) -> Sums:
        """The sums of a model's gradients and losses."""
        if isinstance(model, LinearHead):
            records = self._records(model.views, model.bias)
            return linear.sums_of(records, self._threads, self._link(model.link))
        engine = import_module(model.engine)
        return self._cached(
            ("model", model),
            lambda: engine.sums_of(model, self._data, self._constants, self._resources),
        )

    def _guide(self, model: Model) -> Guide:
        """The public sample, ready to be asked for gradients."""
        sample = self._data.sample
        if sample is None:
            raise BadInput(
                "learner.public: gradient has no public records. The workflow has them from "
                "dataset.public_sample."
            )
        engine = linear if isinstance(model, LinearHead) else import_module(model.engine)
        return self._cached(
            ("guide", model),
            lambda: engine.guide_of(model, sample, self._constants, self._resources),
        )


def _kind_of(query: Query, kinds: list[Query]) -> int:
    """Which of the kinds it is; a new one if it is none. Queries of one kind differ in names,
    noise and number alone, so one pass over the records can add up their sums."""
    kind = query.kind
    if kind not in kinds:
        kinds.append(kind)
    return kinds.index(kind)


def _rows(records: Records, mask: NDArray[np.bool_] | None) -> list[Rows]:
    """All rows, or those of a sample."""
    return records.chunks() if mask is None else records.select_rows(mask)


def _publish_sum(meter: Meter, query: Query, total: Tensor) -> Tensor:
    """A sum with its declared noise, on the public grid and on the sum's device.

    The sum is finite: each record's contribution is, whatever the record (learn/bounds.py).
    """
    torch._assert_async(total.isfinite().all(), "a sum is not finite")
    noise = meter.noise(query.name, tuple(total.shape))
    values = torch.from_numpy(np.asarray(noise.values))
    if total.is_cuda:  # from pinned memory the copy runs beside the step's work
        values = values.pin_memory().to(total.device, non_blocking=True)
    published: Tensor = noise.add_to(total.double(), values)
    return published


def _tame(question: QueryCall) -> QueryCall:
    """The question, about weights by which float64 tells a record's probabilities apart."""
    query = question.query
    if not isinstance(query, ResidualSum | Curvatures):
        return question
    weights, *label = question.arguments
    return replace(question, arguments=(moments.tame_weights(weights, query.radius), *label))


def _are_equal(before: Sequence[Any], now: Sequence[Any]) -> bool:
    """Whether the arguments of two questions are the same, number by number."""
    return len(before) == len(now) and all(
        torch.equal(one, other)
        if isinstance(one, Tensor) and isinstance(other, Tensor)
        else one is other or one == other
        for one, other in zip(before, now, strict=True)
    )


def _map_in_threads(
    threads: int, work: Callable[..., Result], *each: Iterable[Any]
) -> list[Result]:
    if threads == 1:
        return [*map(work, *each)]
    with ThreadPoolExecutor(threads) as pool:
        return [*pool.map(torch.no_grad()(work), *each)]
