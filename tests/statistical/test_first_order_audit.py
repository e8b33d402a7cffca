"""The audit of the learners that ask for losses: it fails each that was broken on purpose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from support import failed

from dpladder.audit.engine import attack
from dpladder.audit.engine.attack import run_audit
from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.methods import hyfree_dp
from dpladder.audit.methods.dp_zo import differences
from dpladder.audit.methods.hyfree_dp import first_look
from dpladder.config.learner_sections import HyperparameterFree, ZerothOrder
from dpladder.learn.dp_zo import train as zeroth_order
from dpladder.learn.hyfree_dp import cost, train

pytestmark = pytest.mark.ci

KEY = b"a public key for audits in tests"


def look() -> Mechanism:
    return first_look(HyperparameterFree(), GridCell("hyfree_dp", "add_remove"))


def one_look_far_away() -> Mechanism:
    return hyfree_dp.others()[1]


def three_differences() -> Mechanism:
    return differences(ZerothOrder(), 3, GridCell("dp_zo", "add_remove"))


@pytest.mark.usefixtures("few")
def test_one_noise_for_all_three_losses_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = train.noised_losses

    def shared(step: Any, weights: Any, move: Any, bound: Any, *rest: Any) -> Any:
        return honest(step, weights, move, bound, *rest)[:, :1].expand(-1, 3)

    monkeypatch.setattr(train, "noised_losses", shared)
    assert "largest correlation of noise" in failed(run_audit([look()], KEY))


def test_losses_that_move_in_a_sample_as_on_a_full_batch_are_caught_by_what_is_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Charge and draw once shared this mistake: only the likelihood of what is really released
    tells."""
    monkeypatch.setattr(attack, "ROUNDS", 40)
    assert not failed(run_audit([one_look_far_away()], KEY))
    for room in (cost, train):
        monkeypatch.setattr(room, "loss_moves", lambda learner, constants: constants.moves_count())
    report = run_audit([one_look_far_away()], KEY)
    [bound] = [finding for finding in report.findings if finding.check == "lower bound on epsilon"]
    assert bound.measured > bound.claimed + 1.0


@pytest.mark.usefixtures("few")
def test_half_the_noise_on_losses_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Declared and drawn alike, so that the meter sees nothing wrong."""
    honest = cost._losses

    def halved(*about: Any) -> tuple[Any, ...]:
        return tuple(replace(draw, scale=draw.scale / 2) for draw in honest(*about))

    monkeypatch.setattr(cost, "_losses", halved)
    assert "sensitivity over scale of noise" in failed(run_audit([look()], KEY))


@pytest.mark.usefixtures("few")
def test_gradients_that_are_not_normalised_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "normalise", lambda norms, bound: torch.full_like(norms, bound))
    assert "sensitivity over scale of noise" in failed(run_audit([look()], KEY))


@pytest.mark.usefixtures("few")
def test_differences_that_are_not_clipped_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zeroth_order, "SLACK", -1e6)
    assert "sensitivity over scale of noise" in failed(run_audit([three_differences()], KEY))


@pytest.mark.usefixtures("few")
def test_one_noise_for_all_steps_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, first = zeroth_order.published, {}

    def stuck(meters: Any, name: str, totals: Any) -> Any:
        return totals + first.setdefault(id(meters[0]), honest(meters, name, totals) - totals)

    monkeypatch.setattr(zeroth_order, "published", stuck)
    assert failed(run_audit([three_differences()], KEY))
