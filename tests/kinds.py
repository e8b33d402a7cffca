"""Tiny networks, as timm keeps them, around one layer each: some change their weights on the
way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import timm
import timm.layers as others
from timm.models import register_model
from torch import Tensor, nn

WIDE = 8  # channels


class Doubled(nn.Linear):
    """A subclass that trains another weight than it uses."""

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, 2 * self.weight, self.bias)


class Tokens(nn.Module):
    """A layer between pictures and tokens."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.flatten(2).mT).mT.reshape(x.shape)


class Overwritten(nn.Module):
    """A layer whose outputs the network writes over."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x).sigmoid_()


def hooked() -> nn.Module:
    layer = nn.Conv2d(WIDE, WIDE, 1)
    layer.register_forward_hook(_doubles)
    return layer


def _doubles(layer: nn.Module, inputs: object, output: Tensor) -> Tensor:
    return 2 * output


def once_more() -> nn.Module:
    return nn.utils.parametrizations.weight_norm(nn.Conv2d(WIDE, WIDE, 1))


KINDS: Mapping[str, Callable[[], nn.Module]] = {
    "conv": partial(nn.Conv2d, WIDE, WIDE, 3, padding=1),
    "pointwise": partial(nn.Conv2d, WIDE, WIDE, 1),
    "same": partial(others.Conv2dSame, WIDE, WIDE, 3, stride=2),
    "standardised": partial(others.StdConv2d, WIDE, WIDE, 1, bias=True),
    "standardised_same": partial(others.StdConv2dSame, WIDE, WIDE, 3),
    "scaled": partial(others.ScaledStdConv2d, WIDE, WIDE, 1),
    "scaled_same": partial(others.ScaledStdConv2dSame, WIDE, WIDE, 3),
    "mixed": partial(others.MixedConv2d, WIDE, WIDE, [3, 5]),
    "batch_norm": partial(others.BatchNormAct2d, WIDE),
    "frozen_norm": partial(others.FrozenBatchNormAct2d, WIDE),
    "group_norm": partial(others.GroupNormAct, WIDE, 2),
    "layer_norm": partial(others.LayerNorm2d, WIDE),
    "rms_norm": partial(others.RmsNorm2d, WIDE),
    "evo_norm": partial(others.EvoNorm2dS0, WIDE, groups=2),
    "filter_norm": partial(others.FilterResponseNormTlu2d, WIDE),
    "squeezed": partial(others.SEModule, WIDE),
    "channels": partial(others.EcaModule, WIDE),
    "split": partial(others.SplitAttn, WIDE),
    "selective": partial(others.SelectiveKernel, WIDE),
    "rectified": partial(nn.PReLU, WIDE),
    "scaled_tokens": lambda: Tokens(others.LayerScale(WIDE, 0.5)),
    "linear": lambda: Tokens(nn.Linear(WIDE, WIDE)),
    "subclass": lambda: Tokens(Doubled(WIDE, WIDE)),
    "attention": lambda: Tokens(others.Attention(WIDE, 2, qkv_bias=True)),
    "mlp": lambda: Tokens(others.SwiGLU(WIDE, WIDE)),
    "overwritten": lambda: Overwritten(nn.Conv2d(WIDE, WIDE, 1)),
    "hooked": hooked,
    "parametrised": once_more,
}


class Around(nn.Module):
    """One layer of a kind, behind a plain one."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.stem, self.kind = nn.Conv2d(3, WIDE, 2, 2), KINDS[kind]()
        self.num_features, self.pretrained_cfg = WIDE, {"input_size": (3, 8, 8)}

    def group_matcher(self, coarse: bool = False) -> dict[str, str]:
        return {"stem": "^stem", "blocks": "^kind"}

    def forward(self, x: Tensor) -> Tensor:
        return self.kind(self.stem(x)).mean((2, 3))


def registered(kind: str) -> str:
    name = f"around_{kind}"
    if not timm.is_model(name):

        def make(pretrained: bool = False, **_: object) -> nn.Module:
            return Around(kind)

        make.__name__, make.__module__ = name, __name__
        register_model(make)
    return name
