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
    row an input. Told by its name, for transformers is an extra."""
    kind = type(module)
    its = f"{kind.__module__}.{kind.__qualname__}" == "transformers.pytorch_utils.Conv1D"
    return its and is_plain(module, kind)


def is_linear(module: nn.Module) -> TypeGuard[nn.Linear | nn.Conv2d]:
    """Whether what it puts out is linear in its own weight."""
    return is_plain(module, nn.Linear) or is_plain(module, nn.Conv2d)
