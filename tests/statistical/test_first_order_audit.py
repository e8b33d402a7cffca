"""The audit of the learners that ask for losses: it passes what is shipped, and fails each that was broken on purpose."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dpladder.config.learners import HyperparameterFree, ZerothOrder
from dpladder.learn import hyfree_dp, parabola, zeroth_order
from dpladder.learn.audit import differences, first_look, mechanisms
from dpladder.privacy.audit import Mechanism, Report, run_audit

KEY = b"a public key for audits in tests"


def look() -> Mechanism:
    return first_look(HyperparameterFree(), "add_remove")


def three_differences() -> Mechanism:
    return differences(ZerothOrder(), 3, "add_remove")


def failed(report: Report) -> set[str]:
    return {finding.check for finding in report.findings if not finding.ok}


@pytest.mark.parametrize("name", ["dp_adam", "dp_adam_wosm", "dp_prodigy", "one_step", "hyfree_dp", "dp_zo"])
def test_every_learner_passes(name: str) -> None:
    assert not failed(run_audit(mechanisms(name), KEY))


def test_one_noise_for_all_three_losses_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = parabola.noised_losses

    def shared(held: Any, weights: Any, move: Any, bound: Any, *rest: Any) -> Any:
        return honest(held, weights, move, bound, *rest)[:, :1].expand(-1, 3)

    monkeypatch.setattr(parabola, "noised_losses", shared)
    assert "largest correlation of noise" in failed(run_audit([look()], KEY))


def test_half_the_noise_on_losses_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Declared and drawn alike, so that the meter sees nothing wrong."""
    for module in (hyfree_dp, parabola):
        monkeypatch.setattr(module, "loss_scale", lambda found, _: found.loss / 2)
    assert "sensitivity over scale of noise" in failed(run_audit([look()], KEY))


def test_gradients_that_are_not_normalised_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parabola, "normalise", lambda norms, bound: torch.full_like(norms, bound))
    assert "sensitivity over scale of noise" in failed(run_audit([look()], KEY))


def test_differences_that_are_not_clipped_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zeroth_order, "SLACK", -1e6)
    assert "sensitivity over scale of noise" in failed(run_audit([three_differences()], KEY))


def test_one_noise_for_all_steps_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, first = zeroth_order._noise, {}

    def stuck(meter: Any, learner: Any, scale: float) -> float:
        return first.setdefault(id(meter), honest(meter, learner, scale))

    monkeypatch.setattr(zeroth_order, "_noise", stuck)
    assert failed(run_audit([three_differences()], KEY))
