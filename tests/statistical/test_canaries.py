"""One real training of the demo's shape with canaries in it: what it claims, and one that claims
too little."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpladder.privacy.release.grid import Noise
from dpladder.privacy.release.meter import Meter
from dpladder.privacy.release.noise import SecretNoise
from dpladder_audit import canaries


class HalfTheNoise(Meter):
    def noise(self, name: str, shape: Any) -> Noise:
        found = super().noise(name, shape)
        return Noise(found.values / 2, found.scale)


def attacked(seed: int, meter: type[Meter]) -> canaries.Bound:
    coins = np.random.default_rng(seed).random(canaries.CANARIES) < 0.5
    source, training = (
        SecretNoise(bytes(32), "canaries", str(seed)),
        canaries.demo(8.0),
    )
    return canaries.guess_membership(
        training, canaries.released(training, coins, source, meter), coins
    )


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_run_shows_near_half_of_the_claim_and_no_more_than_it(seed: int) -> None:
    found = attacked(seed, Meter)
    assert found.claimed == pytest.approx(8.0)
    assert 0.45 * found.claimed < found.bound <= found.claimed


@pytest.mark.parametrize(
    "seed", [pytest.param(0, marks=pytest.mark.ci), pytest.param(1, marks=pytest.mark.long)]
)
def test_half_the_noise_is_caught_in_one_run(seed: int) -> None:
    assert not attacked(seed, HalfTheNoise).ok
