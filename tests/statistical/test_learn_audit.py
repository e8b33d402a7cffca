"""The audit of the learners: it passes what is shipped, and fails each engine that was broken on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpladder.config.learners import Descent
from dpladder.learn import descent, engine
from dpladder.learn.audit import mechanisms, training
from dpladder.privacy.audit import Mechanism, Report, run_audit

KEY = b"a public key for audits in tests"


def one_step() -> Mechanism:
    return training(Descent(), steps=1, mu=2.0, relation="add_remove", tight=True)


def three_steps() -> Mechanism:
    return training(Descent(), steps=3, mu=2.0, relation="add_remove")


def failed(report: Report) -> set[str]:
    return {finding.check for finding in report.findings if not finding.ok}


@pytest.mark.parametrize("name", ["dp_gd", "dp_mlp"])
def test_every_learner_passes(name: str) -> None:
    assert not failed(run_audit(mechanisms(name), KEY))


def patched_noise(change: Callable[[Any], Any]) -> Callable[..., Any]:
    honest = descent.noise
    return lambda meters, scales, like: change(honest(meters, scales, like))


def test_half_the_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descent, "noise", patched_noise(lambda noise: noise / 2))
    assert "scale of noise over its claim" in failed(run_audit([one_step()], KEY))


def test_one_noise_vector_for_all_classes_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descent, "noise", patched_noise(lambda noise: noise[:, :1].expand_as(noise)))
    assert "largest correlation of noise" in failed(run_audit([one_step()], KEY))


def test_one_noise_vector_for_all_steps_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, first = descent.noise, {}

    def stuck(meters: Any, scales: Any, like: Any) -> Any:
        drawn = honest(meters, scales, like)
        return first.setdefault(id(meters[0]), drawn)

    monkeypatch.setattr(descent, "noise", stuck)
    assert failed(run_audit([three_steps()], KEY))


def test_noise_on_the_mean_instead_of_the_sum_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descent, "noise", patched_noise(lambda noise: noise / 50))
    assert "scale of noise over its claim" in failed(run_audit([one_step()], KEY))


def test_a_forgotten_clip_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = engine.clipped_sum
    monkeypatch.setattr(
        engine,
        "clipped_sum",
        lambda records, w, bound, rows, **others: honest(records, w, 1e9, rows, **others),
    )
    assert "sensitivity over scale of noise" in failed(run_audit([one_step()], KEY))


def test_noise_of_its_own_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    monkeypatch.setattr(descent, "noise", patched_noise(lambda noise: noise + float(random.normal())))
    assert "randomness outside the meter" in failed(run_audit([one_step()], KEY))
