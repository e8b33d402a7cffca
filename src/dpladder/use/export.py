"""A model as a folder that needs no dpladder: tensors, a plain torch module, and a model card."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from dpladder.errors import BadInput
from dpladder.network.public import BUNDLED, model_of
from dpladder.use import standalone
from dpladder.use.card import card
from dpladder.use.model import Model

Form = Literal["torch", "huggingface", "onnx"]


def export(model: Model, folder: Path, form: Form) -> None:
    """For Hugging Face the same folder, whose card begins with what its site reads; for ONNX, with the whole as one graph."""
    from safetensors.torch import save_file

    if model.features.layers:
        raise BadInput(
            "features.layers taps the network at several blocks, which a plain module cannot: use dpladder predict."
        )
    if model.features.takes == "texts":
        raise BadInput("a model of texts cannot be exported as a plain module yet: use dpladder predict.")
    if form == "onnx" and find_spec("onnxscript") is None:  # what torch writes graphs with
        raise BadInput("exporting to ONNX needs the extra [onnx]: pip install 'dpladder[onnx]'.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} is there already. Name a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(_config(model), indent=2) + "\n", "utf-8")
    save_file(_state(model), folder / "model.safetensors")
    shutil.copyfile(standalone.__file__, folder / "model.py")
    (folder / "README.md").write_text(card(model, form == "huggingface"), "utf-8")
    if form == "onnx":
        _write_graph(folder)


def _write_graph(folder: Path) -> None:
    """`inputs` of any number, as model.py's transform makes them, or rows of features; `logits` of each."""
    import torch
    from PIL import Image

    classifier = standalone.load(folder)
    blank = torch.zeros(classifier.config["width"])
    if classifier.transform is not None:
        blank = classifier.transform(Image.new("RGB", (256, 256)))
    torch.onnx.export(
        classifier,
        (torch.stack([blank, blank]),),
        folder / "model.onnx",
        input_names=["inputs"],
        output_names=["logits"],
        dynamo=True,
        dynamic_shapes={"inputs": {0: torch.export.Dim("records")}},
        external_data=False,
        verbose=False,
    )


def _config(model: Model) -> dict[str, Any]:
    features, network = model.features, model.network
    name = None if features.model == "none" else BUNDLED.get(features.model, features.model)
    return {
        "architecture": name,
        "image_size": features.image_size,
        "until": features.until,
        "classes": list(model.classes),
        "width": network["width"],
        "normalize": features.normalize,
        "dtype": features.dtype,
        "centred": model.map.mean is not None,
        "radius": model.map.radius,
        "length": model.map.length,
        "constant": model.map.constant,
        "exact": model.map.exact,
    }


def _state(model: Model) -> dict[str, Any]:
    import torch

    mean = torch.zeros(model.network["width"], dtype=torch.float64)
    if model.map.mean is not None:
        mean = torch.from_numpy(model.map.mean.copy())
    layers = model.weights if model.tuned is None else model.weights[-1:]  # behind the network's own
    head = {f"head.{place}": torch.from_numpy(layer.copy()) for place, layer in enumerate(layers)}
    return {
        "mean": mean,
        **head,
        **{f"network.{name}": tensor.contiguous() for name, tensor in _network(model).items()},
    }


def _network(model: Model) -> dict[str, Any]:
    """The network's tensors, those that were trained as they were left."""
    if model.features.model == "none":
        return {}
    network = model_of(model.features)
    if model.features.image_size and hasattr(network, "set_input_size"):
        network.set_input_size(img_size=model.features.image_size)
    trained = {}
    if model.tuned is not None:
        from dpladder.learn.dp_finetune.parts import merged

        trained = merged(*model.tuned, model.weights)
    state: dict[str, Any] = network.state_dict()
    return {**state, **trained}
