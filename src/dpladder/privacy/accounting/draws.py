"""The draws that a mechanism declares, and what they cost: from sensitivity over scale alone.

A job's spends say what it is charged, its draws what noise it makes. Here the one is computed from
the other, so that a charge without its noise, or noise without its sensitivity, cannot be
committed. What stays an author's word is the sensitivity itself: `learn/queries.py` proves those of
its kinds, and the audit attacks them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from dpladder.errors import BadInput, Refused
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.events import (
    Composed,
    Counted,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Nothing,
    Relation,
    RepeatAndSelect,
    Sampled,
    SubsetSelect,
    event_kind,
    flatten_events,
    mu,
)

Distribution = Literal["gaussian", "laplace", "uniform", "mask", "within"]
Shape = tuple[int, ...]
Law = tuple[float, float, int]  # of a secret number of runs: mean, shape, limit

EQUAL = 1e-9  # relative: what rounding to the safe side may leave between a charge and its noise


@dataclass(frozen=True)
class Draw:
    """Randomness that a job declares before it reads data: `count` draws under one name, each of
    this shape. What the meter draws must equal it.

    Attributes:
        name: unique in its job.
        distribution: `gaussian` and `laplace` are noise, `uniform` a number in (0, 1], `mask` a
            Poisson sample of units. `within` gives trainings streams of their own.
        scale: the noise's own: the sd of a Gaussian, the scale of a Laplace, a mask's probability.
        shape: of one draw. Of `within`: how many trainings.
        count: how many draws.
        sensitivity: how far one unit moves what the noise is added to (L2 for Gaussian noise, L1
            for Laplace), under the lineage's relation. Of `within`: the mu of all trainings.
        stack: how many draws make one release, which a unit moves by `sensitivity` in all.
        under: names the mask, or the secret number of runs, that the draw lies under. The cost is
            then that of one run, or of one sample in which the unit is.
        entering: of a draw under a mask: how far one unit moves the sum when it enters the sample.
            `sampled_sensitivity` makes the sensitivity of it, and `check_charge_matches_noise`
            refuses a smaller one.
        law: of the uniform that a secret number of runs is drawn by: mean, shape, and where it is
            cut off (`selection.Runs`). The cost of a private selection hangs on it.
    """

    name: str
    distribution: Distribution
    scale: float = 1.0
    shape: Shape = ()
    count: int = 1
    sensitivity: float = 0.0
    stack: int = 1
    under: str = ""
    entering: float = 0.0
    law: Law | None = None

    def __post_init__(self) -> None:
        if self.distribution not in get_args(Distribution):
            known = ", ".join(get_args(Distribution))
            raise BadInput(
                f"draw {self.name}: {self.distribution} is no distribution here. Known are {known}."
            )
        if not (self.scale > 0.0 and math.isfinite(self.scale)):
            raise BadInput(f"draw {self.name}: scale {self.scale} must be positive and finite.")
        if self.distribution == "mask" and self.scale > 1.0:
            raise BadInput(f"draw {self.name}: probability {self.scale} must be at most 1.")
        if self.count < 1 or any(length < 0 for length in self.shape):
            raise BadInput(
                f"draw {self.name}: count {self.count} and shape {self.shape} must be positive."
            )
        if not (self.sensitivity >= 0.0 and math.isfinite(self.sensitivity)):
            raise BadInput(
                f"draw {self.name}: sensitivity {self.sensitivity} must be 0 or more, and finite."
            )
        if self.distribution in ("gaussian", "laplace") and not self.sensitivity:
            raise BadInput(
                f"draw {self.name}: say how far one unit moves what this noise is added to."
            )
        if not (self.entering >= 0.0 and math.isfinite(self.entering)):
            raise BadInput(
                f"draw {self.name}: entering {self.entering} must be 0 or more, and finite."
            )
        if self.law is not None and (self.distribution, self.shape) != ("uniform", ()):
            raise BadInput(
                f"draw {self.name}: a law is that of one number, which a uniform is made into."
            )
        if self.distribution == "within" and (self.scale, self.stack) != (1.0, 1):
            raise BadInput(
                f"draw {self.name}: trainings are charged by their sensitivity alone; leave scale "
                "and stack out."
            )
        if self.stack < 1 or self.count % self.stack:
            raise BadInput(f"draw {self.name}: stack {self.stack} must divide count {self.count}.")

    @property
    def releases(self) -> int:
        """How many times data is answered: each stack of draws is one answer."""
        return self.count // self.stack

    @property
    def mu_of_each(self) -> float:
        """The mu of one training that draws from streams within; 0 where their answers cost nothing
        by themselves."""
        return self.sensitivity / math.sqrt(max(1, math.prod(self.shape)))


def gaussian(
    name: str,
    multiplier: float,
    sensitivity: float,
    shape: Shape = (),
    count: int = 1,
    stack: int = 1,
    under: str = "",
    entering: float = 0.0,
) -> Draw:
    """Gaussian noise whose sd is `multiplier` times the L2 sensitivity: 1/multiplier-GDP a release.

    Args:
        name: of the draw, unique in its job.
        multiplier: noise sd over sensitivity.
        sensitivity: how far one unit moves the sum, in L2.
        shape: of one draw.
        count: how many draws.
        stack: how many of them make one release.
        under: the mask, or secret number of runs, that it lies under.
        entering: under a mask, how far one unit in the sample moves the sum.
    """
    scale = multiplier * sensitivity
    return Draw(name, "gaussian", scale, shape, count, sensitivity, stack, under, entering)


def sampled_sensitivity(entering: float, relation: Relation) -> float:
    """The sensitivity of a sum over a Poisson sample, which a unit in the sample moves by
    `entering`.

    Under replace_one it is twice that, even where no two units' contributions are ever opposite, as
    with counts or losses. A sample may hold the unit, its replacement, or neither. So neighbours
    release P = (1 - q) N(0) + q N(a) and Q = (1 - q) N(0) + q N(b), with |a| and |b| up to
    `entering`. Both lie around "nobody sampled", not only around each other. The accountant's pair
    for Sampled[Gaussian] under replace_one has N(m/2) and N(-m/2) in the places of N(a) and N(b), m
    being the sensitivity (booking.py).

    That pair is the worst one for all a and b within m/2 of 0, in any number of dimensions. For any
    set S let p = Phi(z) be its mass under N(0), and the noise's sd be 1. By Neyman and Pearson N(a)
    gives S at most Phi(z + m/2), and N(b) at least Phi(z - m/2). So for alpha >= 1, P(S) - alpha
    Q(S) <= (1 - q)(1 - alpha) Phi(z) + q (Phi(z + m/2) - alpha Phi(z - m/2)). The accountant's pair
    attains it on a half-line. Longer a or b are not covered. With b = 0 it covers a unit that is
    added or removed, too.

    On a full batch nobody is ever outside, |a - b| alone counts, and a smaller sensitivity can be
    right (the laws in learn/queries.py).

    Args:
        entering: L2 length (L1 for Laplace noise) of what one unit in the sample adds, at most.
        relation: the lineage's.
    """
    return entering * (2.0 if relation == "replace_one" else 1.0)


def to_json(draw: Draw) -> dict[str, Any]:
    """A draw as a journal holds it: without a law, for the event that is charged says it too. What
    an older dpladder began is resumed by the very same draws."""
    document = asdict(draw)
    del document["law"]
    return document


def cost(draws: Iterable[Draw], under: str = "") -> float:
    """The mu of the Gaussian noise that is drawn under one name.

    Args:
        draws: all draws of a job.
        under: the name of a mask or of a secret number of runs; by default, under none.

    Returns:
        sqrt(sum of (sensitivity / scale)^2 over releases).
    """
    return math.sqrt(math.fsum(_mu_squared(draw) for draw in draws if draw.under == under))


def check_charge_matches_noise(
    charged: Sequence[Counted], draws: Sequence[Draw], relation: Relation
) -> None:
    """Refuse unless these draws cost exactly what these events charge.

    It is what makes COMMIT safe: no job can be charged less than its noise earns. Three things are
    compared, each within rounding (`EQUAL`). What lies under nothing comes to the Gaussians and
    Laplace releases that are charged. What lies under a mask, a secret number of runs or rounds is
    just one charged event each. A sample's sensitivity is that of `sampled_sensitivity`.

    Args:
        charged: events that the ledger is asked to book.
        draws: all randomness that the job declares.
        relation: the lineage's; it decides what a sensitivity must be.

    Raises:
        Refused: where an event has no draw, a draw has no event, or their costs differ.
    """
    events = list(flatten_events(charged))
    other_events = [e for e in events if not isinstance(e.event, Gaussian | Laplace | Nothing)]
    claimed = [(e.event, e.count) for e in other_events]
    _check_places(draws, rounds=any(isinstance(event, Exponential) for event, _ in claimed))
    masks = {draw.name for draw in draws if draw.distribution == "mask"}
    rounds = [d for d in draws if d.distribution == "laplace" and d.under not in {"", *masks}]
    priced = [*_sampled_noise(draws), *_selections(draws), *_rounds(rounds)]
    direct = _direct_draws_match(events, draws) and _subset_masks_match(events, draws)
    if not (direct and _events_match(claimed, priced)):
        kinds = ", ".join(sorted({event_kind(e.event) for e in events})) or "nothing"
        raise Refused(
            f"what is charged ({kinds}) is not what the declared noise costs. Nothing was read: "
            "the declaration of this mechanism is wrong; make its events and its draws from the "
            "same sensitivity."
        )
    _check_samples(draws, relation)


def _check_places(draws: Sequence[Draw], rounds: bool) -> None:
    """Refuse a draw that lies where nothing would count it, or more often than what it lies under
    is drawn.

    Args:
        draws: all randomness that a job declares.
        rounds: whether rounds of tests are charged. They pay for what is seen of trainings that
            cost nothing by themselves; a selection charges all that one run looks at.
    """
    by_name = {draw.name: draw for draw in draws}
    for draw in draws:
        above = by_name.get(draw.under)
        over = None if above is None else above.distribution
        lawless = over == "uniform" and (above is None or above.law is None)
        counted = not draw.under or (over in _OVER.get(draw.distribution, ()) and not lawless)
        most = 1 if above is None else above.count
        often = over == "mask" and draw.releases > most
        again = over == "uniform" and most > 1
        in_rounds = draw.distribution == "laplace" and bool(draw.under) and over is None
        loose = in_rounds and (draw.count > 1 or not draw.shape)
        free = draw.distribution == "within" and not draw.sensitivity and not rounds
        if not counted or often or again or loose or free:
            raise Refused(
                f"draw {draw.name} ({draw.distribution}, {draw.count} times) lies under "
                f"{draw.under or 'nothing'}, where its noise would not be counted as it is drawn. "
                "Nothing was read: the declaration of this mechanism is wrong."
            )


_OVER: Mapping[str, tuple[str | None, ...]] = {
    "gaussian": ("mask", "uniform"),
    "within": ("uniform",),
    "laplace": ("mask", None),
}
"""Under which draws each kind may lie: a sample, a secret number of runs by a declared law; rounds
are no draw."""


def _direct_draws_match(events: Sequence[Counted], draws: Sequence[Draw]) -> bool:
    """Whether what lies under nothing is what is charged.

    A Laplace release may be charged as a Gaussian that dominates it, and then adds to the others.
    No Gaussian may be charged as Laplace noise, nor several Laplace releases as one.
    """
    gaussians = math.sqrt(math.fsum(_direct(e.event) ** 2 * e.count for e in events))
    drawn = [d for d in draws if d.distribution == "laplace" and not d.under]
    left = sorted(d.sensitivity / d.scale for d in drawn for _ in range(d.releases))
    charged = (
        1.0 / e.event.scale for e in events if isinstance(e.event, Laplace) for _ in range(e.count)
    )
    for epsilon in charged:
        match = next((ratio for ratio in left if _is_equal(ratio, epsilon)), None)
        if match is None:
            return False
        left.remove(match)
    squares = [gdp.mu_of_pure(ratio) ** 2 for ratio in left]
    rest = cost(d for d in draws if d not in drawn)
    return _is_equal(gaussians, math.hypot(rest, math.sqrt(math.fsum(squares))))


def _events_match(claimed: Sequence[Priced], priced: Sequence[Priced]) -> bool:
    """Whether each event that is charged is one that is drawn, and none is left."""
    left = list(priced)
    for event in claimed:
        drawn = next((other for other in left if _matches(event, other)), None)
        if drawn is None:
            return False
        left.remove(drawn)
    return not left


def _check_samples(draws: Sequence[Draw], relation: Relation) -> None:
    """Refuse noise under a mask whose sensitivity is not that of neighbours in a sample."""
    masks = {draw.name for draw in draws if draw.distribution == "mask"}
    for draw in draws:
        if draw.under not in masks:
            continue
        if not draw.entering or draw.sensitivity < sampled_sensitivity(draw.entering, relation) * (
            1.0 - EQUAL
        ):
            raise Refused(
                f"draw {draw.name} under mask {draw.under} declares sensitivity "
                f"{draw.sensitivity:g}, and a unit that enters the sample moves it by "
                f"{draw.entering:g}. Under {relation} the sensitivity must be at least "
                f"{sampled_sensitivity(draw.entering, relation):g}, and entering positive. Nothing "
                "was read: the declaration of this mechanism is wrong."
            )


def _subset_masks_match(events: Sequence[Counted], draws: Sequence[Draw]) -> bool:
    """Whether a mask draws each random subset at the probability that is charged."""
    drawn = {draw.scale for draw in draws if draw.distribution == "mask"}
    return all(e.event.probability in drawn for e in events if isinstance(e.event, SubsetSelect))


Priced = tuple[Event, int]


def _sampled_noise(draws: Sequence[Draw]) -> Iterator[Priced]:
    """Poisson-sampled noise, by the masks that it lies under. Noise under a mask that is drawn at
    some of its steps alone makes two kinds of steps."""
    for mask in draws:
        noise = [draw for draw in draws if draw.under == mask.name]
        if mask.distribution != "mask" or not noise:
            continue
        counts = sorted({draw.releases for draw in noise}, reverse=True)
        for count, rest in zip(counts, [*counts[1:], 0], strict=True):
            # Steps of the longest draws come first; those that share a sample compose inside it.
            step = tuple(Counted(_release(d)) for d in noise if d.releases >= count)
            yield Sampled(mask.scale, Composed(step)), count - rest


def _release(draw: Draw) -> Event:
    """One release under a mask. Of Laplace noise one number alone: by its length in L1 several ones
    are no more than pure."""
    multiplier = draw.scale / draw.sensitivity
    if draw.distribution == "gaussian":
        return Gaussian(multiplier)
    return Exponential(1.0 / multiplier) if draw.shape else Laplace(multiplier)


def _selections(draws: Sequence[Draw]) -> Iterator[Priced]:
    """The best of a secret number of runs: the mu of one run."""
    for runs in draws:
        if runs.law is not None and any(draw.under == runs.name for draw in draws):
            yield RepeatAndSelect(Gaussian(1.0 / cost(draws, runs.name)), *runs.law), 1


def _rounds(draws: Sequence[Draw]) -> Iterator[Priced]:
    """Rounds of pure DP: a round's Laplace noises add."""
    if draws:
        lengths = {draw.shape[0] for draw in draws}
        assert len(lengths) == 1, "each round draws each noise once"
        yield Exponential(math.fsum(d.sensitivity / d.scale for d in draws)), lengths.pop()


def _matches(charged: Priced, priced: Priced) -> bool:
    """Whether an event that is charged is the one that is drawn, within rounding."""
    (event, count), (other, counted) = charged, priced
    if count != counted:
        return False
    match event, other:
        case Sampled(q, inner), Sampled(p, drawn):
            one, two = _noises(inner), _noises(drawn)
            return q == p and len(one) == len(two) and all(map(_is_equal, one, two))
        case RepeatAndSelect(), RepeatAndSelect():
            return _selects(event, other)
        case SubsetSelect(_, tuning), RepeatAndSelect():
            return _selects(tuning, other)
        case Exponential(epsilon), Exponential(drawn):
            return _is_equal(epsilon, drawn)
    return False


def _selects(charged: RepeatAndSelect, drawn: RepeatAndSelect) -> bool:
    """Whether a run costs as much, and as many are made; to cut their number off costs no more
    (selection.py). How far proposals lean is no draw."""
    law = replace(drawn, event=charged.event, low=charged.low, high=charged.high)
    same = charged in (law, replace(law, limit=None))
    return same and _is_equal(mu(charged.event) or math.nan, mu(drawn.event) or math.nan)


def _noises(event: Event) -> list[float]:
    """The mu of an event's Gaussians, and the epsilon of each of its Laplace releases."""
    parts = list(flatten_events((Counted(event),)))
    mu_of_noise = mu(Composed(tuple(part for part in parts if not isinstance(part.event, Laplace))))
    pure = ([one.event] * one.count for one in parts if isinstance(one.event, Laplace))
    each = sorted(1.0 / event.scale for events in pure for event in events)
    return [math.nan if mu_of_noise is None else mu_of_noise, *each]


def _mu_squared(draw: Draw) -> float:
    """The square of the mu of a draw's noise, over all its releases."""
    ratio = draw.sensitivity / draw.scale
    if draw.distribution == "laplace":
        ratio = gdp.mu_of_pure(ratio)
    return draw.releases * ratio**2


def _direct(event: Event) -> float:
    """The mu of the Gaussian that an event releases by itself, under no mask and in no run."""
    match event:
        case Gaussian(sigma) | SubsetSelect(final=Gaussian(sigma)):
            return 1.0 / sigma
    return 0.0


def _is_equal(one: float, other: float) -> bool:
    """Whether two costs are the same but for rounding to the safe side."""
    return math.isclose(one, other, rel_tol=EQUAL, abs_tol=0.0)
