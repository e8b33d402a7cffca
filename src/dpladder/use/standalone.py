"""A differentially private classifier by itself: torch, timm, safetensors and Pillow are all that it needs.

    import model
    classifier = model.load(".")
    classifier.classify(["cat.jpg", "dog.jpg"])     # for each image, a probability for each class

It was trained and exported by dpladder; README.md says what is guaranteed about the people in its training data.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn


class Classifier(nn.Module):
    """A public network, the map that its features went through, and the head that was trained with noise."""

    mean: Tensor

    def __init__(self, config: dict[str, Any], shapes: Sequence[tuple[int, ...]]) -> None:
        super().__init__()
        self.config = config
        self.network: nn.Module = nn.Identity()
        self.transform: Any = None
        if config["architecture"] is not None:
            self._build(config["architecture"], config["image_size"])
        self.register_buffer("mean", torch.zeros(config["width"], dtype=torch.float64))
        self.head = nn.ParameterList([nn.Parameter(torch.zeros(shape)) for shape in shapes])

    def _build(self, architecture: str, size: int | None) -> None:
        import timm
        import timm.data

        self.network = timm.create_model(architecture, num_classes=0)
        resize: Any = getattr(self.network, "set_input_size", None)
        if size and resize is not None:
            resize(img_size=size)
        given = {"input_size": (3, size, size)} if size else {}
        if self.config["until"] not in (None, "input"):
            self.network.get_submodule(self.config["until"]).register_forward_hook(self._kept)
        settings = timm.data.resolve_data_config(given, model=self.network)
        self.transform = timm.data.create_transform(**settings, is_training=False)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits of images as `transform` makes them, or of rows of features where there is no network."""
        x = self.network(inputs).double()
        if self.config["until"] is None:
            x = self._mapped(self._stored(x))
        for depth, layer in enumerate(self.head):
            x = x.relu() if depth else x
            width = x.shape[-1]
            product = x @ layer[:, :width].double().T
            x = product + layer[:, width].double() if layer.shape[1] > width else product
        return x

    def _kept(self, layer: nn.Module, inputs: Any, found: Tensor) -> Tensor:
        """What lies above this layer was trained on its outputs at this precision."""
        return found.to(getattr(torch, self.config["dtype"])).to(found.dtype)

    def _stored(self, x: Tensor) -> Tensor:
        """Features were kept at this precision when the head was trained."""
        if self.config["normalize"]:
            x = x / x.norm(dim=-1, keepdim=True).clamp_min(1e-12)
        return x.to(getattr(torch, self.config["dtype"])).double()

    def _mapped(self, x: Tensor) -> Tensor:
        config = self.config
        if config["radius"] is not None:
            scale = config["radius"] / x.norm(dim=-1, keepdim=True).clamp_min(1e-12)
            x = x * (scale if config["exact"] else scale.clamp_max(1.0))
        if config["centred"]:
            x = x - self.mean
        if config["length"] is not None:
            x = x * (config["length"] / x.norm(dim=-1, keepdim=True).clamp_min(1e-12))
        if config["centred"] and config["constant"] > 0:
            constant = config["constant"] * x.norm(dim=-1, keepdim=True)
            x = torch.cat([x * (1 - config["constant"] ** 2) ** 0.5, constant], dim=-1)
        return x.float().double()

    @torch.inference_mode()
    def classify(self, images: Sequence[Any]) -> list[dict[str, float]]:
        """The probability of each class, for each image: paths, or what Pillow opened."""
        rows = torch.stack([self._read(image) for image in images])
        odds = self(rows).softmax(dim=-1)
        return [dict(zip(self.config["classes"], map(float, row), strict=True)) for row in odds]

    def _read(self, image: Any) -> Tensor:
        from PIL import Image, ImageOps

        if self.transform is None:
            return torch.as_tensor(image)
        opened = Image.open(image) if isinstance(image, str | Path) else image
        found: Tensor = self.transform(ImageOps.exif_transpose(opened).convert("RGB"))
        return found


def load(folder: str | Path) -> Classifier:
    """The classifier of a folder with config.json and model.safetensors."""
    from safetensors.torch import load_file

    config = json.loads(Path(folder, "config.json").read_text("utf-8"))
    state = load_file(Path(folder, "model.safetensors"))
    depth = sum(name.startswith("head.") for name in state)
    found = Classifier(config, [tuple(state[f"head.{place}"].shape) for place in range(depth)])
    found.load_state_dict(state)
    return found.eval()
