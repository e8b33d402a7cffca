"""Opacus as the oracle of the engine, and as the source of the MLP's per-record gradients."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from counted import right_of
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from support import Seeded
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from dpladder.config.label_sets import PRESENT, UNKNOWN, number_of_findings
from dpladder.config.learners import method
from dpladder.config.model import Resources
from dpladder.learn import linear, perceptron
from dpladder.learn.bounds import SLACK, scale_of
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, Hyper, sigmoid_bias
from dpladder.learn.links import Link, link_of
from dpladder.learn.records import load
from dpladder.learn.scorers import ClassScorer
from dpladder.learn.trainings import declare, train
from dpladder.methods.dp_gd import Descent
from dpladder.privacy.release.meter import Meter
from dpladder_papers.methods.dp_mlp import HiddenLayer
from dpladder_papers.methods.dp_mlp.train import initial, layers

dp_mlp = method("dp_mlp")

CPU = torch.device("cpu")
CLASSES, DIMENSION = 4, 12
ONE = Resources(threads=1)
HYPER = Hyper(eta=0.5, steps=6, mu=0.5, delta0=1e-7)
CONSTANTS = Constants(n0=60, classes=CLASSES, dimension=DIMENSION)

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook:UserWarning")


def records(count=60, spread=3.0, seed=0):
    random = np.random.default_rng(seed)
    features = random.normal(size=(count, DIMENSION)) * np.exp(
        random.uniform(-spread, spread, (count, 1))
    )
    units = random.integers(0, 256, (count, 16)).astype(np.uint8)
    return Data(features.astype(np.float32), random.integers(0, CLASSES, count), units)


def loaded(data, chunk=64, bias=False):
    return load(data, CONSTANTS, CPU, chunk=chunk, memory_mb=100, bias=bias)


def opacus_sum(weights, data, bound):
    """The summed clipped gradient that Opacus' own optimiser makes of a linear layer."""
    layer = nn.Linear(DIMENSION, CLASSES, bias=False)
    layer.weight.data = weights.float()
    model = GradSampleModule(layer, loss_reduction="sum")
    optimizer = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=1.0),
        noise_multiplier=0.0,
        max_grad_norm=bound,
        expected_batch_size=1,
        loss_reduction="sum",
    )
    logits = model(torch.from_numpy(data.features))
    cross_entropy(logits, torch.from_numpy(data.labels), reduction="sum").backward()
    optimizer.clip_and_accumulate()
    return layer.weight.summed_grad


@pytest.mark.parametrize("spread", [0.0, 3.0, 12.0])
@pytest.mark.parametrize("bound", [1e-2, 1.0, 1e2])
def test_the_engine_sums_the_gradients_that_opacus_clips(spread, bound):
    data = records(200, spread)
    weights = torch.from_numpy(np.random.default_rng(1).normal(size=(CLASSES, DIMENSION)))
    held = loaded(data)
    found = linear.clipped_sum(held, weights[None], bound, held.chunks())[0]
    expected = opacus_sum(weights, data, bound)
    # Opacus adds 1e-6 to each norm before it divides.
    assert torch.allclose(found.float(), expected, rtol=1e-4, atol=1e-5 * max(bound, 1e-1))


@pytest.mark.parametrize(
    ("clipping", "link"), [("flat", "softmax"), ("automatic", "softmax"), ("flat", "sigmoid")]
)
def test_the_mlps_sum_is_that_of_gradients_taken_one_record_at_a_time(clipping, link):
    data, learner = records(), Descent(bias=True, init="random")
    shapes = layers(learner, CONSTANTS)
    model = GradSampleModule(perceptron.Perceptron(shapes, bias=True), loss_reduction="sum")
    weights = initial(learner, CONSTANTS, shapes)[None]
    held = loaded(data, chunk=7, bias=True)
    bound = {"softmax": 0.5, "sigmoid": 2.0}[link]
    own = Link(link, CLASSES)
    found = perceptron.clipped_sum(
        model, held, weights, bound, held.chunks(), scale_of(clipping), own
    )[0]
    plain = perceptron.Perceptron(shapes, bias=True).double()
    torch.nn.utils.vector_to_parameters(weights[0].double(), plain.parameters())
    expected, clipped = torch.zeros_like(found), 0
    for x, label in zip(data.features, data.labels, strict=True):
        logits = plain(torch.from_numpy(np.append(x, 1.0)).double())
        target = torch.nn.functional.one_hot(torch.tensor(label), CLASSES).double()
        losses = {
            "softmax": cross_entropy(logits, torch.tensor(label)),
            "sigmoid": binary_cross_entropy_with_logits(
                logits - np.log(CLASSES - 1), target, reduction="sum"
            ),
        }
        gradients = torch.autograd.grad(losses[link], plain.parameters())
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        clipped += int(flat.norm() > bound)
        automatic = bound / (flat.norm() + 0.01)
        expected += flat * (automatic if clipping == "automatic" else min(1.0, bound / flat.norm()))
    assert 0 < clipped < len(data.labels)
    assert (found - expected).norm() <= 1e-5 * expected.norm()


def test_the_mlps_gradient_of_findings_is_clipped_whole_and_what_is_unknown_has_none():
    data, learner = records(), Descent(bias=True, init="random", link="sigmoid")
    states = np.random.default_rng(1).integers(0, 3, (len(data.labels), CLASSES))
    data = replace(data, labels=np.array([number_of_findings(own.tolist()) for own in states]))
    constants = replace(CONSTANTS, labels="many")
    shapes = layers(learner, constants)
    model = GradSampleModule(perceptron.Perceptron(shapes, bias=True), loss_reduction="sum")
    weights = initial(learner, constants, shapes)[None]
    held = load(data, constants, CPU, chunk=7, memory_mb=100, bias=True)
    link = link_of(learner, constants)
    found = perceptron.clipped_sum(model, held, weights, 1.0, held.chunks(), link=link)[0]
    plain = perceptron.Perceptron(shapes, bias=True).double()
    torch.nn.utils.vector_to_parameters(weights[0].double(), plain.parameters())
    expected, clipped = torch.zeros_like(found), 0
    for x, own in zip(data.features, states, strict=True):
        logits = plain(torch.from_numpy(np.append(x, 1.0)).double()) + sigmoid_bias(CLASSES)
        known, present = torch.from_numpy(own != UNKNOWN), torch.from_numpy(own == PRESENT)
        loss = binary_cross_entropy_with_logits(logits, present.double(), reduction="none")
        gradients = torch.autograd.grad((loss * known).sum(), plain.parameters())
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        clipped += int(flat.norm() > 1.0)
        expected += flat * min(1.0, 1.0 / max(float(flat.norm()), 1e-30))
    assert 0 < clipped < len(data.labels)
    assert (found - expected).norm() <= 1e-5 * expected.norm()


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e38, 1e10, 0.0])
def test_no_record_breaks_the_mlp_or_exceeds_the_bound(value):
    data, learner = records(1), Descent(init="random")
    data.features[0, :3] = value
    shapes = layers(learner, CONSTANTS)
    model = GradSampleModule(perceptron.Perceptron(shapes, bias=False), loss_reduction="sum")
    weights = 50 * initial(learner, CONSTANTS, shapes)[None]
    held = loaded(data)
    assert perceptron.clipped_sum(model, held, weights, 1.0, held.chunks()).norm() <= 1 + 1e-6


def trained(learner, data, hyper=HYPER):
    meter = Meter(declare(learner, hyper, CONSTANTS).draws, Seeded(), audit=True)
    weights = train(data, hyper, learner, CONSTANTS, meter, ONE)
    meter.close()
    return weights, meter


SWITCHES = [{}, {"bias": True, "average": "ema"}, {"sampling_rate": 0.3}, {"free_step": False}]


@pytest.mark.ci
@pytest.mark.parametrize("switches", SWITCHES, ids=str)
def test_it_trains_alike_twice_and_draws_each_step_afresh(switches):
    learner = HiddenLayer(**switches)
    (first, meter), (second, _) = trained(learner, records()), trained(learner, records())
    assert [layer.shape for layer in first] == [*layers(learner, CONSTANTS)]
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    noises = [used for used in meter.used if used.name == "noise"]
    assert len({used.sha256 for used in noises}) == HYPER.steps


def test_poisson_batches_hold_the_records_that_the_meter_names(monkeypatch):
    data, learner = records(), HiddenLayer(sampling_rate=0.3)
    again = Meter(declare(learner, HYPER, CONSTANTS).draws, Seeded())
    batches, real = [], perceptron.clipped_sum

    def spy(model, held, weights, bound, rows, *rest, **others):
        batches.append([row for row in torch.cat(rows).tolist() if held.counted[row]])
        return real(model, held, weights, bound, rows, *rest, **others)

    monkeypatch.setattr(perceptron, "clipped_sum", spy)
    trained(learner, data)
    for batch in batches:
        assert batch == np.flatnonzero(again.mask("sample", data.units)).tolist()
    assert len({tuple(batch) for batch in batches}) == HYPER.steps


def test_with_nobody_in_it_the_mlp_walks_along_the_meters_noise():
    data, learner = records(), HiddenLayer(momentum=0.0, free_step=False)
    nobody = Data(data.features, np.full_like(data.labels, -1))
    meter = Meter(declare(learner, HYPER, CONSTANTS).draws, Seeded())
    shapes = layers(learner, CONSTANTS)
    expected = initial(learner, CONSTANTS, shapes).numpy()
    for _ in range(HYPER.steps):
        expected = (
            expected - HYPER.eta * meter.publish("noise", np.zeros(expected.shape)) / CONSTANTS.n0
        )
    weights, _ = trained(learner, nobody)
    assert np.allclose(
        np.concatenate([layer.ravel() for layer in weights]), expected, rtol=1e-5, atol=1e-5
    )


@pytest.mark.ci
def test_it_learns_what_no_line_can_tell_apart():
    random = np.random.default_rng(0)
    points = random.uniform(-1, 1, (600, 2))
    data = Data(points.astype(np.float32), (points[:, 0] * points[:, 1] > 0).astype(np.int64))
    constants = Constants(n0=600, classes=2, dimension=2)
    learner, hyper = HiddenLayer(bias=True, init="random"), Hyper(1.0, 40, 100.0)
    meter = Meter(declare(learner, hyper, constants).draws, Seeded())
    weights = train(data, hyper, learner, constants, meter, ONE)
    assert right_of(ClassScorer(), weights, data.features, data.labels) > 540


def test_opacus_says_nothing_in_a_job():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        trained(HiddenLayer(), records())


def between(far, near, says):
    """The last of the points from `far` to `near` that says what `far` does."""
    for _ in range(60):
        middle = (far + near) / 2
        far, near = (middle, near) if says(middle) == says(far) else (far, middle)
    return far


@pytest.mark.parametrize(("hidden", "classes"), [(129, 3), (127, 9)])
def test_no_record_changes_what_another_adds_to_an_mlps_sum(hidden, classes):
    """Records at a scale where the last bit of a logit decides on a whole gradient, made to tie
    under public weights."""
    random = np.random.default_rng(0)
    shapes = ((hidden, DIMENSION), (classes, hidden))
    inner, outer = (random.normal(size=shape).astype(np.float32) for shape in shapes)
    weights = torch.from_numpy(np.concatenate([inner.ravel(), outer.ravel()]))[None].double()
    model = GradSampleModule(perceptron.Perceptron(shapes, bias=False), loss_reduction="sum")

    def says(x):
        return np.argmax(outer.astype(float) @ np.maximum(inner.astype(float) @ x, 0.0))

    moved = []
    for _ in range(10):
        far, near, other = random.normal(size=(3, DIMENSION))
        tie = between(far, near, says)
        x = np.where(random.random((1000, 1)) < 0.5, tie, other) * 1e12
        held = Data(x.astype(np.float32), np.full(1000, says(tie)))
        first, all_but_first = (
            perceptron.clipped_sum(model, records, weights, 1.0 - SLACK, records.chunks())
            for records in (loaded(held), loaded(Data(held.features[1:], held.labels[1:])))
        )
        moved.append(float(torch.linalg.vector_norm(first - all_but_first)))
    assert max(moved) <= 1.0
