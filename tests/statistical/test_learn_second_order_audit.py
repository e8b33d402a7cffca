"""The audit of the second-order learners: it fails each that was broken on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support import failed

from dpladder.audit.engine import trainings as attacks
from dpladder.audit.engine.attack import run_audit
from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.trainings import shared_covariance, sums
from dpladder.audit.methods import dp_ls as shared
from dpladder.audit.methods.dp_ls import shared_statistics
from dpladder.config.learner_sections import FeatureCovariance, LeastSquares, Newton
from dpladder.learn import moments
from dpladder.learn.dp_newton import cost as dp_newton
from dpladder.learn.interface import Constants

pytestmark = pytest.mark.ci

KEY = b"a public key for audits in tests"


def test_a_shared_covariance_passes() -> None:
    assert not failed(run_audit([shared_covariance()], KEY))


def stuck(name: str) -> Callable[..., Any]:
    """A release that adds the first noise under a name again and again, while drawing as much as
    was declared."""
    honest, first = attacks.publish, {}

    def repeated(meter: Any, asked: str, total: Any) -> Any:
        noise = honest(meter, asked, total) - total
        return total + (first.setdefault((id(meter), asked), noise) if asked == name else noise)

    return repeated


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: sums(LeastSquares(), 1, GridCell("dp_ls", "add_remove")), "moments"),
        (shared_statistics, "moments"),
        (lambda: sums(Newton(), 1, GridCell("dp_newton", "add_remove")), "hessian"),
        (lambda: sums(FeatureCovariance(), 2, GridCell("dp_fc", "add_remove")), "gradient"),
    ],
    ids=["moments of classes", "shared moments of classes", "Hessians of classes", "descent steps"],
)
def test_shared_noise_is_caught(
    make: Callable[[], Mechanism], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for room in (attacks, shared):
        monkeypatch.setattr(room, "publish", stuck(name))
    assert "largest correlation of noise" in failed(run_audit([make()], KEY))


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
def test_a_hessian_bound_off_by_the_root_of_the_classes_is_caught(
    link: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = dp_newton.bounds
    monkeypatch.setattr(
        dp_newton,
        "bounds",
        lambda learner, classes: (
            honest(learner, classes)[0],
            honest(learner, classes)[1] / classes**0.5,
        ),
    )
    assert "sensitivity over scale of noise" in failed(
        run_audit([sums(Newton(link=link), 1, GridCell("dp_newton", "add_remove"))], KEY)
    )


@pytest.mark.usefixtures("few")
def test_records_outside_the_ball_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = moments.in_ball
    monkeypatch.setattr(
        moments, "in_ball", lambda records, rows, radius: honest(records, rows, 2 * radius)
    )
    assert "sensitivity over scale of noise" in failed(run_audit([shared_covariance()], KEY))


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("name", ["moves_apart", "moves"])
def test_shared_statistics_with_too_small_a_sensitivity_are_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = getattr(Constants, name)
    monkeypatch.setattr(Constants, name, lambda constants, bound: honest(constants, bound) / 2)
    assert "sensitivity over scale of noise" in failed(run_audit([shared_statistics()], KEY))


@pytest.mark.usefixtures("few")
def test_entries_off_the_diagonal_counted_once_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if noise for a triangle's own norm had been scaled for the whole matrix."""
    honest = moments.to_coordinates
    monkeypatch.setattr(moments, "to_coordinates", lambda matrix: honest(matrix) * 2**0.5)
    assert "sensitivity over scale of noise" in failed(run_audit([shared_covariance()], KEY))
