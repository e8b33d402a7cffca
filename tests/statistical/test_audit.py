"""The audit passes honest mechanisms at its stated error and fails broken ones, each at the check
made for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from plain_mechanisms import (
    extremes,
    gaussian_sum,
    laplace_count,
    noised_count,
    noised_mean,
    plain_mechanisms,
)
from scipy import stats
from support import Unrounded

from dpladder.privacy.accounting import gdp
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release import noise
from dpladder.privacy.release.grid import Noise
from dpladder.privacy.release.meter import Meter
from dpladder.privacy.release.noise import SecretNoise
from dpladder_audit.engine import attack, bounds, findings
from dpladder_audit.engine.attack import run_audit
from dpladder_audit.engine.mechanism import Mechanism, neighbours

KEY = bytes(range(32))

REFUSED = "runs that the meter refused"
TWICE = "draws made twice"
OUTSIDE = "randomness outside the meter"
CORRELATION = "largest correlation of noise"
SCALE = "scale of noise over its claim"
DISTRIBUTION = "Kolmogorov-Smirnov distance"
SENSITIVITY = "sensitivity over scale of noise"
BOUND = "lower bound on epsilon"


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "BLOCK", 256)  # the releases audited here are small


class Tampered:
    """A meter whose noise is changed on its way to the mechanism."""

    def __init__(self, meter: Meter | None, change: Callable[[Floats], Floats]) -> None:
        self.meter, self.change = meter, change

    def noise(self, name: str, shape: tuple[int, ...]) -> Noise:
        found = self.meter.noise(name, shape) if self.meter else Unrounded(np.zeros(shape), 1.0)
        return replace(found, values=self.change(found.values))

    def publish(self, name: str, total: ArrayLike) -> Floats:
        exact = np.asarray(total, np.float64)
        return self.noise(name, exact.shape).add_to(exact)


def tampered(honest: Mechanism, change: Callable[[Floats], Floats]) -> Mechanism:
    return replace(honest, run=lambda data, meter: honest.run(data, Tampered(meter, change)))


def noise_only(honest: Mechanism, meter: Meter) -> Floats:
    return honest.run((), meter)


def data_only(honest: Mechanism, data: Any) -> Floats:
    return honest.run(data, Tampered(None, np.zeros_like))


# Broken mechanisms, each with the claim of an honest one.


def one_noise_for_all_classes() -> Mechanism:
    return tampered(gaussian_sum(), lambda values: np.broadcast_to(values[:1], values.shape))


def one_noise_for_all_steps() -> Mechanism:
    honest = gaussian_sum(steps=3)

    def run(data: Any, meter: Meter) -> Floats:
        return data_only(honest, data) + noise_only(honest, meter)[0]

    return replace(honest, run=run)


def one_noise_for_two_targets() -> Mechanism:
    """Two means of six numbers each, the second with the first one's noise upside down."""
    honest = noised_mean(length=12)
    return tampered(honest, lambda values: np.concatenate([values[:6], -values[5::-1]]))


def half_the_noise() -> Mechanism:
    return tampered(gaussian_sum(), lambda values: values / 2)


def half_the_laplace_noise() -> Mechanism:
    return tampered(laplace_count(), lambda values: values / 2)


def half_the_noise_declared() -> Mechanism:
    """Draws, scale and noise agree with each other and not with the charge."""
    return replace(noised_count(mu=4.0), event=noised_count(mu=2.0).event)


def coins_for_noise() -> Mechanism:
    """Heads or tails: the claimed variance, independent, and not Gaussian at all."""
    honest = noised_mean()
    return tampered(honest, lambda values: np.sign(values))


def noise_thrown_away() -> Mechanism:
    return tampered(noised_mean(), np.zeros_like)


def noise_not_drawn() -> Mechanism:
    honest = noised_mean()
    return replace(honest, run=lambda data, meter: data_only(honest, data))


def noise_drawn_twice() -> Mechanism:
    honest = noised_mean()
    return replace(
        honest, run=lambda data, meter: honest.run(data, meter) + noise_only(honest, meter)
    )


def noise_from_a_seed() -> Mechanism:
    return tampered(
        noised_mean(), lambda values: np.random.default_rng(0).normal(size=values.shape)
    )


def noise_from_the_system() -> Mechanism:
    return tampered(noised_mean(), lambda values: np.random.default_rng().normal(size=values.shape))


def clip_forgotten() -> Mechanism:
    honest = gaussian_sum(steps=1)
    return replace(honest, run=lambda data, meter: sum(data) + noise_only(honest, meter))


def clip_by_the_largest_entry() -> Mechanism:
    honest = noised_mean(radius=3.0, n0=100)
    return replace(
        honest,
        run=lambda data, meter: np.clip(data, -3, 3).sum(axis=0) / 100 + noise_only(honest, meter),
    )


def mean_over_the_private_size() -> Mechanism:
    honest = noised_mean(n0=100)

    def run(data: Any, meter: Meter) -> Floats:
        return data_only(honest, data) * 100 / max(len(data), 1) + noise_only(honest, meter)

    pairs = neighbours(extremes((16,), 3.0)[1:2], extremes((16,), 3.0)[2:], "add_remove")
    return replace(honest, run=run, neighbours=pairs, relation="add_remove", tight=False)


def count_of_two_claimed_as_one() -> Mechanism:
    return replace(noised_count(), neighbours=neighbours((1, 0), (0, 1, 2), "add_remove"))


def replacement_claimed_as_removal() -> Mechanism:
    pairs = neighbours((), extremes((4, 12), 0.5), "replace_one")
    return replace(gaussian_sum(), neighbours=pairs, relation="replace_one")


def record_that_makes_nan() -> Mechanism:
    return replace(
        gaussian_sum(), neighbours=(*gaussian_sum().neighbours, ((), (np.full((4, 12), np.inf),)))
    )


def blunt_canary_called_tight() -> Mechanism:
    return replace(
        gaussian_sum(), neighbours=neighbours((), extremes((4, 12), 0.1)[:2], "add_remove")
    )


@pytest.mark.few(10)
@pytest.mark.ci
@pytest.mark.parametrize(
    ("broken", "checks"),
    [
        (one_noise_for_all_classes, {CORRELATION}),
        (one_noise_for_all_steps, {CORRELATION}),
        (one_noise_for_two_targets, {CORRELATION}),
        (half_the_noise, {SCALE, DISTRIBUTION, BOUND}),
        (half_the_laplace_noise, {SCALE, DISTRIBUTION, BOUND}),
        (half_the_noise_declared, {SENSITIVITY, BOUND}),
        (coins_for_noise, {DISTRIBUTION}),
        (noise_thrown_away, {CORRELATION, SCALE, DISTRIBUTION, BOUND}),
        (noise_not_drawn, {REFUSED}),
        (noise_drawn_twice, {REFUSED}),
        (noise_from_a_seed, {CORRELATION, SCALE, DISTRIBUTION, BOUND}),
        (noise_from_the_system, {OUTSIDE}),
        (clip_forgotten, {SENSITIVITY, BOUND}),
        (clip_by_the_largest_entry, {SENSITIVITY, BOUND}),
        (mean_over_the_private_size, {SENSITIVITY, BOUND}),
        (count_of_two_claimed_as_one, {SENSITIVITY, BOUND}),
        (replacement_claimed_as_removal, {SENSITIVITY, BOUND}),
        (record_that_makes_nan, {SENSITIVITY}),
        (blunt_canary_called_tight, {SENSITIVITY, BOUND}),
    ],
)
def test_a_broken_mechanism_fails_where_it_is_broken(broken, checks):
    findings = run_audit([broken()], KEY).findings
    assert checks <= {finding.check for finding in findings if not finding.ok}


# Broken sources of noise.


class ForgetsTheQuery(SecretNoise):
    def stream(self, name: str, index: int) -> bytes:
        return SecretNoise(self.key, "", self.nonce).stream(name, index)


class ForgetsTheNonce(SecretNoise):
    """The same noise whenever the job runs again."""

    def stream(self, name: str, index: int) -> bytes:
        return SecretNoise(self.key, self.query, "").stream(name, index)


class ForgetsTheStep(SecretNoise):
    def stream(self, name: str, index: int) -> bytes:
        return super().stream(name, 0)


@pytest.mark.few(2)
@pytest.mark.ci
@pytest.mark.parametrize("source", [ForgetsTheQuery, ForgetsTheNonce, ForgetsTheStep])
def test_a_source_that_forgets_who_asks_repeats_itself(source):
    report = run_audit([gaussian_sum()], KEY, noise=source)
    assert {TWICE, CORRELATION} <= {finding.check for finding in report.findings if not finding.ok}


# Honest mechanisms.


@pytest.mark.ci
def test_plain_mechanisms_pass():
    report = run_audit(plain_mechanisms(), KEY)
    assert report.ok, findings.table(report)


@pytest.mark.long
def test_chance_failures_are_no_likelier_than_stated(monkeypatch):
    stated, audits = 0.4, 150
    monkeypatch.setattr(attack, "FAMILY_ERROR", stated)
    monkeypatch.setattr(attack, "ROUNDS", 12)
    monkeypatch.setattr(attack, "FEW_RUNS", 40)
    for honest in (noised_count(), laplace_count()):
        mechanism = replace(honest, tight=False)
        reports = [run_audit([mechanism], bytes([run]) * 32) for run in range(audits)]
        # more failures than this have chance 1e-6 at the stated error
        assert sum(not report.ok for report in reports) <= stats.binom.isf(1e-6, audits, stated)
        for check in (CORRELATION, SCALE, DISTRIBUTION, BOUND):
            failures = sum(
                found.check == check and not found.ok for r in reports for found in r.findings
            )
            assert failures <= stats.binom.isf(1e-6, audits, stated / attack.CHANCE_CHECKS)


@pytest.mark.ci
@pytest.mark.parametrize("mu", [1.3, 2.0, 3.5])
def test_tight_gaussian_noise_shows_half_its_epsilon(mu):
    def bound(right: float, wrong: float) -> float:
        return gdp.epsilon(bounds.mu_bound(right, wrong), 1e-5)

    assert chance_of_less(gdp.epsilon(mu, 1e-5) / 2, bound, stats.norm.cdf(mu / 2)) < 1e-9


@pytest.mark.ci
@pytest.mark.parametrize("epsilon", [1.5, 2.0, 3.0])
def test_tight_laplace_noise_shows_half_its_epsilon(epsilon):
    def bound(right: float, wrong: float) -> float:
        return bounds.epsilon_bound(right, wrong, 1e-5)

    assert chance_of_less(epsilon / 2, bound, 1 - np.exp(-epsilon / 2) / 2) < 1e-9


def chance_of_less(half: float, bound: Callable[[float, float], float], right: float) -> float:
    """The chance that the bound of an audit of 20 mechanisms stays below `half`, where a guess is
    right with probability `right` on either side."""
    runs, chance = attack.RUNS, findings.FAMILY_ERROR / attack.CHANCE_CHECKS / 20 / 2
    for hits in range(runs // 2, runs):
        if (
            bound(
                bounds.hit_rate_lower_bound(hits, runs, chance),
                bounds.hit_rate_upper_bound(runs - hits, runs, chance),
            )
            >= half
        ):
            return 2 * float(stats.binom.cdf(hits - 1, runs, right))
    return 1.0
