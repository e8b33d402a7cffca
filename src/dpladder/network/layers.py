"""Layers whose arithmetic is known: by their own type. A subclass may do something else with its
weights."""

from __future__ import annotations

from typing import TypeGuard, TypeVar

from torch import nn

Kind = TypeVar("Kind", bound=nn.Module)


def is_plain(module: nn.Module, kind: type[Kind]) -> TypeGuard[Kind]:
    """Whether a module does what `kind` does: neither a subclass, nor hooks, nor another `forward`
    stand between its weights and what it puts out."""
    hooked = module._forward_hooks or module._forward_pre_hooks
    return type(module) is kind and not hooked and "forward" not in vars(module)


def is_turned(module: nn.Module) -> bool:
    """Whether it is the linear layer of GPT-2 and its kin, transformers' Conv1D, whose matrix has a
    row an input."""
    return _is_called(module, "transformers.pytorch_utils.Conv1D")


def is_layer_norm(module: nn.Module) -> TypeGuard[nn.LayerNorm]:
    """Whether it norms each position of a record by itself, over its last axis."""
    own = is_plain(module, nn.LayerNorm) or _is_called(module, "timm.layers.norm.LayerNorm")
    return own and isinstance(module, nn.LayerNorm) and len(module.normalized_shape) == 1


def is_frozen_norm(module: nn.Module) -> TypeGuard[nn.BatchNorm2d]:
    """Whether it norms each channel by public figures; timm's goes on with an activation."""
    own = is_plain(module, nn.BatchNorm2d) or is_activating_norm(module)
    return own and not module.training and module.running_mean is not None


def is_activating_norm(module: nn.Module) -> bool:
    return _is_called(module, "timm.layers.norm_act.BatchNormAct2d")


def _is_called(module: nn.Module, name: str) -> bool:
    """Another package's layer is told by its name, so that the package need not be there."""
    kind = type(module)
    return f"{kind.__module__}.{kind.__qualname__}" == name and is_plain(module, kind)


def is_linear(module: nn.Module) -> TypeGuard[nn.Linear | nn.Conv2d]:
    """Whether what it puts out is linear in its own weight."""
    return is_plain(module, nn.Linear) or is_plain(module, nn.Conv2d)
