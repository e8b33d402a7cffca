"""Checkpoints of others: a network is found whatever stands around it, and another one is never
taken for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
import torchvision
from safetensors.torch import save_file

from dpladder.config.features_sections import Features
from dpladder.errors import BadInput
from dpladder.network.public import model_of

State = Mapping[str, Any]


@pytest.fixture(scope="module")
def vit() -> dict[str, Any]:
    torch.manual_seed(1)
    return {
        key: torch.randn_like(tensor)
        for key, tensor in timm.create_model("vit_tiny_patch16_224", num_classes=0)
        .state_dict()
        .items()
    }


def under(prefix: str, state: State) -> dict[str, Any]:
    return {f"{prefix}{key}": tensor for key, tensor in state.items()}


def found(path: Path, name: str = "vit_tiny_patch16_224") -> dict[str, Any]:
    state: dict[str, Any] = model_of(Features(model=name, weights=str(path))).state_dict()
    return state


def same(one: State, other: State) -> bool:
    return list(one) == list(other) and all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "around",
    [
        pytest.param(lambda own: {"state_dict": under("module.base_encoder.", own)}, id="MoCo"),
        pytest.param(lambda own: {"teacher": under("backbone.", own), "epoch": 3}, id="DINO"),
        pytest.param(lambda own: own | {"mask_token": torch.zeros(1, 1, 192)}, id="a mask token"),
        pytest.param(lambda own: own | {"decoder_pos_embed": torch.zeros(1, 197, 512)}, id="MAE"),
        pytest.param(
            lambda own: under("visual.trunk.", own) | {"text.weight": torch.ones(2)}, id="OpenCLIP"
        ),
        pytest.param(lambda own: own | {"head.weight": torch.ones(10, 192)}, id="a head"),
    ],
)
def test_a_network_is_found_whatever_stands_around_it(
    around: Any, tmp_path: Path, vit: State
) -> None:
    torch.save(around(dict(vit)), tmp_path / "w.bin")
    assert same(found(tmp_path / "w.bin"), vit)


def test_names_that_timm_translates_are_understood(tmp_path: Path) -> None:
    """ConvNeXt's authors number what timm calls stages."""
    torch.manual_seed(2)
    own = timm.create_model("convnext_atto", num_classes=0).state_dict()
    names = {"stem": "downsample_layers.0", "stages.1.downsample": "downsample_layers.1"}
    names |= {f"stages.{stage}.downsample": f"downsample_layers.{stage}" for stage in (2, 3)}
    names |= {".blocks.": ".", ".conv_dw.": ".dwconv.", ".mlp.fc": ".pwconv", "head.norm": "norm"}
    theirs = {}
    for key, tensor in own.items():
        for ours, other in names.items():
            key = key.replace(ours, other)
        theirs[key] = tensor
    assert set(theirs) != set(own)
    torch.save({"model": theirs}, tmp_path / "w.pth")
    assert same(found(tmp_path / "w.pth", "convnext_atto"), own)


@pytest.mark.ci
def test_names_that_mean_other_tensors_there_are_translated(tmp_path: Path) -> None:
    """Swin's authors number what timm calls stage 1's downsampling by stage 0."""
    own = timm.create_model("swin_tiny_patch4_window7_224", num_classes=0).state_dict()
    theirs = {
        re.sub(
            r"layers\.(\d)\.downsample", lambda at: f"layers.{int(at[1]) - 1}.downsample", key
        ): tensor
        for key, tensor in own.items()
    }
    torch.save({"model": theirs}, tmp_path / "w.pth")
    assert same(found(tmp_path / "w.pth", "swin_tiny_patch4_window7_224"), own)


def test_torchvisions_network_is_the_same_function_here(tmp_path: Path) -> None:
    torch.manual_seed(3)
    theirs = torchvision.models.resnet18().eval()
    save_file(theirs.state_dict(), tmp_path / "w.safetensors")
    ours = model_of(Features(model="resnet18", weights=str(tmp_path / "w.safetensors"))).eval()
    theirs.fc = torch.nn.Identity()
    images = torch.randn(2, 3, 64, 64)
    assert torch.allclose(ours(images), theirs(images), atol=1e-5)


def test_two_networks_in_a_checkpoint_are_told_and_not_guessed_between(
    tmp_path: Path, vit: State
) -> None:
    torch.save(
        {"student": under("backbone.", vit), "teacher": under("backbone.", vit)}, tmp_path / "w.pth"
    )
    with pytest.raises(
        BadInput,
        match=r"2 networks that fit .* student\.backbone\., "
        r"teacher\.backbone\.",
    ):
        found(tmp_path / "w.pth")


def test_a_deeper_network_is_not_taken_for_its_first_layers(tmp_path: Path, vit: State) -> None:
    deeper = dict(vit) | {
        key.replace("blocks.11.", "blocks.12."): tensor
        for key, tensor in vit.items()
        if "blocks.11." in key
    }
    torch.save(deeper, tmp_path / "w.pth")
    with pytest.raises(BadInput, match="tensor by tensor"):
        found(tmp_path / "w.pth")


def test_a_network_that_lacks_a_tensor_is_refused(tmp_path: Path, vit: State) -> None:
    torch.save(
        {key: tensor for key, tensor in vit.items() if key != "norm.bias"}, tmp_path / "w.pth"
    )
    with pytest.raises(BadInput, match="does not fit vit_tiny_patch16_224"):
        found(tmp_path / "w.pth")


@pytest.mark.parametrize(
    ("name", "heads"),
    [
        ("legacy_seresnet18", ["last_linear"]),
        ("deit_tiny_distilled_patch16_224", ["head", "head_dist"]),
    ],
)
def test_a_network_is_found_beside_the_heads_that_timm_gives_it(
    name: str, heads: list[str], tmp_path: Path
) -> None:
    own = timm.create_model(name, num_classes=0).state_dict()
    torch.save(own | {f"{head}.bias": torch.ones(7) for head in heads}, tmp_path / "w.pth")
    assert same(found(tmp_path / "w.pth", name), own)


def test_a_checkpoint_from_before_batches_were_counted_is_read(tmp_path: Path) -> None:
    own = timm.create_model("resnet10t", num_classes=0).state_dict()
    older = {key: tensor for key, tensor in own.items() if not key.endswith("num_batches_tracked")}
    torch.save(older, tmp_path / "w.pth")
    assert same(found(tmp_path / "w.pth", "resnet10t"), own)


def test_half_precision_is_read_and_whole_numbers_are_not(tmp_path: Path, vit: State) -> None:
    torch.save({key: tensor.half() for key, tensor in vit.items()}, tmp_path / "w.pth")
    assert same(
        found(tmp_path / "w.pth"), {key: tensor.half().float() for key, tensor in vit.items()}
    )
    torch.save({key: tensor.char() for key, tensor in vit.items()}, tmp_path / "w.pth")
    with pytest.raises(BadInput, match="does not fit"):
        found(tmp_path / "w.pth")


@pytest.mark.few(1)
@pytest.mark.parametrize("shrunk", [lambda held: held.to_sparse(), lambda held: held.to("meta")])
def test_tensors_without_their_values_are_no_network(shrunk: Any, tmp_path: Path) -> None:
    own = timm.create_model("resnet10t", num_classes=0).state_dict()
    torch.save(
        {key: shrunk(tensor) if tensor.ndim else tensor for key, tensor in own.items()},
        tmp_path / "w.pth",
    )
    with pytest.raises(BadInput, match="does not fit"):
        found(tmp_path / "w.pth", "resnet10t")


def test_weights_that_are_not_finite_are_told(tmp_path: Path, vit: State) -> None:
    torch.save(dict(vit) | {"norm.bias": torch.full((192,), torch.nan)}, tmp_path / "w.pth")
    with pytest.raises(BadInput, match="not finite"):
        found(tmp_path / "w.pth")


def test_patches_of_another_size_are_another_network(tmp_path: Path, vit: State) -> None:
    """timm's filter would scale both of them."""
    wider = {
        "patch_embed.proj.weight": torch.randn(192, 3, 32, 32),
        "pos_embed": torch.randn(1, 50, 192),
    }
    torch.save(dict(vit) | wider, tmp_path / "w.pth")
    with pytest.raises(BadInput, match="does not fit"):
        found(tmp_path / "w.pth")
