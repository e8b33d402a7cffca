"""Audit: does the noise that is really drawn earn the charge that the ledger makes?

A mechanism runs on made-up data through the real meter, under a key of the audit's own, and what
comes out is held against its event. All figures are in units of the claimed noise, so that an event
says everything: noise of scale 1 around a vector that one unit moves by at most mu. Repeating an
audit under one key repeats its draws: a chance finding stays, and asking again buys no second
chance.

Four checks per mechanism rest on chance; each gets an equal share of FAMILY_ERROR (Bonferroni), so
an honest suite fails with probability at most FAMILY_ERROR. Equal digests and lack of power add
less than a hundredth of that.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpladder.audit.engine.cells import GridCell, LeftOut
from dpladder.errors import BadInput, Refused
from dpladder.privacy.accounting import booking, events, gdp
from dpladder.privacy.accounting.draws import Shape, in_sample
from dpladder.privacy.accounting.events import (
    Booked,
    Composed,
    Counted,
    Event,
    Job,
    Laplace,
    Relation,
    Sampled,
)
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release.grid import FINENESS, Noise
from dpladder.privacy.release.meter import Draw, Meter, Streams, Used, Within
from dpladder.privacy.release.noise import DerivedNoise, SecretNoise

FAMILY_ERROR = 1e-6
CHANCE_CHECKS = 4
ROUNDS = 400  # rounds of runs whose noise is compared
RUNS = 4000  # runs on either side of the bound on epsilon, where it must come near the claim
FEW_RUNS = 1000  # and where it only must not exceed it
MOST = 1000  # released numbers: their correlation matrix must fit in memory
TOGETHER = 100  # runs that share a pass, of a mechanism that can make many
SLACK = 1e-5  # what float32 arithmetic inside a chunk may add
INSIDE = 0.01  # how far inside its bound a tight mechanism may clip, to pay for such arithmetic

SourceOfJob = Callable[[Job, str, str], Streams]
Run = Callable[[Any, Meter], Floats]


@dataclass(frozen=True)
class Mechanism:
    """A mechanism as its auditor sees it: the event charged for one run, and how to run it on
    made-up data.

    `run` returns what is published, with noise of `scale` (one figure, or one per number) made of
    `draws`. On the first data set of all, every published number must be a constant plus noise; for
    a learner, records that contribute nothing do that. `tight` promises that some pair of
    neighbours reaches the claim, so that the audit can show that it sees: the bound must come
    within a factor of two. Claim an epsilon of 6 to 20 then (2 or 3 for Laplace noise).

    Of a search, which puts one of many trainings out, `winner` is that training's event: what is
    published carries its noise, and may move by no more; the bound on epsilon is held against the
    whole search. `effort`: of the usual number of runs, for what is slow. A `run` may have a method
    `many`, which takes meters instead of one: what the workflow makes in one pass is attacked so.
    `cell`: where a learner's attack stands in the audit's grid.
    """

    name: str
    event: Event
    draws: tuple[Draw, ...]
    scale: float | Floats
    run: Run
    neighbours: tuple[tuple[Any, Any], ...]
    relation: Relation = "add_remove"
    tight: bool = False
    winner: Event | None = None
    effort: float = 1.0
    cell: GridCell | None = None


@dataclass(frozen=True)
class Finding:
    mechanism: str
    check: str
    claimed: float
    measured: float
    low: float
    high: float
    note: str = ""

    @property
    def ok(self) -> bool:
        return self.low <= self.measured <= self.high  # false for NaN


@dataclass(frozen=True)
class Report:
    delta: float
    findings: tuple[Finding, ...]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def ok(self) -> bool:
        return all(finding.ok for finding in self.findings)


def run_audit(
    mechanisms: Sequence[Mechanism],
    key: bytes,
    delta: float = 1e-5,
    noise: Callable[[bytes, Job, str, str], Streams] = SecretNoise,
    among: int | None = None,
) -> Report:
    """Audit each mechanism with noise under `key`: home's subkey for audits, never the one for
    noise. `among`: of how many in all, where a suite is shared out."""
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


def to_json(report: Report) -> dict[str, Any]:
    """The report as plain JSON values; a figure that is no number is null."""

    def plain(finding: Finding) -> dict[str, Any]:
        measured = finding.measured if math.isfinite(finding.measured) else None
        return {**dataclasses.asdict(finding), "measured": measured, "ok": finding.ok}

    return {
        "ok": report.ok,
        "delta": report.delta,
        "family_error": FAMILY_ERROR,
        "findings": [plain(finding) for finding in report.findings],
        "left_out": [dataclasses.asdict(one) for one in report.left_out],
    }


def table(report: Report) -> str:
    """The report for a reader: one line per finding, and one per reason to leave something out."""
    lines = [f"{'':6} {'mechanism':24} {'check':36} {'claimed':>9} {'measured':>9}  allowed"]
    for finding in report.findings:
        lines.append(
            f"{'ok' if finding.ok else 'FAILED':6} {finding.mechanism:24} {finding.check:36} "
            f"{finding.claimed:9.4g} {finding.measured:9.4g}  {finding.low:.4g} to "
            f"{finding.high:.4g} {finding.note}".rstrip()
        )
    for why, number in Counter(one.why for one in report.left_out).items():
        lines.append(f"left out: {number} x {why}")
    failed = sum(not finding.ok for finding in report.findings)
    lines.append(
        f"{failed} of {len(report.findings)} checks failed. Bounds on epsilon are at delta "
        f"{report.delta:g}; an honest suite fails with probability at most {FAMILY_ERROR:g}."
    )
    return "\n".join(lines)


@dataclass(frozen=True)
class _None(Noise):
    """The total as it is: what rounding to the grid hides must be seen here."""

    seen: list[Floats]

    def onto(self, total: Any, values: Any = None) -> Any:
        self.seen.append(np.array(total, np.float64))
        return total


class _Bare(Meter):
    """No noise, and everybody in every sample: what is left is what the data alone do. `totals` are
    what noise was asked for, by the name of its draw."""

    def __init__(self, draws: Sequence[Draw], source: Streams, without_last: bool = False) -> None:
        super().__init__(draws, source)
        self._without_last = without_last
        self.totals: dict[str, list[Floats]] = {draw.name: [] for draw in draws}

    def noise(self, name: str, shape: Shape) -> Noise:
        super().noise(name, shape)
        return _None(np.zeros(shape), self._declared[name].scale, self.totals[name])

    def mask(self, name: str, ids: NDArray[np.uint8]) -> NDArray[np.bool_]:
        super().mask(name, ids)
        others = np.ones(len(ids), dtype=np.bool_)
        return (ids != ids[-1:]).any(axis=1) if self._without_last else others

    def within(self, name: str) -> Within:
        found = super().within(name)
        return _BareWithin(found.source, found.mu, found.most)


class _BareWithin(Within):
    def meter(self, name: str, draws: Sequence[Draw]) -> Meter:
        super().meter(name, draws)
        return _Bare(draws, DerivedNoise(self.source.stream(name, 0)))


def _audit(
    mechanism: Mechanism, streams: SourceOfJob, delta: float, chance: float
) -> list[Finding]:
    name = mechanism.name
    job = Job("audit", name, (("trial", "0"),))
    scores, used = _noise(mechanism, streams)
    still = _Still(mechanism, streams(job, "shift", "0"))
    shifts = [still.shift(pair) for pair in mechanism.neighbours]
    norms = [float(np.linalg.norm(shift, ord=_norm(mechanism))) for _, shift in shifts]
    worst = int(np.argmax(norms))  # the first NaN if there is one, and it fails
    return [
        Finding(name, "runs that the meter refused", 0, 0, 0, 0),
        Finding(name, "draws made twice", 0, _repeated(mechanism, used), 0, 0),
        _outside(mechanism, streams(job, "outside", "0")),
        _independence(name, scores, chance),
        _scale(name, scores, chance),
        _distribution(name, scores, chance),
        _sensitivity(mechanism, norms[worst]),
        _declared(mechanism, still),
        *_entering(mechanism, still),
        _epsilon(mechanism, streams, mechanism.neighbours[worst], shifts[worst], delta, chance)
        if (rate := _sampled_once(mechanism)) is None
        else _epsilon_of_sample(mechanism, streams, still, rate, delta, chance),
    ]


def _release(mechanism: Mechanism, data: Any, meter: Meter) -> Floats:
    """What one run publishes, in units of the claimed noise."""
    return _in_units(mechanism, mechanism.run(data, meter), meter)


def _releases(mechanism: Mechanism, data: Any, meters: Sequence[Meter]) -> list[Floats]:
    """The same of many runs, each with a meter of its own."""
    many = getattr(mechanism.run, "many", None)
    if many is None:
        return [_release(mechanism, data, meter) for meter in meters]
    parts = [meters[start : start + TOGETHER] for start in range(0, len(meters), TOGETHER)]
    made = (pair for part in parts for pair in zip(many(data, part), part, strict=True))
    return [_in_units(mechanism, released, meter) for released, meter in made]


def _in_units(mechanism: Mechanism, published: ArrayLike, meter: Meter) -> Floats:
    released = np.ravel(np.asarray(published, dtype=np.float64) / mechanism.scale)
    meter.close()
    if released.size > MOST:
        raise BadInput(
            f"mechanism {mechanism.name} publishes {released.size} numbers and an audit takes at "
            f"most {MOST}. Register it on smaller made-up data."
        )
    return released


def _noise(mechanism: Mechanism, streams: SourceOfJob) -> tuple[Floats, list[Used]]:
    """Normal scores of the published noise: a row per round, with one run of each identity that
    must not share noise.

    The noise is the release with noise less the release without. Rounds differ in their nonce; the
    runs of a round differ in one other ingredient of the stream each.
    """
    trial = (("trial", "0"),)
    identities = (
        (Job("audit", mechanism.name, trial), "query"),
        (Job("audit", mechanism.name, (("trial", "1"),)), "query"),
        (Job("another", mechanism.name, trial), "query"),
        (Job("audit", mechanism.name, trial), "another"),
    )
    data, rounds = mechanism.neighbours[0][0], round(ROUNDS * mechanism.effort)
    sources = [
        streams(job, query, str(nonce)) for nonce in range(rounds) for job, query in identities
    ]
    meters = [Meter(mechanism.draws, source, audit=True) for source in sources]
    noised = _releases(mechanism, data, meters)
    # A bare meter keeps noise and masks to itself: where nothing else is drawn, one run without
    # noise is all of them.
    told = any(draw.distribution in ("uniform", "within") for draw in mechanism.draws)
    bare = [_Bare(mechanism.draws, source) for source in (sources if told else sources[:1])]
    still = np.array(_releases(mechanism, data, bare))
    used = [use for meter in meters for use in meter.used]
    return _normal_scores(mechanism, (np.array(noised) - still).reshape(rounds, -1)), used


def _normal_scores(mechanism: Mechanism, noise: Floats) -> Floats:
    """The noise as standard normals, if it is what it claims to be."""
    if _kind(mechanism) == "gaussian":
        return noise
    from scipy.special import ndtri_exp

    return -np.sign(noise) * ndtri_exp(math.log(0.5) - np.abs(noise))


def _repeated(mechanism: Mechanism, used: Sequence[Used]) -> int:
    """How many draws were equal to another. Masks may be: few records make few of them."""
    masks = {draw.name for draw in mechanism.draws if draw.distribution == "mask"}
    counts = Counter(use.sha256 for use in used if use.name not in masks)
    return sum(count - 1 for count in counts.values())


def _outside(mechanism: Mechanism, stream: Streams) -> Finding:
    """Two runs on the same streams differ only by randomness that did not come through the
    meter."""
    data = mechanism.neighbours[0][0]
    one, other = (_release(mechanism, data, Meter(mechanism.draws, stream)) for _ in range(2))
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
    from scipy import stats

    measured = math.sqrt(np.mean(scores * scores))
    low = math.sqrt(stats.chi2.ppf(chance / 2, scores.size) / scores.size)
    high = math.sqrt(stats.chi2.isf(chance / 2, scores.size) / scores.size)
    return Finding(name, "scale of noise over its claim", 1, measured, low, high)


def _distribution(name: str, scores: Floats, chance: float) -> Finding:
    from scipy import stats

    distance = stats.kstest(scores.ravel(), "norm", method="asymp").statistic
    # A release lies on a grid of at most an eighth of its noise's scale: half of the largest cell's
    # probability may show.
    allowed = stats.kstwo.isf(chance, scores.size) + float(stats.norm.pdf(0.0)) / (2 * FINENESS)
    return Finding(name, "Kolmogorov-Smirnov distance", 0, float(distance), 0, float(allowed))


Told = tuple[Floats, dict[str, list[Floats]]]
"""What a run without noise releases, and what noise was asked for, by the name of its draw."""


class _Still:
    """What data sets alone do, without noise. Each is asked once: a few canaries make many pairs of
    neighbours."""

    def __init__(self, mechanism: Mechanism, stream: Streams) -> None:
        self._mechanism, self._stream = mechanism, stream
        self._told: dict[tuple[Any, ...], Told] = {}

    def released(self, data: Any, without_last: bool = False) -> Floats:
        return self._of(data, without_last)[0]

    def totals(self, data: Any, without_last: bool = False) -> dict[str, list[Floats]]:
        return self._of(data, without_last)[1]

    def shift(self, pair: tuple[Any, Any]) -> tuple[Floats, Floats]:
        """Where the releases of two neighbours lie: the first, and the step from it to the
        second."""
        first, second = map(self.released, pair)
        return first, second - first

    def _of(self, data: Any, without_last: bool = False) -> Told:
        # units may be arrays, and live as long as their neighbours
        which = (without_last, *map(id, data))
        if which not in self._told:
            meter = _Bare(self._mechanism.draws, self._stream, without_last)
            self._told[which] = _release(self._mechanism, data, meter), meter.totals
        return self._told[which]


def _sensitivity(mechanism: Mechanism, measured: float) -> Finding:
    claimed = _claimed_shift(mechanism)
    low = claimed * (1 - INSIDE) if mechanism.tight else 0.0
    return Finding(
        mechanism.name,
        "sensitivity over scale of noise",
        claimed,
        measured,
        low,
        claimed * (1 + SLACK),
    )


def _declared(mechanism: Mechanism, still: _Still) -> Finding:
    """How far a unit moves what a single draw hides, over what that draw declares: a mechanism of
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
        for moved in _moved(draw, one[draw.name], other[draw.name])
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


def _entering(mechanism: Mechanism, still: _Still) -> list[Finding]:
    """How far the last unit moves each sum by being in the sample, over what neighbours in a sample
    may: half of the declared sensitivity under replace_one (draws.in_sample). Two neighbours that
    are both sampled tell nothing of it. Nothing is drawn by chance here."""
    masks = {draw.name for draw in mechanism.draws if draw.distribution == "mask"}
    noises = [draw for draw in mechanism.draws if draw.under in masks and draw.sensitivity]
    if not noises:
        return []
    fewest = min(len(first) for first, _ in mechanism.neighbours)
    data = {
        id(second[-1]): second for first, second in mechanism.neighbours if len(first) == fewest
    }
    ratios = [
        float(np.linalg.norm(moved)) * in_sample(1.0, mechanism.relation) / draw.sensitivity
        for units in data.values()
        for out, inside in [(still.totals(units, without_last=True), still.totals(units))]
        for draw in noises
        for moved in _moved(draw, out[draw.name], inside[draw.name])
    ]
    return [
        Finding(
            mechanism.name, "move in a sample over its declaration", 1, max(ratios), 0, 1 + SLACK
        )
    ]


def _moved(draw: Draw, one: Sequence[Floats], other: Sequence[Floats]) -> list[Floats]:
    """The difference that a unit makes to each release of a draw, of which a stack is one."""
    steps = [np.ravel(b) - np.ravel(a) for a, b in zip(one, other, strict=True)]
    stacks = range(0, len(steps), draw.stack)
    return [np.concatenate(steps[first : first + draw.stack]) for first in stacks]


def _epsilon(
    mechanism: Mechanism,
    streams: SourceOfJob,
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
        job = Job("audit", mechanism.name, (("trial", which),))
        meters = [Meter(mechanism.draws, streams(job, "bound", str(run))) for run in range(runs)]
        return sum(
            bool(released @ direction > middle) for released in _releases(mechanism, data, meters)
        )

    right = at_least(guessed_second(pair[1], "second"), runs, chance / 2)
    wrong = at_most(guessed_second(pair[0], "first"), runs, chance / 2)
    claimed, measured = _claimed_and_bound(mechanism, right, wrong, delta)
    low = claimed / 2 if mechanism.tight else 0.0
    return Finding(mechanism.name, "lower bound on epsilon", claimed, measured, low, claimed)


def _sampled_once(mechanism: Mechanism) -> float | None:
    """The probability of the one sample that all the noise lies on; nothing where there are more,
    or none."""
    masks = [draw for draw in mechanism.draws if draw.distribution == "mask"]
    whole = all(draw in masks or draw.under for draw in mechanism.draws)
    return masks[0].scale if len(masks) == 1 and masks[0].count == 1 and whole else None


def _epsilon_of_sample(
    mechanism: Mechanism,
    streams: SourceOfJob,
    still: _Still,
    rate: float,
    delta: float,
    chance: float,
) -> Finding:
    """The same of noise on one Poisson sample, by the likelihood ratio, the best test there is.

    Where the last unit is out of the sample, and where it is in, tells what each neighbour
    releases: p = (1 - q) N(out) + q N(in), with N the declared noise around a place. Noise that is
    no such noise fails the checks before.
    Of S = {L > t}, L = log p / p', every release tells p'(S) <= e^-t p(S), so delta(epsilon) >=
    p(S) (1 - e^(epsilon - t)): no run of the other neighbour has to be wrong, and a few hundred
    runs show what a threshold on one number hides among the samples without the unit.
    """
    # others' contributions would vary by sample
    fewest = min(len(first) for first, _ in mechanism.neighbours)
    pairs = [pair for pair in mechanism.neighbours if len(pair[0]) == fewest]
    pair = max(pairs, key=lambda pair: float(np.linalg.norm(still.shift(pair)[1])))
    runs = round(FEW_RUNS * mechanism.effort)
    lost = np.abs if _kind(mechanism) == "laplace" else _half_squares

    def likelihood(data: Any, released: Floats) -> Floats:
        places = (
            (still.released(data, without_last=True), 1.0 - rate),
            (still.released(data), rate),
        )
        parts = [np.log(share) - lost(released - place).sum(axis=1) for place, share in places]
        return np.asarray(np.logaddexp(*parts))

    def bound(data: Any, other: Any, which: str) -> float:
        job = Job("audit", mechanism.name, (("trial", which),))
        meters = [Meter(mechanism.draws, streams(job, "bound", str(run))) for run in range(runs)]
        released = np.array(_releases(mechanism, data, meters))
        ratios = np.sort(likelihood(data, released) - likelihood(other, released))
        shares = [share for share in (2, 4, 10, 20, 40) if runs > share]
        found = [
            float(ratios[-1 - runs // share]) + math.log1p(-delta / above)
            for share in shares
            if (above := at_least(runs // share, runs, chance / (2 * len(shares)))) > delta
        ]
        return max([0.0, *found])

    measured = max(bound(*pair, "first"), bound(*pair[::-1], "second"))
    claimed = _claimed(mechanism.event, mechanism.relation, delta)
    return Finding(mechanism.name, "lower bound on epsilon", claimed, measured, 0.0, claimed)


def _half_squares(away: Floats) -> Floats:
    """What a Gaussian's log density loses so far from its middle."""
    return np.square(away) / 2


def _claimed_and_bound(
    mechanism: Mechanism, right: float, wrong: float, delta: float
) -> tuple[float, float]:
    mu = events.mu(mechanism.event)
    if mu is not None:
        return gdp.epsilon(mu, delta), gdp.epsilon(mu_bound(right, wrong), delta)
    if mechanism.winner is not None:
        claimed = booking.epsilon(booking.price(mechanism.event, mechanism.relation), delta)
        return claimed, epsilon_bound(right, wrong, delta)
    return _claimed(mechanism.event, mechanism.relation, delta), epsilon_bound(right, wrong, delta)


@lru_cache(maxsize=1024)
def _claimed(event: Event, relation: Relation, delta: float) -> float:
    """What sampled or Laplace noise is charged: it takes a second, and many mechanisms are charged
    alike."""
    return float(
        booking.loss_distribution((Counted(event),), relation).get_epsilon_for_delta(delta)
    )


def mu_bound(right: float, wrong: float) -> float:
    """The least mu whose mechanisms allow a test with at least `right` true and at most `wrong`
    false positives.

    A mu-GDP mechanism has Phi^-1(right) - Phi^-1(wrong) <= mu for every test (Dong, Roth & Su 2019,
    Definition 2.6); Nasr et al. 2023 (Tight auditing of differentially private machine learning)
    audit with it.
    """
    from scipy.special import ndtri

    return max(0.0, float(ndtri(right) - ndtri(wrong)))


def epsilon_bound(right: float, wrong: float, delta: float) -> float:
    """The least epsilon that allows that test, or its complement with the neighbours swapped.

    From right <= e^epsilon wrong + delta and 1 - wrong <= e^epsilon (1 - right) + delta (Kairouz,
    Oh & Viswanath 2015, Theorem 2.1).
    """
    odds = [(right - delta) / wrong, (1 - wrong - delta) / (1 - right)]
    return math.log(max(1.0, *odds))


def at_least(hits: int, runs: int, chance: float) -> float:
    """The probability below which `hits` or more of `runs` would have chance at most `chance`
    (Clopper & Pearson 1934)."""
    from scipy import stats

    return float(stats.beta.ppf(chance, hits, runs - hits + 1)) if hits else 0.0


def at_most(hits: int, runs: int, chance: float) -> float:
    """The probability above which `hits` or fewer of `runs` would have chance at most `chance`."""
    return 1.0 - at_least(runs - hits, runs, chance)


def _claimed_shift(mechanism: Mechanism) -> float:
    """By how much one unit may move a release, in units of the noise: what the event says, sample
    or no sample."""
    event = mechanism.winner or _unsampled(mechanism.event)
    claimed = (
        _pure_epsilon(event) if _kind(mechanism) == "laplace" else events.mu(event) or math.nan
    )
    if math.isnan(claimed):
        raise BadInput(
            f"mechanism {mechanism.name} is charged as {mechanism.event} and adds "
            f"{_kind(mechanism)} noise. An audit knows events made of Gaussian or of Laplace, "
            "Poisson sampled or not, with noise to match."
        )
    return claimed


def _unsampled(event: Event) -> Event:
    match event:
        case Sampled(_, inner):
            return _unsampled(inner)
        case Composed(events) | Booked(events):
            return Composed(tuple(Counted(_unsampled(part.event), part.count) for part in events))
    return event


def _pure_epsilon(event: Event) -> float:
    match event:
        case Laplace(scale):
            return 1 / scale
        case Composed(events):
            return sum(part.count * _pure_epsilon(part.event) for part in events)
    return math.nan


def _kind(mechanism: Mechanism) -> str:
    if mechanism.winner is not None:
        return "gaussian"
    kinds = {draw.distribution for draw in mechanism.draws} & {"gaussian", "laplace"}
    if len(kinds) != 1:
        raise BadInput(
            f"mechanism {mechanism.name} declares {' and '.join(sorted(kinds)) or 'no'} noise. An "
            "audit takes Gaussian or Laplace noise in one mechanism: register the others on their "
            "own."
        )
    return kinds.pop()


def _norm(mechanism: Mechanism) -> int:
    """The norm in which sensitivity counts: L1 for Laplace, L2 for Gaussian noise."""
    return 1 if _kind(mechanism) == "laplace" else 2
