"""The engine against naive float64 arithmetic, record by record, and against records that try to
break it."""

from __future__ import annotations

import mmap
import os
import threading
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from support import Seeded, Silent, SmoothMeter, devices, in_new_python

from dpladder.config.learners import method
from dpladder.config.model import Resources
from dpladder.errors import BadInput, Refused
from dpladder.learn import linear
from dpladder.learn.bounds import ROOM_FACTOR, SLACK, scale_of, slack
from dpladder.learn.data import Data
from dpladder.learn.descent import EMA
from dpladder.learn.descent_noise import gradient_sum
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.linear import NARROW, clipped_sum, resident, summed_losses
from dpladder.learn.links import Link
from dpladder.learn.moments import second_moment
from dpladder.learn.records import LONGEST_SINGLE, load, prepare
from dpladder.learn.trainings import declare, train, train_many
from dpladder.methods.dp_gd import Descent
from dpladder.methods.dp_ls import LeastSquares
from dpladder.privacy.release.meter import Meter

PAPER = Descent()
ONE = Resources(threads=1)
CPU = torch.device("cpu")
CLASSES, DIMENSION = 5, 24
HYPER = Hyper(eta=0.7, steps=6, mu=0.5, delta0=1e-7)


def constants_of(data, **more):
    return Constants(n0=97, classes=CLASSES, dimension=data.features.shape[-1], **more)


def metered(learner, constants, hyper=HYPER, seed=0):
    return SmoothMeter(declare(learner, hyper, constants).draws, Seeded(seed), audit=True)


def trained(data, learner=PAPER, hyper=HYPER, constants=None, meter=None, resources=ONE):
    constants = constants or constants_of(data)
    meter = meter or metered(learner, constants, hyper)
    (weights,) = train(data, hyper, learner, constants, meter, resources)
    if isinstance(meter, Meter):
        meter.close()
    return weights


def records(count=83, views=None, seed=1, dtype=np.float32):
    random = np.random.default_rng(seed)
    labels = random.integers(0, CLASSES, count)
    shape = (count, DIMENSION) if views is None else (count, views, DIMENSION)
    # Norms on both sides of any clip, from a tenth to some tens.
    features = random.normal(size=shape) * np.exp(random.uniform(-4, 2, count)).reshape(
        -1, *[1] * (len(shape) - 1)
    )
    units = random.integers(0, 256, (count, 16)).astype(np.uint8)
    return Data(features.astype(dtype), labels, units)


def naive_gradients(weights, features, labels):
    """Every record's gradient, the mean over its views, as (records, classes, width) in float64."""
    logits = features @ weights.T
    exp = np.exp(logits - logits.max(axis=-1, keepdims=True))
    residual = exp / exp.sum(axis=-1, keepdims=True)
    residual[np.arange(len(labels)), :, labels] -= 1
    return np.einsum("nvc,nvd->nvcd", residual, features).mean(axis=1)


def naive_sum(weights, features, labels, bound, clipping="flat"):
    gradients = naive_gradients(weights, features, labels)
    norms = np.sqrt((gradients**2).sum(axis=(1, 2)))
    longer = norms + 0.01 if clipping == "automatic" else np.maximum(norms, bound)
    return (gradients * (bound / longer)[:, None, None]).sum(axis=0)


def naive_rate(learner, hyper, step):
    left = 1 - step / hyper.steps
    return (
        hyper.eta
        * {"constant": 1, "linear": left, "cosine": np.sin(np.pi / 2 * left) ** 2}[learner.schedule]
    )


def naive(data, learner, hyper, constants, meter):
    """Algorithm 1 in a few lines of float64, with the noise of an equal meter."""
    features = data.features.astype(np.float64)
    features = features[:, None] if features.ndim == 2 else features
    if learner.bias:
        features = np.concatenate([features, np.ones((*features.shape[:2], 1))], axis=2)
    width = features.shape[2]
    weights = np.zeros((constants.classes, width))
    if learner.init == "random":
        reach = constants.dimension**-0.5
        weights = np.random.default_rng(constants.seed).uniform(-reach, reach, weights.shape)
    velocity, iterates = np.zeros_like(weights), []
    for step in range(hyper.steps):
        keep = np.ones(len(features), bool)
        if learner.sampling_rate < 1:
            keep = meter.mask("sample", data.units)
        bound = learner.clip / constants.cap * (1 - SLACK)
        total = naive_sum(weights, features[keep], data.labels[keep], bound, learner.clipping)
        total = meter.publish("noise", total)
        gradient = total / (constants.n0 * learner.sampling_rate) + learner.weight_decay * weights
        velocity = learner.momentum * velocity + gradient
        eta = naive_rate(learner, hyper, step)
        weights = weights - eta * velocity
        iterates.append(weights)
    if learner.free_step:
        iterates.append(weights - eta * velocity)
    if learner.average == "swa":
        return np.mean(iterates, axis=0)
    if learner.average == "none":
        return iterates[-1]
    average = iterates[0]
    for count, iterate in enumerate(iterates[1:], start=2):
        newest = max(EMA, 1 / count)
        average = (1 - newest) * average + newest * iterate
    return average


CASES = {
    "the paper's": {},
    "bias": {"bias": True},
    "clips everything": {"clip": 0.05},
    "clips nothing": {"clip": 1e4},
    "no momentum": {"momentum": 0.0},
    "weight decay": {"weight_decay": 0.3},
    "moving average": {"average": "ema"},
    "mean of iterates": {"average": "swa"},
    "no free step": {"free_step": False},
    "random start": {"init": "random", "bias": True},
    "views": {"augment": 3},
    "views with a bias": {"augment": 2, "bias": True, "average": "ema"},
    "Poisson batches": {"sampling_rate": 0.3},
    "automatic clipping": {"clipping": "automatic", "clip": 0.3},
    "automatic clipping of views": {"clipping": "automatic", "augment": 3},
    "a rate that falls along a cosine": {"schedule": "cosine"},
    "a rate that falls along a line": {"schedule": "linear", "average": "ema"},
}


OTHER_TERMS = {"units replaced": {"relation": "replace_one"}, "four records a unit": {"cap": 4}}


@pytest.mark.parametrize(
    ("switches", "more"),
    [
        *((switches, {}) for switches in CASES.values()),
        *(({}, more) for more in OTHER_TERMS.values()),
    ],
    ids=[*CASES, *OTHER_TERMS],
)
def test_it_equals_the_naive_reference(switches, more):
    learner = Descent(**switches)
    data = records(views=learner.augment if learner.augment > 1 else None)
    constants = constants_of(data, **more)
    expected = naive(data, learner, HYPER, constants, metered(learner, constants))
    weights = trained(data, learner, constants=constants)
    assert np.linalg.norm(weights - expected) <= 1e-5 * np.linalg.norm(expected)


@pytest.mark.few(4)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("switches", [{}, {"bias": True}, {"sampling_rate": 0.3}], ids=str)
def test_streaming_from_a_file_gives_the_same_bits(tmp_path, dtype, switches):
    learner = Descent(**switches)
    data = records(count=6000, dtype=dtype)
    data.features[7] = np.inf
    data.features.tofile(tmp_path / "features")
    file = np.memmap(tmp_path / "features", dtype, "r", shape=data.features.shape)
    mapped = Data(file, data.labels, data.units)
    constants = replace(constants_of(data), n0=len(data.labels))
    assert isinstance(load(mapped, constants, CPU, chunk=1024, memory_mb=1).features, np.memmap)
    small = Resources(threads=1, mem_mb=1)
    streamed = trained(mapped, learner, resources=small, constants=constants)
    assert np.array_equal(streamed, trained(data, learner, constants=constants))


def test_how_many_records_there_are_does_not_decide_where_they_lie():
    """Memory and run time would show it."""
    few, many = records(500), records(6000)
    constants = replace(constants_of(few), n0=500)
    for data in (few, many):
        held = load(data, constants, CPU, chunk=1024, memory_mb=1)
        assert isinstance(held.features, torch.Tensor)


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_many_trials_over_one_pass_equal_trials_alone(schedule):
    data, learner, constants = records(300), Descent(schedule=schedule), constants_of(records())
    hypers = [Hyper(0.1, 3, 1.0), Hyper(2.0, 9, 0.5), Hyper(0.5, 1, 3.0), Hyper(0.3, 9, 2.0)]
    meters = [metered(learner, constants, hyper, seed) for seed, hyper in enumerate(hypers)]
    together = train_many(data, hypers, learner, constants, meters, ONE)
    for seed, hyper in enumerate(hypers):
        alone = trained(data, learner, hyper, meter=metered(learner, constants, hyper, seed))
        assert np.allclose(together[seed], alone, rtol=1e-5, atol=1e-6 * np.abs(alone).max())


def test_threads_only_reorder_the_sum():
    data = records(3000)
    held = load(data, constants_of(data), CPU, chunk=256, memory_mb=10)
    heads = torch.from_numpy(np.random.default_rng(3).normal(size=(2, CLASSES, DIMENSION)))
    alone = clipped_sum(held, heads, 1.0, held.chunks())
    for threads in (2, 3, 50):
        together = clipped_sum(held, heads, 1.0, held.chunks(), threads=threads)
        assert torch.allclose(together, alone, rtol=1e-12, atol=1e-12)
        assert torch.equal(together, clipped_sum(held, heads, 1.0, held.chunks(), threads=threads))


def test_many_sampled_trials_have_samples_of_their_own():
    data, learner, constants = records(), Descent(sampling_rate=0.3), constants_of(records())
    meters = [metered(learner, constants, seed=seed) for seed in range(2)]
    together = train_many(data, [HYPER, HYPER], learner, constants, meters, ONE)
    for seed in range(2):
        assert np.array_equal(
            together[seed][0], trained(data, learner, meter=metered(learner, constants, seed=seed))
        )


# What noise alone becomes: with no record that counts, the weights are a fixed linear map of the
# meter's draws.


def nobody():
    data = records()
    return Data(data.features, np.full(len(data.labels), -1), data.units)


@pytest.mark.parametrize(
    "switches", [{}, {"momentum": 0.0, "free_step": False}, {"clip": 3.0}], ids=str
)
def test_the_noise_that_enters_is_the_meters_and_nothing_else(switches):
    learner, data = Descent(**switches), nobody()
    constants, steps, momentum = constants_of(data), HYPER.steps, learner.momentum
    meter, scale = (
        metered(learner, constants),
        gradient_sum(learner, HYPER, constants).scale(constants),
    )
    assert scale == pytest.approx(learner.clip * np.sqrt(steps) / HYPER.mu, rel=1e-9)
    expected = np.zeros((CLASSES, DIMENSION))
    for step in range(steps):
        # The buffer remembers a step's noise with weight m^age; the free step moves along the last
        # buffer once more.
        ages = [age - step for age in range(step, steps)] + [steps - 1 - step] * learner.free_step
        reach = sum(momentum**age for age in ages)
        noise = scale * meter.noise("noise", expected.shape).values
        expected -= HYPER.eta * reach * noise / constants.n0
    assert np.allclose(trained(data, learner), expected, rtol=1e-5, atol=1e-7 * scale)


def test_each_step_draws_afresh_and_everything_declared_is_drawn():
    data = records()
    meter = metered(Descent(), constants_of(data))
    trained(data, meter=meter)  # closes the meter, which refuses when a draw is missing
    assert len({used.sha256 for used in meter.used}) == HYPER.steps


def test_a_meter_that_declares_another_noise_refuses():
    data = records()
    with pytest.raises(Refused):
        trained(data, meter=metered(Descent(bias=True), constants_of(data)))
    with pytest.raises(Refused):
        trained(
            data, meter=metered(Descent(), constants_of(data), Hyper(0.7, HYPER.steps - 1, 2.0))
        )


def test_no_other_generator_is_touched():
    states = torch.get_rng_state(), np.random.get_state()[1].copy()
    trained(records(), Descent(init="random"))
    assert torch.equal(states[0], torch.get_rng_state())
    assert np.array_equal(states[1], np.random.get_state()[1])


# Records that try to break it.

FLOATS = st.floats(width=32, allow_nan=True, allow_infinity=True)
WEIGHTS = st.floats(-1e6, 1e6)


@settings(deadline=None, max_examples=300)
@given(
    st.lists(FLOATS, min_size=6, max_size=6),
    st.integers(-2, 4),
    st.lists(WEIGHTS, min_size=9, max_size=12),
    st.booleans(),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([1e-3, 1.0, 1e3]),
    st.sampled_from(["flat", "automatic"]),
)
# A gradient as small as the constant beside its norm.
@example([0.012, 0.0, 0.0, 0.0, 0.0, 0.0], 0, [0.0] * 9, False, 1, 1.0, "automatic")
# And long ones, which random values need not find.
@example([1e3, 0.0, 0.0, 0.0, 0.0, 0.0], 0, [0.0] * 9, False, 1, 1.0, "automatic")
@example([1e3, 0.0, 0.0, 0.0, 0.0, 0.0], 0, [0.0] * 9, False, 1, 1.0, "flat")
def test_no_record_contributes_more_than_the_bound(
    values, label, weights, bias, views, clip, clipping
):
    """The contribution as it really leaves the engine, float32 rounding included."""
    width = 6 // views
    bound = clip * (1 - SLACK)
    data = Data(np.array(values, np.float32).reshape(1, views, width), np.array([label]))
    held = load(data, Constants(1, 3, width), CPU, chunk=64, memory_mb=1, views=views, bias=bias)
    heads = torch.tensor(np.resize(weights, (1, 3, width + bias)), dtype=torch.float64)
    norm = clipped_sum(held, heads, bound, held.chunks(), scale=scale_of(clipping)).norm().item()
    assert norm <= clip


@pytest.mark.few(4)
@pytest.mark.parametrize("schedule", ["constant", "cosine", "linear"])
@pytest.mark.parametrize("more", [{}, {"free_step": False}, {"momentum": 0.0}], ids=str)
def test_kappa_is_the_noise_that_a_training_puts_into_a_logit(schedule, more):
    learner = Descent(schedule=schedule, **more)
    random = np.random.default_rng(0)
    nobody = Data(random.normal(size=(50, 4000)), np.full(50, -1))
    constants = Constants(n0=97, classes=CLASSES, dimension=4000, length=8.0)
    weights = trained(nobody, learner, constants=constants)
    records = random.normal(size=(400, 4000))
    logits = weights @ (8.0 * records / np.linalg.norm(records, axis=1, keepdims=True)).T
    assert logits.std() == pytest.approx(
        method("dp_gd").logit_noise(learner, HYPER, constants), rel=0.05
    )


@pytest.mark.parametrize("plain", [False, True], ids=["oneDNN", "plain product"])
@pytest.mark.parametrize("count", [2, 4, 12, 1000, 1024, 1025, 1036])
def test_no_record_changes_what_another_contributes(count, plain, monkeypatch):
    """Classes that tie at a large scale: the last bit of a logit decides on a record's whole
    gradient."""
    monkeypatch.setattr("dpladder.learn.linear._onednn_is_faster", lambda: not plain)
    random = np.random.default_rng(count)
    width, scale = 64, 10.0 ** random.uniform(8, 14, (count, 1))
    features = (scale * random.normal(size=(count, width))).astype(np.float32)
    labels = random.integers(0, CLASSES, count)
    weights = torch.from_numpy(np.repeat(random.normal(size=(1, 1, width)), CLASSES, axis=1))

    def total(count):
        data = Data(features[:count], labels[:count])
        held = load(
            data, Constants(count, CLASSES, width), torch.device("cpu"), chunk=1024, memory_mb=1000
        )
        return clipped_sum(held, weights, 1.0 - SLACK, held.chunks())

    assert torch.linalg.vector_norm(total(count) - total(count - 1)) <= 1.0


@pytest.mark.parametrize("plain", [False, True], ids=["oneDNN", "plain product"])
@pytest.mark.parametrize("chunk", [64, 192, 1024, 8192])
@pytest.mark.parametrize("device", devices())
def test_a_record_has_the_same_logits_wherever_it_stands(device, chunk, plain, monkeypatch):
    monkeypatch.setattr("dpladder.learn.linear._onednn_is_faster", lambda: not plain)
    torch.set_num_threads(1)  # as in the threads of a step
    random = torch.Generator().manual_seed(chunk)
    widths = (1, 3, 7, 66, 97, 769, 1281)
    for width in widths if chunk <= 1024 else [width for width in widths if width <= NARROW]:
        record = torch.randn(1, width, generator=random).to(device)
        for rows in (2, 3, 5, 9, 12, 30, 64, 320):
            flat = torch.randn(rows, width, generator=random).to(device)
            found = linear.logits_by(flat, chunk)(record.repeat(chunk, 1))
            torch.testing.assert_close(found[:, :1], flat @ record.T, rtol=1e-4, atol=1e-4)
            assert (found == found[:, :1]).all()


def test_a_machine_that_rounds_a_record_by_its_place_is_refused(monkeypatch):
    def last_rows_otherwise(flat, chunk):
        return lambda x: torch.cat(
            [flat @ x[:-8].T, (flat.double() @ x[-8:].double().T).float()], 1
        )

    constants, one_thread = Constants(2000, CLASSES, 769), Resources(threads=1)
    linear._refuse_places.cache_clear()
    linear.refuse_places(constants, one_thread)
    linear._refuse_places.cache_clear()
    monkeypatch.setattr(linear, "logits_by", last_rows_otherwise)
    with pytest.raises(Refused, match="by its place among others"):
        linear.refuse_places(constants, one_thread)


def test_no_record_changes_what_another_adds_to_a_sum_of_losses():
    """Records at a scale where float64 rounds a logit by 1, made to tie under known weights."""
    random = np.random.default_rng(0)
    width, count, moved = 97, 20_000, []
    weights = 50.0 * random.normal(size=(1, 2, width))
    apart = [Fraction(one) - Fraction(other) for one, other in weights[0].T.tolist()]
    for scale in (1e3, 1e6, 1e14):
        tie, other = (scale * random.normal(size=(2, width)) / 10.0).astype(np.float32)
        tie[:4] = 0.0
        for place in range(4):  # each leaves 2^-24 of the gap that it found
            gap = sum(Fraction(x) * w for x, w in zip(tie.tolist(), apart, strict=True))
            tie[place] = -float(gap / apart[place])
        x = np.where(random.random((count, 1)) < 0.5, tie, other)

        def total(first, x=x):
            data = Data(x[first:], np.zeros(count - first, np.int64))
            constants = Constants(count, 2, width)
            held = load(data, constants, torch.device("cpu"), chunk=1024, memory_mb=1000)
            assert held.counted[: count - first].all()
            heads = torch.from_numpy(weights)
            return summed_losses(held, heads, lambda losses: losses.clamp(max=1.0), held.chunks())

        moved.append(float((total(0) - total(1)).abs().max()))
    assert max(moved) <= 1.0 + 1e-6


def test_no_record_changes_what_another_adds_to_differences_of_squared_errors():
    """A squared error of a huge prediction is rounded by 2^-53 of itself, which a small bound on a
    difference does not cover. Two heads that mirror each other tie on mirrored records."""
    random = np.random.default_rng(0)
    width, count, bound = 97, 20_000, 1e-4
    kinds = random.normal(size=(500, width))
    kinds[:, width // 2 + 1 :] = kinds[:, : width // 2][:, ::-1]
    x = kinds[random.integers(0, len(kinds), count)].astype(np.float32)
    head = random.normal(size=width) + 1.0
    mirrored = np.stack([head, head[::-1]])[:, None] / np.linalg.norm(head)
    constants = Constants(count, 1, width, labels="number")

    def bounded(losses):
        ahead, behind = losses.chunk(2)
        return (ahead - behind).clamp(-bound, bound)

    def total(first, scale):
        data = Data(x[first:], np.full(count - first, 2**29))
        held = load(data, constants, CPU, chunk=1024, memory_mb=1000)
        heads, link = torch.from_numpy(scale * mirrored), Link("identity", 1, "number")
        return float(summed_losses(held, heads, bounded, held.chunks(), link=link))

    for scale in (1e3, 1e6):
        totals = [total(first, scale) for first in range(4)]
        moved = max(abs(one - next_one) for one, next_one in pairwise(totals))
        assert moved <= bound * (1.0 + SLACK)


def test_a_step_finds_the_threads_of_the_step_before(monkeypatch):
    started, start = [], threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda of: (started.append(of), start(of)))
    random = np.random.default_rng(0)
    data = Data(random.normal(size=(5000, DIMENSION)), random.integers(0, CLASSES, 5000))
    linear._pool.cache_clear()
    trained(data, PAPER, resources=Resources(threads=2))
    assert len(started) <= 2 < HYPER.steps


@pytest.mark.ci
def test_the_processor_names_the_product():
    """Never a clock: what runs again must come to the same bits."""
    code = "from dpladder.learn.linear import _onednn_is_faster; print(_onednn_is_faster())"
    assert in_new_python(code, ONEDNN_MAX_CPU_ISA="AVX2") == "False\n"


@pytest.mark.parametrize("views", [1, 3])
def test_what_a_record_adds_to_a_crowd_stays_within_the_bound(views):
    """Its neighbours' float32 sums round differently with it there: the slack pays for that."""
    random = np.random.default_rng(5)
    shape = (4000, views, 96)
    crowds = {
        "noise": random.normal(size=shape),
        "positive": np.abs(random.normal(size=shape)),
        "one record many times": np.tile(random.normal(size=(1, *shape[1:])), (shape[0], 1, 1)),
        "huge": random.normal(size=shape) * 1e6,
    }

    def total(crowd, heads):
        data = Data(crowd.astype(np.float32), np.arange(4000)[-len(crowd) :] % CLASSES)
        constants = Constants(len(crowd), CLASSES, 96)
        held = load(data, constants, CPU, chunk=1024, memory_mb=100, views=views)
        return clipped_sum(held, heads, 1 - SLACK, held.chunks())

    for name, crowd in crowds.items():
        for scale in (0.0, 0.3, 30.0):
            heads = torch.from_numpy(random.normal(size=(1, CLASSES, 96)) * scale)
            assert (total(crowd, heads) - total(crowd[1:], heads)).norm() <= 1, name


BAD_ROWS = {
    "not a number": (np.nan, 0),
    "infinite": (np.inf, 0),
    "all zero": (0.0, 0),
    "no label": (1.0, -1),
    "a class that does not exist": (1.0, CLASSES),
}


@pytest.mark.parametrize(("value", "label"), BAD_ROWS.values(), ids=BAD_ROWS)
@pytest.mark.parametrize("bias", [False, True])
def test_a_bad_record_contributes_exactly_zero(value, label, bias):
    data = records()
    others = clipped_sum_of(data, bias)
    features, labels = (
        np.vstack([data.features, np.zeros(DIMENSION)]),
        np.append(data.labels, label),
    )
    features[-1] = value if value == 0 or np.isfinite(value) else [value, *[1.0] * (DIMENSION - 1)]
    assert torch.equal(clipped_sum_of(Data(features, labels), bias), others)


def clipped_sum_of(data, bias=False, weights=None):
    held = load(data, constants_of(data), CPU, chunk=1024, memory_mb=10, bias=bias)
    width = DIMENSION + bias
    heads = (
        np.random.default_rng(3).normal(size=(1, CLASSES, width)) if weights is None else weights
    )
    return clipped_sum(held, torch.as_tensor(heads), 1.0, held.chunks())


def test_a_record_whose_logits_overflow_leaves_the_others_alone():
    data = records()
    features = np.vstack([data.features, np.full(DIMENSION, 1e38)]).astype(np.float32)
    wild = Data(features, np.append(data.labels, 0))
    heads = np.random.default_rng(3).normal(size=(1, CLASSES, DIMENSION)) * 10
    assert torch.equal(clipped_sum_of(wild, weights=heads), clipped_sum_of(data, weights=heads))


@pytest.mark.parametrize("bound", [1e-44, 3e-44, 1e-42, 1e-40])
@pytest.mark.parametrize("clipping", ["flat", "automatic"])
def test_a_factor_that_is_no_float32_is_none(bound, clipping):
    """A float32 below 2^-126 is rounded by up to its own size."""
    factors = scale_of(clipping)(torch.tensor([0.0, 0.99, 9.9]).double(), bound)
    shortest = 1.0 if clipping == "flat" else 0.0
    assert factors.tolist() == [shortest, 0.0, 0.0]


@pytest.mark.parametrize("learner", [Descent, LeastSquares])
def test_a_bound_that_float32_cannot_scale_records_back_to_is_refused(learner):
    key = "clip" if learner is Descent else "radius"
    with pytest.raises(ValidationError, match="greater than or equal to"):
        learner(**{key: 1e-13})
    data = Data(np.full((1, DIMENSION), 1.9e14, np.float32), np.array([0]))
    held = load(data, constants_of(data), CPU, chunk=64, memory_mb=10)
    heads = torch.zeros(1, CLASSES, DIMENSION, dtype=torch.float64)
    assert clipped_sum(held, heads, 1e-12, held.chunks()).norm() <= 1e-12 * (1 + SLACK)
    assert second_moment(held, 1e-12, held.chunks()).norm() <= 1e-24 * (1 + SLACK)


def test_one_class_learns_nothing_but_noise():
    data = records()
    data = Data(data.features, np.zeros_like(data.labels))
    constants = Constants(97, 1, DIMENSION)
    weights = trained(data, constants=constants)
    silent = trained(data, constants=constants, meter=Silent())
    assert np.isfinite(weights).all()
    assert not silent.any()


def test_a_sample_of_streamed_records_reads_their_pages_and_not_the_file(tmp_path):
    """Where the folder is on a disk: in memory nothing is read at all."""
    count, width = 12_000, 1280
    stored = np.ones((count, width), np.float16)
    stored.tofile(tmp_path / "features")
    with open(tmp_path / "features", "rb") as file:
        os.fsync(file.fileno())
        mapped = np.memmap(tmp_path / "features", np.float16, "r", shape=stored.shape)
        held = load(
            Data(mapped, np.zeros(count, np.int64)),
            Constants(count, 3, width),
            CPU,
            chunk=256,
            memory_mb=1,
        )
        mapped.base.madvise(mmap.MADV_DONTNEED)
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    before = read_from_disk()
    mask = np.random.default_rng(0).random(count) < 0.02
    seen = sum(float(held.block(rows).sum()) for rows in held.select_rows(mask))
    assert seen == mask.sum() * width
    # the file has 30 pages for each
    assert read_from_disk() - before <= 4 * mmap.PAGESIZE * mask.sum()


def read_from_disk():
    with open("/proc/self/io") as file:
        return int(dict(line.split(": ") for line in file)["read_bytes"])


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("switches", [{}, {"sampling_rate": 0.3}, {"augment": 2}], ids=str)
def test_fewer_records_than_classes_train(count, switches):
    learner = Descent(**switches)
    data = records(count, views=learner.augment if learner.augment > 1 else None)
    assert np.isfinite(trained(data, learner)).all()


@pytest.mark.parametrize(
    ("n0", "records", "width", "chunks"),
    [
        (320, 340, 49, [384]),
        (4000, 4000, 49, [1024] * 4),
        (320, 340, 3, [384]),
        (4000, 4000, 3, [5120]),
        (8000, 8000, 48, [9216]),
        (20_000, 20_000, 48, [16384] * 2),
    ],
)
def test_few_records_share_one_chunk_that_is_not_much_larger(n0, records, width, chunks):
    """A chunk of narrow records is longer, and what adds it up at once does so in float64."""
    data = Data(np.ones((records, width), np.float32), np.zeros(records, np.int64))
    held = resident(data, Constants(n0, 2, width), ONE)
    assert [rows.stop - rows.start for rows in held.chunks()] == chunks
    exact = held.as_summable(torch.ones(1)).dtype == torch.float64
    assert exact == (chunks[0] > LONGEST_SINGLE)


def test_sums_over_chunks_are_float64():
    """In float32, adding up this many equal chunks would be off by a hundred times as much."""
    one, count = records(1), 20_000
    many = Data(np.tile(one.features, (count, 1)), np.tile(one.labels, count))
    held = load(many, constants_of(many), CPU, chunk=4, memory_mb=100)
    heads = torch.ones(1, CLASSES, DIMENSION)
    total = clipped_sum(held, heads, 1.0, held.chunks())
    assert total.dtype == torch.float64
    assert torch.allclose(total, count * clipped_sum(held, heads, 1.0, [slice(0, 1)]), rtol=1e-6)


def test_a_saturated_softmax_stays_finite():
    assert np.isfinite(trained(records(), hyper=Hyper(1e6, 8, 2.0))).all()


def test_the_features_must_have_the_declared_shape():
    data = records(views=3)
    with pytest.raises(BadInput, match=r"3 x 24 values per record.*learner.augment = 1"):
        trained(data)
    with pytest.raises(BadInput, match="one row per record"):
        trained(Data(records().features, records().labels[1:]))
    with pytest.raises(BadInput, match="sampling_rate"):
        trained(Data(records().features, records().labels), Descent(sampling_rate=0.3))


@pytest.mark.ci
def test_a_neighbour_shifts_chunks_of_a_million_records_of_one_class_within_the_slack() -> None:
    """Without the first record all others lie in other chunks, and their sum is rounded
    otherwise."""
    count = 1_300_000
    rows = np.random.default_rng(0).uniform(1.6, 2.4, (count, 2)).astype(np.float32)
    constants, heads = Constants(count, 2, 2), torch.zeros(1, 2, 2, dtype=torch.float64)

    def summed(x):
        records = resident(Data(x, np.zeros(len(x), np.int64)), constants, ONE)
        return clipped_sum(records, heads, 1 - records.slack, records.chunks())[
            0
        ].numpy(), records.slack

    (whole, slack), (without, _) = summed(rows), summed(rows[1:])
    own = np.outer([-1.0, 1.0], rows[0])
    own *= (1 - slack) / np.linalg.norm(own)
    assert np.linalg.norm(whole - without - own) < slack


def test_what_is_more_than_there_is_room_for_is_added_up_in_float64() -> None:
    """Of ten times as many records as are declared, one more moves the sum by its own gradient."""
    random = np.random.default_rng(0)
    rows = random.uniform(1.6, 2.4, (20_001, 2)).astype(np.float32)
    heads = torch.zeros(1, 2, 2, dtype=torch.float64)
    found = []
    for x in (rows, rows[1:]):
        data = Data(x, np.zeros(len(x), np.int64))
        records = resident(data, Constants(800, 2, 2), ONE)  # of chunks that are not long
        found.append(clipped_sum(records, heads, 1.0, records.chunks())[0].numpy())
    own = np.outer([-1.0, 1.0], rows[0]) / np.linalg.norm(np.outer([-1.0, 1.0], rows[0]))
    assert np.linalg.norm(found[0] - found[1] - own) < 1e-6


def test_the_room_for_rounding_grows_as_the_root_of_the_records() -> None:
    """Of 1.3 million records of one class a neighbour moves the sum by 3e-3 of the bound. There is
    room for several times the declared records."""
    assert slack(1.0) == slack(2.0**14) == 2.0**-10
    assert slack(2.0**24) == 2.0**-5
    assert slack(1.3e6) > 3e-3
    records = resident(Data(np.ones((9, 2), np.float32), np.zeros(9)), Constants(10**6, 2, 2), ONE)
    assert records.slack == slack(ROOM_FACTOR * 1e6)


def test_no_arithmetic_of_a_gpu_is_rounded_to_tf32():
    torch.backends.cudnn.allow_tf32 = True  # as torch begins
    prepare(ONE)
    assert not torch.backends.cudnn.allow_tf32
    assert not torch.backends.cuda.matmul.allow_tf32


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NVIDIA_TF32_OVERRIDE", "1"),
        ("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "1"),
        ("ONEDNN_DEFAULT_FPMATH_MODE", "BF16"),
        ("DNNL_DEFAULT_FPMATH_MODE", "ANY"),
    ],
)
def test_a_training_refuses_an_environment_that_overrules_its_arithmetic(name, value, monkeypatch):
    monkeypatch.setenv(name, value)
    with pytest.raises(Refused, match=name):
        prepare(ONE)
    monkeypatch.setenv(name, "0")
    prepare(ONE)
