"""The noise that the samplers really make, against the laws they claim.

Keys are fixed and public, so a run always gives the same verdict. Over all keys the chance that any
of these tests fails without a defect is at most 1e-6: each check gets an equal share of it
(Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from dpladder.privacy.accounting.draws import gaussian
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release import noise
from dpladder.privacy.release.meter import Meter
from dpladder.privacy.release.noise import SecretNoise

pytestmark = pytest.mark.ci

CHECKS = 40  # at least as many as this file makes
ALPHA = 1e-6 / CHECKS
Z = float(stats.norm.isf(ALPHA / 2))
N = 1_000_000

LAWS: dict[str, tuple[Callable[..., Floats], stats.distributions.rv_frozen]] = {
    "gaussian": (noise.gaussian, stats.norm()),
    "laplace": (noise.laplace, stats.laplace()),
    "uniform": (noise.uniform, stats.uniform()),
}


@pytest.fixture(scope="module")
def samples() -> dict[str, Floats]:
    return {name: sample(bytes(range(32)), (N,)) for name, (sample, _) in LAWS.items()}


def within(count: int, trials: int, probability: float) -> bool:
    return stats.binomtest(count, trials, probability).pvalue > ALPHA


@pytest.mark.parametrize("name", LAWS)
def test_the_whole_distribution(samples: dict[str, Floats], name: str) -> None:
    assert stats.kstest(samples[name], LAWS[name][1].cdf).pvalue > ALPHA


@pytest.mark.parametrize(
    "moment", [1, 2]
)  # the higher ones converge too slowly for a normal bound this far out
@pytest.mark.parametrize("name", LAWS)
def test_moments(samples: dict[str, Floats], name: str, moment: int) -> None:
    law = LAWS[name][1]
    mean = law.moment(moment)
    deviation = math.sqrt((law.moment(2 * moment) - mean**2) / N)
    assert abs((samples[name] ** moment).mean() - mean) < Z * deviation


@pytest.mark.parametrize("distance", [3.0, 4.0, 4.5])
@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_tails(samples: dict[str, Floats], name: str, distance: float) -> None:
    beyond = int((np.abs(samples[name]) > distance).sum())
    assert within(beyond, N, 2 * LAWS[name][1].sf(distance))


def test_values_of_one_draw_do_not_depend_on_their_neighbours(samples: dict[str, Floats]) -> None:
    """At every distance that the block layout could make special."""
    values = samples["gaussian"]
    lags = [1, 2, 4, 8, noise.BLOCK // 2, noise.BLOCK, 2 * noise.BLOCK]
    products = [(values[lag:] * values[:-lag]).mean() * math.sqrt(N - lag) for lag in lags]
    squares = [
        ((values[lag:] ** 2 - 1) * (values[:-lag] ** 2 - 1)).mean() / 2 * math.sqrt(N - lag)
        for lag in lags
    ]
    assert max(map(abs, products + squares)) < stats.norm.isf(ALPHA / (4 * len(lags)))


def test_steps_classes_and_trials_are_independent() -> None:
    """Every pair of vectors among 4 trials × 5 steps × 10 classes, as a learner draws them."""
    vectors = []
    for trial in range(4):
        source = SecretNoise(bytes(32), f"trial {trial}", "the same nonce")
        meter = Meter([gaussian("step", 1.0, 1.0, (10, 5_000), count=5)], source)
        vectors += [meter.noise("step", (10, 5_000)).values for _ in range(5)]
    rows = np.concatenate(vectors)
    pairs = len(rows) * (len(rows) - 1) // 2
    correlation = np.corrcoef(rows)[np.triu_indices(len(rows), 1)]
    assert np.abs(correlation).max() * math.sqrt(rows.shape[1]) < stats.norm.isf(
        ALPHA / (2 * pairs)
    )


@pytest.mark.parametrize("probability", [0.004, 0.1, 0.5, 0.999])
def test_masks_are_poisson_samples(probability: float) -> None:
    ids = np.random.default_rng(0).integers(0, 256, (100_000, 16), dtype=np.uint8)
    masks = np.array([noise.mask(bytes([step]) * 32, probability, ids) for step in range(20)])
    assert within(int(masks.sum()), masks.size, probability)
    both = int((masks[::2] & masks[1::2]).sum())
    assert within(both, masks.size // 2, probability**2)


def test_masks_of_ids_in_sequence_are_no_worse() -> None:
    """Ids need not be random: a counter is as good."""
    ids = np.zeros((100_000, 16), dtype=np.uint8)
    ids[:, :4] = np.arange(100_000, dtype="<u4").view(np.uint8).reshape(-1, 4)
    mask = noise.mask(bytes(32), 0.5, ids)
    assert within(int(mask.sum()), len(mask), 0.5)
    assert within(int((mask[1:] ^ mask[:-1])[::2].sum()), len(mask) // 2, 0.5)
