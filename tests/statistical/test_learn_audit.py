"""The audit of the learners: it passes what is shipped, and fails each engine that was broken on
purpose."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from learn.test_attacks import BRIEF
from support import failed

from dpladder.audit.engine.attack import run_audit
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.trainings import along_momentum, training
from dpladder.audit.learners import mechanisms
from dpladder.config.learner_sections import Descent
from dpladder.learn import descent, linear
from dpladder.learn.registry import LEARNERS

pytestmark = pytest.mark.long

KEY = b"a public key for audits in tests"


def one_step() -> Mechanism:
    return training(Descent(), 1, "add_remove", partial(along_momentum, Descent()), tight=True)


def three_steps() -> Mechanism:
    return training(Descent(), 3, "add_remove", partial(along_momentum, Descent()))


@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in BRIEF])
def test_every_learner_passes(name: str) -> None:
    assert not failed(run_audit(mechanisms(name), KEY))


def patched_noise(change: Callable[[Any], Any]) -> Callable[..., Any]:
    honest = descent.published
    return lambda meters, name, totals: totals + change(honest(meters, name, totals) - totals)


@pytest.mark.ci
def test_half_the_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descent, "published", patched_noise(lambda noise: noise / 2))
    assert "scale of noise over its claim" in failed(run_audit([one_step()], KEY))


@pytest.mark.ci
def test_one_noise_vector_for_all_classes_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        descent, "published", patched_noise(lambda noise: noise[:, :1].expand_as(noise))
    )
    assert "largest correlation of noise" in failed(run_audit([one_step()], KEY))


@pytest.mark.ci
def test_one_noise_vector_for_all_steps_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, first = descent.published, {}

    def stuck(meters: Any, name: str, totals: Any) -> Any:
        return totals + first.setdefault(id(meters[0]), honest(meters, name, totals) - totals)

    monkeypatch.setattr(descent, "published", stuck)
    assert failed(run_audit([three_steps()], KEY))


@pytest.mark.ci
def test_noise_on_the_mean_instead_of_the_sum_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descent, "published", patched_noise(lambda noise: noise / 50))
    assert "scale of noise over its claim" in failed(run_audit([one_step()], KEY))


@pytest.mark.ci
@pytest.mark.usefixtures("few")
def test_a_forgotten_clip_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = linear.clipped_sum
    monkeypatch.setattr(
        linear,
        "clipped_sum",
        lambda records, w, bound, rows, **others: honest(records, w, 1e9, rows, **others),
    )
    assert "sensitivity over scale of noise" in failed(run_audit([one_step()], KEY))


@pytest.mark.ci
def test_noise_of_its_own_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    monkeypatch.setattr(
        descent, "published", patched_noise(lambda noise: noise + float(random.normal()))
    )
    assert "randomness outside the meter" in failed(run_audit([one_step()], KEY))
