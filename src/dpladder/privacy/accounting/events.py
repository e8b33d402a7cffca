"""Events, which say how a mechanism uses data, and the spend that pins an event to a lineage and a
partition.

They are plain data: frozen, checked when they are made, and written to the ledger as JSON. What
they cost stands in booking.py. All noise is relative to a sensitivity under the lineage's own
relation, so an event means the same under both relations, but for `Sampled`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from dpladder.errors import BadInput, Refused
from dpladder.privacy.accounting import gdp

Relation = Literal["add_remove", "replace_one"]


@dataclass(frozen=True)
class Gaussian:
    """Gaussian mechanism: exactly 1/sigma-GDP, whatever the relation is (gdp.py).

    Attributes:
        sigma: noise sd over the L2 sensitivity *under the lineage's own relation*.
    """

    sigma: float

    def __post_init__(self) -> None:
        _check_number("Gaussian.sigma", self.sigma)


@dataclass(frozen=True)
class Laplace:
    """Laplace mechanism, 1/scale-DP.

    Attributes:
        scale: the noise's scale over the L1 sensitivity under the lineage's relation.
    """

    scale: float

    def __post_init__(self) -> None:
        _check_number("Laplace.scale", self.scale)


@dataclass(frozen=True)
class Sampled:
    """Poisson sampling: each unit enters independently with `probability`, then `event` sees the
    sample.

    Under replace_one a unit may leave the sample while its replacement enters. So the sensitivity
    that `event` counts is twice what one unit can add, even where two units' contributions can
    never be opposite. (`draws.sampled_sensitivity` has the proof.)
    """

    probability: float
    event: Event

    def __post_init__(self) -> None:
        _check_number("Sampled.probability", self.probability, high=1.0)
        _check_type("Sampled.event", self.event, Event)


@dataclass(frozen=True)
class Exponential:
    """Exponential mechanism, or any other pure epsilon-DP release: its bound is that of randomised
    response, the worst of them all."""

    epsilon: float

    def __post_init__(self) -> None:
        _check_number("Exponential.epsilon", self.epsilon)


@dataclass(frozen=True)
class PureLoss:
    """A pure epsilon-DP release, charged by its epsilon alone. It takes nothing of a Gaussian, and
    adds to the losses of its lineage, which has to set some aside (`Terms.loss`)."""

    epsilon: float

    def __post_init__(self) -> None:
        _check_number("PureLoss.epsilon", self.epsilon)


@dataclass(frozen=True)
class ApproximateDp:
    """A mechanism known only to be (epsilon, delta)-DP, under the lineage's own relation. No
    mechanism of which this holds is worse than to reveal everything with probability delta, and
    else to answer by randomised response (Kairouz, Oh & Viswanath 2015, on dominance)."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _check_number("ApproximateDp.epsilon", self.epsilon)
        _check_number("ApproximateDp.delta", self.delta, high=1.0)


@dataclass(frozen=True)
class DiscreteGaussian:
    """A whole number with discrete Gaussian noise (Canonne, Kamath & Steinke 2020).

    Attributes:
        sigma: P(x) is proportional to exp(-x^2 / (2 sigma^2)) at each whole x.
        sensitivity: the most that the number moves under the lineage's own relation.
    """

    sigma: float
    sensitivity: int

    def __post_init__(self) -> None:
        _check_number("DiscreteGaussian.sigma", self.sigma)
        _check_count("DiscreteGaussian.sensitivity", self.sensitivity)


@dataclass(frozen=True)
class MixtureOfGaussians:
    """N(0, sd^2) without a unit, and with it the mixture of N(c_i, sd^2) with probabilities p_i
    (Choquette-Choo et al. 2024, arXiv 2310.15526). Under add_remove alone.

    Attributes:
        sd: of the noise.
        sensitivities, probabilities: the c_i, none negative, and the p_i, which add up to 1.
    """

    sd: float
    sensitivities: tuple[float, ...]
    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        _check_number("MixtureOfGaussians.sd", self.sd)
        for name in ("sensitivities", "probabilities"):
            _check_tuple(f"MixtureOfGaussians.{name}", getattr(self, name), float)
        pairs = list(zip(self.sensitivities, self.probabilities, strict=False))
        fits = len(self.sensitivities) == len(self.probabilities) and pairs
        in_range = all(0 <= c < math.inf and 0 < p <= 1 for c, p in pairs)
        if not (fits and in_range and abs(math.fsum(self.probabilities) - 1.0) < 1e-9):
            raise BadInput(
                f"MixtureOfGaussians has sensitivities {self.sensitivities} and probabilities "
                f"{self.probabilities}. It must have as many of both: sensitivities of 0 or more, "
                "and positive probabilities that add up to 1."
            )


@dataclass(frozen=True)
class ZCdp:
    """A mechanism known only to be rho-zCDP (Bun & Steinke 2016, Definition 1.1), under the
    lineage's own relation."""

    rho: float

    def __post_init__(self) -> None:
        _check_number("ZCdp.rho", self.rho)


@dataclass(frozen=True)
class RepeatAndSelect:
    """Run `event` K times, K secret, and publish the best run only (Papernot & Steinke 2022;
    selection.py).

    Attributes:
        event: one run, its score included.
        mean, shape: the law of K: 1 is geometric, 0 logarithmic, inf Poisson.
        limit: where K is cut off, if it is.
        low, high: runs may look at earlier ones; their law stays within [low, high] of its prior
            (Wang et al. 2023).
    """

    event: Event
    mean: float
    shape: float
    limit: int | None = None
    low: float = 1.0
    high: float = 1.0

    def __post_init__(self) -> None:
        _check_type("RepeatAndSelect.event", self.event, Event)
        _check_number("RepeatAndSelect.mean", self.mean, low=1.0)
        if self.shape not in (0, math.inf):
            _check_number("RepeatAndSelect.shape", self.shape)
        if self.limit is not None:
            _check_count("RepeatAndSelect.limit", self.limit)
        _check_number("RepeatAndSelect.low", self.low, high=1.0)
        _check_number("RepeatAndSelect.high", self.high, low=1.0)


@dataclass(frozen=True)
class SubsetSelect:
    """Tune on a secret random subset, and train on the rest or on everything (Koskela & Kulkarni
    2023; subset.py). Under add_remove alone.

    Attributes:
        probability: with which each unit lies in the subset.
        tuning: a private selection on the subset.
        final: the training; it sees the other units if `apart`, else all of them.
        delta0: that all of it is booked at (booking.py).
    """

    probability: float
    tuning: RepeatAndSelect
    final: Gaussian
    apart: bool
    delta0: float

    def __post_init__(self) -> None:
        _check_number("SubsetSelect.probability", self.probability, high=1.0)
        _check_type("SubsetSelect.tuning", self.tuning, RepeatAndSelect)
        _check_type("SubsetSelect.final", self.final, Gaussian)
        _check_type("SubsetSelect.apart", self.apart, bool)
        _check_number("SubsetSelect.delta0", self.delta0, high=1.0)


@dataclass(frozen=True)
class Booked:
    """Events composed exactly, and charged as the smallest Gaussian that dominates them up to a
    probability of `delta0` (booking.py). Events that are no Gaussians are charged in no other way.
    Around Gaussians it is a reservation: room for something of that mu and that delta0."""

    events: tuple[Counted, ...]
    delta0: float

    def __post_init__(self) -> None:
        _check_tuple("Booked.events", self.events, Counted)
        _check_number("Booked.delta0", self.delta0, high=1.0)


@dataclass(frozen=True)
class Composed:
    """Several events on the same data, in any order."""

    events: tuple[Counted, ...]

    def __post_init__(self) -> None:
        _check_tuple("Composed.events", self.events, Counted)


@dataclass(frozen=True)
class Counted:
    """An event, `count` times, each with noise of its own."""

    event: Event
    count: int = 1

    def __post_init__(self) -> None:
        _check_type("Counted.event", self.event, Event)
        _check_count("Counted.count", self.count)


@dataclass(frozen=True)
class Nothing:
    """No privacy cost, and why."""

    reason: str

    def __post_init__(self) -> None:
        _check_text("Nothing.reason", self.reason)


Event = (
    Gaussian
    | Laplace
    | Sampled
    | Exponential
    | PureLoss
    | ApproximateDp
    | DiscreteGaussian
    | MixtureOfGaussians
    | ZCdp
    | RepeatAndSelect
    | SubsetSelect
    | Booked
    | Composed
    | Nothing
)


def partition_version(declared: int | None) -> str:
    """A version of the data as a partition has it: empty where the operator declared none."""
    return "" if declared is None else str(declared)


@dataclass(frozen=True)
class Partition:
    """The parts of a split rule that a mechanism reads. Disjoint parts compose in parallel
    (composition.py).

    Attributes:
        split_rule: what decides which part a unit lies in.
        parts: their names. No parts named means every part.
        version: of the data, by the number that the operator gave it. A unit's part may change
            with it, so a version is a split of its own.
    """

    split_rule: str
    parts: tuple[str, ...] = ()
    version: str = ""

    def __post_init__(self) -> None:
        _check_text("Partition.split_rule", self.split_rule)
        _check_tuple("Partition.parts", self.parts, str)
        if {"", "*"} & set(self.parts) or len(set(self.parts)) < len(self.parts):
            raise BadInput(
                f"Partition.parts is {self.parts}. Name each part once; no name is empty or an "
                "asterisk."
            )


@dataclass(frozen=True)
class Job:
    """A job of the workflow by its label, for display alone: the ledger knows questions.

    Attributes:
        experiment, rule: their names.
        wildcards: pairs of a name and a value, sorted by name.
    """

    experiment: str
    rule: str
    wildcards: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        _check_text("Job.experiment", self.experiment)
        _check_text("Job.rule", self.rule)
        _check_tuple("Job.wildcards", self.wildcards, tuple)
        for pair in self.wildcards:
            _check_tuple("Job.wildcards", pair, str)
        if any(len(pair) != 2 for pair in self.wildcards):
            raise BadInput(
                f"Job.wildcards is {self.wildcards}. It must hold pairs of a name and a value."
            )

    @classmethod
    def of(cls, experiment: str, rule: str, wildcards: Mapping[str, str]) -> Job:
        """A job with its wildcards in one order. The experiment's own name among them is left out:
        the job has it already."""
        pairs = {key: value for key, value in wildcards.items() if key != "experiment"}
        return cls(experiment, rule, tuple(sorted(pairs.items())))

    def __str__(self) -> str:
        wildcards = (f" {key}={value}" for key, value in self.wildcards)
        return f"{self.experiment}/{self.rule}{''.join(wildcards)}"


@dataclass(frozen=True)
class Spend:
    """One mechanism's event, `count` times, on one lineage: what the ledger books.

    Attributes:
        lineage: whose units bear it.
        relation: what neighbours are; a lineage has one for life.
        partition: whose units the mechanism reads.
        event: what it does to them.
        count: how often, each time with noise of its own.
        label: what it buys, for the reader alone: "weights", "score".
        query: digest of the query that was charged. A plan does not know it: inputs do not exist
            yet.
    """

    lineage: str
    relation: Relation
    partition: Partition
    event: Event
    count: int = 1
    label: str = ""
    query: str | None = None

    def __post_init__(self) -> None:
        _check_text("Spend.lineage", self.lineage)
        if self.relation not in get_args(Relation):
            raise BadInput(
                f"Spend.relation is {self.relation!r}. It must be one of "
                f"{', '.join(get_args(Relation))}."
            )
        _check_type("Spend.partition", self.partition, Partition)
        _check_type("Spend.event", self.event, Event)
        _check_count("Spend.count", self.count)
        _check_type("Spend.label", self.label, str)
        _check_type("Spend.query", self.query, str | None)


_TYPES = {cls.__name__: cls for cls in (*get_args(Event), Counted, Partition, Job, Spend)}
_FIELDS = {name: {f.name for f in dataclasses.fields(cls)} for name, cls in _TYPES.items()}


def mu(event: Event, count: int = 1) -> float | None:
    """The mu of `count` such events, rounded up, if they are made of Gaussians and nothing only.
    Else None: they have no closed form, and booking.py prices them."""
    match event:
        case Gaussian(sigma):
            return gdp.mu_from_sigma(sigma, count)
        case Composed(events):
            parts = [mu(part.event, part.count * count) for part in events]
            return (
                None if None in parts else gdp.compose(part for part in parts if part is not None)
            )
        case Nothing():
            return 0.0
    return None


def to_json(value: Any) -> Any:
    """A spend, or any of its pieces, as plain JSON values; `from_json` reads it back equal. JSON
    has no infinity: a Poisson law's shape is written as text."""
    if dataclasses.is_dataclass(value):
        fields = {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"type": type(value).__name__, **fields}
    if isinstance(value, tuple):
        return [to_json(item) for item in value]
    return "inf" if value == math.inf else value


def from_json(value: Any) -> Any:
    """What `to_json` wrote.

    Raises:
        Refused: a type or field that this version does not know. It is never skipped: a field that
            is not understood may raise a price.
        BadInput: a field is missing, or out of range.
    """
    if isinstance(value, list):
        return tuple(from_json(item) for item in value)
    if not isinstance(value, dict):
        return value
    name = value.get("type")
    if not isinstance(name, str) or name not in _TYPES:
        raise Refused(
            f"Unknown type {name!r}: written by a newer version? Known are {', '.join(_TYPES)}."
        )
    fields = {key: from_json(item) for key, item in value.items() if key != "type"}
    if unknown := sorted(fields.keys() - _FIELDS[name]):
        raise Refused(
            f"Unknown field {', '.join(unknown)} in {name}: written by a newer version? Upgrade "
            "dpladder."
        )
    if name == "RepeatAndSelect" and fields.get("shape") == "inf":
        fields["shape"] = math.inf
    try:
        return _TYPES[name](**fields)
    except TypeError as error:
        raise BadInput(
            f"A {name} cannot be read: fields {', '.join(sorted(fields)) or 'none'} given, {error}."
        ) from None


def flatten_events(events: Iterable[Counted]) -> Iterator[Counted]:
    """What compositions hold, and what is booked together, one by one, with counts multiplied.
    Samples and selections stay whole: what is inside them costs another price alone."""
    for counted in events:
        if isinstance(counted.event, Composed | Booked):
            yield from flatten_events(
                Counted(e.event, e.count * counted.count) for e in counted.event.events
            )
        else:
            yield counted


def event_kind(event: Event) -> str:
    """The event's kind without its numbers, as messages name it: `Sampled[Gaussian]`."""
    inner = getattr(event, "event", None)
    if isinstance(event, Composed | Booked):
        inside = ", ".join(dict.fromkeys(event_kind(part.event) for part in event.events))
        return f"{type(event).__name__}[{inside}]"
    return type(event).__name__ + (f"[{event_kind(inner)}]" if inner is not None else "")


def _check_number(name: str, value: object, low: float = 0.0, high: float = math.inf) -> None:
    number = math.nan if isinstance(value, bool) or not isinstance(value, int | float) else value
    if not (0 < number < math.inf and low <= number <= high):
        allowed = f"{low:g} or more" if low else "positive"
        allowed += " and finite" if high == math.inf else f", at most {high:g}"
        raise BadInput(f"{name} is {value!r}. It must be a number, {allowed}.")


def _check_count(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BadInput(f"{name} is {value!r}. It must be a whole number, 1 or more.")


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise BadInput(f"{name} is {value!r}. It must be text, and not empty.")


def _check_type(name: str, value: object, allowed: Any) -> None:
    if not isinstance(value, allowed):
        words = ", ".join(
            "None" if cls is type(None) else cls.__name__ for cls in get_args(allowed) or (allowed,)
        )
        raise BadInput(f"{name} is {value!r}. It must be one of {words}.")


def _check_tuple(name: str, value: object, of: type) -> None:
    if not isinstance(value, tuple) or not all(isinstance(item, of) for item in value):
        raise BadInput(f"{name} is {value!r}. It must be a tuple of {of.__name__}.")
