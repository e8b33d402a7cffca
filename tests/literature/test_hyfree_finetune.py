"""Fine-tuning with step sizes from noised losses: its sums against plain torch, one record at a
time, and what it releases."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from learn.test_finetune import CLASSES, CPU, SMALL, constants_of, moved, one_by_one, records
from support import Seeded, Silent, answer_of
from torch import Tensor
from torch.nn.functional import cross_entropy

from dpladder.config.learner_sections import Lora
from dpladder.config.learners import method
from dpladder.config.model import Resources
from dpladder.learn.bounds import SLACK, STABILITY, normalise
from dpladder.learn.data import Data
from dpladder.learn.finetune import parts
from dpladder.learn.finetune.shapes import model_of
from dpladder.learn.finetune.sums import sums_of as sums_of_model
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.queries import GradientSum, LossSums
from dpladder.learn.records import Sums
from dpladder.learn.scorers import LossScorer
from dpladder.learn.trainings import declare, train, weights_of
from dpladder.privacy.release.meter import Meter
from dpladder_papers.methods.hyfree_dp import HyperparameterFree
from dpladder_papers.methods.hyfree_finetune import HyperparameterFreeTuning

hyfree_finetune, hyfree_dp = method("hyfree_finetune"), method("hyfree_dp")
Learner = HyperparameterFreeTuning
ONE, HYPER = Resources(threads=1, mem_mb=50), Hyper(eta=0.05, steps=7, mu=1.0, delta0=1e-7)
VIT = constants_of("test_vit", "blocks.4")
SETS = ("head", "norm_and_bias", "last_block", "lora")


def sums_of(learner: HyperparameterFreeTuning, data: Data, constants: Constants = SMALL) -> Sums:
    return sums_of_model(model_of(learner, constants), data, constants, ONE)


def gradient(
    learner: HyperparameterFreeTuning, data: Data, weights: Tensor, constants: Constants = SMALL
) -> Tensor:
    """The sum of gradients of length 1 at most, without noise."""
    model = model_of(learner, constants)
    query = GradientSum(name="noise", multiplier=1.0, model=model, clipping="automatic")
    return answer_of(query.at(weights), data, constants)


def loss_sums(
    learner: HyperparameterFreeTuning, data: Data, weights: Tensor, bound: float
) -> Tensor:
    """Under the same weights three times, without noise."""
    query = LossSums(name="losses", multiplier=1.0, model=model_of(learner, SMALL), points=3)
    several = weights.expand(3, *weights.shape)
    return bound * answer_of(query.at(several, torch.tensor(bound).double()), data, SMALL)


def losses_by_torch(
    learner: HyperparameterFreeTuning, constants: Constants, data: Data, weights: Tensor
) -> list[float]:
    """In float64, one record at a time."""
    tuned = parts.tuned_model(learner, constants).copy_to(CPU, torch.float64)
    tuned.set_difference(weights.float().double())
    speaks, found = constants.network is not None and constants.network.speaks, []
    for x, label in zip(data.features, data.labels, strict=True):
        put_out = tuned.module(torch.from_numpy(np.atleast_2d(x)).double())
        loss = (
            put_out.mean() if speaks else cross_entropy(put_out, torch.full((len(put_out),), label))
        )
        found.append(loss.item())
    return found


@pytest.mark.few(4)
@pytest.mark.parametrize("trains", SETS)
@pytest.mark.parametrize("constants", [SMALL, VIT], ids=["efficientnet", "vit"])
def test_the_noised_sum_is_that_of_gradients_scaled_to_length_one(
    trains: str, constants: Constants
) -> None:
    """Bu et al. 2023, Eq. 5."""
    learner = Learner(trains=trains, init="random", bias=True, lora=Lora(rank=2, freeze="none"))
    data, weights = records(constants), moved(learner, constants)
    gradients = one_by_one(learner, constants, data, weights)
    expected = sum((1 - SLACK) * gradient / (gradient.norm() + STABILITY) for gradient in gradients)
    found = gradient(learner, data, weights, constants)
    assert (found - expected).norm() <= 1e-5 * expected.norm()


@pytest.mark.few(4)
@pytest.mark.parametrize("views", [1, 3])
@pytest.mark.parametrize("trains", SETS)
def test_a_records_losses_are_torchs_own_under_each_of_several_weights(
    trains: str, views: int
) -> None:
    learner = Learner(trains=trains, init="random", bias=True, augment=views)
    tell_alike(learner, SMALL, records(SMALL, views=views))


def test_a_language_models_losses_are_its_own_in_units_of_knowing_nothing() -> None:
    speech = constants_of("speech", "input", "pretrained")
    tell_alike(Learner(trains="norm_and_bias"), speech, records(speech))
    assert parts.tuned_model(
        Learner(trains="norm_and_bias"), speech
    ).module.initial_loss == math.log(24)


@pytest.mark.ci
def test_a_language_model_is_trained_from_its_tokens_on() -> None:
    speech, learner = constants_of("speech", "input", "pretrained"), Learner(trains="all", every=1)
    texts = records(speech)
    found, _ = trained(learner, texts, speech, Hyper(1.0, 8, 1e6))
    judge = weights_of(learner).scorer(learner, speech)
    assert isinstance(judge, LossScorer)
    still = [np.zeros_like(part) for part in found]
    assert judge.of(found, texts.features).mean() < 0.9 * judge.of(still, texts.features).mean()


def tell_alike(learner: HyperparameterFreeTuning, constants: Constants, data: Data) -> Sums:
    several = torch.stack([moved(learner, constants, size) for size in (0.0, 0.01, 0.1)])
    sums, seen = sums_of(learner, data, constants), []

    def each(losses: Tensor) -> Tensor:
        seen.append(losses)
        return losses

    total = sums.losses(several, each, sums.records.chunks())
    found = torch.cat(seen, dim=1)[:, : len(data.labels)]
    expected = torch.tensor(
        [losses_by_torch(learner, constants, data, weights) for weights in several]
    )
    assert expected.std(dim=1).min() > 1e-3  # records differ
    assert torch.allclose(found, expected.double(), rtol=1e-5, atol=1e-6)
    assert torch.allclose(total, expected.double().sum(1), rtol=1e-5)
    return sums


@pytest.mark.few(6)
@pytest.mark.parametrize("trains", ["last_block", "lora"])
@pytest.mark.parametrize("value", [np.nan, 1e38, 1e10])
@pytest.mark.parametrize("bound", [1e-3, 1e3])
def test_no_record_moves_a_loss_by_more_than_the_bound_nor_a_gradient_by_more_than_one(
    trains: str, value: float, bound: float
) -> None:
    learner = Learner(trains=trains, init="random")
    data, weights = records(SMALL, 3), moved(learner, SMALL, 10.0)
    others = Data(data.features[1:], data.labels[1:])
    data.features[0, :100] = value
    less, more = (loss_sums(learner, some, weights, bound) for some in (others, data))
    assert torch.isfinite(more).all()
    assert ((more - less >= -1e-6 * bound) & (more - less <= bound)).all()
    one, other = (gradient(learner, some, weights) for some in (others, data))
    assert (other - one).norm() <= 1.0


def test_a_record_that_counts_as_nothing_adds_nothing() -> None:
    learner, data = Learner(trains="all", init="random"), records(SMALL)
    nobody, weights = Data(data.features, np.full_like(data.labels, -1)), moved(learner, SMALL)
    assert gradient(learner, nobody, weights).norm() == 0.0
    assert loss_sums(learner, nobody, weights, 1.0).norm() == 0.0


def trained(learner, data: Data, constants: Constants = SMALL, hyper: Hyper = HYPER, meter=None):
    meter = meter or Meter(declare(learner, hyper, constants).draws, Seeded(), audit=True)
    found = train(data, hyper, learner, constants, meter, ONE)
    if isinstance(meter, Meter):
        meter.close()
    return found, meter


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "switches",
    [
        {},
        {"points": 5, "optimizer": "momentum", "link": "sigmoid"},
        pytest.param(
            {"sampling_rate": 0.3, "optimizer": "adamw", "weight_decay": 0.01},
            marks=pytest.mark.ci,
        ),
        {"loss_noise": "laplace", "gamma": 2.0},
        {"loss_noise": "laplace", "gamma": 2.0, "sampling_rate": 0.3},
    ],
    ids=str,
)
@pytest.mark.parametrize("bias", [False, True])
def test_a_head_on_features_alone_is_trained_as_hyfree_dp_trains_it(switches, bias: bool) -> None:
    random = np.random.default_rng(0)
    units = random.integers(0, 256, (50, 16)).astype(np.uint8)
    data = Data(
        random.normal(size=(50, 12)).astype(np.float32), random.integers(0, CLASSES, 50), units
    )
    sampled = "sampling_rate" in switches
    constants, hyper = Constants(50, CLASSES, 12), HYPER if sampled else Hyper(0.5, 12, 30.0)
    shared = {"every": 1, "bias": bias, **({} if sampled else {"gamma": 1.5}), **switches}
    (head,), _ = trained(HyperparameterFree(**shared), data, constants, hyper)
    (tuned,), _ = trained(Learner(trains="head", **shared), data, constants, hyper)
    assert np.linalg.norm(tuned - head) <= 1e-5 * np.linalg.norm(head)


SWITCHES = [
    {"trains": "all", "points": 5},
    {"trains": "lora", "optimizer": "adamw"},
    {"trains": "norm_and_bias", "sampling_rate": 0.3, "weight_decay": 0.1},
    {"trains": "last_block", "optimizer": "momentum", "init": "random"},
]


@pytest.mark.few(2)
@pytest.mark.parametrize("switches", SWITCHES, ids=str)
def test_it_trains_alike_twice_and_draws_each_step_afresh(switches) -> None:
    learner = Learner(bias=True, every=1, **switches)
    (first, meter), (second, _) = trained(learner, records(SMALL)), trained(learner, records(SMALL))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert len({used.sha256 for used in meter.used if used.name == "noise"}) == HYPER.steps
    assert len({used.sha256 for used in meter.used if used.name == "losses"}) == HYPER.steps


def test_a_sample_with_nobody_in_it_is_a_step_of_noise() -> None:
    learner = Learner(trains="norm_and_bias")
    sums, weights = sums_of(learner, records(SMALL, 3)), moved(learner, SMALL)[None]
    nobody = sums.records.select_rows(np.zeros(3, np.bool_))
    assert sums.gradients(weights, 1.0, nobody, normalise).norm() == 0.0
    assert sums.losses(weights, lambda losses: losses, nobody).norm() == 0.0


@pytest.mark.ci
def test_rates_are_learned_from_one_that_is_far_too_small() -> None:
    """Where every record can be told, so that the least loss is zero."""
    data = records(SMALL, 40)
    pulls = np.random.default_rng(5).normal(size=(CLASSES, SMALL.dimension)).astype(np.float32)
    clear = replace(data, features=data.features + pulls[data.labels])
    hyper, left = Hyper(1e-3, 15, 1e6), {}
    for name, every in (("learned", 1), ("fixed", 1000)):
        learner = Learner(trains="last_block", bias=True, every=every, gamma=1.5)
        found, _ = trained(learner, clear, SMALL, hyper, Silent())
        flat = torch.from_numpy(np.concatenate([part.ravel() for part in found]))
        left[name] = np.mean(losses_by_torch(learner, SMALL, clear, flat)) / math.log(CLASSES)
    assert left["learned"] < 0.2 < 0.9 < left["fixed"]


def test_a_network_starts_with_the_public_head_above_it() -> None:
    learner, data = Learner(trains="last_block", init="public"), records(SMALL)
    seen = weights_of(learner).seen_by_head(learner, SMALL)(data.features)
    head = np.random.default_rng(0).normal(size=(CLASSES, seen.shape[1])).astype(np.float32)
    start = partial(parts.start, learner, SMALL, parts.tuned_model(learner, SMALL))
    assert np.array_equal(start(head)[-head.size :].numpy(), head.ravel())
    still = train(replace(data, start=head), Hyper(1e-4, 1, 1e6), learner, SMALL, Silent(), ONE)
    assert np.allclose(still[-1], head, atol=1e-2)
