"""Public records that guide a network, and the head that is bought for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from support import Silent
from torch.nn.functional import cross_entropy

from dpladder.config.learner_sections import Head
from dpladder.config.learners import method
from dpladder.config.model import Resources
from dpladder.errors import BadInput
from dpladder.learn import guide
from dpladder.learn.bounds import clip
from dpladder.learn.curator import Curator, PublicInputs
from dpladder.learn.data import Data
from dpladder.learn.finetune import parts
from dpladder.learn.finetune.descent import sample_worth
from dpladder.learn.finetune.shapes import model_of
from dpladder.learn.finetune.sums import guide_of
from dpladder.learn.interface import Claim, Constants, Hyper
from dpladder.learn.queries import QueryCall
from dpladder.learn.trainings import declare, train, weights_of
from dpladder.methods.dp_finetune import FineTune
from dpladder.methods.dp_gd import Descent
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.events import Composed, mu
from tests.learn.test_finetune import CLASSES, CPU, SMALL, records

ONE, HYPER = Resources(threads=1), Hyper(0.5, 1, 2.0)
GUIDED = FineTune(trains="norm_and_bias", public="gradient", clip=1e4, momentum=0.0, look=0.0)
N0 = replace(SMALL, n0=40)


def of(count: int, seed: int) -> Data:
    found = records(SMALL, count)
    labels = np.random.default_rng(seed).integers(0, CLASSES, count)
    rows = np.random.default_rng(seed).permutation(found.features)
    return replace(found, features=rows, labels=labels, units=None)


def beside(data: Data, sample: Data, **more: object) -> Data:
    head = np.random.default_rng(4).normal(size=(CLASSES, width_of(sample))).astype(np.float32)
    return replace(data, sample=sample, start=head, claim=Claim(0.9, 0.3), **more)


def width_of(data: Data) -> int:
    return weights_of(GUIDED).seen_by_head(GUIDED, SMALL)(data.features[:1]).shape[1]


def trained(data: Data, learner: FineTune = GUIDED, hyper: Hyper = HYPER) -> np.ndarray:
    found = train(data, hyper, learner, N0, Silent(), ONE)  # type: ignore[arg-type]
    return np.concatenate([np.ravel(part) for part in found]).astype(np.float64)


def gradient_of(data: Data, learner: FineTune, first: torch.Tensor) -> np.ndarray:
    """The mean of the loss's, where the training starts."""
    tuned = parts.tuned_model(learner, SMALL).copy_to(CPU, torch.float64)
    tuned.set_difference(first)
    weights = [weight.requires_grad_() for weight in tuned.trained.values()]
    put_out = tuned.module(torch.from_numpy(data.features).double())
    loss = cross_entropy(put_out, torch.from_numpy(data.labels))
    return torch.cat([one.flatten() for one in torch.autograd.grad(loss, weights)]).numpy()


def first_of(learner: FineTune, data: Data) -> torch.Tensor:
    return parts.start(learner, SMALL, parts.tuned_model(learner, SMALL), data.start)


def directions_of(sample: Data) -> float:
    x = weights_of(GUIDED).seen_by_head(GUIDED, SMALL)(sample.features)
    less = x - x.mean(axis=0)
    alike, own = (less @ less.T) ** 2, np.outer((less**2).sum(1), (less**2).sum(1))
    others = ~np.eye(len(x), dtype=bool)
    return float(own[others].sum() / alike[others].sum() * (x**2).sum() / (less**2).sum())


@pytest.mark.parametrize("head", [None, Head(epsilon=1.0)])
def test_a_networks_step_is_the_private_gradient_and_the_weighted_public_one(
    head: Head | None,
) -> None:
    """Against autograd, no record clipped and no noise; also above a head that was bought, whose
    look told what the sample is worth."""
    learner = GUIDED.model_copy(update={"head": head})
    data = beside(of(40, 1), of(30, 2), worth=None if head is None else 12.0)
    assert data.sample is not None
    public_weight = (12 if head else 30) * CLASSES * directions_of(data.sample) / (40 * 2.0) ** 2
    first = first_of(learner, data)
    private, public = (gradient_of(one, learner, first) for one in (data, data.sample))
    step = -0.5 * (private + public_weight * public) / (1 + public_weight) ** 0.5
    assert public_weight > 0.001
    assert np.allclose(trained(data, learner), first.numpy() + step, rtol=1e-4, atol=1e-6)


def test_a_guided_head_is_what_it_is_among_linear_heads_where_features_have_no_mean() -> None:
    rng = np.random.default_rng(0)
    data, sample = (
        Data(rng.normal(size=(count, 5)).astype(np.float32), rng.integers(0, 3, count))
        for count in (60, 40)
    )
    sample = replace(sample, features=np.concatenate([sample.features, -sample.features]))
    sample = replace(sample, labels=np.tile(sample.labels, 2))
    data = replace(data, sample=sample, start=rng.normal(size=(3, 5)).astype(np.float32))
    constants, hyper, common = Constants(60, 3, 5), Hyper(0.3, 4, 0.5), {"look": 0.0}
    linear_head = Descent(public="gradient", **common)
    one = FineTune(trains="head", public="gradient", free_step=True, **common)
    (expected,), (found,) = (
        train(data, hyper, each, constants, Silent(), ONE) for each in (linear_head, one)
    )
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_batches_hold_each_public_record_once_and_average_as_the_sample() -> None:
    data = beside(of(40, 1), of(150, 2))
    assert data.sample is not None
    data.sample.labels[3] = -1  # of no class: it counts as nothing
    found = guide_of(model_of(GUIDED, N0), data.sample, N0, ONE)
    # a last one that is not full is filled with a row that counts as nothing
    assert {len(torch.cat(rows).unique()) for rows in found.batches} <= {50, 51}
    assert found.units == 149
    first = first_of(GUIDED, data)
    mean = sum(found.mean(first[None], 1e4, step, clip) for step in range(3)) / 3
    kept = np.delete(np.arange(150), 3)
    sample = replace(
        data.sample, features=data.sample.features[kept], labels=data.sample.labels[kept]
    )
    expected = gradient_of(sample, GUIDED, first)
    assert np.allclose(mean[0].numpy(), expected, rtol=1e-4, atol=1e-6)


def test_a_look_is_paid_once_by_a_head_that_is_bought_or_by_each_training() -> None:
    learner = GUIDED.model_copy(update={"look": 0.19})
    declared = declare(learner, HYPER, N0)
    noise, look = declared.draws
    assert (look.name, look.shape, look.count) == ("look", (), 1)
    assert noise.scale == pytest.approx(1e4 * gdp.sigma(2.0 * 0.9, 1))
    assert mu(Composed(declared.events)) == pytest.approx(2.0, rel=1e-9)
    bought = learner.model_copy(update={"head": Head(epsilon=1.0)})
    assert [draw.name for draw in declare(bought, HYPER, N0).draws] == ["noise"]
    noise_of_head = method("dp_finetune").logit_noise(learner, HYPER, N0)
    assert noise_of_head > method("dp_finetune").logit_noise(bought, HYPER, N0)


def test_a_networks_steps_pay_for_its_look() -> None:
    data = beside(of(40, 1), of(30, 2), worth=30.0)
    found = trained(data, GUIDED.model_copy(update={"look": 0.75}))
    assert np.array_equal(found, trained(data, hyper=replace(HYPER, mu=1.0)))
    assert not np.array_equal(found, trained(data))


def test_a_sample_that_its_look_rejects_leaves_a_head_of_zeros_and_adapters_as_they_were() -> None:
    learner = FineTune(trains="lora", public="gradient", look=0.5)
    data = beside(of(40, 1), of(30, 2))
    nobody_right = replace(data, labels=np.full(40, -1))
    constants = replace(N0, n0=4000)
    queries = method(learner.name).queries(learner, HYPER, constants)
    [worth] = Curator(nobody_right, constants, ONE).run(
        lambda given, asks: sample_worth(given, asks, learner, constants),
        [queries],
        [Silent()],  # type: ignore[list-item]
        guided=True,
    )
    assert worth == 0.0
    weights = trained(replace(data, worth=0.0), learner)
    alone = FineTune(trains="lora")
    assert np.allclose(
        weights, trained(data, alone, guide.hyper_after_look(learner, HYPER)), atol=1e-6
    )
    assert np.abs(weights).max() > 0

    bought = learner.model_copy(update={"head": Head(epsilon=1.0), "trains": "norm_and_bias"})
    moved = trained(replace(data, worth=0.0), bought) - first_of(bought, data).numpy()
    assert np.abs(moved).max() < np.abs(data.start).max(), "it starts at the head that was bought"


def test_a_networks_sample_is_worth_what_its_look_and_the_declared_size_say() -> None:
    learner = FineTune(trains="lora", public="gradient", look=0.5)
    constants, claim = replace(N0, n0=4000), Claim(0.7, 0.3)
    queries = method(learner.name).queries(learner, HYPER, constants)
    inputs = PublicInputs(CPU, start=beside(of(40, 1), of(30, 2)).start, claim=claim, units=30)
    asking = sample_worth(inputs, queries, learner, constants)
    look = next(asking)
    with pytest.raises(StopIteration) as ended:
        asking.send(torch.tensor(2000.0))
    assert isinstance(look, QueryCall)
    scale = look.query.scale(constants)
    assert ended.value.value == guide.effective_sample_size(30, 2000.0, claim, scale, constants)
    assert 0.0 < ended.value.value < 30.0


def test_a_network_without_its_public_records_is_refused() -> None:
    with pytest.raises(BadInput, match=r"learner.public: gradient has no public records"):
        trained(replace(beside(of(40, 1), of(30, 2)), sample=None))
