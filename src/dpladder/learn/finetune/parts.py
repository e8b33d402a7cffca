"""A public network above its cut, with a head, and those of its tensors that are trained."""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.utils import parameters_to_vector

from dpladder.config.learner_sections import Lora, Tuning
from dpladder.errors import BadInput
from dpladder.learn import public_head
from dpladder.learn.interface import Constants, Weights, public_random
from dpladder.learn.links import Link, link_of
from dpladder.network.cut import Upper, identity_network, upper_of
from dpladder.network.facts import Network
from dpladder.network.layers import Steady, is_linear, is_turned
from dpladder.network.stack import vocabulary
from dpladder.wording import did_you_mean

HEAD = "head.weight"


class AboveCut(nn.Module):
    """From flattened activations at the cut to logits. Nothing here looks at more than one record.

    The head's bias is a last column, met by a constant input. The head starts at zero.

    Args:
        upper: the network above the cut.
        classes: rows of the head.
        bias: whether there is that column.
        link: from logits to the loss.
    """

    def __init__(self, upper: Upper, classes: int, bias: bool, link: Link) -> None:
        super().__init__()
        self.link = link
        self.enter, self.network, self.bias = upper.enter, upper.network, bias
        self.read, self.draw = upper.read, upper.draw
        self.head = Steady(upper.width + bias, classes, bias=False)
        nn.init.zeros_(self.head.weight)

    def forward(self, activations: Tensor) -> Tensor:
        """Logits (records, classes), of activations (records, width)."""
        logits: Tensor = self.head(self.seen_by_head(activations))
        return logits

    def seen_by_head(self, activations: Tensor) -> Tensor:
        """What the head's weights are multiplied with, its constant input included."""
        pooled = self.pooled(activations)
        return pad(pooled, (0, 1), value=1.0) if self.bias else pooled

    def pooled(self, activations: Tensor) -> Tensor:
        """What the network makes of activations: (records, features)."""
        return self.read(self.network, self.enter(activations))

    def losses(self, put_out: Tensor, labels: Tensor) -> Tensor:
        """The loss of each record, by its logits.

        Args:
            put_out: logits (records, classes).
            labels: (records,).
        """
        return self.link.losses(put_out, labels[:, None], dim=1)

    @property
    def initial_loss(self) -> float:
        """The loss of a head of zeros."""
        return self.link.loss_at_zero


class Adapted(nn.Module):
    """A frozen layer, and a product of two thin ones beside it (Hu et al. 2021, Eq. 3).

    Args:
        base: the layer.
        lora: the rank of the product, and alpha: the product counts alpha / rank times.
    """

    def __init__(self, base: Any, lora: Lora) -> None:
        super().__init__()
        self.base, self.scale = base, lora.alpha / lora.rank
        self.down = _thin(base, lora.rank)
        wide = base.weight.shape[1] if is_turned(base) else len(base.weight)
        self.up = (
            nn.Conv2d(lora.rank, wide, 1, bias=False)
            if type(base) is nn.Conv2d
            else nn.Linear(lora.rank, wide, bias=False)
        )
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        """What the layer puts out, and beside it what the product does."""
        thin = self.scale * self.down(x)  # scaled where it is thin
        output: Tensor = self.base(x) + self.up(thin)
        return output

    def merged_weight(self) -> Tensor:
        """The one matrix or kernel that does the same."""
        product = torch.einsum("or,r...->o...", self.up.weight.flatten(1), self.down.weight)
        beside = product.T if is_turned(self.base) else product
        weight: Tensor = self.base.weight + self.scale * beside
        return weight


def _thin(base: Any, rank: int) -> nn.Linear | nn.Conv2d:
    """A layer like `base` with only `rank` outputs: a convolution keeps its own kind, kernel,
    stride and padding."""
    if is_turned(base):
        base = nn.Linear(len(base.weight), rank)
    thin: Any = copy.deepcopy(base)
    thin.weight = nn.Parameter(
        base.weight.new_zeros(rank, *base.weight.shape[1:]), requires_grad=False
    )
    thin.bias = None
    if type(thin) is nn.Linear:
        thin.out_features = rank
    else:
        thin.out_channels = rank
    return thin


class Speaking(nn.Module):
    """From tokens to a causal network's loss on each record. Nothing is added to the network."""

    def __init__(self, upper: Upper) -> None:
        super().__init__()
        self.network, self.read, self.draw = upper.network, upper.read, upper.draw

    def forward(self, tokens: Tensor) -> Tensor:
        """The loss on each record, of tokens (records, numbers)."""
        logits: Tensor = self.read(self.network, tokens)
        return logits

    def losses(self, put_out: Tensor, labels: Tensor) -> Tensor:
        """The losses themselves: a language model has put them out already."""
        return put_out

    @property
    def initial_loss(self) -> float:
        """The loss of who takes every word for equally likely."""
        return math.log(vocabulary(self.network))


@dataclass(frozen=True, eq=False)
class Tuned:
    """A classifier, or a language model, and what of it is trained.

    Attributes:
        module: in evaluation mode, so that no norm takes statistics over records.
        trained: tensors by name. A training moves one vector: how far each of them is from `base`.
        base: (numbers,), where they start: the public network, and zero for what it has not.
    """

    module: AboveCut | Speaking
    trained: Mapping[str, nn.Parameter]
    base: Tensor

    def set_difference(self, difference: Tensor) -> None:
        """Set the trained tensors to `base + difference`, a vector of all of them, where they lie
        in memory: work that a GPU recorded reads them there."""
        weights = [*self.trained.values()]
        sizes = [weight.numel() for weight in weights]
        vector = torch.split(self.base + difference, sizes)
        for weight, numbers in zip(weights, vector, strict=True):
            weight.data.copy_(numbers.view_as(weight))

    def copy_to(self, device: torch.device, kind: torch.dtype = torch.float32) -> Tuned:
        """One of its own for a training, which moves its tensors.

        Args:
            device: that it lies on.
            kind: float32 for trainings, float64 for predictions.
        """
        module = copy.deepcopy(self.module).to(device, kind)
        weights = dict(module.named_parameters())
        return Tuned(
            module, {name: weights[name] for name in self.trained}, self.base.to(device, kind)
        )


def tuned_model(learner: Tuning, constants: Constants) -> Tuned:
    """The public network above the cut with its head, and which of its tensors are trained. Built
    once for all trainings that have these in common."""
    return _build_tuned_model(
        learner.trains,
        learner.lora,
        learner.bias,
        link_of(learner, constants),
        constants.network,
        constants.classes,
        constants.dimension,
    )


def check_tuning(learner: Tuning, network: Network) -> None:
    """Refuse names of tensors or layers that are not above a cut, before anything is spent.

    Raises:
        BadInput: a pattern fits none.
    """
    _build_tuned_model(learner.trains, learner.lora, learner.bias, learner.link, network, 2, 0)


@cache
def _build_tuned_model(
    trains: str | tuple[str, ...],
    lora: Lora,
    bias: bool,
    link: Link,
    network: Network | None,
    classes: int,
    dimension: int,
) -> Tuned:
    """Built once in a process, and never changed."""
    upper = identity_network(dimension) if network is None else upper_of(network)
    speaks = network is not None and network.speaks
    if speaks:
        module: AboveCut | Speaking = Speaking(upper)
    else:
        module = AboveCut(upper, classes, bias, link)
    module = copy.deepcopy(module)
    for part in module.modules():
        if hasattr(part, "inplace"):  # what a layer puts out is looked at after others have used it
            vars(part)["inplace"] = False
    if trains == "lora":
        _adapt(module.network, lora)
    module.eval().requires_grad_(False)
    weights = dict(module.named_parameters())
    factors = ("up",) if lora.freeze == "down" else ("down", "up")
    in_network = _trained_names(trains, module.network, upper.last_block, factors)
    names = [f"network.{name}" for name in in_network]
    trained = {name: weights[name] for name in (*names, *(() if speaks else (HEAD,)))}
    return Tuned(module, trained, parameters_to_vector(trained.values()).clone())


def _adapt(network: nn.Module, lora: Lora) -> None:
    """Adapters beside every layer that the targets name."""
    able = {
        name: layer
        for name, layer in network.named_modules()
        if (is_linear(layer) and getattr(layer, "groups", 1) == 1) or is_turned(layer)
    }
    targeted = [name for name in able if _matches_any(name, lora.targets)]
    if not targeted:  # one of several that fits none may be another network's
        raise BadInput(
            f"learner.lora.targets: {', '.join(lora.targets)} fits none of the layers above "
            f"features.until; {did_you_mean(lora.targets[0], able)}they are {', '.join(able)}."
        )
    for name in targeted:
        adapted = Adapted(able[name], lora)
        if lora.freeze == "down":
            adapted.down.weight.data.copy_(_frozen_factor(name, adapted.down.weight.shape))
        network.set_submodule(name, adapted)


def _frozen_factor(layer: str, shape: Sequence[int]) -> Tensor:
    """The factor of an adapter that is never trained, as wide as one that is trained starts.

    Only `up` is released, so this must be the same on every machine and for ever. It follows from
    the layer's name alone, by a hash.

    Args:
        layer: name of the adapted layer in the network.
        shape: of the factor, its rank first.
    """
    digest = hashlib.shake_256(f"frozen factor {layer}".encode()).digest(4 * math.prod(shape))
    uniform = np.frombuffer(digest, "<u4") / 2.0**31 - 1.0
    bound = math.prod(shape[1:]) ** -0.5
    return torch.from_numpy(uniform.reshape(tuple(shape)) * bound)


def _trained_names(
    trains: str | Sequence[str],
    network: nn.Module,
    last_block: frozenset[str],
    factors: Sequence[str],
) -> list[str]:
    """Names of the network's own tensors that are trained, in the network's order; of an adapter,
    of these factors."""
    weights = dict(network.named_parameters())
    if not weights or trains == "head":
        return []
    if trains == "all":
        names = [*weights]
    elif trains == "norm_and_bias":  # BitFit (Ben Zaken et al. 2022), with the norms' scales
        names = [name for name, weight in weights.items() if weight.ndim == 1]
    elif trains == "last_block":
        names = [name for name in weights if name in last_block]
        if len(names) < len(last_block):
            raise BadInput(
                "learner.trains: last_block reaches below features.until. Cut earlier, or say "
                "trains: all."
            )
    elif trains == "lora":
        adapters = (name for name, layer in network.named_modules() if isinstance(layer, Adapted))
        names = [f"{name}.{part}.weight" for name in adapters for part in factors]
    else:
        _check_patterns(trains, weights)
        names = [name for name in weights if _matches_any(name, trains)]
    if not names:
        raise BadInput(
            f"learner.trains: {trains} fits none of the tensors above features.until. They are "
            f"{', '.join(weights)}."
        )
    return names


def _check_patterns(patterns: Sequence[str], names: Iterable[str]) -> None:
    """Each has to fit a tensor: one that fits none is a slip, and would train less than was
    meant."""
    for pattern in patterns:
        if not any(_matches_any(name, [pattern]) for name in names):
            raise BadInput(
                f"learner.trains: {pattern!r} fits none of the tensors above features.until; "
                f"{did_you_mean(pattern, names)}they are {', '.join(names)}."
            )


def _matches_any(name: str, patterns: Sequence[str]) -> bool:
    """Whether a name fits one of these patterns, in which * stands for anything."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def start(
    learner: Tuning, constants: Constants, tuned: Tuned, head: NDArray[np.float32] | None = None
) -> Tensor:
    """Where the vector of trained weights starts: at the public network, so mostly at zero.

    Adapters start by a public seed on one side and at zero on the other. So their product is
    nothing (Hu et al. 2021, section 4.1). A side that is frozen is part of the network. The head
    starts as `init` says.

    Args:
        learner: its section in the config.
        constants: public sizes, and the network.
        tuned: the network.
        head: to start from, public or bought; None where there is none.

    Returns:
        float64 (numbers,), differences from `tuned.base`.
    """
    parts = []
    for place, (name, weight) in enumerate(tuned.trained.items()):
        if name == HEAD and (learner.starts_from_private_head or learner.starts_from_public_head):
            parts.append(
                np.ravel(public_head.initial_head_of_shape(head, tuple(weight.shape))).astype(
                    np.float64
                )
            )
            continue
        down = learner.trains == "lora" and name.endswith(".down.weight")
        random = down or (name == HEAD and learner.init == "random")
        drawn = public_random(constants, place).uniform(-1.0, 1.0, tuple(weight.shape))
        parts.append(np.ravel(drawn) * (weight[0].numel() ** -0.5 if random else 0.0))
    return torch.from_numpy(np.concatenate(parts))


def merged_tensors(learner: Tuning, constants: Constants, weights: Weights) -> dict[str, Tensor]:
    """The public network's own tensors as they are after training, by its names, for use without
    adapters."""
    tuned = tuned_model(learner, constants).copy_to(torch.device("cpu"))
    tuned.set_difference(torch.from_numpy(np.concatenate([np.ravel(part) for part in weights])))
    layers = tuned.module.network.named_modules()
    adapted = {
        f"{name}.weight": layer.merged_weight()
        for name, layer in layers
        if isinstance(layer, Adapted)
    }
    tensors = {
        name.removeprefix("network."): weight
        for name, weight in tuned.trained.items()
        if name != HEAD
    }
    return adapted or {name: weight.detach() for name, weight in tensors.items()}
