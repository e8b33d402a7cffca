"""Which module owns which trained tensor: layers that are used once, on one tensor, and the network
as a whole for the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from dpladder.errors import Refused
from dpladder.learn.finetune.parts import Tuned

# Records in a chunk. A GPU takes as long to start the work on 64 as on several hundred.
SMALLEST_BLOCK, LARGEST_BLOCK = 8, {"cpu": 64, "cuda": 512}
SHARE = 0.25  # of a job's memory, for a chunk


@dataclass(frozen=True, eq=False)
class Layer:
    """A module that owns trained tensors.

    Attributes:
        module: a layer, or the whole network.
        names: of the tensors, in the module.
        places: of the tensors, in the vector of all trained weights.
        overwritten: whether the network writes over what the layer puts out.
    """

    module: nn.Module
    names: tuple[str, ...]
    places: tuple[slice, ...]
    overwritten: bool = False

    @property
    def weights(self) -> dict[str, Tensor]:
        """The tensors by name, without gradients of their own."""
        owned = dict(self.module.named_parameters())
        return {name: owned[name].detach() for name in self.names}


@dataclass(frozen=True, eq=False)
class Ownership:
    """Which layer owns which trained tensor.

    Attributes:
        tuned: the network.
        layers: those whose gradients follow from what they take in and put out.
        rest: tensors that only the whole network knows.
        floats: numbers that one record needs on its way, about.
        recorded: the sums of a chunk as a GPU recorded them, by all that they follow from.
    """

    tuned: Tuned
    layers: tuple[Layer, ...]
    rest: Layer
    floats: int
    recorded: dict[Any, Callable[..., Any]] = field(default_factory=dict)

    def chunk(self, memory_mb: int, views: int) -> int:
        """Records computed at a time: a power of two, one for good, by the memory that is declared.
        On a GPU its own memory counts instead. The data's own size must not show in it, for
        products round by the size of a chunk."""
        device, room = self.tuned.base.device, memory_mb * 1_000_000
        if device.type == "cuda":
            room = torch.cuda.get_device_properties(device).total_memory
        fit = int(SHARE * room / (4 * views * self.floats))
        # the largest power of two that fits
        return min(LARGEST_BLOCK[device.type], 1 << (max(fit, SMALLEST_BLOCK).bit_length() - 1))


def owners_of(tuned: Tuned, width: int) -> Ownership:
    """Owners of the trained tensors: layers without layers in them that are used once, on one
    tensor. Tensors of others are the whole network's.

    Its weights are laid out with channels last, which makes convolutions a tenth faster and moves
    no value.

    Args:
        tuned: the network, on the device that it is trained on.
        width: numbers of a record's activations at the cut.

    Raises:
        Refused: the network cannot be computed with what is trained of it.
    """
    tuned.module.to(memory_format=torch.channels_last)
    x = torch.zeros(2, width, device=tuned.base.device, dtype=tuned.base.dtype)
    known = {id(weight): name for name, weight in tuned.trained.items()}
    try:
        uses, overwritten, floats = _probe_layers(tuned.module, x, known)
    except Exception as error:  # a network that reaches into its layers finds adapters there
        raise untrainable_error(tuple(tuned.trained), "cannot be computed") from error
    ends = torch.tensor([weight.numel() for weight in tuned.trained.values()]).cumsum(0).tolist()
    places = {
        name: slice(end - weight.numel(), end)
        for end, (name, weight) in zip(ends, tuned.trained.items(), strict=True)
    }
    owners: dict[str, list[tuple[nn.Module, str]]] = {}
    for module in tuned.module.modules():
        for weight_name, weight in module.named_parameters(recurse=False):
            if id(weight) in known:
                owners.setdefault(known[id(weight)], []).append((module, weight_name))
    own_of: dict[nn.Module, list[tuple[str, str]]] = {}
    rest = []
    for name, owned in owners.items():
        module, weight_name = owned[0]
        if len(owned) == 1 and uses[module] == 1:
            own_of.setdefault(module, []).append((weight_name, name))
        else:
            rest.append(name)
    layers = tuple(
        Layer(
            module,
            tuple(weight_name for weight_name, _ in names),
            tuple(places[name] for _, name in names),
            module in overwritten,
        )
        for module, names in own_of.items()
    )
    whole = Layer(tuned.module, tuple(rest), tuple(places[name] for name in rest))
    count = sum(slot.stop - slot.start for layer in (*layers, whole) for slot in layer.places)
    return Ownership(tuned, layers, whole, 4 * floats + 3 * count)


def _probe_layers(
    model: nn.Module, x: Tensor, trained: Container[int]
) -> tuple[Counter[nn.Module], frozenset[nn.Module], int]:
    """How layers are used, seen by one pass over records of zeros.

    Returns:
        How often each layer is used on one tensor of a row per record. The layers whose outputs are
        written over. The numbers that a record fills on its way.
    """
    uses: Counter[nn.Module] = Counter()
    put_out: list[tuple[nn.Module, Tensor, int]] = []
    floats = x.shape[1]

    def hook(
        module: nn.Module, inputs: tuple[Any, ...], options: Mapping[str, Any], output: Any
    ) -> None:
        nonlocal floats
        plain = (
            len(inputs) == 1
            and not options
            and all(isinstance(one, Tensor) and len(one) == len(x) for one in (*inputs, output))
        )
        uses[module] += 1 if plain else 2  # else it is not taken by itself
        if isinstance(output, Tensor):
            put_out.append((module, output, output._version))
            floats += output.numel() // len(x)
            if isinstance(module, nn.Conv2d) and id(module.weight) in trained:
                # of each place the neighbourhood, which its gradient is made of
                floats += output[0, 0].numel() * module.weight[0].numel() * module.groups

    with ExitStack() as stack, torch.no_grad():
        for module in model.modules():
            # One with layers in it would be run once more, with hooks on them.
            if next(module.parameters(), None) is None or all(
                next(part.parameters(), None) is None for part in module.children()
            ):
                stack.enter_context(module.register_forward_hook(hook, with_kwargs=True))
        model(x)
    overwritten = frozenset(module for module, one, version in put_out if one._version > version)
    return uses, overwritten, floats


def untrainable_error(names: Sequence[str], why: str) -> Refused:
    """The error that no clipped gradients of these tensors can be told, and what to do.

    Args:
        names: of the tensors, as the network calls them.
        why: what public random records show of them.
    """
    first = names[0].removeprefix("network.")
    more = f" and of {len(names) - 1} more tensors" if len(names) > 1 else ""
    return Refused(
        f"learner.trains: records' gradients of {first}{more} {why}, as public random records "
        "show, so this network cannot be trained privately. Set a learner.trains that leaves these "
        "tensors out (head leaves all), or another features.model: BERT, RoBERTa, MiniLM and Llama "
        "work, and timm's ViTs, ResNets and EfficientNets."
    )
