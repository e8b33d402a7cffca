"""A descent that starts from a head trained on public records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from support import Silent

from dpladder.config.learners import learner_of
from dpladder.config.model import Resources
from dpladder.errors import BadInput
from dpladder.learn import public_head
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.trainings import train, weights_of

CLASSES, WIDTH = 4, 12


def records(count: int, seed: int, classes: int = CLASSES) -> Data:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, count)
    centres = 2.0 * np.random.default_rng(9).normal(size=(CLASSES, WIDTH))
    return Data((centres[labels] + rng.normal(size=(count, WIDTH))).astype(np.float32), labels)


def constants_of(data: Data) -> Constants:
    return Constants(len(data.labels), CLASSES, WIDTH)


def head_of(data: Data, name: str = "dp_gd", **keys: object) -> np.ndarray:
    constants = constants_of(data)
    learner = learner_of({"name": name, "init": "public", **keys})
    return public_head.fit_public_head(
        data, CLASSES, weights_of(learner).seen_by_head(learner, constants)
    )[0]


@pytest.mark.few(1)
@pytest.mark.parametrize("bias", [False, True])
def test_the_head_tells_the_classes_of_other_records(bias: bool) -> None:
    other, head = records(500, seed=2), head_of(records(300, seed=1), bias=bias)
    assert head.shape == (CLASSES, WIDTH + bias)
    logits = other.features @ head[:, :WIDTH].T + (head[:, WIDTH] if bias else 0.0)
    assert np.mean(logits.argmax(axis=1) == other.labels) > 0.95
    assert np.array_equal(
        head, head.astype(np.float16)
    )  # what rounding differs in on another machine is dropped


@pytest.mark.ci
def test_what_has_no_label_counts_as_nothing_and_a_class_without_records_starts_at_zero() -> None:
    data = records(300, seed=1, classes=3)
    more = records(100, seed=3)
    unlabelled = Data(
        np.concatenate([data.features, more.features]), np.append(data.labels, np.full(100, -1))
    )
    assert np.array_equal(head_of(unlabelled), head_of(data))
    assert not head_of(data)[3].any()
    assert head_of(data)[:3].any(axis=1).all()


@pytest.mark.long
def test_few_records_of_classes_that_overlap_make_no_head_that_is_surer_than_it_may_be() -> None:
    """A single fifth of 50 records, ten of them, chose heads that are worse than guessing for three
    samples of six."""
    centres = 0.3 * np.random.default_rng(9).normal(size=(CLASSES, WIDTH))

    def noisy(count: int, seed: int) -> Data:
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, CLASSES, count)
        return Data((centres[labels] + rng.normal(size=(count, WIDTH))).astype(np.float32), labels)

    other = noisy(2000, seed=99)
    losses = []
    for seed in range(6):
        logits = other.features @ head_of(noisy(50, seed)).T
        own = logits[np.arange(len(logits)), other.labels]
        losses.append(float(np.mean(np.logaddexp.reduce(logits, axis=1) - own)))
    assert sum(loss > np.log(CLASSES) for loss in losses) <= 1


def test_one_class_alone_is_refused() -> None:
    data = records(50, seed=1)
    with pytest.raises(BadInput, match="fewer than two"):
        head_of(Data(data.features, np.zeros(50, np.int64)))


def test_a_first_step_is_that_of_the_loss_at_the_public_head() -> None:
    """Against autograd, no record clipped and no noise."""
    data, head = records(200, seed=4), head_of(records(300, seed=1))
    learner = learner_of(
        {"name": "dp_gd", "init": "public", "clip": 40.0, "momentum": 0.0, "free_step": False}
    )
    started = Data(data.features, data.labels, start=head)
    hyper, constants = Hyper(0.5, 1, 1.0), constants_of(data)
    meter: Any = Silent()
    (found,) = train(started, hyper, learner, constants, meter, Resources())
    weights = torch.from_numpy(head).double().requires_grad_()
    logits = torch.from_numpy(data.features).double() @ weights.T
    loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(data.labels), reduction="sum")
    (gradient,) = torch.autograd.grad(loss, weights)
    expected = head - 0.5 * gradient.numpy() / len(data.labels)
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert np.abs(found - head).max() > 5e-4


def test_a_training_without_its_head_is_refused() -> None:
    data = records(50, seed=1)
    learner = learner_of({"name": "dp_gd", "init": "public"})
    for start in (None, np.zeros((CLASSES, WIDTH + 1), np.float32)):
        with pytest.raises(BadInput, match="rule find_start"):
            train(
                Data(data.features, data.labels, start=start),
                Hyper(0.5, 1, 1.0),
                learner,
                constants_of(data),
                Silent(),  # type: ignore[arg-type]
                Resources(threads=1),
            )
