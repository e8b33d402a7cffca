"""Audit: does the noise that is really drawn earn the charge that the ledger makes?

A mechanism runs on made-up data through the real meter, under a key of the audit's own. What comes
out is held against its event. All figures are in units of the claimed noise, so that an event says
everything. It is noise of scale 1 around a vector that one unit moves by at most mu. Repeating an
audit under one key repeats its draws: a chance finding stays, and asking again buys no second
chance.

Four checks per mechanism rest on chance; each gets an equal share of FAMILY_ERROR (Bonferroni), so
an honest suite fails with probability at most FAMILY_ERROR. Equal digests and lack of power add
less than a hundredth of that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from dpladder.errors import BadInput, Refused
from dpladder.privacy.accounting import booking, events, gdp
from dpladder.privacy.accounting.draws import sampled_sensitivity
from dpladder.privacy.accounting.events import (
    Counted,
    Event,
    Relation,
)
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release.grid import FINENESS
from dpladder.privacy.release.meter import Draw, Meter, Streams, Used
from dpladder.privacy.release.noise import SecretNoise
from dpladder_audit.engine.bare import Bare, Still, release, releases
from dpladder_audit.engine.bounds import (
    epsilon_bound,
    hit_rate_lower_bound,
    hit_rate_upper_bound,
    mu_bound,
)
from dpladder_audit.engine.findings import FAMILY_ERROR, Finding, Report
from dpladder_audit.engine.mechanism import (
    Mechanism,
    SourceOfQuery,
    claimed_shift,
    kind_of_noise,
    norm_of,
)

CHANCE_CHECKS = 4
DELTA = 1e-5  # that bounds on epsilon are told at
ROUNDS = 400  # rounds of runs whose noise is compared
RUNS = 4000  # runs on either side of the bound on epsilon, where it must come near the claim
QUERIES = 4  # of each round
FEW_RUNS = 1000  # and where it only must not exceed it
SLACK = 1e-5  # what float32 arithmetic inside a chunk may add
CLIP_SLACK = 0.01  # how far inside its bound a tight mechanism may clip, to pay for such arithmetic


def run_audit(
    mechanisms: Sequence[Mechanism],
    key: bytes,
    delta: float = DELTA,
    noise: Callable[[bytes, str, str], Streams] = SecretNoise,
    among: int | None = None,
) -> Report:
    """Audit each mechanism.

    It looks at what the mechanism draws, and how the noise is spread. It looks at how far a unit
    moves what is published, and whether neighbours can be told apart.

    Args:
        mechanisms: that are attacked.
        key: home's subkey for audits, never the one for noise.
        delta: that bounds on epsilon are computed at.
        noise: streams of a key, a mechanism's name and a number.
        among: how many mechanisms there are in all, where a suite is shared out. A false alarm has
            a probability of FAMILY_ERROR for all of them together.

    Returns:
        Every check with what was claimed and measured. A mechanism that the meter refuses is a
        finding too.

    Raises:
        BadInput: there is nothing to audit, or a mechanism is of a kind that an audit does not
            know.
    """
    if not mechanisms:
        raise BadInput("nothing to audit. Name at least one mechanism.")
    chance = FAMILY_ERROR / (CHANCE_CHECKS * (among or len(mechanisms)))
    findings: list[Finding] = []
    for mechanism in mechanisms:
        try:
            # a broken one fails by its figures
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                findings += _audit(mechanism, partial(noise, key), delta, chance)
        except Refused as refused:
            findings.append(
                Finding(mechanism.name, "runs that the meter refused", 0, 1, 0, 0, str(refused))
            )
    return Report(delta, tuple(findings))


def _audit(
    mechanism: Mechanism, streams: SourceOfQuery, delta: float, chance: float
) -> list[Finding]:
    """Every check of one mechanism. The pair of neighbours that the last check guesses between is
    the one whose releases lie furthest apart without noise."""
    name = mechanism.name
    scores, used = _noise(mechanism, streams)
    still = Still(mechanism, streams(f"{name} shift", "0"))
    shifts = [still.shift(pair) for pair in mechanism.neighbours]
    norms = [float(np.linalg.norm(shift, ord=norm_of(mechanism))) for _, shift in shifts]
    worst = int(np.argmax(norms))  # the first NaN if there is one, and it fails
    return [
        Finding(name, "runs that the meter refused", 0, 0, 0, 0),
        Finding(name, "draws made twice", 0, _count_repeated_draws(mechanism, used), 0, 0),
        _find_randomness_outside_meter(mechanism, streams(f"{name} outside", "0")),
        _independence(name, scores, chance),
        _scale(name, scores, chance),
        _distribution(name, scores, chance),
        _sensitivity(mechanism, norms[worst]),
        _check_declared_sensitivity(mechanism, still),
        *_check_sampled_sensitivity(mechanism, still),
        _epsilon(mechanism, streams, mechanism.neighbours[worst], shifts[worst], delta, chance)
        if (rate := _single_sample_rate(mechanism)) is None
        else _epsilon_of_sample(mechanism, streams, still, rate, delta, chance),
    ]


def _noise(mechanism: Mechanism, streams: SourceOfQuery) -> tuple[Floats, list[Used]]:
    """Normal scores of the published noise: a row per round, with one run of each query, which must
    not share noise.

    The noise is the release with noise less the release without. Rounds differ in their nonce.
    """
    queries = [f"{mechanism.name} {number}" for number in range(QUERIES)]
    data, rounds = mechanism.neighbours[0][0], round(ROUNDS * mechanism.effort)
    sources = [streams(query, str(nonce)) for nonce in range(rounds) for query in queries]
    meters = [Meter(mechanism.draws, source, audit=True) for source in sources]
    noised = releases(mechanism, data, meters)
    # A bare meter keeps noise and masks to itself: where nothing else is drawn, one run without
    # noise is all of them.
    is_declared = any(draw.distribution in ("uniform", "within") for draw in mechanism.draws)
    bare = [Bare(mechanism.draws, source) for source in (sources if is_declared else sources[:1])]
    still = np.array(releases(mechanism, data, bare))
    used = [use for meter in meters for use in meter.used]
    return _normal_scores(mechanism, (np.array(noised) - still).reshape(rounds, -1)), used


def _normal_scores(mechanism: Mechanism, noise: Floats) -> Floats:
    """The noise as standard normals, if it is what it claims to be."""
    if kind_of_noise(mechanism) == "gaussian":
        return noise
    from scipy.special import ndtri_exp

    return -np.sign(noise) * ndtri_exp(math.log(0.5) - np.abs(noise))


def _count_repeated_draws(mechanism: Mechanism, used: Sequence[Used]) -> int:
    """How many draws were equal to another. Masks may be: few records make few of them."""
    masks = {draw.name for draw in mechanism.draws if draw.distribution == "mask"}
    counts = Counter(use.sha256 for use in used if use.name not in masks)
    return sum(count - 1 for count in counts.values())


def _find_randomness_outside_meter(mechanism: Mechanism, stream: Streams) -> Finding:
    """Two runs on the same streams differ only by randomness that did not come through the
    meter."""
    data = mechanism.neighbours[0][0]
    one, other = (release(mechanism, data, Meter(mechanism.draws, stream)) for _ in range(2))
    return Finding(
        mechanism.name,
        "randomness outside the meter",
        0,
        float(np.max(np.abs(one - other))),
        0,
        SLACK,
    )


def _independence(name: str, scores: Floats, chance: float) -> Finding:
    """The largest correlation between any two numbers: across classes and steps of one run, and
    between runs."""
    from scipy import stats

    rounds, columns = scores.shape
    unit = scores / np.linalg.norm(scores, axis=0)
    # no noise at all is as dependent as can be
    correlations = np.abs(np.nan_to_num(unit.T @ unit, nan=1.0))
    np.fill_diagonal(correlations, 0.0)
    # About a mean known to be zero, r sqrt((n-1) / (1-r^2)) has Student's distribution with n-1
    # degrees of freedom.
    t = stats.t.isf(chance / (columns * (columns - 1)), rounds - 1)
    allowed = float(t / math.sqrt(rounds - 1 + t * t))
    return Finding(name, "largest correlation of noise", 0, float(correlations.max()), 0, allowed)


def _scale(name: str, scores: Floats, chance: float) -> Finding:
    """The root mean square of the noise, in units of its claim. The sum of squares of standard
    normals has a chi-square distribution, which says what chance allows."""
    from scipy import stats

    measured = math.sqrt(np.mean(scores * scores))
    low = math.sqrt(stats.chi2.ppf(chance / 2, scores.size) / scores.size)
    high = math.sqrt(stats.chi2.isf(chance / 2, scores.size) / scores.size)
    return Finding(name, "scale of noise over its claim", 1, measured, low, high)


def _distribution(name: str, scores: Floats, chance: float) -> Finding:
    """How far the noise's distribution lies from the claimed one (Kolmogorov and Smirnov)."""
    from scipy import stats

    distance = stats.kstest(scores.ravel(), "norm", method="asymp").statistic
    # A release lies on a grid of at most an eighth of its noise's scale: half of the largest cell's
    # probability may show.
    allowed = stats.kstwo.isf(chance, scores.size) + float(stats.norm.pdf(0.0)) / (2 * FINENESS)
    return Finding(name, "Kolmogorov-Smirnov distance", 0, float(distance), 0, float(allowed))


def _sensitivity(mechanism: Mechanism, measured: float) -> Finding:
    """How far a unit moves all that is published, in units of the noise. Of a tight mechanism it
    must come near the claim, which shows that the attack sees."""
    claimed = claimed_shift(mechanism)
    low = claimed * (1 - CLIP_SLACK) if mechanism.tight else 0.0
    return Finding(
        mechanism.name,
        "sensitivity over scale of noise",
        claimed,
        measured,
        low,
        claimed * (1 + SLACK),
    )


def _check_declared_sensitivity(mechanism: Mechanism, still: Still) -> Finding:
    """How far a unit moves what a single draw hides, over what that draw declares. A mechanism of
    several draws may hide in the others' slack what one of them forgot.

    Where the other units contribute nothing, this holds at every step, whatever earlier releases
    made of the next one. Draws under a secret number of runs declare what one run costs, and are
    left out.
    """
    fewest = min(len(first) for first, _ in mechanism.neighbours)
    masks = {draw.name for draw in mechanism.draws if draw.distribution == "mask"}
    noises = [
        d
        for d in mechanism.draws
        if d.distribution in ("gaussian", "laplace") and d.under in {"", *masks}
    ]
    ratios = [
        float(np.linalg.norm(moved, ord=1 if draw.distribution == "laplace" else 2))
        / draw.sensitivity
        for first, second in mechanism.neighbours
        if len(first) == fewest
        for one, other in [(still.totals(first), still.totals(second))]
        for draw in noises
        for moved in _release_differences(draw, one[draw.name], other[draw.name])
    ]
    # Declared sensitivities are as they are; only rounding inside a chunk may add to them.
    return Finding(
        mechanism.name,
        "sensitivity over its declaration",
        1,
        max(ratios, default=0.0),
        0,
        1 + SLACK,
    )


def _check_sampled_sensitivity(mechanism: Mechanism, still: Still) -> list[Finding]:
    """How far the last unit moves each sum by being in the sample, over what it may.

    Under replace_one that is half of the declared sensitivity, as `sampled_sensitivity` says
    (privacy/accounting/draws.py). Two neighbours that are both sampled tell nothing of it. Nothing
    is drawn by chance here.
    """
    masks = {draw.name for draw in mechanism.draws if draw.distribution == "mask"}
    noises = [draw for draw in mechanism.draws if draw.under in masks and draw.sensitivity]
    if not noises:
        return []
    fewest = min(len(first) for first, _ in mechanism.neighbours)
    data = {
        id(second[-1]): second for first, second in mechanism.neighbours if len(first) == fewest
    }
    # by rows: a sample without the last unit is what others add, to the last bit but one
    outside = [
        float(np.linalg.norm(left)) / draw.scale
        for units in data.values()
        if len(units) > 1
        for out, without in [(still.totals(units, without_last=True), still.totals(units[:-1]))]
        for draw in noises
        for left in _release_differences(draw, without[draw.name], out[draw.name])
    ]
    ratios = [
        float(np.linalg.norm(moved))
        * sampled_sensitivity(1.0, mechanism.relation)
        / draw.sensitivity
        for units in data.values()
        for out, inside in [(still.totals(units, without_last=True), still.totals(units))]
        for draw in noises
        for moved in _release_differences(draw, out[draw.name], inside[draw.name])
    ]
    return [
        Finding(
            mechanism.name, "move in a sample over its declaration", 1, max(ratios), 0, 1 + SLACK
        ),
        Finding(mechanism.name, "rows outside a sample", 0, max(outside, default=0.0), 0, SLACK),
    ]


def _release_differences(
    draw: Draw, one: Sequence[Floats], other: Sequence[Floats]
) -> list[Floats]:
    """The difference that a unit makes to each release of a draw, of which a stack is one."""
    steps = [np.ravel(b) - np.ravel(a) for a, b in zip(one, other, strict=True)]
    stacks = range(0, len(steps), draw.stack)
    return [np.concatenate(steps[first : first + draw.stack]) for first in stacks]


def _epsilon(
    mechanism: Mechanism,
    streams: SourceOfQuery,
    pair: tuple[Any, Any],
    shift: tuple[Floats, Floats],
    delta: float,
    chance: float,
) -> Finding:
    """A lower bound on epsilon at confidence 1 - chance, from guessing which of two neighbours a
    release came from.

    The guess asks on which side of the middle the release falls along the shift: for Gaussian noise
    the optimal test. Both were fixed before the runs counted here.
    """
    first, step = shift
    direction = step / (np.max(np.abs(step)) or 1.0)
    middle = (first + step / 2) @ direction
    runs = round((RUNS if mechanism.tight else FEW_RUNS) * mechanism.effort)

    def guessed_second(data: Any, which: str) -> int:
        query = f"{mechanism.name} bound {which}"
        meters = [Meter(mechanism.draws, streams(query, str(run))) for run in range(runs)]
        return sum(
            bool(released @ direction > middle) for released in releases(mechanism, data, meters)
        )

    right = hit_rate_lower_bound(guessed_second(pair[1], "second"), runs, chance / 2)
    wrong = hit_rate_upper_bound(guessed_second(pair[0], "first"), runs, chance / 2)
    claimed, measured = _epsilon_charged_and_bound(mechanism, right, wrong, delta)
    low = claimed / 2 if mechanism.tight else 0.0
    return Finding(mechanism.name, "lower bound on epsilon", claimed, measured, low, claimed)


def _single_sample_rate(mechanism: Mechanism) -> float | None:
    """The probability of the one sample that all the noise lies on; nothing where there are more,
    or none."""
    masks = [draw for draw in mechanism.draws if draw.distribution == "mask"]
    whole = all(draw in masks or draw.under for draw in mechanism.draws)
    return masks[0].scale if len(masks) == 1 and masks[0].count == 1 and whole else None


def _epsilon_of_sample(
    mechanism: Mechanism,
    streams: SourceOfQuery,
    still: Still,
    rate: float,
    delta: float,
    chance: float,
) -> Finding:
    """Bound epsilon of noise on one Poisson sample from below, by the likelihood ratio, the best
    test there is.

    Let N(place) be the declared noise around a place. A neighbour releases from p = (1 - q) N(out)
    + q N(in): its last unit is out of the sample, or in it. Noise that is no such noise fails the
    checks before.

    Let L = log p / p' and S = {L > t}. Every release in S tells p'(S) <= e^-t p(S). So
    delta(epsilon) >= p(S) (1 - e^(epsilon - t)), and no run of the other neighbour has to be wrong.
    A few hundred runs show it. A threshold on one number would hide it among the samples without
    the unit.
    """
    # others' contributions would vary by sample
    fewest = min(len(first) for first, _ in mechanism.neighbours)
    pairs = [pair for pair in mechanism.neighbours if len(pair[0]) == fewest]
    pair = max(pairs, key=lambda pair: float(np.linalg.norm(still.shift(pair)[1])))
    runs = round(FEW_RUNS * mechanism.effort)
    lost = np.abs if kind_of_noise(mechanism) == "laplace" else _half_squares

    def likelihood(data: Any, released: Floats) -> Floats:
        places = (
            (still.released(data, without_last=True), 1.0 - rate),
            (still.released(data), rate),
        )
        parts = [np.log(share) - lost(released - place).sum(axis=1) for place, share in places]
        return np.asarray(np.logaddexp(*parts))

    def bound(data: Any, other: Any, which: str) -> float:
        query = f"{mechanism.name} bound {which}"
        meters = [Meter(mechanism.draws, streams(query, str(run))) for run in range(runs)]
        released = np.array(releases(mechanism, data, meters))
        ratios = np.sort(likelihood(data, released) - likelihood(other, released))
        shares = [share for share in (2, 4, 10, 20, 40) if runs > share]
        bounds = [
            float(ratios[-1 - runs // share]) + math.log1p(-delta / above)
            for share in shares
            if (above := hit_rate_lower_bound(runs // share, runs, chance / (2 * len(shares))))
            > delta
        ]
        return max([0.0, *bounds])

    measured = max(bound(*pair, "first"), bound(*pair[::-1], "second"))
    claimed = _charged_epsilon(mechanism.event, mechanism.relation, delta)
    return Finding(mechanism.name, "lower bound on epsilon", claimed, measured, 0.0, claimed)


def _half_squares(away: Floats) -> Floats:
    """What a Gaussian's log density loses so far from its middle."""
    return np.square(away) / 2


def _epsilon_charged_and_bound(
    mechanism: Mechanism, right: float, wrong: float, delta: float
) -> tuple[float, float]:
    """The epsilon that is charged, and the lower bound that a test's hit rates show, both at delta.
    Where the charge is a mu, the bound is one on mu: it says more than one (epsilon, delta)."""
    mu = events.mu(mechanism.event)
    if mu is not None:
        return gdp.epsilon(mu, delta), gdp.epsilon(mu_bound(right, wrong), delta)
    if mechanism.winner is not None:
        claimed = booking.epsilon(booking.price(mechanism.event, mechanism.relation), delta)
        return claimed, epsilon_bound(right, wrong, delta)
    return _charged_epsilon(mechanism.event, mechanism.relation, delta), epsilon_bound(
        right, wrong, delta
    )


@lru_cache(maxsize=1024)
def _charged_epsilon(event: Event, relation: Relation, delta: float) -> float:
    """What sampled or Laplace noise is charged, but for 1e-6: far below what an attack can tell.
    Many mechanisms are charged alike."""
    losses = booking.loss_distribution((Counted(event),), relation, coarser=16)
    return float(losses.get_epsilon_for_delta(delta))
