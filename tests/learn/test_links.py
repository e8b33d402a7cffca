"""From logits to probabilities and losses, against closed forms; and where a sigmoid's bias
starts."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.special import expit, log_expit, log_softmax

from dpladder.config.model import Resources
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.learn.linear import clipped_sum, resident
from dpladder.learn.links import Link, link_of
from dpladder.methods.dp_gd import Descent

RANDOM = np.random.default_rng(0)
CLASSES = 5
LOGITS = RANDOM.normal(size=(40, CLASSES)) * 3
LABELS = RANDOM.integers(0, CLASSES, 40)
BIAS = -math.log(CLASSES - 1)


@pytest.mark.parametrize("name", ["softmax", "sigmoid"])
def test_losses_are_those_of_the_closed_form_and_probabilities_their_slope(name):
    link, logits = Link(name, CLASSES), torch.from_numpy(LOGITS).requires_grad_()
    labels = torch.from_numpy(LABELS)
    losses = link.losses(logits, labels[:, None], dim=1)
    signs = np.where(np.arange(CLASSES) == LABELS[:, None], 1.0, -1.0)
    expected = {
        "softmax": -log_softmax(LOGITS, axis=1)[np.arange(40), LABELS],
        "sigmoid": -log_expit(signs * (LOGITS + BIAS)).sum(axis=1),
    }[name]
    assert losses.detach().numpy() == pytest.approx(expected, rel=1e-12)
    (slope,) = torch.autograd.grad(losses.sum(), logits)
    residual = link.probabilities(logits.detach(), dim=1) - torch.nn.functional.one_hot(
        labels, CLASSES
    )
    assert slope.numpy() == pytest.approx(residual.numpy(), abs=1e-12)


def test_a_sigmoids_bias_starts_where_every_class_has_its_share():
    for classes in (2, 3, 100):
        link = Link("sigmoid", classes)
        zero = torch.zeros(1, classes, dtype=torch.float64)
        assert link.probabilities(zero, dim=1).numpy() == pytest.approx(1 / classes, rel=1e-12)
        assert link.losses(zero, torch.tensor([[0]]), dim=1).item() == pytest.approx(
            link.loss_at_zero, rel=1e-12
        )
        assert Link("softmax", classes).loss_at_zero == math.log(classes)
    assert expit(Link("sigmoid", 2).bias) == 0.5


def test_sigmoids_start_with_the_gradient_that_softmax_has():
    """So a method of one step has no choice of a link."""
    constants = Constants(n0=60, classes=CLASSES, dimension=6)
    data = Data(RANDOM.normal(size=(60, 6)).astype(np.float32), RANDOM.integers(0, CLASSES, 60))
    held = resident(data, constants, Resources(threads=1))
    first = torch.zeros(1, CLASSES, 6, dtype=torch.float64)
    soft, own = (
        clipped_sum(held, first, 0.8, held.chunks(), link=Link(name, CLASSES))
        for name in ("softmax", "sigmoid")
    )
    assert own.numpy() == pytest.approx(soft.numpy(), rel=1e-5, abs=1e-6)
    moved = first + 1.0
    soft, own = (
        clipped_sum(held, moved, 0.8, held.chunks(), link=Link(name, CLASSES))
        for name in ("softmax", "sigmoid")
    )
    assert (soft - own).norm() > 0.1 * soft.norm()
    assert link_of(Descent(), constants).name == "softmax"


@pytest.mark.parametrize("values", [(1e38, 1e38), (np.inf, 0.0), (np.nan, 1.0), (1e3, -1e3)])
def test_no_record_weighs_more_than_its_bound_by_sigmoids(values):
    constants = Constants(n0=1, classes=CLASSES, dimension=2)
    held = resident(
        Data(np.array([values], np.float32), np.array([1])), constants, Resources(threads=1)
    )
    for size in (0.0, 1.0, 1e30):
        heads = torch.from_numpy(RANDOM.normal(size=(1, CLASSES, 2))) * size
        total = clipped_sum(held, heads, 1.0, held.chunks(), link=Link("sigmoid", CLASSES))
        assert total.norm() <= 1.0 + 2.0**-10
