"""What a mechanism of the user's own costs: from a `DpEvent` of dp_accounting, or an Opacus
accountant's history, to events.

Their noise multiplier is noise over what one record can add, C. Under replace_one a record leaves
while another one comes, which moves a sum by 2 C. An event of ours counts noise over what the
lineage's relation moves. So there multipliers are halved, which is what dp_accounting does with its
privacy loss distributions too.

A rho (ZCDpEvent), an epsilon (ExponentialMechanismDpEvent, PermuteAndFlipDpEvent,
EpsilonDeltaDpEvent) and a randomised response are guarantees, and no noise over what one record
adds. They are for the lineage's own relation, and nothing about them is halved. Whoever knows a rho
where records are added or removed gives 4 rho under replace_one. Two such steps lie between its
neighbours, and over k steps a rho becomes k^2 rho (Bun & Steinke 2016, on groups).

Pure mechanisms are charged the cheapest of three ways: each as the Gaussian that dominates it, weak
ones of one spend together as one Gaussian, or, where the lineage sets losses aside, by the sum of
their epsilons.

dp_accounting's events are known by the names of their kinds: a version that has more of them than
another needs no other code here. DiscreteGaussian, ExponentialMechanism, PermuteAndFlip and
EpsilonDelta are of such a version; until it is out, people write these classes themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dpladder.errors import BadInput, Refused
from dpladder.privacy.accounting import booking
from dpladder.privacy.accounting.events import (
    ApproximateDp,
    Booked,
    Composed,
    Counted,
    DiscreteGaussian,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    MixtureOfGaussians,
    PureLoss,
    Relation,
    RepeatAndSelect,
    Sampled,
    ZCdp,
    event_kind,
    flatten_events,
    mu,
)

Mechanism = Any  # a DpEvent, an Opacus accountant, its history, or a sequence of these

KNOWN = (
    "Gaussian, DiscreteGaussian, Laplace, DiscreteLaplace, ExponentialMechanism, PermuteAndFlip, "
    "EpsilonDelta, MixtureOfGaussians (add_remove), RandomizedResponse (replace_one), ZC, "
    "Composed, SelfComposed, RepeatAndSelect of Gaussians, PoissonSampled of Gaussians or of one "
    "Laplace, NoOp"
)
# Epsilon up to which pure mechanisms are composed by their losses. Of stronger ones little is to be
# gained, their grid of losses is long, and no Gaussian may dominate them all at a small delta0.
WEAK = 1.0
# Gaussian only up to a small probability: booked at a delta0, each kind with its like.
NEARLY_GAUSSIAN = (Sampled, ZCdp, ApproximateDp | DiscreteGaussian | MixtureOfGaussians)


@dataclass(frozen=True)
class Steps:
    """Steps of DP-SGD, as Opacus counts them.

    Attributes:
        noise_multiplier: noise over the clipping norm, whatever the relation.
        sample_rate: of Poisson samples; 1 where there are none.
        count: how many steps.
    """

    noise_multiplier: float
    sample_rate: float
    count: int


def events_of(
    mechanism: Mechanism, relation: Relation, delta0: float, delta: float, loss: float = 0.0
) -> tuple[Event, ...]:
    """The events that a spend is charged.

    Samples, zCDP and what else is Gaussian only nearly are composed among themselves and booked at
    `delta0`; pure mechanisms are charged as `_cheapest_of_pure` says; Gaussians have an entry of
    their own.

    Args:
        mechanism: a DpEvent, an Opacus accountant, its history, or a list of these.
        relation: the lineage's; multipliers are over what one record adds.
        delta0: probability of revealing everything that is set aside for one booking.
        delta: the lineage's.
        loss: the largest sum of pure losses that the lineage allows.

    Raises:
        BadInput: the mechanism costs nothing, or is none of these.
        Refused: no price is known for it under this relation, or it has no noise.
    """
    parts = list(flatten_events(_events(mechanism, relation)))
    if not parts:
        raise BadInput(
            "this mechanism costs nothing: there is nothing to reserve, and nothing to commit."
        )
    booked = []
    for kinds in NEARLY_GAUSSIAN:
        group = tuple(part for part in parts if isinstance(part.event, kinds))
        if group and not delta0:
            raise Refused(
                f"{event_kind(group[0].event)} is Gaussian only up to a small probability, and "
                "this lineage sets no share of delta aside for that. Give Gaussians on all "
                "records; or open another lineage, in a config with privacy.share."
            )
        if group:
            revealed = math.fsum(_delta_of(part.event) * part.count for part in group)
            booked.append(Booked(group, delta0 + revealed))
    pure = tuple(part for part in parts if isinstance(part.event, Exponential | Laplace))
    rest = tuple(p for p in parts if p not in pure and not isinstance(p.event, NEARLY_GAUSSIAN))
    plain = (Composed(rest),) if rest else ()
    return (*plain, *_cheapest_of_pure(pure, relation, delta0, delta, loss), *booked)


def _delta_of(event: Event) -> float:
    """The probability of revealing everything that is the mechanism's own."""
    return event.delta if isinstance(event, ApproximateDp) else 0.0


def _cheapest_of_pure(
    parts: tuple[Counted, ...], relation: Relation, delta0: float, delta: float, loss: float
) -> tuple[Event, ...]:
    """The events that charge pure mechanisms of one spend least, as if nothing else was spent.

    Args:
        parts: randomised responses, Laplace noise, and what is known as pure alone.
        relation, delta0, delta, loss: as `events_of` takes them.
    """
    if not parts:
        return ()
    ways: list[Event] = [Composed(parts)]
    losses = [_epsilon_of_pure(part.event) for part in parts]
    if delta0 and max(losses) <= WEAK and sum(part.count for part in parts) > 1:
        ways.append(Booked(parts, delta0))
    together = math.fsum(one * part.count for one, part in zip(losses, parts, strict=True))
    if together <= loss:
        ways.append(PureLoss(together))
    return (min(ways, key=lambda way: booking.epsilon(booking.price(way, relation), delta)),)


def _epsilon_of_pure(event: Event) -> float:
    assert isinstance(event, Exponential | Laplace)
    return event.epsilon if isinstance(event, Exponential) else 1.0 / event.scale


def steps_of(events: Sequence[Event], relation: Relation) -> list[Steps]:
    """The Gaussian noise in a spend's events, in the words of who draws it: multipliers over what
    one record adds, whatever the relation."""
    steps = []
    for part in flatten_events(Counted(event) for event in events):
        rate, inner = (
            (part.event.probability, part.event.event)
            if isinstance(part.event, Sampled)
            else (1.0, part.event)
        )
        if isinstance(inner, Gaussian):
            steps.append(Steps(inner.sigma * sensitivity_factor(relation), rate, part.count))
    return steps


def _events(mechanism: Mechanism, relation: Relation) -> Iterator[Counted]:
    """The events of a mechanism in any of the forms that are taken."""
    match getattr(mechanism, "history", mechanism):
        case (int() | float() as multiplier, int() | float() as rate, int() as count):
            inner = Gaussian(
                _positive("noise_multiplier", multiplier) / sensitivity_factor(relation)
            )
            yield Counted(_maybe_sampled(rate, inner), count)
        case list() | tuple() as parts:
            for part in parts:
                yield from _events(part, relation)
        case event:
            yield from _counted_events(event, relation)


def _counted_events(mechanism: Any, relation: Relation) -> Iterator[Counted]:
    """The events of a DpEvent, by its kind.

    A discrete Laplace with P(x) ~ exp(-a |x|) costs a times how far one record moves the sum. A
    randomised response that answers with one of k buckets at random, with probability p, costs
    log(1 + (1 - p) k / p).
    """
    moved = sensitivity_factor(relation)
    match _kind(mechanism):
        case "NoOp":
            return
        case "Gaussian":
            yield Counted(
                Gaussian(_positive("noise_multiplier", mechanism.noise_multiplier) / moved)
            )
        case "Laplace":
            yield Counted(
                Laplace(_positive("noise_multiplier", mechanism.noise_multiplier) / moved)
            )
        case "DiscreteLaplace":  # P(x) ~ exp(-a |x|): a sum moved by s costs a s
            parameter = _positive("noise_parameter", mechanism.noise_parameter)
            yield Counted(Exponential(parameter * mechanism.sensitivity * moved))
        case "DiscreteGaussian":
            sigma, sensitivity = _positive("sigma", mechanism.sigma), mechanism.sensitivity * moved
            if mechanism.dimension == 1 and sensitivity == int(sensitivity) > 0:
                yield Counted(DiscreteGaussian(sigma, int(sensitivity)))
            elif sensitivity:  # Canonne, Kamath & Steinke 2020, for vectors
                yield Counted(ZCdp((sensitivity / sigma) ** 2 / 2))
        case "MixtureOfGaussians" if relation == "add_remove":
            if any(mechanism.sensitivities):
                yield Counted(_mixture(mechanism))
        case "ExponentialMechanism" | "PermuteAndFlip":
            if mechanism.epsilon:
                yield Counted(Exponential(float(mechanism.epsilon)))
        case "EpsilonDelta":
            yield from _approximate(float(mechanism.epsilon), float(mechanism.delta))
        case "RandomizedResponse" if relation == "replace_one":
            noise, buckets = (
                _positive("noise_parameter", mechanism.noise_parameter),
                mechanism.num_buckets,
            )
            if buckets > 1 and noise < 1.0:
                yield Counted(Exponential(math.log1p((1.0 - noise) * buckets / noise)))
        case "ZC" if not mechanism.xi:
            yield Counted(ZCdp(_positive("rho", mechanism.rho)))
        case "Composed":
            yield from _events(list(mechanism.events), relation)
        case "SelfComposed":
            if mechanism.count:
                yield Counted(Composed(tuple(_events(mechanism.event, relation))), mechanism.count)
        case "PoissonSampled":
            yield from _sampled_events(
                mechanism.sampling_probability, tuple(_events(mechanism.event, relation))
            )
        case "RepeatAndSelect":
            inner = Composed(tuple(_events(mechanism.event, relation)))
            yield Counted(RepeatAndSelect(inner, float(mechanism.mean), float(mechanism.shape)))
        case _:
            raise Refused(
                f"{type(mechanism).__name__} under {relation} has no price here, so it cannot be "
                f"charged. Give one of {KNOWN}, by a class of your own where dp_accounting has "
                "none (docs/ledger.md); or an Opacus accountant, or its history "
                "[(noise_multiplier, sample_rate, steps), ...]."
            )


def _mixture(mechanism: Any) -> MixtureOfGaussians:
    """A mixture, without sensitivities of probability 0."""
    pairs = zip(mechanism.sensitivities, mechanism.sampling_probs, strict=True)
    sensitivities, probabilities = zip(*((float(c), float(p)) for c, p in pairs if p), strict=True)
    sd = _positive("standard_deviation", mechanism.standard_deviation)
    return MixtureOfGaussians(sd, sensitivities, probabilities)


def _approximate(epsilon: float, delta: float) -> Iterator[Counted]:
    """An (epsilon, delta)-DP mechanism; a pure one where delta is 0."""
    if delta:
        yield Counted(ApproximateDp(epsilon or 1e-12, delta))  # an event's numbers are positive
    elif epsilon:
        yield Counted(Exponential(epsilon))


def _sampled_events(rate: float, inside: tuple[Counted, ...]) -> Iterator[Counted]:
    """A sample that several mechanisms see: Gaussians on it compose inside it."""
    if not rate or not inside:
        return
    one = inside[0].event if len(inside) == 1 and inside[0].count == 1 else Composed(inside)
    together = mu(one)
    if together is None and not isinstance(one, Laplace) and rate != 1.0:
        raise Refused(
            f"a Poisson sample of {event_kind(one)} has no price here. Samples are priced of "
            "Gaussians, and of one Laplace."
        )
    yield Counted(_maybe_sampled(rate, one if together is None else Gaussian(1.0 / together)))


def _maybe_sampled(rate: float, inner: Event) -> Event:
    """An event on a Poisson sample; the event itself where everybody is in it."""
    return inner if rate == 1.0 else Sampled(rate, inner)


def _kind(mechanism: Any) -> str:
    """The name of a DpEvent's kind, without what all of them end in."""
    from dp_accounting import dp_event

    if not isinstance(mechanism, dp_event.DpEvent):
        raise BadInput(
            f"a mechanism is given as {type(mechanism).__name__}. It must be a DpEvent of "
            "dp_accounting, an Opacus accountant, its history [(noise_multiplier, sample_rate, "
            "steps), ...], or a list of these."
        )
    return type(mechanism).__name__.removesuffix("DpEvent").removesuffix("Event")


def sensitivity_factor(relation: Relation) -> float:
    """How far the relation moves a sum, over what one record adds: 2 where a record leaves and
    another comes."""
    return 2.0 if relation == "replace_one" else 1.0


def _positive(name: str, value: float) -> float:
    if isinstance(value, str):
        raise BadInput(f"{name} is {value!r}. It must be a number, without quotes.")
    if not value > 0.0:
        raise Refused(
            f"{name} is {value}: without noise everything is revealed, and no budget pays for "
            "that. Give a positive one."
        )
    return float(value)
