"""One currency for every mechanism: each event becomes one small entry, and entries add up whatever
chose them.

**An entry** names what dominates the event. It is, all at once, a mu-GDP release, a pure loss e, a
weight w and a probability delta0 of revealing everything. For all epsilon >= 0, in both directions,

    delta_event(epsilon) <= delta0 + (1 - delta0) w delta_mu(epsilon - e),                       (1)

with delta_mu the profile of mu-GDP (gdp.delta). Nearly always e = 0 and w = 1. Then the right-hand
side is the profile of "with probability delta0 everything is revealed, else a mu-GDP release". That
pair dominates the event. A dominating pair is one whose profile is nowhere smaller (Zhu, Dong &
Wang 2022). Both directions at epsilon >= 0 are enough, for the pair is symmetric and H_a(P|Q) = a
H_(1/a)(Q|P) + 1 - a.

**Entries add up.** Dominating pairs compose, adaptively too. So k entries together are dominated by
delta0's that add and one Gaussian of mu^2 = sum mu_i^2. Each event is a post-processing of its pair
(Blackwell), so any adaptive history is simulated from reveal flags and Gaussians. Hence a filter,

    sum mu^2 <= B^2  and  sum delta0 <= a public share of delta,

holds whatever was chosen because of what (Smith & Thakurta 2022; Koskela, Tobaben & Honkela 2023).
Private selections keep e and w (selection.py, (4)): they add and multiply beside the rest, and a
filter holds with caps on their sums too. All together cost

    epsilon = sum e + epsilon_Gauss(sqrt(sum mu^2); (delta - sum delta0) / product w).           (2)

**Rigorous on a grid.** Both sides of (1) fall with epsilon. So it is enough that the left side at a
grid point stays below the right side at the next one. Where the left side is below delta0,
everything further out is too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from dpladder.errors import Refused
from dpladder.privacy.accounting import gdp, memo, selection
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
    SubsetSelect,
    ZCdp,
    event_kind,
    flatten_events,
    mu,
    to_json,
)
from dpladder.privacy.accounting.profile import SAFE, Curve, gaussian_profile

if TYPE_CHECKING:
    from dpladder.privacy.arrays import Floats

POINTS = 20_000  # of epsilon, where (1) is checked if nothing else says where
RELATIVE_STEP = 1e-3  # of an event's mu: the step of losses in its discretised distribution
# The mu, or the pure loss, that a mechanism is charged at least: a smaller one a double would lose
# beside what was spent, and a spend that changes no sum is never refused.
LEAST = 1e-5
LARGEST_LOSS = 600.0  # of a loss on a sample, whose exponential is a float64
# Of a lineage's delta, what its booked events may use up in its life. Where trainings sample it is
# larger, which lowers the mu of few steps on small samples. It leaves less of delta to everything
# else under a lifetime limit (tools/price_samples.py). Searches gain nothing from it.
SHARE, SAMPLED_SHARE = 0.1, 0.3
TRIAL, FINAL = 1_000, 10  # trials, or final trainings, whose booking uses that share up


def delta0_of(delta: float, runs: int, share: float = SHARE) -> float:
    """The probability of revealing everything that one event is booked at.

    It follows from the config alone, before the event is reserved: the filter above needs nothing
    else of how it is chosen.

    Args:
        delta: the lineage's.
        runs: how many events of the kind use the share up (`TRIAL`, `FINAL`).
        share: part of delta that all booked events may use together.

    Returns:
        share * delta / runs.
    """
    return share * delta / runs


@dataclass(frozen=True)
class Entry:
    """What an event costs: (mu, e, log w, delta0), as in (1) above.

    Attributes:
        mu: of a Gaussian mechanism.
        loss: e, a pure loss beside it; private selections have one.
        weight: log w; the Gaussian's delta is multiplied by w.
        delta0: probability of revealing everything.
    """

    mu: float = 0.0
    loss: float = 0.0
    weight: float = 0.0
    delta0: float = 0.0

    def costs_no_more_than(self, other: Entry) -> bool:
        """Whether it costs no more, whatever else there is: no component is larger. Of two entries
        neither may, and then what else is spent decides which is dearer."""
        mine, most = (
            (self.mu, self.loss, self.weight, self.delta0),
            (other.mu, other.loss, other.weight, other.delta0),
        )
        return all(one <= limit for one, limit in zip(mine, most, strict=True))

    @property
    def is_gaussian(self) -> bool:
        """Whether it is a Gaussian's, but for a small probability."""
        return not (self.loss or self.weight)


NO_COST = Entry()


def total(entries: Iterable[Entry]) -> Entry:
    """What entries cost together, however later ones depend on what earlier ones released: mus add
    in squares, losses, log weights and delta0's as they are. Without entries, `NO_COST`."""
    every = list(entries)
    return Entry(
        gdp.compose(e.mu for e in every),
        math.fsum(e.loss for e in every),
        math.fsum(e.weight for e in every),
        math.fsum(e.delta0 for e in every),
    )


def largest(entries: Iterable[Entry]) -> Entry:
    """The least entry that all of these lie within: the largest of each component. At least one
    entry has to be given."""
    every = list(entries)
    return Entry(
        max(e.mu for e in every),
        max(e.loss for e in every),
        max(e.weight for e in every),
        max(e.delta0 for e in every),
    )


def epsilon(entry: Entry, delta: float) -> float:
    """Epsilon at delta of an entry, by (2) above.

    Args:
        entry: of all events together (`total`).
        delta: the lineage's, of which the entry's delta0 is a part.

    Returns:
        epsilon, rounded up; infinity where the events use all of delta up.
    """
    left = (delta - entry.delta0) * math.exp(-entry.weight)
    return entry.loss + gdp.epsilon(entry.mu, left) if left > 0.0 else math.inf


def largest_mu(target: float, delta: float, beside: Entry) -> float:
    """The largest mu that all events together may come to within a target: (2) above, solved for
    mu.

    Args:
        target: epsilon that may not be exceeded.
        delta: the lineage's.
        beside: the entry whose loss, weight and delta0 are spent besides. Its mu is not looked at:
            the answer holds for all events, and `gdp.remaining` takes what was spent off it.

    Returns:
        mu, rounded down; 0 where nothing is left.
    """
    left = (delta - beside.delta0) * math.exp(-beside.weight)
    room = target - beside.loss
    return gdp.mu_from_epsilon(room, left) if left > 0.0 and room > 0.0 else 0.0


def price(event: Event, relation: Relation, count: int = 1) -> Entry:
    """The entry that `count` such events are booked at, so that (1) above holds.

    Gaussians are exact; Laplace noise and pure mechanisms get the smallest mu that dominates them.
    A pure loss e alone is (1) with mu = 0: 1 - exp(epsilon - e) lies above every profile of a pure
    mechanism. Whatever is sampled, discrete and Gaussian, a mixture, or known as zCDP or as
    (epsilon, delta)-DP, has no entry of its own. It is priced inside `Booked`, whose delta0 lets a
    Gaussian dominate it.

    Args:
        event: what a mechanism does to data.
        relation: what neighbours are, in the event's lineage.
        count: how often, with noise of its own each time.

    Returns:
        An entry that dominates all of them, whatever chose them, and `LEAST` at least.

    Raises:
        Refused: an event needs `Booked` and is outside it, no bound is known for it here, or no
            Gaussian dominates it at its delta0.
    """
    entry = _exact_price(event, relation, count)
    if mu(event) == 0.0:  # of nothing
        return entry
    if entry.loss:
        return replace(entry, loss=max(entry.loss, LEAST))
    return replace(entry, mu=max(entry.mu, LEAST))


def _exact_price(event: Event, relation: Relation, count: int) -> Entry:
    """The entry of `price`, however small it is."""
    mu_of_event = mu(event, count)
    if mu_of_event is not None:
        return Entry(mu_of_event)
    match event:
        case Composed(events):
            return total(price(part.event, relation, part.count * count) for part in events)
        case Laplace(scale):
            return Entry(_laplace_mu(1.0 / scale) * math.sqrt(count) * SAFE)
        case Exponential(pure):
            return Entry(gdp.mu_of_pure(pure) * math.sqrt(count) * SAFE)
        case PureLoss(pure):
            return Entry(loss=pure * count)
        case RepeatAndSelect(inner):
            return _entry_of_selection(event, mu(inner), count)
        case Booked(events, delta0):
            reserved = mu(Composed(events))
            one = (
                Entry(reserved, delta0=delta0)
                if reserved is not None
                else _entry_of_booked(event, relation)
            )
            return total([one] * count)
        case SubsetSelect():
            return total([_entry_of_booked(event, relation)] * count)
    raise Refused(
        f"{event_kind(event)} has no entry of its own: book it at a delta0 (Booked), which a "
        "filter can add up."
    )


def _entry_of_selection(event: RepeatAndSelect, run: float | None, count: int) -> Entry:
    """(4) of selection.py: mus add in squares, losses add, weights multiply."""
    if run is None:
        raise Refused(
            f"{event_kind(event)} selects among runs that are not Gaussian: no bound is known here."
        )
    runs, lean = selection.Runs(event.mean, event.shape), selection.Lean(event.low, event.high)
    loss, weight = selection.loss(run, runs, lean), math.log(selection.weight(runs, lean))
    return Entry(gdp.compose([run] * count), count * loss, max(0.0, count * weight))


@cache
def _laplace_mu(pure: float) -> float:
    """The smallest mu whose Gaussian dominates a Laplace mechanism of this epsilon.

    Its profile is delta(x) = 1 - e^((x - epsilon)/2) for x up to epsilon, and 0 beyond. For the
    losses above x are those of outputs above a point. These have mass 1 - e^((x - epsilon)/2)/2
    under the one law, and e^(-(x + epsilon)/2)/2 under the other.
    """
    import numpy as np

    if pure > 30:  # what reveals this much is no better than any other pure mechanism
        return gdp.mu_of_pure(pure)
    x = np.linspace(0.0, pure, POINTS)
    return dominating(Curve(x, -np.expm1((x - pure) / 2)), 0.0)


@cache
def _entry_of_booked(event: Booked | SubsetSelect, relation: Relation) -> Entry:
    """The entry of events whose joint profile is computed, remembered on disk by what it follows
    from."""

    def compute() -> float:
        return dominating(curve_of(event, relation), event.delta0)

    arguments = {
        "event": to_json(event),
        "relation": relation,
        "points": POINTS,
        "fine": RELATIVE_STEP,
    }
    return Entry(memo.memoized_figure("mu", arguments, compute), delta0=event.delta0)


def curve_of(event: Booked | SubsetSelect, relation: Relation) -> Curve:
    """The privacy profile of events together, rounded up.

    A subset's is that of the mixture in subset.py. Where an event is known as zCDP alone, it is a
    Renyi bound. Else it follows from composed privacy losses.

    Args:
        event: events that are booked together, or a selection on a subset.
        relation: what neighbours are.
    """
    if isinstance(event, SubsetSelect):
        return _subset_curve(event, relation)
    if any(isinstance(part.event, ZCdp) for part in flatten_events(event.events)):
        return _zcdp_curve(event)
    return curve_of_losses(loss_distribution(event.events, relation))


def curve_of_losses(distribution: Any) -> Curve:
    """The profile of a discrete distribution of privacy losses, at each of its losses from 0 on.

    delta(x) is the mass of infinite losses, and the sum of p(l) (1 - e^(x - l)) over losses l > x.
    The library evaluates one epsilon in a loop over all losses; here the sums run along.

    Args:
        distribution: of dp_accounting's, with a side for each direction of neighbours.

    Returns:
        The larger of both directions.
    """
    import numpy as np

    step = distribution._pmf_remove._discretization
    curves = [
        _losses(pmf.to_dense_pmf()) for pmf in (distribution._pmf_remove, distribution._pmf_add)
    ]
    size = max(len(curve) for curve in curves)
    deltas = np.max(
        [np.pad(curve, (0, size - len(curve)), mode="edge") for curve in curves], axis=0
    )
    return Curve(np.arange(size) * step, deltas)


def _losses(pmf: Any) -> Floats:
    """delta at the losses 0, 1, 2, ... steps."""
    import numpy as np
    from scipy.signal import lfilter

    masses = np.concatenate([np.zeros(max(pmf._lower_loss, 0)), pmf._probs])
    at_least = np.cumsum(masses[::-1])[::-1]
    # T_k = sum over i > k of p_i e^(l_k - l_i) = (T_(k+1) + p_(k+1)) e^-step, from the largest loss
    # down
    decay = math.exp(-pmf._discretization)
    shrunk = lfilter([0.0, decay], [1.0, -decay], masses[::-1])[::-1]
    deltas: Floats = (at_least - masses - shrunk)[max(-pmf._lower_loss, 0) :] + pmf._infinity_mass
    return np.maximum(deltas, pmf._infinity_mass) if len(deltas) else np.array([pmf._infinity_mass])


def loss_distribution(events: Iterable[Counted], relation: Relation, coarser: int = 1) -> Any:
    """dp_accounting's privacy loss distribution of events together, rounded to the safe side.

    Args:
        events: with noise of their own each; `Booked` and `Composed` are taken apart.
        relation: what neighbours are.
        coarser: how much wider the grid of losses is than that of prices. At 16 a single event
            costs about 1e-6 more, and is found twenty times as fast.

    Raises:
        Refused: the losses of an event are not known here under this relation.
    """
    parts = list(flatten_events(events))
    return _compose_distributions(parts, relation, coarser * _step(parts))


def _compose_distributions(parts: Iterable[Counted], relation: Relation, step: float) -> Any:
    """The privacy losses of all parts together, on one grid."""
    composed: Any = None
    for part in parts:
        one = _loss_distribution_of(part.event, relation, step).self_compose(part.count)
        composed = one if composed is None else composed.compose(one)
    return composed


def _step(parts: Iterable[Counted]) -> float:
    """The step of the grid of losses: fine against the mu of all events together.

    A round of a pure mechanism loses exactly epsilon, or wins it. The smallest such epsilon is made
    a power of two times the step, exactly. Rounded up to another grid each round would lose a
    little more, and many of them much more.
    """
    parts = list(parts)
    # the library finds each loss of a mixture by bisection: a grid ten times as fine takes a minute
    most = 1e-3 if any(isinstance(part.event, MixtureOfGaussians) for part in parts) else 1e-4
    together = math.sqrt(math.fsum(_rough_mu(part) ** 2 for part in parts))
    step = min(most, RELATIVE_STEP * min(1.0, max(together, LEAST)))
    pure = [p.event.epsilon for p in parts if isinstance(p.event, Exponential | ApproximateDp)]
    least = min(pure, default=step)
    return least / 2 ** math.ceil(math.log2(least / step))


def _loss_distribution_of(event: Event, relation: Relation, step: float) -> Any:
    """The privacy losses of one event as a distribution on a grid.

    The library rounds them up, so that what is composed of them is an upper bound (Koskela et al.
    2020; Doroshenko et al. 2022).

    Gaussians on one Poisson sample, several of them too, have the pair that
    `draws.sampled_sensitivity` proves. Laplace noise on a sample is known under add_remove alone.
    """
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    neighbours = {
        "add_remove": NeighboringRelation.ADD_OR_REMOVE_ONE,
        "replace_one": NeighboringRelation.REPLACE_ONE,
    }[relation]
    # Given a relation, the library doubles a sum's sensitivity under replace_one; our sigma is
    # relative to the relation's own already.
    doubling = 2.0 if relation == "replace_one" else 1.0
    most_noise = 1.0 / LEAST  # with more of it the library overflows
    match event:
        case Gaussian(sigma):
            return pld.from_gaussian_mechanism(
                min(sigma, most_noise), value_discretization_interval=step
            )
        case Sampled(q, inner) if mu_inside := mu(inner):
            return pld.from_gaussian_mechanism(
                doubling * min(1.0 / mu_inside, most_noise),
                value_discretization_interval=step,
                sampling_prob=q,
                neighboring_relation=neighbours,
            )
        case Laplace(scale):
            return pld.from_laplace_mechanism(
                min(scale, most_noise), value_discretization_interval=step
            )
        case Sampled(q, Laplace(scale)) if relation == "add_remove":
            return pld.from_laplace_mechanism(
                min(scale, most_noise), value_discretization_interval=step, sampling_prob=q
            )
        case Sampled(q, Composed(events)) if relation == "add_remove":
            return _sampled_loss_distribution(q, events, step)
        case Exponential(pure):
            return pld.from_privacy_parameters(
                common.DifferentialPrivacyParameters(pure, 0.0), step
            )
        case ApproximateDp(bound, delta):
            return pld.from_privacy_parameters(
                common.DifferentialPrivacyParameters(bound, delta), step
            )
        case DiscreteGaussian(sigma, sensitivity):
            return pld.from_discrete_gaussian_mechanism(
                sigma, sensitivity, value_discretization_interval=step
            )
        case MixtureOfGaussians(sd, sensitivities, probabilities) if relation == "add_remove":
            return pld.from_mixture_gaussian_mechanism(
                sd, sensitivities, probabilities, value_discretization_interval=step
            )
    raise Refused(
        f"{event_kind(event)} cannot be booked under {relation}: its privacy losses are not known "
        "here."
    )


def _sampled_loss_distribution(q: float, events: Iterable[Counted], step: float) -> Any:
    """The privacy losses of Gaussian and Laplace releases that all see one Poisson sample, under
    add_remove.

    On a sample that is given they compose adaptively. They are dominated by the product (P, Q) of
    their own pairs, P with the unit and Q without (Zhu, Dong & Wang 2022, Theorem 10). The product
    mirrors itself, as each of them does: Q against P has the profile H of P against Q. The sampled
    pair is (1 - q) Q + q P against Q where a unit leaves, and Q against it where one enters
    (Theorem 11 there). Both follow from H by

        [(1 - q) Q + q P] - a Q = q (P - b Q),            b = 1 + (a - 1) / q,
        Q - a [(1 - q) Q + q P] = c (Q - (a q / c) P),    c = 1 - a (1 - q),

    with H(a) = 1 - a + a H(1/a) for a below 1, where P and Q change places. Between grid points H
    is taken on the chord in a = e^loss, which lies above it: H is convex in a.
    """
    import numpy as np
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

    parts = list(flatten_events(events))
    if not all(isinstance(part.event, Gaussian | Laplace) for part in parts):
        inside = ", ".join(sorted({event_kind(part.event) for part in parts}))
        raise Refused(f"a Poisson sample of {inside} cannot be booked: its losses are not known.")
    too_much = Refused("no Gaussian dominates these events: they reveal too much.")
    # a Laplace release alone loses 1 / scale half of the time: no grid as long as that is made
    if any(
        isinstance(part.event, Laplace) and part.event.scale * LARGEST_LOSS < 1 for part in parts
    ):
        raise too_much
    whole = _compose_distributions(parts, "add_remove", step)._pmf_remove.to_dense_pmf()
    profile = _losses(whole)  # at the losses 0, 1, 2, ... steps; between them linear in e^loss
    most = step * (len(profile) - 1)
    if most > LARGEST_LOSS:
        raise too_much
    at = np.exp(step * np.arange(len(profile)))

    def profile_within(a: Floats) -> Floats:
        """H(a)."""
        far = np.interp(np.maximum(a, 1.0 / np.maximum(a, 1e-300)), at, profile)
        delta: Floats = np.where(a >= 1.0, far, 1.0 - a + a * far)
        return delta

    def leaves(a: Floats) -> Floats:
        b = 1.0 + (a - 1.0) / q
        return np.where(b > 0.0, q * profile_within(np.maximum(b, 0.0)), 1.0 - a)

    def enters(a: Floats) -> Floats:
        c = 1.0 - a * (1.0 - q)
        delta: Floats = np.where(c > 0.0, c * profile_within(a * q / np.maximum(c, 1e-300)), 0.0)
        return delta

    least = -math.log1p(-q) if q < 1.0 else most  # of a unit that is sampled, and is not told
    ends = (math.ceil(least / step) + 1, math.ceil(math.log1p(q * math.expm1(most)) / step) + 1)
    distributions = []
    for profile_of, low, high in ((leaves, -ends[0], ends[1]), (enters, -ends[1], ends[0])):
        deltas = profile_of(np.exp(step * np.arange(low, high + 1)))
        distributions.append(
            pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
                step, low, high, np.clip(deltas, 0.0, 1.0)
            )
        )
    return pld.PrivacyLossDistribution(*distributions)


def _rough_mu(part: Counted) -> float:
    """About the mu of an event, for the fineness of its grid alone."""
    match part.event:
        case Sampled(q, Composed(events)) if mu(part.event.event) is None:
            one = math.sqrt(math.fsum(_rough_mu(inner) ** 2 for inner in flatten_events(events)))
            return q * math.sqrt(part.count * math.expm1(min(one * one, 20.0)))
        case Sampled(q, inner):
            one = mu(inner) or 1.0
            return q * math.sqrt(part.count * math.expm1(min(one * one, 20.0)))
        case Laplace(scale):
            return math.sqrt(part.count) / scale
        case Exponential(pure) | ApproximateDp(pure):
            return math.sqrt(part.count) * pure
        case DiscreteGaussian(sigma, sensitivity):
            return math.sqrt(part.count) * sensitivity / sigma
        case MixtureOfGaussians(sd, sensitivities, probabilities):
            pairs = zip(sensitivities, probabilities, strict=True)
            one = math.fsum(p * math.sqrt(math.expm1(min((c / sd) ** 2, 20.0))) for c, p in pairs)
            return math.sqrt(part.count) * one
    return mu(part.event, part.count) or 1.0


def dominating(curve: Curve, delta0: float) -> float:
    """The smallest mu for which (1) holds at e = 0 and w = 1.

    Args:
        curve: the event's privacy profile, rounded up.
        delta0: probability that the entry sets aside for revealing everything.

    Returns:
        mu, at most 1e-6 of itself above the smallest, and never below it; one below `LEAST` as it
        comes.

    Raises:
        Refused: the profile never falls to delta0, or no mu up to 10,000 dominates it.
    """
    import numpy as np

    deltas = curve.deltas * SAFE
    over = np.flatnonzero(deltas > delta0)
    last = int(over[-1]) + 1 if len(over) else 0
    if last >= len(deltas):
        raise Refused(
            f"these events reveal everything with a larger probability than delta0 = {delta0:g}. "
            "Book them at a larger one."
        )
    bound, ahead = deltas[:last], curve.epsilons[1 : last + 1]

    def enough(candidate: float) -> bool:
        room = delta0 + (1.0 - delta0) * gaussian_profile(ahead, candidate)
        return bool(np.all(bound <= room))

    high = 1e-4
    while not enough(high):
        high *= 2.0
        if high > 1e4:
            raise Refused("no Gaussian dominates these events: they reveal too much.")
    low = 0.0
    while high > LEAST and high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high * SAFE


def _zcdp_curve(event: Booked) -> Curve:
    """The profile of rho-zCDP, beside Gaussians, which are mu^2/2-zCDP.

    delta(epsilon) <= inf over a > 1 of e^((a-1)(a rho - epsilon)) (1 - 1/a)^a / (a - 1) (Canonne,
    Kamath & Steinke 2020, Proposition 12). At any epsilon it is no more than the total variation
    distance. That is at most sqrt(rho / 2) by Pinsker's inequality, for the KL divergence is at
    most rho.
    """
    import numpy as np

    rho = math.fsum(_rho(part) for part in flatten_events(event.events))
    orders = 1.0 + np.geomspace(1e-3, 1e6, 400)[:, None]
    top = rho + 2 * math.sqrt(rho * math.log(2 / event.delta0))
    x = np.linspace(0.0, top, POINTS)
    logs = (orders - 1) * (orders * rho - x) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
    return Curve(x, np.minimum(np.exp(np.minimum(logs.min(axis=0), 0.0)), math.sqrt(rho / 2)))


def _rho(part: Counted) -> float:
    """The rho of an event, so many times: Gaussians are mu^2/2-zCDP, pure mechanisms
    epsilon^2/2-zCDP."""
    mu_of_part = mu(part.event, part.count)
    if mu_of_part is not None:
        return mu_of_part * mu_of_part / 2
    if isinstance(part.event, ZCdp):
        return part.event.rho * part.count
    if isinstance(part.event, Exponential):  # Bun & Steinke 2016, Proposition 1.4
        return part.event.epsilon**2 / 2 * part.count
    raise Refused(f"{event_kind(part.event)} cannot be booked together with zCDP.")


def _subset_curve(event: SubsetSelect, relation: Relation) -> Curve:
    """The profile of a selection on a subset; refused under replace_one, for which there is no
    bound."""
    if relation != "add_remove":
        raise Refused(
            f"tuning on a random subset is bounded under add_remove alone, not under {relation}."
        )
    from dpladder.privacy.accounting import subset

    return subset.curve(event)
