"""The depths of a network for images: its stages, found by a rule, and their pooled outputs.

Stages are what `blocks`, `stages` or `layers` holds, as timm calls the trunk of most networks, or
else the modules of timm's own list (`feature_info`). A stage counts that runs once in a pass and
puts out a map or tokens, which a pass over one image shows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dpladder.config.depths import candidates
from dpladder.config.features_sections import LAST

TRUNKS = ("blocks", "stages", "layers")
FEWEST = 3  # stages of a trunk


def stages(model: nn.Module, image: Tensor) -> tuple[str, ...]:
    """The stages whose outputs are kept, in the order that they run in, as a pass over one image
    shows them.

    Args:
        model: a network for images.
        image: one, of any content: (1, 3, height, width).
    """
    modules, ran = dict(model.named_modules()), list[str]()
    module_names = [name for name in _feature_modules(model) if name in modules]

    def hook(name: str) -> Callable[..., None]:
        def note(module: nn.Module, inputs: Any, output: Any) -> None:
            ran.append(name if isinstance(output, Tensor) and output.ndim in (3, 4) else "")

        return note

    handles = [modules[name].register_forward_hook(hook(name)) for name in module_names]
    try:
        model(image)
    finally:
        for handle in handles:
            handle.remove()
    return candidates([name for name in ran if name and ran.count(name) == 1])


def _feature_modules(model: nn.Module) -> list[str]:
    """The modules that may be stages: those of the trunk, or of timm's own list."""
    for trunk in TRUNKS:
        part = getattr(model, trunk, None)
        if isinstance(part, nn.Sequential | nn.ModuleList) and len(part) >= FEWEST:
            return [f"{trunk}.{name}" for name, _ in part.named_children()]
    infos: Any = getattr(model, "feature_info", None) or ()
    return list(dict.fromkeys(str(one["module"]) for one in infos))


def tap(model: nn.Module, names: Sequence[str]) -> Callable[[Tensor], list[Tensor]]:
    """From images to what each of these stages and at last the network itself puts out, pooled:
    (records, channels) each.

    Args:
        model: a network for images, which gets a hook for each stage.
        names: of the stages.
    """
    seen = threading.local()  # several threads may be in the network at once
    channels_last = getattr(model, "output_fmt", "NCHW") == "NHWC"
    first = int(getattr(model, "num_prefix_tokens", 0) or 0)

    def hook(name: str) -> Callable[..., None]:
        def keep(module: nn.Module, inputs: Any, output: Tensor) -> None:
            # at once: a layer behind it may work in place
            vars(seen)[name] = pool(output, channels_last, first)

        return keep

    for name in names:
        model.get_submodule(name).register_forward_hook(hook(name))

    def run(images: Tensor) -> list[Tensor]:
        last = model(images).flatten(1).float()
        return [*(vars(seen).pop(name) for name in names), last]

    return run


def pool(output: Tensor, channels_last: bool, first: int) -> Tensor:
    """The mean over places, or over tokens from the `first` on: those before it stand for no place.

    Args:
        output: a map (records, channels, height, width), or with channels last, or tokens (records,
            tokens, channels).
        channels_last: whether a map's channels stand last.
        first: how many tokens stand for no place.
    """
    if output.ndim == 4:
        return output.mean((1, 2) if channels_last else (2, 3), dtype=torch.float32)
    return output[:, first:].mean(1, dtype=torch.float32)


def with_last(names: Sequence[str]) -> tuple[str, ...]:
    """The names of the stages, and the network's own output behind them."""
    return (*names, LAST)
