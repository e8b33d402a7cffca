"""The sum of clipped gradients of a whole network, by book-keeping.

(Bu et al. 2023, "Differentially private optimization on large model at small cost".) One backward
pass finds the gradients of each layer's outputs. From these and the layer's inputs come both the
norms of records' gradients and their clipped sum. Beside it stands a sum of records' losses,
forward alone.

A matrix product's weights have the gradient sum_t g_t a_t^T over positions t, whose norm needs no
gradient (Li et al. 2022, Eq. 3). All other layers' are small, and are made record by record. Some
tensors can be told of no layer alone: one that the network adds by itself, or one of a layer that
is used twice. These are taken from the network as a whole.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import batch_norm, layer_norm, unfold

from dpladder.learn.bounds import Scale, clip
from dpladder.learn.finetune.forms import LayerGradients, Looked, Product, SummedGradients
from dpladder.learn.finetune.owners import Layer, Ownership
from dpladder.learn.finetune.parts import Tuned
from dpladder.learn.records import Bounded, Records, Rows
from dpladder.network.graphs import record
from dpladder.network.layers import (
    is_activating_norm,
    is_frozen_norm,
    is_layer_norm,
    is_plain,
    is_turned,
)

# A gradient that is the small difference of terms this much larger counts as longer than it is. Its
# terms are float32, whose rounding is 2^-24 of them, so of a clipped record it stays 2^-14 of the
# bound: learn/bounds.py pays for 2^-10. Records are added up in float64, so that no record's
# terms, however they cancel, move the rounding of others'.
LOOSE = 2.0**-10


def clipped_sum(
    owners: Ownership,
    records: Records,
    weights: Tensor,
    bound: float,
    rows: Sequence[Rows],
    scale: Scale = clip,
) -> Tensor:
    """Sums of the records' gradients, each kept within a bound, one training after the other.

    Guarantee: one record moves a training's sum by at most `bound` in L2, however long its own
    gradient is (Abadi et al. 2016, Algorithm 1). learn/bounds.py pays for the rounding.

    Args:
        owners: which layer owns which trained tensor.
        records: activations at the cut, with their views.
        weights: (trainings, numbers), the differences from the public network.
        bound: C, the L2 length that each gradient is kept within.
        rows: the records of this step, a chunk at a time.
        scale: how a gradient is kept within the bound: cut to it, or scaled to it.

    Returns:
        (trainings, numbers) in float64.
    """
    total = torch.zeros_like(weights)
    for total_of_training, one in zip(total, weights, strict=True):
        owners.tuned.set_difference(one.float())
        for chunk in rows:
            sums = _sums_of_chunk(
                owners,
                (records.block(chunk), records.labels[chunk], records.counted[chunk]),
                bound,
                scale,
            )
            for place, part_sum in sums:
                total_of_training[place] += part_sum
    return total


def _sums_of_chunk(
    owners: Ownership, chunk: tuple[Tensor, Tensor, Tensor], bound: float, scale: Scale
) -> list[tuple[slice, Tensor]]:
    """Sums of a chunk's clipped gradients: of each trained tensor its place, and its float64 sum.

    On a GPU they are recorded once for chunks of one shape.

    Args:
        chunk: records (records, views, width), their labels, and whether they count.
        bound, scale: as of `clipped_sum`.
    """

    def run(x: Tensor, labels: Tensor, counted: Tensor) -> list[tuple[slice, Tensor]]:
        parts = gradients(owners, x, labels)
        factor = factors(parts, bound, scale) * counted
        return [
            (place, part_sum)
            for layer, part in parts
            for place, part_sum in zip(layer.places, part.sums(factor), strict=True)
        ]

    if not chunk[0].is_cuda:
        return run(*chunk)
    key = chunk[0].shape, bound, scale
    if key not in owners.recorded:
        owners.recorded[key] = record(run, *chunk)
    return owners.recorded[key](*chunk)


@torch.no_grad()
def summed_losses(
    tuned: Tuned,
    records: Records,
    weights: Tensor,
    bounded: Bounded,
    rows: Sequence[Rows],
) -> Tensor:
    """Sums of what `bounded` makes of the records' losses.

    Sensitivity: what `bounded` cuts a record's loss to. The network is float32 here too, and its
    rounding is paid for as gradients' is, inside the bound (learn/bounds.py).

    Args:
        tuned: the network.
        records: activations at the cut, with their views.
        weights: (several, numbers), at each of which losses are summed.
        bounded: from losses (several, records) to numbers within a public bound.
        rows: the records to add up, a chunk at a time.

    Returns:
        float64, one sum for each row of what `bounded` returns.
    """
    losses = torch.stack([_losses(tuned, records, each, rows) for each in weights])
    nobody = records.counted[:0]
    counted = torch.cat([nobody, *(records.counted[chunk] for chunk in rows)])
    return (bounded(losses) * counted).sum(dim=1)


def _losses(tuned: Tuned, records: Records, weights: Tensor, rows: Sequence[Rows]) -> Tensor:
    """The losses of all records, each the mean over its views."""
    tuned.set_difference(weights.float())
    chunks = [weights.new_empty(0)]
    for chunk in rows:
        x, labels = records.block(chunk), records.labels[chunk]
        put_out = tuned.module(x.flatten(0, 1)).double()
        losses = tuned.module.losses(put_out, labels.repeat_interleave(x.shape[1]))
        chunks.append(losses.view(len(x), -1).mean(dim=1))
    return torch.cat(chunks)


def factors(
    parts: Sequence[tuple[Layer, LayerGradients]], bound: float, scale: Scale = clip
) -> Tensor:
    """What each record's gradient is multiplied by, to stay within the bound.

    A gradient that is the small difference of large terms counts as longer than it is, by LOOSE of
    its terms. For float32 rounds it as coarsely as those. One that overflows has no gradient: a
    rule that looks at this record alone.

    Args:
        parts: records' gradients, layer by layer.
        bound: the L2 length that each whole gradient is kept within.
        scale: how: cut to it, or scaled to it.

    Returns:
        float64 (records,).
    """
    squares = torch.stack([part.squares() for _, part in parts]).sum(0)
    terms = torch.stack([part.terms() for _, part in parts]).sum(0)
    norms = torch.maximum(squares, LOOSE**2 * terms).sqrt()
    return scale(norms, bound)


@torch.enable_grad()
def gradients(owners: Ownership, x: Tensor, labels: Tensor) -> list[tuple[Layer, LayerGradients]]:
    """Records' gradients, each the mean over the record's views, by one backward pass.

    Args:
        owners: which layer owns which trained tensor.
        x: (records, views, width).
        labels: (records,).

    Returns:
        Each layer with what its gradients are made of; the network as a whole last, where it owns
        some.
    """
    views = x.shape[1]
    x, labels = x.flatten(0, 1), labels.repeat_interleave(views)
    with _record_activations(owners.layers) as seen:
        model = owners.tuned.module
        loss = model.losses(model(x), labels).sum() / views
    outputs = torch.autograd.grad(loss, [put_out for _, put_out in seen])
    by_layer: list[tuple[Layer, LayerGradients]] = [
        (layer, _layer_gradients(layer, taken, gradient, views))
        for layer, (taken, _), gradient in zip(owners.layers, seen, outputs, strict=True)
    ]
    if owners.rest.names:
        by_layer.append((owners.rest, _remaining_gradients(owners.rest, x, labels, views)))
    return by_layer


@contextmanager
def _record_activations(layers: Sequence[Layer]) -> Iterator[list[Any]]:
    """What each layer takes in and puts out, in the order of `layers`. Weights need no gradients of
    their own, so the first outputs begin the graph."""
    seen: list[Any] = [None] * len(layers)

    def hook(place: int, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        output = output if output.requires_grad else output.detach().requires_grad_()
        seen[place] = (inputs[0].detach(), output)
        return output.clone() if layers[place].overwritten else output

    with ExitStack() as stack:
        for place, layer in enumerate(layers):
            stack.enter_context(layer.module.register_forward_hook(partial(hook, place)))
        yield seen


def _layer_gradients(layer: Layer, taken: Tensor, gradient: Tensor, views: int) -> LayerGradients:
    """What each record's gradient of one layer is, in the cheapest form that its norm and its
    clipped sum can be made of.

    For y = x W^T over P positions a record's gradient is the sum over positions of g_p a_p^T. Its
    norm follows from two P x P products (ghost clipping: Goodfellow 2015; Li et al. 2022). At few
    positions that is less work than the gradient itself. A table's gradient is sparse: rows that a
    record looks up twice must be added before the norm is taken. A norm's scale and shift meet each
    position's normed value and nothing else. All other layers are differentiated record by record.

    Args:
        taken: what the layer was given, (records * views, ...).
        gradient: of the loss in what it put out, of the same records.
    """
    module, names = layer.module, layer.names
    if _is_product(module):
        a = _positions(_inputs_by_place(taken, module), module, views)
        g = _positions(gradient, module, views)
        if "weight" not in names:
            return SummedGradients([g.sum(1)])
        product = Product(g, a, "bias" in names, is_turned(module))
        return product if product.is_cheap else product.as_matrices()

    if _is_table(module):
        rows = taken.reshape(-1, views * taken.shape[1])
        g = gradient.reshape(-1, views * taken.shape[1], gradient.shape[2])
        # whose row is never trained
        padding = -1 if module.padding_idx is None else module.padding_idx
        return Looked(g.masked_fill((rows == padding)[..., None], 0.0), rows, module.num_embeddings)

    if is_layer_norm(module) or is_frozen_norm(module):
        return _sum_views(_norm_layer_gradients(module, taken, gradient), layer, views)

    def along(weights: dict[str, Tensor], one: Tensor, its: Tensor) -> Tensor:
        return (functional_call(module, weights, (one[None],))[0] * its).sum()

    return _sum_views(vmap(grad(along), (None, 0, 0))(layer.weights, taken, gradient), layer, views)


def _norm_layer_gradients(
    module: nn.LayerNorm | nn.BatchNorm2d, taken: Tensor, gradient: Tensor
) -> dict[str, Tensor]:
    """Gradients of y = w n + b for what is normed to n, of each record by itself."""
    if is_layer_norm(module):
        normed = layer_norm(taken, module.normalized_shape, eps=module.eps)
        each = (len(taken), -1, taken.shape[-1])
        return {
            "weight": (gradient * normed).reshape(each).sum(1),
            "bias": gradient.reshape(each).sum(1),
        }
    assert is_frozen_norm(module)
    normed = batch_norm(taken, module.running_mean, module.running_var, eps=module.eps)
    if is_activating_norm(module):
        before = (normed * module.weight[:, None, None] + module.bias[:, None, None]).detach()
        timms: Any = module
        activated = timms.act(timms.drop(before.requires_grad_().clone()))  # may overwrite
        (gradient,) = torch.autograd.grad(activated, before, gradient)
    return {"weight": (gradient * normed).sum((2, 3)), "bias": gradient.sum((2, 3))}


def _remaining_gradients(rest: Layer, x: Tensor, labels: Tensor, views: int) -> SummedGradients:
    """Each record's gradient of all that is no layer of its own, by differentiating the rest of the
    network record by record.

    A record's loss is the mean over its views, and its gradient is what is clipped.
    """
    losses: Any = rest.module.losses

    def loss(weights: dict[str, Tensor], one: Tensor, label: Tensor) -> Tensor:
        put_out = functional_call(rest.module, weights, (one[None],))
        mean_loss: Tensor = losses(put_out, label[None]).sum() / views
        return mean_loss

    with warnings.catch_warnings():
        # in attention, which is batched by hand
        warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
        return _sum_views(vmap(grad(loss), (None, 0, 0))(rest.weights, x, labels), rest, views)


def _sum_views(gradients: Mapping[str, Tensor], layer: Layer, views: int) -> SummedGradients:
    """The gradients of each tensor, (records, numbers), summed over the record's views."""
    return SummedGradients(
        [
            gradients[name].reshape(-1, views, gradients[name][0].numel()).sum(1)
            for name in layer.names
        ]
    )


def _is_product(module: nn.Module) -> bool:
    """Whether each output is one matrix times one input: a linear layer, or a convolution whose
    outputs see all channels, at each of their places."""
    if is_plain(module, nn.Linear) or is_turned(module):
        return True
    if not is_plain(module, nn.Conv2d):
        return False
    known = module.padding_mode == "zeros" and not isinstance(module.padding, str)
    return module.groups == 1 and (known or module.kernel_size == (1, 1))


def _is_table(module: nn.Module) -> TypeGuard[nn.Embedding]:
    """Whether a module looks up rows of a table, and changes nothing of them by what else is looked
    up."""
    return (
        is_plain(module, nn.Embedding) and module.max_norm is None and not module.scale_grad_by_freq
    )


def _inputs_by_place(taken: Tensor, module: nn.Module) -> Tensor:
    """What a layer multiplies by its matrix: of a convolution, the neighbourhood of each place."""
    if type(module) is not nn.Conv2d or (module.kernel_size, module.stride) == ((1, 1), (1, 1)):
        return taken
    padding = 0 if isinstance(module.padding, str) else module.padding
    return unfold(taken, module.kernel_size, module.dilation, padding, module.stride)


def _positions(values: Tensor, module: nn.Module, views: int) -> Tensor:
    """As (records, positions, width): views are positions too."""
    if type(module) is nn.Conv2d:
        rows = values.flatten(2).mT
    else:
        rows = values.flatten(1, -2) if values.ndim > 2 else values[:, None]
    return rows if views == 1 else rows.reshape(-1, views * rows.shape[1], rows.shape[2])
