"""Layers whose arithmetic is known: by their own type. A subclass may do something else with its
weights."""

from __future__ import annotations

from typing import TypeGuard, TypeVar

from torch import Tensor, nn
from torch.nn.functional import pad

Kind = TypeVar("Kind", bound=nn.Module)

FULL = 64  # rows of a product, or a multiple: with others, some are added up in another order


class Steady(nn.Linear):
    """A linear layer that rounds a record in one way, wherever the record stands.

    PyTorch multiplies records by weights, and MKL adds up some rows in another order than others.
    It does where the width is no multiple of 4, and there are few classes or many threads. One
    record more moves the others by a place. Where logits are huge, the last bit of one decides on
    the direction of a gradient. Where weights are multiplied by records, and these fill a multiple
    of 64, all are added up in one order, on any number of threads. From three threads on, the last
    eight of 24, 40 or 56 rows are not.
    """

    def forward(self, input: Tensor) -> Tensor:
        """The product of each record with the weights, (..., outputs), and the bias."""
        rows = input.reshape(-1, self.in_features)
        lacking = -len(rows) % FULL
        filled = pad(rows, (0, 0, 0, lacking)) if lacking else rows
        product = (self.weight @ filled.T).T[: len(rows)].reshape(*input.shape[:-1], -1)
        return product if self.bias is None else product + self.bias


def is_plain(module: nn.Module, kind: type[Kind]) -> TypeGuard[Kind]:
    """Whether a module does what `kind` does: neither a subclass, nor hooks, nor another `forward`
    stand between its weights and what it puts out."""
    hooked = module._forward_hooks or module._forward_pre_hooks
    module_kind = nn.Linear if type(module) is Steady else type(module)
    return module_kind is kind and not hooked and "forward" not in vars(module)


def is_turned(module: nn.Module) -> bool:
    """Whether it is the linear layer of GPT-2 and its kin, transformers' Conv1D, whose matrix has a
    row an input."""
    return _is_called(module, "transformers.pytorch_utils.Conv1D")


def is_layer_norm(module: nn.Module) -> TypeGuard[nn.LayerNorm]:
    """Whether it norms each position of a record by itself, over its last axis."""
    is_norm = is_plain(module, nn.LayerNorm) or _is_called(module, "timm.layers.norm.LayerNorm")
    return is_norm and isinstance(module, nn.LayerNorm) and len(module.normalized_shape) == 1


def is_frozen_norm(module: nn.Module) -> TypeGuard[nn.BatchNorm2d]:
    """Whether it norms each channel by public figures; timm's goes on with an activation."""
    is_norm = is_plain(module, nn.BatchNorm2d) or is_activating_norm(module)
    return is_norm and not module.training and module.running_mean is not None


def is_activating_norm(module: nn.Module) -> bool:
    """Whether it is timm's batch norm with an activation behind it."""
    return _is_called(module, "timm.layers.norm_act.BatchNormAct2d")


def _is_called(module: nn.Module, name: str) -> bool:
    """Another package's layer is told by its name, so that the package need not be there."""
    kind = type(module)
    return f"{kind.__module__}.{kind.__qualname__}" == name and is_plain(module, kind)


def is_linear(module: nn.Module) -> TypeGuard[nn.Linear | nn.Conv2d]:
    """Whether what it puts out is linear in its own weight."""
    return is_plain(module, nn.Linear) or is_plain(module, nn.Conv2d)
