"""Public pretrained networks, as functions from one record to one row."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from dpladder.config.features_sections import Features
from dpladder.data.depths import to_json
from dpladder.data.encoders import (
    Encoder,
    Rows,
    arithmetic,
    batch_of,
    batch_stream,
    check_independence,
    device_of,
)
from dpladder.data.images import decode, image_view
from dpladder.data.sentences import sentences
from dpladder.data.sources import Source
from dpladder.data.stops import check_kind
from dpladder.errors import BadInput
from dpladder.network.facts import INPUT
from dpladder.network.public import digest, model_of


def encoder(features: Features, source: Source, threads: int) -> Encoder:
    """What makes features of one record after the other.

    Guarantee: a map of each record by itself, in evaluation mode and at one batch shape (contract:
    per-record). It is tried on public noise, on this machine, before a record is read.

    Args:
        features: the network, its weights, and the layer that stays frozen.
        source: tells what kind of records it reads.
        threads: that one pass may use.

    Raises:
        BadInput: the network takes another kind of records, or no images of this size.
        Refused: a row depends on the rest of its batch on this machine.
    """
    check_kind(features, source)
    if features.takes == "features":
        return _matrix(source, features.batch_size)
    return (
        sentences(features, threads) if features.takes == "texts" else _network(features, threads)
    )


def _matrix(source: Source, batch: int) -> Encoder:
    """The source's own numbers; pixels are scaled to [0, 1] and laid in a row."""
    width = source.width

    def load(content: Rows, number: int) -> Rows:
        assert number == 0, "numbers have no views"
        if isinstance(content, bytes):
            raise ValueError("it is no bag")
        row = np.asarray(content, np.float64).reshape(width)
        return row / np.iinfo(content.dtype).max if source.kind == "pixels" else row

    transform = "bags" if source.bags else source.kind
    facts = {"weights_sha256": "", "transform": transform, "arithmetic": "float64"}
    return Encoder(width, batch, np.zeros(width), load, iter, facts)


def _network(features: Features, threads: int) -> Encoder:
    """A network for images: its own evaluation transform, its pooled depths, or what it puts out at
    a cut."""
    import timm.data
    import torch

    device = device_of()
    model = model_of(features)
    weights = digest(model.state_dict())
    size = features.image_size
    # transformers, whose position embedding follows the size
    if size and hasattr(model, "set_input_size"):
        model.set_input_size(img_size=size)
    settings = timm.data.resolve_data_config(
        {"input_size": (3, size, size)} if size else {}, model=model
    )
    # timm's own evaluation transform; its last step only turns the image into an array, which we do
    # here
    *steps, _ = timm.data.create_transform(
        **settings, is_training=False, use_prefetcher=True
    ).transforms

    def load(content: Any, number: int) -> Rows:
        image = image_view(decode(content, features.largest_image), number, features.mirror)
        for step in steps:
            image = step(image)
        return np.asarray(image)

    if features.until == INPUT:
        return _pixels(load, settings["input_size"], features, weights, f"{steps}")
    if features.until:
        from dpladder.network.cut import lower_part

        model = lower_part(model.eval(), features.until)
    if device.type == "cpu":
        fold(model)
    model = model.to(device, memory_format=torch.channels_last).eval().requires_grad_(False)
    blank = np.zeros((*settings["input_size"][1:], 3), np.uint8)
    try:
        run, depths = _depths(model, features, settings["input_size"], device)
        forward = _forward(run, settings["mean"], settings["std"], device, threads)
        (row,) = forward([blank[None]])
    except Exception as error:
        raise BadInput(
            f"features.image_size: {features.model} cannot take images of {blank.shape[0]} px. "
            "Leave it empty for the model's own size, or try a multiple of 32. The network says: "
            f"{error}"
        ) from error
    batch = batch_of(features, device)

    def draw(random: np.random.Generator) -> Rows:
        return random.integers(0, 256, (batch, *blank.shape), np.uint8)

    check_independence(forward, draw, features.model)
    facts: dict[str, str | int] = {
        "weights_sha256": weights,
        "transform": f"{steps} mean {settings['mean']} std {settings['std']}",
        "forward_batch": batch,
        "arithmetic": arithmetic(device),
        **depths,
    }
    if features.until:
        with torch.inference_mode():
            facts["shape"] = json.dumps(
                [*model(torch.zeros(1, *settings["input_size"], device=device)).shape[1:]]
            )
    return Encoder(row.shape[1], batch, blank, load, forward, facts, device.type != "cpu")


def _depths(
    model: Any, features: Features, size: tuple[int, int, int], device: Any
) -> tuple[Callable[[Any], list[Any]], dict[str, str]]:
    """What one pass keeps of images: each depth, pooled, and their names and widths; of a network
    that is cut, what it puts out there."""
    import torch

    from dpladder.network.depths import stages, tap, with_last

    if features.until:
        return lambda images: [model(images).flatten(1).float()], {}
    image = torch.zeros(1, *size, device=device)
    with torch.inference_mode():
        names = stages(model, image)
        run = tap(model, names)
        widths = [pooled.shape[1] for pooled in run(image)]
    return run, {"depths": to_json(tuple(zip(with_last(names), widths, strict=True)))}


def _pixels(
    load: Any, size: tuple[int, int, int], features: Features, weights: str, steps: str
) -> Encoder:
    """Decoded pixels, for a network that is trained from its first layer on."""
    shape = (*size[1:], 3)
    facts: dict[str, str | int] = {
        "weights_sha256": weights,
        "transform": steps,
        "shape": json.dumps(shape),
        "arithmetic": "uint8",
    }

    def encode(batches: Iterable[Rows]) -> Iterator[Rows]:
        return (batch.reshape(len(batch), -1) for batch in batches)

    blank = np.zeros(shape, np.uint8)
    return Encoder(blank.size, features.batch_size, blank, load, encode, facts)


def _forward(
    run: Callable[[Any], list[Any]], mean: Any, std: Any, device: Any, threads: int
) -> Any:
    """From batches of 8-bit images to rows of what `run` makes of them, side by side, in order.

    Args:
        run: from images, float32 (batch, 3, height, width), to what is kept of them, each part as
            (batch, its width).
        mean, std: of each colour, as the network was trained, with pixels in [0, 1].
        device: where the network lies.
        threads: on a CPU, how many batches are on their way at once.
    """
    import torch

    center = torch.tensor(mean, device=device).view(3, 1, 1)
    spread = torch.tensor(std, device=device).view(3, 1, 1)

    def rows_of(batch: Any) -> Any:
        images = batch.permute(0, 3, 1, 2)  # channels_last as it is
        return torch.cat(run(images.float().div(255).sub(center).div(spread)), dim=1)

    return batch_stream(rows_of, device, threads)


def fold(model: Any) -> None:
    """Work each batch-norm in evaluation mode into the convolution before it: one pass over memory
    less for each.

    The function stays the same but for rounding. That is done where the traced graph shows two
    things: only the norm reads that convolution, and each of the two is used once. A model that
    cannot be traced stays as it is.

    Args:
        model: a network, changed in place and set to evaluation mode.
    """
    from timm.layers import BatchNormAct2d, Conv2dSame
    from torch import fx, nn
    from torch.nn.utils.fusion import fuse_conv_bn_weights

    class Tracer(fx.Tracer):
        def is_leaf_module(self, module: nn.Module, name: str) -> bool:
            return isinstance(module, nn.Conv2d | nn.BatchNorm2d) or super().is_leaf_module(
                module, name
            )

    model.eval()
    try:
        nodes = Tracer().trace(model).nodes
    except Exception:  # control flow that follows the data, or whatever else tracing cannot do
        return
    calls = Counter(node.target for node in nodes)
    modules = {name: module for name, module in model.named_modules() if calls[name] == 1}
    for node in nodes:
        norm = _called_module(node, modules, (nn.BatchNorm2d, BatchNormAct2d))
        conv = _called_module(node.args[0], modules, (nn.Conv2d, Conv2dSame)) if norm else None
        if not conv or norm.running_mean is None or len(node.args[0].users) > 1:
            continue
        conv.weight, conv.bias = fuse_conv_bn_weights(
            conv.weight,
            conv.bias,
            norm.running_mean,
            norm.running_var,
            norm.eps,
            norm.weight,
            norm.bias,
        )
        rest = (
            nn.Sequential(norm.drop, norm.act)
            if isinstance(norm, BatchNormAct2d)
            else nn.Identity()
        )
        model.set_submodule(node.target, rest)


def _called_module(node: Any, modules: Mapping[str, Any], kinds: tuple[type, ...]) -> Any:
    """The module that a node of the graph calls, if it is exactly of these kinds: a subclass may do
    something else."""
    module = modules.get(node.target) if node.op == "call_module" else None
    return module if type(module) in kinds else None
