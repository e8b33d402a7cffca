"""A public network in two parts: together they are the whole, and what cannot be cut is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import timm
import torch
from torch import Tensor, nn

from dpladder.config.features_sections import Features
from dpladder.data import backbones
from dpladder.data.sources import Source
from dpladder.errors import BadInput, Refused
from dpladder.network.cut import check_cut, last_block, lower_part, network_of, upper_of, upper_part

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 32, 32, 3), np.uint8)
SOURCE = Source("pixels", lambda index: IMAGES[index], [None] * len(IMAGES), width=32 * 32 * 3)


def model_of(name: str) -> nn.Module:
    torch.manual_seed(0)
    found = timm.create_model(name, num_classes=0).eval().requires_grad_(False)
    if hasattr(found, "set_input_size"):
        found.set_input_size(img_size=32)
    return found


@pytest.mark.parametrize(
    ("name", "until"),
    [
        ("test_efficientnet", "blocks.3"),
        ("test_efficientnet", "conv_stem"),
        ("test_vit", "blocks.4"),
        ("test_vit", "patch_embed"),
        ("test_resnet", "layer3"),
        ("test_convnext", "stages.2"),
    ],
)
def test_the_two_parts_make_the_whole_to_the_last_bit(name: str, until: str) -> None:
    model, images = model_of(name), torch.rand(3, 3, 32, 32)
    lower, upper = lower_part(model, until), upper_part(model, until)
    assert torch.equal(upper(lower(images)), model(images))
    names = dict(model.named_parameters())
    for part in (lower, upper):
        assert all(torch.equal(weight, names[name]) for name, weight in part.named_parameters())


class Skipping(nn.Module):
    """Its input goes past the first layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x)) + x


class Choosing(Skipping):
    """Which way it takes hangs on what it is given."""

    def forward(self, x: Tensor) -> Tensor:
        return self.first(x) if x.sum() > 0 else self.second(x)


@pytest.mark.parametrize(
    ("model", "until", "says"),
    [
        (Skipping(), "first", "the network goes past 'first' on another way too"),
        (
            Skipping(),
            "third",
            "'third' is no layer of this model; it has first, second, and 'input'",
        ),
        (Skipping(), "imput", "did you mean input?"),
        (Choosing(), "first", "does not always take the same way"),
    ],
    ids=["skipped", "unknown", "misspelt", "untraceable"],
)
def test_what_cannot_be_cut_is_refused_by_the_key_that_asked_for_it(model, until, says) -> None:
    with pytest.raises(BadInput, match=r"^features\.until: ") as caught:
        upper_part(model, until)
    assert says in str(caught.value)


def test_a_cut_is_checked_by_name_without_the_networks_weights() -> None:
    asked = Features(model="test_resnet", weights="/nowhere/resnet.safetensors")
    for until in ("input", "layer3"):
        check_cut(asked.model_copy(update={"until": until}))
    with pytest.raises(BadInput, match="did you mean layer3"):
        check_cut(asked.model_copy(update={"until": "layer_3"}))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("test_efficientnet", {"blocks.4.0", "conv_head", "bn2"}),
        ("test_vit", {"blocks.5", "norm"}),
        ("test_resnet", {"layer4.0"}),
    ],
)
def test_the_last_block_is_timms_last_group_and_what_follows_it(name: str, parts: set[str]) -> None:
    model = model_of(name)
    names = {
        one
        for one, _ in model.named_parameters()
        if one.startswith(tuple(f"{part}." for part in parts))
    }
    assert last_block(model) == names


def encoded(**features: object) -> tuple[backbones.Encoder, np.ndarray]:
    asked = Features(
        model="test_efficientnet", weights="random", image_size=32, batch_size=4, **features
    )
    network = backbones.encoder(asked, SOURCE, 1)
    return network, next(
        network.encode(iter([np.stack([network.load(image, 0) for image in IMAGES[:4]])]))
    )


@pytest.mark.parametrize("until", ["blocks.3", "input"])
def test_what_is_kept_at_a_cut_leads_to_the_same_features(until: str) -> None:
    network, kept = encoded(until=until)
    _, whole = encoded()
    known = network_of("test_efficientnet", until, 32)
    assert network.facts["weights_sha256"] == known.sha256
    assert network.facts["shape"] == str(list(known.shape))
    upper = upper_of(known)
    found = upper.network(upper.enter(torch.from_numpy(kept).float())).numpy()
    last = whole[:, -found.shape[1] :]  # beside all other depths
    assert np.allclose(found, last, rtol=1e-4, atol=1e-5)


def test_pixels_are_kept_as_they_are() -> None:
    network, kept = encoded(until="input")
    assert kept.dtype == np.uint8
    assert np.array_equal(
        kept.reshape(4, 32, 32, 3), [network.load(image, 0) for image in IMAGES[:4]]
    )


def test_other_weights_than_those_that_made_the_features_are_refused() -> None:
    known = network_of("test_efficientnet", "blocks.3", 32)
    with pytest.raises(Refused, match="are not those that the features were made with"):
        upper_of(replace(known, sha256="0" * 64))
