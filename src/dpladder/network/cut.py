"""A public network in two parts: what is frozen and runs once, and what lies above the cut.

The network is traced, and cut behind the module that the config names. Where anything but that
module's output reaches the upper part, there is no cut to cache: then it is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, fx, nn

from dpladder.config.features_sections import Features
from dpladder.errors import BadInput, Refused
from dpladder.network import stack
from dpladder.network.facts import INPUT, Network
from dpladder.network.language import language_model_of
from dpladder.network.public import digest, model_of
from dpladder.wording import did_you_mean


class Tracer(fx.Tracer):
    """Follows a network down to the modules that own weights, and remembers what each module puts
    out."""

    def __init__(self) -> None:
        from timm.models._features_fx import get_notrace_functions, get_notrace_modules

        super().__init__(autowrap_functions=tuple(get_notrace_functions()))
        self.opaque = tuple(get_notrace_modules())
        self.outputs: dict[str, Any] = {}

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a module stays one step of the graph: one that owns weights does."""
        owns = next(m.parameters(recurse=False), None) is not None
        return (
            owns or isinstance(m, self.opaque) or super().is_leaf_module(m, module_qualified_name)
        )

    def call_module(self, m: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
        """Note what the module puts out, by its name."""
        output = super().call_module(m, forward, args, kwargs)
        self.outputs[self.path_of_module(m)] = output
        return output


class Pixels(nn.Module):
    """From 8-bit pixels, as they are kept, to what a network takes.

    Args:
        mean: of each of three channels.
        spread: the deviation of each.
    """

    mean: Tensor
    spread: Tensor

    def __init__(self, mean: Any, spread: Any) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(3, 1, 1), persistent=False)
        self.register_buffer("spread", torch.tensor(spread).view(3, 1, 1), persistent=False)

    def forward(self, pixels: Tensor) -> Tensor:
        """Images (records, 3, height, width), of pixels (records, height, width, 3)."""
        return (pixels.permute(0, 3, 1, 2) / 255 - self.mean) / self.spread


def lower_part(model: nn.Module, until: str) -> nn.Module:
    """From images to activations at the cut.

    Args:
        model: a network for images, in evaluation mode.
        until: the last layer below the cut.

    Raises:
        BadInput: the network cannot be traced, or has no such layer.
    """
    graph, cut = _trace_to_cut(model, until)
    return _part(model, graph, cut)


def upper_part(model: nn.Module, until: str) -> nn.Module:
    """From activations at the cut to pooled features.

    Args:
        model: a network for images, in evaluation mode.
        until: the last layer below the cut.

    Raises:
        BadInput: the network cannot be traced, has no such layer, or goes past it on another way
            too.
    """
    graph, cut = _trace_to_cut(model, until)
    (last,) = next(node for node in graph.nodes if node.op == "output").all_input_nodes
    try:
        return _part(model, graph, last, cut)
    except KeyError as error:
        raise BadInput(
            f"features.until: the network goes past {until!r} on another way too, so its output is "
            f"not all that the rest needs. Cut behind a whole block, or at {INPUT!r}."
        ) from error


def check_cut(features: Features) -> Network:
    """Refuse a cut that this network has not, before anything is read for it. An image network's
    weights do not matter here.

    Raises:
        BadInput: there is no such cut.
    """
    if features.takes == "texts":
        network = text_network_of(features)
    else:
        network = network_of(features.model, str(features.until), features.image_size)
    upper_of(network)
    return network


def _part(
    model: nn.Module, graph: fx.Graph, last: fx.Node, first: fx.Node | None = None
) -> nn.Module:
    """What makes `last`: of the images, or of `first` and nothing else."""
    part = fx.Graph()
    known = {} if first is None else {first: part.placeholder("activations")}
    needed = _ancestors_of(last, {first})
    for node in graph.nodes:
        if node in needed and (first is None or node.op != "placeholder"):
            known[node] = part.node_copy(node, known.__getitem__)
    part.output(known[last])
    return fx.GraphModule(model, part)


def _ancestors_of(last: fx.Node, ends: set[fx.Node | None]) -> set[fx.Node]:
    """A node and all that it is made of, as far as `ends`."""
    ancestors, waiting = set(), [last]
    while waiting:
        node = waiting.pop()
        if node not in ancestors and node not in ends:
            ancestors.add(node)
            waiting += node.all_input_nodes
    return ancestors


def _trace_to_cut(model: nn.Module, until: str) -> tuple[fx.Graph, fx.Node]:
    """The network as a graph, and the node that the layer puts out."""
    tracer = Tracer()
    # what it may be told beside its images stays as it is when nobody tells it
    options = inspect.signature(model.forward).parameters.values()
    defaults = {one.name: one.default for one in options if one.default is not one.empty}
    try:
        graph = tracer.trace(model, defaults)
    except Exception as error:
        raise BadInput(
            "features.until: this network cannot be cut, because it does not always take the same "
            f"way ({error}). Choose another features.model, or cut at {INPUT!r}."
        ) from error
    if until not in tracer.outputs:
        blocks = [name for name in tracer.outputs if name.count(".") < 2]
        raise BadInput(
            f"features.until: {until!r} is no layer of this model; "
            f"{did_you_mean(until, [*tracer.outputs, INPUT])}it has {', '.join(blocks)}, and "
            f"{INPUT!r} for the pixels."
        )
    output = tracer.outputs[until]
    if not isinstance(output, fx.Proxy):
        raise BadInput(
            f"features.until: {until!r} puts out several tensors. Cut behind a block that puts out "
            "one."
        )
    return graph, output.node


@cache
def network_of(name: str, until: str, image_size: int | None, weights: str = "random") -> Network:
    """A network and a cut by their names, without a cache that has the rest.

    Args:
        name: of timm's, or a bundled network's.
        until: the last layer below the cut, or `input`.
        image_size: in pixels; None: the network's own.
        weights: as `features.weights` has them.
    """
    import timm.data

    model: Any = model_of(Features(model=name, weights=weights))
    facts = digest(model.state_dict())
    image_size = image_size or timm.data.resolve_data_config({}, model=model)["input_size"][-1]
    if hasattr(model, "set_input_size"):
        model.set_input_size(img_size=image_size)
    images = torch.zeros(1, 3, image_size, image_size)
    with torch.no_grad():
        shape = (
            (image_size, image_size, 3)
            if until == INPUT
            else lower_part(model.eval(), until)(images).shape[1:]
        )
    return Network(name, weights, facts, image_size, until, tuple(shape))


def text_network_of(features: Features) -> Network:
    """A network for texts and its cut, by the config's section; its weights are loaded."""
    model, _ = language_model_of(features)
    until = str(features.until)
    with torch.no_grad():
        rows = stack.lower_part(model, until)(*stack.probes(2, features.tokens))
    facts = digest(model.state_dict())
    shape = tuple(rows.shape[1:])
    return Network(features.model, features.weights, facts, None, until, shape, features.pooling)


def _call_network(network: nn.Module, activations: Tensor) -> Tensor:
    output: Tensor = network(activations)
    return output


@dataclass(frozen=True, eq=False)
class Upper:
    """What lies above a cut, in evaluation mode. Its weights have the public network's names.

    Attributes:
        enter: gives flattened activations their shape.
        network: makes pooled features of them when `read` calls it; or it is a language model.
        width: of these features; 0 of a language model.
        last_block: names of the weights of the last block, and of what follows it.
        draw: makes public random records, by a generator and how many.
        read: calls the network; of a language model it tells the losses.
    """

    enter: nn.Module
    network: nn.Module
    width: int
    last_block: frozenset[str]
    draw: Callable[[torch.Generator, int], Tensor]
    read: Callable[[nn.Module, Tensor], Tensor] = _call_network


def identity_network(width: int) -> Upper:
    """Nothing of a network: features of this width are all there is."""
    return Upper(nn.Identity(), nn.Identity(), width, frozenset(), _evenly(width))


def _evenly(size: int) -> Callable[[torch.Generator, int], Tensor]:
    """Public random records whose numbers lie evenly between 0 and 1."""

    def draw(random: torch.Generator, count: int) -> Tensor:
        return torch.rand(count, size, generator=random)

    return draw


@cache
def upper_of(network: Network) -> Upper:
    """What lies above a network's cut. Built once in a process, and never changed: whoever trains
    it copies it.

    Raises:
        Refused: the weights at hand are not those that features were made with.
    """
    return _cut_image_network(network) if network.pooling is None else _cut_text_network(network)


def _cut_image_network(network: Network) -> Upper:
    import timm.data

    model = model_of(Features(model=network.model, weights=network.weights))
    _check_weights(model, network)
    # transformers, whose positions follow the size
    if network.image_size and hasattr(model, "set_input_size"):
        model.set_input_size(img_size=network.image_size)
    model = model.eval().requires_grad_(False)
    enter = nn.Sequential(nn.Unflatten(1, network.shape))
    rest = model
    if network.until == INPUT:
        settings = timm.data.resolve_data_config({}, model=model)
        enter.append(Pixels(settings["mean"], settings["std"]))
    else:
        rest = upper_part(model, network.until)
    size = torch.Size(network.shape).numel()
    with torch.no_grad():
        width = rest(enter(torch.zeros(1, size))).shape[1]

    return Upper(enter, rest, width, last_block(model), _evenly(size))


def _cut_text_network(network: Network) -> Upper:
    assert network.pooling is not None, "a network for texts pools its tokens"
    tokens = network.shape[0]
    model, _ = language_model_of(
        Features(
            model=network.model, weights=network.weights, tokens=tokens, pooling=network.pooling
        )
    )
    _check_weights(model, network)
    # what follows from it is no part of any pooling here
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    model = model.requires_grad_(False)
    rest, reading = stack.upper_part(model, network.until, tokens)
    lower, vocabulary = stack.lower_part(model, network.until), stack.vocabulary(model)
    read = (
        stack.losses(reading) if network.speaks else stack.pooled_reading(reading, network.pooling)
    )

    def draw(random: torch.Generator, count: int) -> Tensor:
        with torch.no_grad():
            return lower(*stack.probes(vocabulary, tokens, count, random)).flatten(1).float()

    with torch.no_grad():
        width = 0 if network.speaks else read(rest, draw(torch.Generator(), 1)).shape[-1]
    return Upper(nn.Identity(), rest, width, stack.last_block(model), draw, read)


def _check_weights(module: nn.Module, network: Network) -> None:
    """The public network has to be what it was when features were made."""
    if digest(module.state_dict()) != network.sha256:
        raise Refused(
            f"the weights of {network.model} at hand are not those that the features were made "
            "with. Give the checkpoint that the config named as features.weights, or run "
            "extract_features again."
        )


def last_block(model: Any) -> frozenset[str]:
    """The names of the weights of the last block, as timm groups a network's layers: from the last
    group on that holds a matrix."""
    from timm.models import group_parameters

    groups = group_parameters(model, model.group_matcher(coarse=False))
    weights = dict(model.named_parameters())
    last = max(
        place for place, names in groups.items() if any(weights[name].ndim > 1 for name in names)
    )
    return frozenset(name for place, names in groups.items() if place >= last for name in names)
