"""Fine-tuning: gradients of whole networks against plain autograd, one record at a time; and what
it releases."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import timm
import torch
from kinds import KINDS, registered
from languages import ENCODERS, tiny_causal_model, tiny_language_model
from support import Seeded
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from dpladder.config.features_sections import Features
from dpladder.config.label_sets import PRESENT, UNKNOWN, number_of_findings
from dpladder.config.learner_sections import Head, Lora
from dpladder.config.model import Resources
from dpladder.errors import BadInput, Refused
from dpladder.learn import public_head, weights
from dpladder.learn.bounds import clip, scale_of
from dpladder.learn.data import Data
from dpladder.learn.finetune import clipping, forms, parts, predict, probing, sums
from dpladder.learn.finetune import owners as tensors
from dpladder.learn.finetune import shapes as queries
from dpladder.learn.interface import Constants, Hyper, sigmoid_bias
from dpladder.learn.records import load
from dpladder.learn.trainings import declare, train, weights_of
from dpladder.methods.dp_finetune import FineTune
from dpladder.network import cut
from dpladder.network.cut import network_of, text_network_of, upper_of
from dpladder.network.facts import Network
from dpladder.network.layers import Steady
from dpladder.privacy.release.meter import Meter

CPU, ONE = torch.device("cpu"), Resources(threads=1)
CLASSES, RECORDS = 4, 13
HYPER = Hyper(eta=0.05, steps=3, mu=0.5, delta0=1e-7)
CUTS = (
    ("test_efficientnet", "blocks.2", "random"),
    ("test_efficientnet", "input", "random"),
    ("test_vit", "blocks.4", "random"),
    ("test_vit", "input", "random"),
    ("efficientnet_lite0", "blocks.5", "bundled"),
    ("texts", "input", "pretrained"),
    ("texts", "embeddings", "pretrained"),
    ("texts", "encoder.layer.0", "pretrained"),
    ("speech", "input", "pretrained"),
)
LARGER = (("test_efficientnet", "input"), ("test_vit", "input"), ("efficientnet_lite0", "blocks.5"))
SETS = ("head", "norm_and_bias", "last_block", "all", "lora", "patterns")


@cache
def constants_of(name: str, until: str, weights: str = "random") -> Constants:
    drawn = name not in ("texts", "speech")
    network = network_of(name, until, 32, weights) if drawn else text_or_speech(until, name)
    return Constants(40, CLASSES, math.prod(network.shape), network=network)


def text_or_speech(until: str, name: str) -> Network:
    return network_of_texts(until, name == "speech", {"texts": "bert", "speech": "llama"}[name])


def network_of_texts(until: str, speaks: bool, kind: str = "bert") -> Network:
    pooling = "none" if speaks else "mean"
    with TemporaryDirectory() as name:
        folder = Path(name)
        made = (tiny_causal_model if speaks else tiny_language_model)(folder, kind=kind)
        features = Features(
            model=f"hf:{made}", weights="pretrained", tokens=12, until=until, pooling=pooling
        )
        network = text_network_of(features)
        upper_of(network)  # kept for as long as the process lives
    return network


SMALL = constants_of("test_efficientnet", "blocks.3")


def records(constants: Constants, count: int = RECORDS, views: int = 1) -> Data:
    random = np.random.default_rng(0)
    assert constants.network is not None
    top = 255.0 if constants.network.until == "input" else 1.0
    features = random.uniform(0.0, top, (count, views, constants.dimension)).astype(np.float32)
    if constants.network.pooling is not None:
        drawn = upper_of(constants.network).draw(torch.Generator().manual_seed(1), count * views)
        features = drawn.reshape(features.shape).numpy()
    units = random.integers(0, 256, (count, 16)).astype(np.uint8)
    return Data(
        features[:, 0] if views == 1 else features, random.integers(0, CLASSES, count), units
    )


def moved(learner: FineTune, constants: Constants, size: float = 0.01) -> Tensor:
    """Weights away from the start, so that nothing is zero for another reason."""
    first = parts.start(learner, constants, parts.tuned_model(learner, constants))
    return first + size * torch.randn(
        first.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )


def owners_of(learner: FineTune, constants: Constants) -> tensors.Ownership:
    return tensors.owners_of(
        parts.tuned_model(learner, constants).copy_to(CPU), constants.dimension
    )


def summed(
    learner: FineTune, constants: Constants, data: Data, weights: Tensor, bound: float
) -> Tensor:
    held = load(data, constants, CPU, chunk=8, memory_mb=1000, views=learner.augment)
    owners, scale = owners_of(learner, constants), scale_of(learner.clipping)
    return clipping.clipped_sum(owners, held, weights[None], bound, held.chunks(), scale)[0]


def one_by_one(
    learner: FineTune, constants: Constants, data: Data, weights: Tensor
) -> list[Tensor]:
    """Gradients by plain autograd in float64."""
    tuned = parts.tuned_model(learner, constants).copy_to(CPU, torch.float64)
    tuned.set_difference(weights.float().double())
    trained = [weight.requires_grad_() for weight in tuned.trained.values()]
    found = []
    for x, label in zip(data.features, data.labels, strict=True):
        put_out = tuned.module(torch.from_numpy(np.atleast_2d(x)).double())
        speaks = constants.network is not None and constants.network.speaks
        loss = (
            put_out.mean() if speaks else cross_entropy(put_out, torch.full((len(put_out),), label))
        )
        found.append(torch.cat([part.flatten() for part in torch.autograd.grad(loss, trained)]))
    return found


@pytest.mark.few(12)
@pytest.mark.parametrize("trains", SETS, ids=str)
@pytest.mark.parametrize(
    "where",
    [
        pytest.param(
            where, marks=[pytest.mark.long] if where[:2] in LARGER else [], id=" ".join(where[:2])
        )
        for where in CUTS
    ],
)
def test_the_sum_is_that_of_clipped_gradients_taken_one_record_at_a_time(where, trains) -> None:
    if trains == "last_block" and where[:2] == ("test_vit", "input"):
        pytest.skip("the same as above blocks.4")
    if trains == "head" and where[0] == "speech":
        pytest.skip("a language model has none")
    if trains != "all" and where[:2] == ("texts", "embeddings"):
        pytest.skip("the same as from the input on")
    if trains == "patterns":
        trains = (
            "*norm*" if where[0] == "speech" else "*.bias",
            {"test_vit": "*attn*", "texts": "*attention*", "speech": "*self_attn*"}.get(
                where[0], "*conv_dw*"
            ),
        )
    learner = FineTune(trains=trains, init="random", bias=True, lora=Lora(rank=2, freeze="none"))
    constants = constants_of(*where)
    assert apart_from_autograd(learner, constants, RECORDS) <= 1e-5


@pytest.mark.parametrize("views", [1, 2])
@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(3, 5, 3, padding=1),
        nn.Conv2d(3, 5, (3, 2), stride=(2, 1), padding=(0, 1), dilation=(1, 2), bias=False),
        nn.Conv2d(3, 5, 1, stride=2),
        nn.Conv2d(3, 5, 1, padding="same"),
        nn.Conv2d(3, 5, 3, padding="same"),
        nn.Conv2d(3, 5, 3, padding=1, padding_mode="reflect"),
        nn.Conv2d(6, 4, 3, padding=1, groups=2),
    ],
    ids=str,
)
def test_a_convolution_has_the_gradients_of_plain_autograd(layer: nn.Conv2d, views: int) -> None:
    random = torch.Generator().manual_seed(0)
    taken = torch.randn(4 * views, layer.in_channels, 7, 6, generator=random)
    gradient = torch.randn(layer(taken).shape, generator=random)
    owned = tensors.Layer(layer, tuple(dict(layer.named_parameters())), ())
    found = clipping._layer_gradients(owned, taken, gradient, views)
    losses = (layer(taken) * gradient).view(4, -1).sum(1)
    expected = [
        torch.autograd.grad(loss, [*layer.parameters()], retain_graph=True) for loss in losses
    ]
    each = torch.stack([torch.cat([part.flatten() for part in one]) for one in expected]).double()
    factor = torch.tensor([0.5, 1.0, 0.0, -2.0], dtype=torch.float64)
    assert torch.allclose(found.squares(), each.square().sum(1), rtol=1e-5)
    assert torch.allclose(torch.cat(found.sums(factor)), factor @ each, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
@pytest.mark.parametrize("views", [1, 3])
def test_a_head_alone_learns_what_it_learns_as_one_of_many_tensors(views: int, link: str) -> None:
    """What it sees is computed once, and not at each step: the sums are those of the whole
    network's own way."""
    learner = FineTune(trains="head", init="random", bias=True, augment=views, link=link)
    data = records(SMALL, views=views)
    data.features[0], data.features[1], data.labels[2] = np.nan, 0.0, -1  # these count as nothing
    tuned = parts.tuned_model(learner, SMALL)
    weights = moved(learner, SMALL)
    head = sums._head_only_sums(data, learner, SMALL, tuned.copy_to(CPU), 8, ONE)
    for bound in (1e-3, 1e3):
        expected = summed(learner, SMALL, data, weights, bound)
        found = head.gradients(weights[None], bound, head.records.chunks(), clip)[0]
        assert (found - expected).norm() <= 1e-5 * expected.norm()
    nobody = Data(data.features, np.full_like(data.labels, -1))
    head = sums._head_only_sums(nobody, learner, SMALL, tuned.copy_to(CPU), 8, ONE)
    assert head.gradients(weights[None], 1.0, head.records.chunks(), clip).norm() == 0.0


@pytest.mark.parametrize("trains", ["head", "norm_and_bias", "all", "lora"])
def test_a_gradient_of_findings_is_clipped_whole_and_what_is_unknown_has_none(trains: str) -> None:
    learner = FineTune(
        trains=trains, init="random", link="sigmoid", lora=Lora(rank=2, freeze="none")
    )
    constants, data = replace(SMALL, labels="many"), records(SMALL)
    states = np.random.default_rng(1).integers(0, 3, (len(data.labels), CLASSES))
    data = replace(data, labels=np.array([number_of_findings(own.tolist()) for own in states]))
    weights = moved(learner, constants)
    tuned = parts.tuned_model(learner, constants).copy_to(CPU, torch.float64)
    tuned.set_difference(weights.float().double())
    trained = [weight.requires_grad_() for weight in tuned.trained.values()]
    gradients = []
    for x, own in zip(data.features, states, strict=True):
        logits = tuned.module(torch.from_numpy(x[None]).double())[0] + sigmoid_bias(CLASSES)
        known, present = torch.from_numpy(own != UNKNOWN), torch.from_numpy(own == PRESENT)
        loss = binary_cross_entropy_with_logits(logits, present.double(), reduction="none")
        each = torch.autograd.grad((loss * known).sum(), trained)
        gradients.append(torch.cat([part.flatten() for part in each]))
    bound = torch.stack([gradient.norm() for gradient in gradients]).median().item()
    expected = sum(
        gradient * min(1.0, bound / max(gradient.norm(), 1e-30)) for gradient in gradients
    )
    found = summed(learner, constants, data, weights, bound)
    assert (found - expected).norm() <= 1e-5 * expected.norm()


def test_a_network_starts_with_the_public_head_above_it() -> None:
    learner, data = FineTune(trains="norm_and_bias", init="public"), records(SMALL)
    seen = weights_of(learner).seen_by_head(learner, SMALL)
    head, _ = public_head.fit_public_head(data, CLASSES, seen)
    tuned = parts.tuned_model(learner, SMALL).copy_to(CPU, torch.float64)
    tuned.set_difference(parts.start(learner, SMALL, tuned, head))
    put_out = tuned.module(torch.from_numpy(np.asarray(data.features)).double())
    assert np.allclose(put_out.detach().numpy(), seen(data.features) @ head.T, rtol=1e-6, atol=1e-9)
    assert np.abs(head).max() > 0
    bought = FineTune(trains="norm_and_bias", head=Head(epsilon=1.0))
    assert torch.equal(
        parts.start(bought, SMALL, tuned, head), parts.start(learner, SMALL, tuned, head)
    )
    for one in (learner, bought):
        with pytest.raises(BadInput, match="rule find_start"):
            parts.start(one, SMALL, tuned)


@pytest.mark.parametrize("trains", [pytest.param("all", marks=pytest.mark.long), "lora"])
def test_automatic_clipping_scales_every_gradient_by_its_norm(trains: str) -> None:
    """Bu et al. 2023, Eq. 5, with gamma = 0.01."""
    learner = FineTune(trains=trains, init="random", clipping="automatic")
    data, weights = records(SMALL), moved(learner, SMALL)
    gradients = one_by_one(learner, SMALL, data, weights)
    expected = sum(0.3 * gradient / (gradient.norm() + 0.01) for gradient in gradients)
    found = summed(learner, SMALL, data, weights, 0.3)
    assert (found - expected).norm() <= 1e-5 * expected.norm()


def test_views_are_averaged_before_they_are_clipped() -> None:
    learner = FineTune(trains="all", init="random", augment=3)
    data, weights = records(SMALL, views=3), moved(learner, SMALL)
    gradients = one_by_one(learner, SMALL, data, weights)
    bound = min(gradient.norm().item() for gradient in gradients)
    expected = sum(gradient * bound / gradient.norm() for gradient in gradients)
    found = summed(learner, SMALL, data, weights, bound)
    assert (found - expected).norm() <= 1e-5 * expected.norm()


@pytest.mark.few(10)
@pytest.mark.parametrize("trains", ["all", "lora"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e38, 1e10, 0.0])
@pytest.mark.parametrize("how", ["flat", "automatic"])
def test_no_record_breaks_a_chunk_or_exceeds_the_bound(trains, value, how) -> None:
    learner = FineTune(trains=trains, init="random", clipping=how)
    data, weights = records(SMALL, 3), moved(learner, SMALL, 10.0)
    others = summed(learner, SMALL, Data(data.features[1:], data.labels[1:]), weights, 0.5)
    data.features[0, :100] = value
    found = summed(learner, SMALL, data, weights, 0.5)
    assert (found - others).norm() <= 0.5 * (1 + 1e-5)


def test_a_record_that_counts_as_nothing_adds_nothing() -> None:
    learner = FineTune(trains="all", init="random")
    data, weights = records(SMALL), moved(learner, SMALL)
    nobody = Data(data.features, np.full_like(data.labels, -1))
    assert summed(learner, SMALL, nobody, weights, 1.0).norm() == 0.0


def test_a_gradient_that_terms_cancel_in_is_clipped_by_its_terms() -> None:
    """Its norm alone would let float32's rounding of the terms pass for a record of the bound's
    length."""
    layer = tensors.Layer(nn.Linear(2, 2), ("weight",), (slice(0, 4),))
    big, small = (
        torch.tensor([[[1e4, 0.0], [-1e4, 0.0]]]),
        torch.tensor([[[1.0, 0.0], [1.0, 1e-6]]]),
    )
    product = forms.Product(big, small, bias=False, turned=False)
    for part in (product, product.as_matrices()):
        assert part.squares().sqrt().item() == pytest.approx(1e-2, rel=1e-3)
        (factor,) = clipping.factors([(layer, part)], 1.0).tolist()
        terms = product.terms().sqrt().item()
        assert factor * terms == pytest.approx(1 / clipping.LOOSE, rel=1e-3)


def test_a_gradient_that_float32_cannot_scale_back_is_no_longer_than_the_bound() -> None:
    """Those of a diverged training are this long."""
    outputs, inputs = torch.full((1, 1, 2), 1e26), torch.full((1, 1, 3), 1e14)
    rows = torch.zeros(1, 1, dtype=torch.long)
    layer = tensors.Layer(nn.Linear(3, 2), ("weight",), (slice(0, 6),))
    parts = [
        forms.Product(outputs, inputs, bias=False, turned=False),
        forms.Looked(outputs * 1e12, rows, 1),
    ]
    for part in parts:
        for bound in np.geomspace(1e-7, 1e-3, 60):
            factor = clipping.factors([(layer, part)], bound)
            [total] = part.sums(factor)
            assert total.norm() <= bound * (1 + 2.0**-10)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_a_product_is_the_same_whole_and_in_factors(bias: bool, turned: bool) -> None:
    random = torch.Generator().manual_seed(0)
    gradients, inputs = (torch.randn(4, 7, width, generator=random) for width in (5, 3))
    gradients[2, 1, 0] = np.inf  # of a record that counts as nothing
    factor = torch.tensor([0.5, 1.0, 0.0, 0.25], dtype=torch.float64)
    product = forms.Product(gradients, inputs, bias, turned)
    whole, sound = product.as_matrices(), factor > 0
    assert torch.allclose(product.squares()[sound], whole.squares()[sound], rtol=1e-5)
    assert torch.allclose(product.terms()[sound], whole.terms()[sound], rtol=1e-5)
    for one, other in zip(product.sums(factor), whole.sums(factor), strict=True):
        assert torch.allclose(one, other, rtol=1e-5, atol=1e-6)


def trained(learner: FineTune, data: Data, constants: Constants = SMALL, hyper: Hyper = HYPER):
    meter = Meter(declare(learner, hyper, constants).draws, Seeded(), audit=True)
    found = train(data, hyper, learner, constants, meter, ONE)
    meter.close()
    return found, meter


def test_a_language_models_loss_is_that_of_plain_transformers_for_each_text_alone() -> None:
    constants, learner = (
        constants_of("speech", "input", "pretrained"),
        FineTune(trains="norm_and_bias"),
    )
    assert constants.network is not None
    rows, known = records(constants, 9).features, upper_of(constants.network).network
    weights = tuple(
        np.zeros(shape, np.float32) for shape in queries.shapes(learner, constants).values()
    )
    found = predict.scorer(learner, constants)
    assert found is not None
    assert found.most == math.log(24)
    expected = []
    for row in rows:
        tokens = torch.from_numpy(row[row > 0]).long()[None] - 1
        with torch.no_grad():
            expected.append(
                known(input_ids=tokens, labels=tokens).loss.item() if tokens.numel() > 1 else 0.0
            )
    assert np.abs(found.of(weights, rows) - expected).max() < 1e-5
    assert "head.weight" not in weights_of(learner).tensors(learner, constants)


SWITCHES = [
    {"trains": "all", "average": "ema"},
    {"trains": "lora", "optimizer": "adam"},
    {"trains": "norm_and_bias", "sampling_rate": 0.4, "weight_decay": 0.1},
    {"trains": "last_block", "free_step": True, "clipping": "automatic", "schedule": "cosine"},
]


@pytest.mark.few(2)
@pytest.mark.parametrize("switches", SWITCHES, ids=str)
def test_it_trains_alike_twice_and_draws_each_step_afresh(switches) -> None:
    learner = FineTune(bias=True, **switches)
    (first, meter), (second, _) = trained(learner, records(SMALL)), trained(learner, records(SMALL))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert len({used.sha256 for used in meter.used if used.name == "noise"}) == HYPER.steps


def test_with_nobody_in_it_weights_walk_from_the_public_network_along_the_meters_noise() -> None:
    learner, data = FineTune(trains="last_block", momentum=0.0), records(SMALL)
    found, _ = trained(learner, Data(data.features, np.full_like(data.labels, -1)))
    flat = np.concatenate([part.ravel() for part in found])
    scale = declare(learner, HYPER, SMALL).draws[0].scale
    step = HYPER.eta * scale / SMALL.n0 * HYPER.steps**0.5
    assert flat.std() == pytest.approx(step, rel=0.02)
    assert abs(flat.mean()) < 5 * step / len(flat) ** 0.5


@pytest.mark.parametrize("trains", ["last_block", "lora"])
def test_a_file_holds_the_difference_by_name_and_predicts_the_same_to_the_last_bit(
    tmp_path, trains
) -> None:
    learner, data = FineTune(trains=trains, bias=True), records(SMALL)
    found, _ = trained(learner, data)
    own = weights_of(learner).logits(learner, SMALL)
    weights.save(tmp_path / "w", found, {}, names=weights_of(learner).tensors(learner, SMALL))
    loaded, facts = weights.load(tmp_path / "w")
    assert np.array_equal(own(found, data.features), own(loaded, data.features))

    whole = cut.upper_of(SMALL.network)
    state = parts.merged_tensors(learner, SMALL, loaded)
    assert set(state) <= set(dict(whole.network.named_parameters()))
    plain = torch.func.functional_call(
        whole.network, state, (whole.enter(torch.from_numpy(data.features)),)
    ).double()
    head = torch.from_numpy(loaded[-1]).double()
    logits = plain @ head[:, :-1].T + head[:, -1]
    assert np.allclose(logits.numpy(), own(loaded, data.features), rtol=1e-4, atol=1e-5)
    assert facts["tensors"][-1] == "head.weight"


def test_logits_hang_on_other_rows_by_no_more_than_the_rounding_of_float64() -> None:
    learner, data = FineTune(trains="all", init="random"), records(SMALL, 40)
    found, _ = trained(learner, data)
    own = weights_of(learner).logits(learner, SMALL)
    among, alone = own(found, data.features)[33:35], own(found, data.features[33:35])
    assert np.allclose(among, alone, rtol=1e-12, atol=1e-14)


class Mixing(nn.Module):
    """What each record puts out hangs on the mean over all."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(0, keepdim=True)


class ByPlace(nn.Module):
    """Rounds every third record otherwise, as a product does that adds some rows in another
    order."""

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(len(x)).view(-1, *[1] * (x.ndim - 1))
        return torch.where(places % 3 == 2, x * (1 + 2.0**-23), x)


def owners_to_try(trains: str = "all") -> tensors.Ownership:
    learner = FineTune(trains=trains, init="random")
    owners = owners_of(learner, SMALL)
    owners.tuned.set_difference(moved(learner, SMALL).float())
    return owners


def refuse_mixing(owners: tensors.Ownership) -> None:
    probing.refuse_mixing(owners, 8, 1, SMALL.dimension, CLASSES)


def test_a_network_that_mixes_records_is_refused_whatever_its_layers_are_called() -> None:
    owners, batch_norm = owners_to_try(), owners_to_try("head")
    refuse_mixing(owners)
    owners.tuned.module.enter.append(Mixing())
    batch_norm.tuned.module.train()
    for one in (owners, batch_norm):
        with pytest.raises(Refused, match="depends on the other records of its batch"):
            refuse_mixing(one)


def test_a_network_that_rounds_a_record_by_its_place_is_refused() -> None:
    owners = owners_to_try()
    owners.tuned.module.enter.append(ByPlace())
    with pytest.raises(Refused, match=r"by its place.*resources.threads: 1"):
        refuse_mixing(owners)


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("kind", "trains", "tensor"),
    [
        ("albert", "all", "encoder.*full_layer_layer_norm.weight and of 15"),
        ("albert", "lora", "encoder.*attention.query.up.weight and of"),
        ("mpnet", "last_block", "encoder.relative_attention_bias.weight"),
        ("nystromformer", "all", "embeddings.position_embeddings.weight"),
        ("roformer", "all", "encoder.embed_positions.weight"),
        ("longformer", "all", "encoder.*attention.self.query.weight and of"),
        ("xlnet", "all", "mask_emb and of"),
        ("mamba", "lora", "layers.0.mixer.in_proj.up.weight and of"),
    ],
)
def test_a_network_that_cannot_be_trained_is_found_on_public_records(kind, trains, tensor) -> None:
    network = network_of_texts("input", False, kind)
    constants = Constants(40, CLASSES, math.prod(network.shape), network=network)
    predict.ready(FineTune(trains="head"), constants, ONE)
    with pytest.raises(Refused, match=f"gradients of {tensor}.* cannot be computed"):
        predict.ready(FineTune(trains=trains), constants, ONE)


@pytest.mark.parametrize("wrong", [-1.0, 1.1])
def test_a_layer_whose_sum_is_not_autograds_is_named(
    monkeypatch: pytest.MonkeyPatch, wrong: float
) -> None:
    owners = owners_to_try()
    probing.refuse_untrainable(owners, 1, SMALL.dimension, CLASSES)
    right = clipping._layer_gradients

    def of_layer(layer: tensors.Layer, *given: Any) -> Any:
        found = right(layer, *given)
        other = type(layer.module) is not Steady
        return found if other else replace(found, gradients=wrong * found.gradients)

    monkeypatch.setattr(clipping, "_layer_gradients", of_layer)
    with pytest.raises(Refused, match=r"gradients of head.weight are not those of plain autograd"):
        probing.refuse_untrainable(owners, 1, SMALL.dimension, CLASSES)


@pytest.mark.parametrize(
    ("until", "trains", "says"),
    [
        ("blocks.4", "last_block", "last_block reaches below features.until"),
        (
            "blocks.3",
            ("blocks.0.*",),
            "'blocks.0.*' fits none of the tensors above features.until; ",
        ),
        ("blocks.3", ("*.bias", "bn2.wieght"), "did you mean bn2.weight? they are blocks.4.0"),
    ],
)
def test_a_set_that_lies_below_the_cut_is_refused(until, trains, says) -> None:
    constants = constants_of("test_efficientnet", until)
    with pytest.raises(BadInput) as caught:
        declare(FineTune(trains=trains), HYPER, constants)
    assert says in str(caught.value)


def test_targets_of_adapters_that_fit_no_layer_are_named() -> None:
    learner = FineTune(trains="lora", lora=Lora(targets=("blocks.4.0.con_pw",)))
    with pytest.raises(BadInput, match=r"con_pw fits none of the layers .* did you mean blocks.4"):
        declare(learner, HYPER, constants_of("test_efficientnet", "blocks.3"))


def test_chunks_are_as_large_as_the_declared_memory_allows() -> None:
    owners = owners_of(FineTune(trains="all"), SMALL)
    sizes = [owners.chunk(memory, 1) for memory in (1, 10, 100, 10_000)]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (tensors.SMALLEST_BLOCK, tensors.LARGEST_BLOCK["cpu"])
    assert isinstance(SMALL.network, Network)


def test_a_head_above_the_cut_follows_sigmoids_where_they_are_asked_for() -> None:
    constants = Constants(n0=40, classes=3, dimension=8)
    module = parts.tuned_model(FineTune(trains="head", link="sigmoid"), constants).module
    logits = torch.from_numpy(np.random.default_rng(0).normal(size=(9, 3)))
    labels = torch.arange(9) % 3
    expected = binary_cross_entropy_with_logits(
        logits - np.log(2.0), torch.nn.functional.one_hot(labels, 3).double(), reduction="none"
    )
    assert torch.allclose(module.losses(logits, labels), expected.sum(1))
    other = parts.tuned_model(FineTune(trains="head"), constants).module
    assert torch.allclose(
        other.losses(logits, labels), cross_entropy(logits, labels, reduction="none")
    )


def apart_from_autograd(learner: FineTune, constants: Constants, count: int = 5) -> float:
    """Of a sum of clipped gradients, against plain autograd one record at a time."""
    data, weights = records(constants, count), moved(learner, constants)
    gradients = one_by_one(learner, constants, data, weights)
    norms = torch.stack([gradient.norm() for gradient in gradients])
    bound = norms.median().item()
    factors = (bound / norms.clamp(min=bound)).tolist()
    expected = torch.stack([f * g for f, g in zip(factors, gradients, strict=True)]).sum(0)
    found = summed(learner, constants, data, weights, bound)
    return ((found - expected).norm() / expected.norm()).item()


def apart_when_merged(learner: FineTune, constants: Constants) -> float:
    """Of logits of what was trained, against the public network with the merged tensors in it."""
    data = records(constants, 5)
    flat = moved(learner, constants, 0.1).float().numpy()
    tuned = parts.tuned_model(learner, constants)
    ends = np.cumsum([weight.numel() for weight in tuned.trained.values()])[:-1]
    trained = tuple(
        part.reshape(weight.shape)
        for part, weight in zip(np.split(flat, ends), tuned.trained.values(), strict=True)
    )
    upper = upper_of(constants.network)
    network = copy.deepcopy(upper.network)
    network.load_state_dict(
        network.state_dict() | parts.merged_tensors(learner, constants, trained)
    )
    plain = upper.read(network, upper.enter(torch.from_numpy(data.features))).double()
    head = torch.from_numpy(trained[-1]).double()
    wanted = weights_of(learner).logits(learner, constants)(trained, data.features)
    found = (plain @ head[:, :-1].T + head[:, -1]).detach().numpy()
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


@pytest.mark.few(27)
@pytest.mark.parametrize("trains", ["all", "lora"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_layer_trains_as_autograd_does_and_merges_as_it_was_trained(
    kind, trains
) -> None:
    learner = FineTune(trains=trains, init="random", bias=True, lora=Lora(rank=2, freeze="none"))
    constants = constants_of(registered(kind), "input")
    assert apart_from_autograd(learner, constants) < 1e-5
    assert apart_when_merged(learner, constants) < 1e-4


@pytest.mark.long
@pytest.mark.parametrize("trains", ["all", "lora"])
@pytest.mark.parametrize("name", timm.list_models("test_*"))
def test_every_small_network_of_timm_trains_as_autograd_does(name: str, trains: str) -> None:
    learner = FineTune(trains=trains, init="random", bias=True, lora=Lora(rank=2, freeze="none"))
    network = network_of(name, "input", 64)
    constants = Constants(40, CLASSES, math.prod(network.shape), network=network)
    assert apart_from_autograd(learner, constants, 3) < 1e-5
    assert apart_when_merged(learner, constants) < 1e-3


NOT_TRAINED = {"albert", "mpnet", "longformer", "xlnet"}
SHARED = {"nystromformer", "roformer"}  # positions that all records share
WITHOUT_LINEAR_LAYERS = {"falcon", "mamba"}  # or that the network reaches into


@pytest.mark.ci
@pytest.mark.parametrize("trains", ["all", "lora"])
@pytest.mark.parametrize("kind", sorted(ENCODERS.keys() - NOT_TRAINED))
def test_every_kind_of_transformers_trains_as_autograd_does_and_merges_as_it_was_trained(
    kind: str, trains: str
) -> None:
    if kind in (SHARED if trains == "all" else WITHOUT_LINEAR_LAYERS):
        return  # refused, or nothing fits
    network = network_of_texts("input", False, kind)
    constants = Constants(40, CLASSES, math.prod(network.shape), network=network)
    learner = FineTune(trains=trains, init="random", bias=True, lora=Lora(rank=2, freeze="none"))
    predict.ready(learner, constants, ONE)
    assert apart_from_autograd(learner, constants, 3) < 1e-5
    assert apart_when_merged(learner, constants) < 1e-4


@pytest.mark.parametrize("trains", ["all", "norm_and_bias", "lora"])
def test_a_network_whose_matrices_stand_the_other_way_round_learns_to_speak(trains: str) -> None:
    network = network_of_texts("input", True, "gpt2")
    constants = Constants(40, CLASSES, math.prod(network.shape), network=network)
    learner = FineTune(
        trains=trains, lora=Lora(rank=2, targets=("*.c_attn", "*.mlp.c_proj"), freeze="none")
    )
    predict.ready(learner, constants, ONE)
    assert apart_from_autograd(learner, constants, 3) < 1e-5
    trained = parts.tuned_model(learner, constants).trained
    assert trains != "lora" or [*trained] == [
        f"network.transformer.h.{block}.{layer}.{side}.weight"
        for block in range(2)
        for layer in ("attn.c_attn", "mlp.c_proj")
        for side in ("down", "up")
    ]


def test_adapters_of_every_kind_of_layer_begin_at_nothing() -> None:
    """The vector of a training starts at a public seed, and `base` is what it is added to."""
    for kind in ("bert", "gpt2"):
        network = network_of_texts("input", False, kind)
        constants = Constants(40, CLASSES, math.prod(network.shape), network=network)
        learner = FineTune(trains="lora", lora=Lora(rank=2, freeze="none"))
        assert not parts.tuned_model(learner, constants).base.any()


FROZEN = FineTune(trains="lora", init="random", bias=True, lora=Lora(rank=2))


@pytest.mark.parametrize("kind", ["conv", "linear", "bert", "gpt2"])
def test_beside_a_frozen_factor_up_alone_is_trained_clipped_and_released(kind: str) -> None:
    drawn = kind in KINDS
    network = registered(kind) if drawn else network_of_texts("input", False, kind)
    constants = (
        constants_of(network, "input")
        if drawn
        else Constants(40, CLASSES, math.prod(network.shape), network=network)
    )
    both = FROZEN.model_copy(update={"lora": Lora(rank=2, freeze="none")})
    names = [*parts.tuned_model(FROZEN, constants).trained]
    assert names == [
        name for name in parts.tuned_model(both, constants).trained if ".down." not in name
    ]
    assert any(name.endswith(".up.weight") for name in names)
    assert apart_from_autograd(FROZEN, constants, 3) < 1e-5
    assert apart_when_merged(FROZEN, constants) < 1e-4


def test_a_network_with_a_frozen_factor_starts_as_the_public_one() -> None:
    whole = FROZEN.model_copy(update={"trains": "head"})
    first = parts.start(FROZEN, SMALL, parts.tuned_model(FROZEN, SMALL))
    data = records(SMALL, 5).features
    seen = []
    for learner in (FROZEN, whole):
        tuned = parts.tuned_model(learner, SMALL).copy_to(CPU)
        if learner is FROZEN:
            tuned.set_difference(first.float())
            frozen = [
                layer.down.weight
                for layer in tuned.module.modules()
                if isinstance(layer, parts.Adapted)
            ]
            assert all(weight.count_nonzero() > 0 for weight in frozen)
            assert not any(weight.count_nonzero() for weight in [*tuned.trained.values()][:-1])
        seen.append(tuned.module.seen_by_head(torch.from_numpy(data)))
    assert torch.equal(*seen)


def test_a_frozen_factor_is_the_same_for_ever_and_another_one_for_each_layer() -> None:
    """A released file has `up` alone, and whoever loads it draws this again."""
    found = parts._frozen_factor("blocks.0.attn.qkv", (2, 3))
    expected = [[-0.308030, -0.132609, 0.313020], [-0.238413, -0.360228, -0.196088]]
    assert found.tolist() == [pytest.approx(row, abs=1e-6) for row in expected]
    assert not torch.equal(found, parts._frozen_factor("blocks.1.attn.qkv", (2, 3)))
    many = parts._frozen_factor("a layer", (100, 10, 10))
    assert abs(many.mean()) < 0.002
    assert many.abs().max() <= 0.1
    assert many.std() == pytest.approx(0.1 / math.sqrt(3), rel=0.05)
