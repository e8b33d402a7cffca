"""Depths of a network: stages found by a rule in one pass, and columns that are taken of them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import timm
import torch

from dpladder.config.depths import OF_BUNDLED, candidates, resolve_layers
from dpladder.config.features_sections import Features
from dpladder.data.centre import Map, Mapped
from dpladder.data.depths import (
    depths_by_name,
    depths_for,
    stored_depths,
    to_json,
)
from dpladder.data.encoders import Encoder
from dpladder.data.extract import Check, encode
from dpladder.errors import BadInput
from dpladder.network.depths import stages, tap

RANDOM = np.random.default_rng(0)
KNOWN = (("blocks.0", 4), ("blocks.1", 3), ("blocks.2", 5), ("last", 6))
ROWS = RANDOM.normal(size=(9, 18)).astype(np.float16)

NETWORKS = {
    "test_vit": [f"blocks.{block}" for block in range(6)],
    "test_efficientnet": [f"blocks.{block}" for block in range(5)],
    "resnet18": ["act1", "layer1", "layer2", "layer3", "layer4"],
    "convnext_atto": [f"stages.{stage}" for stage in range(4)],
    "vit_tiny_patch16_224": [f"blocks.{block}" for block in (5, 7, 9, 11)],
    "swin_tiny_patch4_window7_224": [f"layers.{layer}" for layer in range(4)],
    "vit_small_patch14_reg4_dinov2": [f"blocks.{block}" for block in (5, 7, 9, 11)],
    "regnety_002": ["stem", "s1", "s2", "s3", "s4"],
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_networks_stages_are_found_and_pooled_over_its_places(name: str) -> None:
    """Against timm's own maps of the same layers, where it gives them."""
    size = {"swin": 224, "vit_": 70}.get(name[:4], 64)
    model = timm.create_model(name, num_classes=0).eval()
    if hasattr(model, "set_input_size"):
        model.set_input_size(img_size=size)
    images = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(1))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        last, (_, maps) = model(images), model.forward_intermediates(images)
        names = stages(model, images[:1])
        found = tap(model, names)(images)
    assert [*names] == NETWORKS[name]
    assert torch.equal(found[-1], last.flatten(1))
    whole = name.startswith(("vit", "test_vit"))
    places = [int(stage.rpartition(".")[2]) for stage in names] if whole else range(len(names))
    if len(maps) >= len(names):
        for place, pooled in zip(places, found[:-1], strict=True):
            assert torch.allclose(pooled, maps[place].mean((2, 3)), atol=1e-5)


def test_of_a_long_stack_four_layers_are_kept_and_of_a_short_one_all() -> None:
    assert candidates("abcdefgh") == (*"abcdefgh",)
    assert candidates([*map(str, range(1, 13))]) == ("6", "8", "10", "12")
    assert candidates([*map(str, range(1, 25))]) == ("12", "16", "20", "24")


@pytest.mark.parametrize(
    ("layers", "model", "takes", "found"),
    [
        ("auto", "efficientnet_lite0", "images", ("blocks.4", "blocks.5", "blocks.6")),
        ("auto", "minilm", "texts", ("embeddings", "last")),
        ("last", "minilm", "texts", ("last",)),
        (("blocks.6", "last"), "tf_efficientnet_lite1", "images", ("blocks.6", "last")),
    ],
)
def test_the_layers_that_a_config_leaves_open_follow_from_the_network(
    layers: Any, model: str, takes: Any, found: tuple[str, ...]
) -> None:
    assert resolve_layers(layers, OF_BUNDLED[model], takes, model) == found


def test_a_network_whose_stages_are_not_found_has_its_last_output() -> None:
    assert resolve_layers("auto", ("last",), "images", "x") == ("last",)
    with pytest.raises(BadInput, match=r"'s1' is no depth of x; it has last\."):
        resolve_layers(("s1",), ("last",), "images", "x")


def test_features_without_a_network_have_no_depths() -> None:
    assert stored_depths({}) == ()
    assert depths_for("auto", (), 32.0, "features", "none") is None


def test_each_of_several_depths_has_the_same_length_in_every_record() -> None:
    depths = depths_by_name(
        ("blocks.2", "blocks.0"), stored_depths({"depths": to_json(KNOWN)}), 32.0
    )
    found = depths(ROWS)
    lengths = [np.linalg.norm(part, axis=1) for part in (found[:, :5], found[:, 5:])]
    assert lengths == [pytest.approx(np.full(9, 32.0 / 2**0.5))] * 2
    assert found[:, :5] / lengths[0][:, None] == pytest.approx(
        ROWS[:, 7:12] / np.linalg.norm(ROWS[:, 7:12].astype(float), axis=1)[:, None]
    )
    alone = np.concatenate([depths(ROWS[row : row + 1]) for row in range(9)])
    assert np.array_equal(found, alone)
    views = ROWS.reshape(3, 3, 18)
    assert np.array_equal(depths(views).reshape(9, -1), found)


def test_one_depth_stays_as_it_is() -> None:
    depths = depths_by_name(("last",), KNOWN, 32.0)
    assert np.array_equal(depths(ROWS), ROWS[:, 12:].astype(float))


def test_a_training_sees_the_depths_that_are_taken_less_their_mean() -> None:
    depths = depths_by_name(("blocks.0", "last"), KNOWN, 32.0)
    mean = depths(ROWS).mean(axis=0)
    seen = Mapped(ROWS, Map(mean, None, 32.0, 0.2, depths=depths))
    assert seen.shape == (9, 11)
    found = seen[2:5]
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.full(3, 32.0), rel=1e-6)
    assert found[:, -1] == pytest.approx(np.full(3, 6.4))


def test_a_depth_beyond_a_types_range_is_scaled_by_itself_and_no_other() -> None:
    facts = {"depths": to_json((("a", 2), ("last", 2)))}
    encoder = Encoder(4, 2, np.zeros(4, np.float32), lambda content, number: content, iter, facts)
    given = np.array([[1e6, 2e6, 1.0, 2.0], [1.0, 0.0, 3.0, 4.0]], np.float32)
    [(rows, checks)] = encode(
        encoder,
        Features(model="none"),
        lambda row: (given[row], Check.FINE),
        [np.arange(2)],
        1,
    )
    assert not checks.any()
    assert rows.tolist() == [[32752.0, 65504.0, 1.0, 2.0], [1.0, 0.0, 3.0, 4.0]]
