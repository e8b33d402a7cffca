"""The sum of clipped gradients of a whole network, by book-keeping (Bu et al. 2023, "Differentially
private optimization on large model at small cost"): one backward pass finds the gradients of each
layer's outputs, and from these and the layer's inputs come both the norms of records' gradients and
their clipped sum. Beside it a sum of records' losses, forward alone.

A matrix product's weights have the gradient sum_t g_t a_t^T over positions t, whose norm needs no
gradient (Li et al. 2022, Eq. 3). All other layers' are small, and are made record by record. What
can be told of no layer alone (a tensor that the network adds by itself, a layer that is used twice)
is taken from the network as a whole.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import batch_norm, layer_norm

from dpladder.errors import Refused
from dpladder.learn.bounds import Scale, clip
from dpladder.learn.descent import Bounded
from dpladder.learn.dp_finetune.parts import Tuned
from dpladder.learn.records import Records, Rows
from dpladder.network.layers import (
    is_activating_norm,
    is_frozen_norm,
    is_layer_norm,
    is_plain,
    is_turned,
)

# A gradient that is the small difference of terms this much larger counts as longer than it is. Its
# terms are float32, whose rounding is 2^-24 of them, so of a clipped record it stays 2^-14 of the
# bound: learn/descent.py pays for 2^-10. Records are added up in float64, so that no record's
# terms, however they cancel, move the rounding of others'.
LOOSE = 2.0**-10

CLOSE = 1e-2  # of a gradient's norm: what float32 may round on the way through a deep network
FLOOR = 1e-5  # of a gradient that is nothing but rounding

# What writing and reading a number of a record's gradient takes, and copying one of its factors, in
# multiplications of float32: measured on a CPU at 1 to 200 positions and 200 to 2 million numbers.
PASSES, COPIES = 64, 16

MOST = 64  # records in a chunk
SHARE = 0.25  # of a job's memory, for a chunk


@dataclass(frozen=True, eq=False)
class Layer:
    """A module that owns trained tensors, by the names that they have in it, and their places in
    the vector. `overwritten`: the network writes over what it puts out."""

    module: nn.Module
    names: tuple[str, ...]
    places: tuple[slice, ...]
    overwritten: bool = False

    @property
    def weights(self) -> dict[str, Tensor]:
        owned = dict(self.module.named_parameters())
        return {name: owned[name].detach() for name in self.names}


@dataclass(frozen=True, eq=False)
class Ownership:
    """Who owns what. `rest`: tensors that only the whole network knows. `floats`: that a record
    needs, about."""

    tuned: Tuned
    layers: tuple[Layer, ...]
    rest: Layer
    floats: int

    def chunk(self, memory_mb: int, views: int) -> int:
        """Records computed at a time: one size for good, by the memory that is declared."""
        fit = int(SHARE * memory_mb * 1_000_000 / (4 * views * self.floats))
        return min(MOST, 1 << (max(fit, 1).bit_length() - 1))  # the largest power of two that fits


@dataclass(frozen=True, eq=False)
class Product:
    """Factors of records' gradients of one matrix: outputs' gradients and inputs, as (records,
    positions, width). `turned`: the matrix has a row an input."""

    gradients: Tensor
    inputs: Tensor
    bias: bool
    turned: bool

    @property
    def shown(self) -> list[Tensor]:
        return [self.gradients, self.inputs]

    def squares(self) -> Tensor:
        """|sum_p g_p a_p^T|^2 = sum_(p, q) (a_p . a_q)(g_p . g_q), of each record."""
        a, g = self.inputs.double(), self.gradients.double()
        found = ((a @ a.mT) * (g @ g.mT)).sum((1, 2))
        return found + g.sum(1).square().sum(1) if self.bias else found

    def terms(self) -> Tensor:
        """The square of the sum of the terms' norms: what the norm would be if nothing cancelled
        (LOOSE)."""
        a, g = self.inputs.double().norm(dim=2), self.gradients.double().norm(dim=2)
        found = (a * g).sum(1).square()
        return found + g.sum(1).square() if self.bias else found

    @property
    def is_cheap(self) -> bool:
        """Whether norm and sum take less of these factors than of the gradients themselves.

        Over P positions a number of the gradient takes P multiplications in float32, and some
        passes over memory. The factors take two P x P products for the norm and P for the sum, all
        in float64, which is twice as slow. To compare P^2 with the gradient's size (Bu et al. 2022)
        is to weigh memory alone, and a chunk has room for either.
        """
        positions, rows, columns = *self.gradients.shape[1:], self.inputs.shape[2]
        held = positions * (rows + columns) / (rows * columns)
        return positions + (2 * positions + COPIES) * held <= PASSES

    def made(self) -> Made:
        """The same as gradients, in the order of `sums`. A record's terms may overflow: then it
        counts as nothing."""
        a, g = self.inputs, self.gradients
        matrices = a.mT @ g if self.turned else g.mT @ a
        lengths = a.norm(dim=2).double(), g.norm(dim=2).double()
        terms = (lengths[0] * lengths[1]).sum(1).square()
        if not self.bias:
            return Made([matrices.flatten(1)], terms)
        return Made([matrices.flatten(1), g.sum(1)], terms + lengths[1].sum(1).square())

    def sums(self, factor: Tensor) -> list[Tensor]:
        dead = (factor == 0)[:, None, None]  # what is not finite is no number times zero
        g = (self.gradients * factor[:, None, None].float()).masked_fill(dead, 0.0).flatten(0, 1)
        a, g = self.inputs.masked_fill(dead, 0.0).flatten(0, 1).double(), g.double()
        found = a.mT @ g if self.turned else g.mT @ a
        return [found.flatten(), g.sum(0)] if self.bias else [found.flatten()]


@dataclass(frozen=True, eq=False)
class Looked:
    """Of a table that is looked things up in: outputs' gradients, and which rows they are of, as
    (records, positions)."""

    gradients: Tensor
    rows: Tensor
    count: int

    @property
    def shown(self) -> list[Tensor]:
        return [self.gradients, self.rows]

    def squares(self) -> Tensor:
        """As of a matrix product whose inputs are 1 in one place."""
        g, same = self.gradients.double(), self.rows[:, :, None] == self.rows[:, None]
        return (same * (g @ g.mT)).sum((1, 2))

    def terms(self) -> Tensor:
        return self.gradients.double().norm(dim=2).sum(1).square()

    def sums(self, factor: Tensor) -> list[Tensor]:
        g = (self.gradients * factor[:, None, None].float()).masked_fill(
            (factor == 0)[:, None, None], 0.0
        )
        found = g.new_zeros(self.count, g.shape[2], dtype=torch.float64)
        return [found.index_add_(0, self.rows.flatten(), g.flatten(0, 1).double()).flatten()]


@dataclass(frozen=True, eq=False)
class Made:
    """Records' gradients of some tensors, as (records, numbers) each. `added`: the squared sum of
    what each was added up from, where that is known."""

    gradients: Sequence[Tensor]
    added: Tensor | None = None

    @property
    def shown(self) -> list[Tensor]:
        return [*self.gradients]

    def squares(self) -> Tensor:
        norms = [
            torch.linalg.vector_norm(found, dim=1, dtype=torch.float64) for found in self.gradients
        ]
        return torch.stack(norms).square().sum(0)

    def terms(self) -> Tensor:
        return self.squares() if self.added is None else self.added

    def sums(self, factor: Tensor) -> list[Tensor]:
        return [
            factor.double() @ found.nan_to_num(0.0, 0.0, 0.0).double() for found in self.gradients
        ]


LayerGradients = Product | Looked | Made


def clipped_sum(
    owners: Ownership,
    records: Records,
    weights: Tensor,
    bound: float,
    rows: Sequence[Rows],
    scale: Scale = clip,
) -> Tensor:
    """Sum of the records' gradients, each kept within `bound`, for weights of shape (1,
    numbers)."""
    owners.tuned.put(weights[0].float())
    total = torch.zeros_like(weights)
    for chunk in rows:
        x, labels = records.block(chunk), records.labels[chunk]
        parts = gradients(owners, x, labels)
        factor = factors(parts, bound, scale) * records.counted[chunk]
        for layer, part in parts:
            for place, found in zip(layer.places, part.sums(factor), strict=True):
                total[0, place] += found
    return total


@torch.no_grad()
def summed_losses(
    tuned: Tuned,
    records: Records,
    weights: Tensor,
    bounded: Bounded,
    rows: Sequence[Rows],
) -> Tensor:
    """Sums of what `bounded` makes of the records' losses, for weights of shape (several, numbers).
    The network is float32 here too, and its rounding is paid for as gradients' is, inside the bound
    (learn/descent.py)."""
    losses = torch.stack([_losses(tuned, records, each, rows) for each in weights])
    nobody = records.counted[:0]
    counted = torch.cat([nobody, *(records.counted[chunk] for chunk in rows)])
    return (bounded(losses) * counted).sum(dim=1)


def _losses(tuned: Tuned, records: Records, weights: Tensor, rows: Sequence[Rows]) -> Tensor:
    """Of all records, each the mean over its views."""
    tuned.put(weights.float())
    found = [weights.new_empty(0)]
    for chunk in rows:
        x, labels = records.block(chunk), records.labels[chunk]
        put_out = tuned.module(x.flatten(0, 1)).double()
        losses = tuned.module.losses(put_out, labels.repeat_interleave(x.shape[1]))
        found.append(losses.view(len(x), -1).mean(dim=1))
    return torch.cat(found)


def factors(
    parts: Sequence[tuple[Layer, LayerGradients]], bound: float, scale: Scale = clip
) -> Tensor:
    """What each record's gradient is multiplied by. One that overflows has none: a rule that looks
    at this record alone."""
    squares = torch.stack([part.squares() for _, part in parts]).sum(0)
    terms = torch.stack([part.terms() for _, part in parts]).sum(0)
    norms = torch.maximum(squares, LOOSE**2 * terms).sqrt()
    return scale(norms, bound).nan_to_num(nan=0.0)


def gradients(owners: Ownership, x: Tensor, labels: Tensor) -> list[tuple[Layer, LayerGradients]]:
    """Records' gradients, each the mean over the record's views."""
    views = x.shape[1]
    x, labels = x.flatten(0, 1), labels.repeat_interleave(views)
    with _watched(owners.layers) as seen:
        model = owners.tuned.module
        loss = model.losses(model(x), labels).sum() / views
    outputs = torch.autograd.grad(loss, [put_out for _, put_out in seen])
    found: list[tuple[Layer, LayerGradients]] = [
        (layer, _of_layer(layer, taken, gradient, views))
        for layer, (taken, _), gradient in zip(owners.layers, seen, outputs, strict=True)
    ]
    if owners.rest.names:
        found.append((owners.rest, _of_whole(owners.rest, x, labels, views)))
    return found


@contextmanager
def _watched(layers: Sequence[Layer]) -> Iterator[list[Any]]:
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


def _of_layer(layer: Layer, taken: Tensor, gradient: Tensor, views: int) -> LayerGradients:
    """What each record's gradient of one layer is, in the cheapest form that its norm and its
    clipped sum can be made of.

    For y = x W^T over P positions a record's gradient is the sum over positions of g_p a_p^T. Its
    norm follows from two P x P products (ghost clipping: Goodfellow 2015; Li et al. 2022), which at
    few positions is less work than the gradient itself. A table's gradient is sparse: rows that a
    record looks up twice must be added before the norm is taken. A norm's scale and shift meet each
    position's normed value and nothing else. All other layers are differentiated record by record.

    Args:
        taken: what the layer was given, (records * views, ...).
        gradient: of the loss in what it put out, of the same records.
    """
    module, names = layer.module, layer.names
    if _is_product(module):
        a, g = _positions(taken, module, views), _positions(gradient, module, views)
        if "weight" not in names:
            return Made([g.sum(1)])
        product = Product(g, a, "bias" in names, is_turned(module))
        return product if product.is_cheap else product.made()

    if _is_table(module):
        rows = taken.reshape(-1, views * taken.shape[1])
        g = gradient.reshape(-1, views * taken.shape[1], gradient.shape[2])
        # whose row is never trained
        padding = -1 if module.padding_idx is None else module.padding_idx
        return Looked(g.masked_fill((rows == padding)[..., None], 0.0), rows, module.num_embeddings)

    if is_layer_norm(module) or is_frozen_norm(module):
        return _summed(_of_norm(module, taken, gradient), layer, views)

    def along(weights: dict[str, Tensor], one: Tensor, its: Tensor) -> Tensor:
        return (functional_call(module, weights, (one[None],))[0] * its).sum()

    return _summed(vmap(grad(along), (None, 0, 0))(layer.weights, taken, gradient), layer, views)


def _of_norm(
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


def _of_whole(rest: Layer, x: Tensor, labels: Tensor, views: int) -> Made:
    """Each record's gradient of all that is no layer of its own, by differentiating the rest of the
    network record by record: a record's loss is the mean over its views, which is what is
    clipped."""
    told: Any = rest.module.losses

    def loss(weights: dict[str, Tensor], one: Tensor, label: Tensor) -> Tensor:
        put_out = functional_call(rest.module, weights, (one[None],))
        found: Tensor = told(put_out, label[None]).sum() / views
        return found

    with warnings.catch_warnings():
        # in attention, which is batched by hand
        warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
        return _summed(vmap(grad(loss), (None, 0, 0))(rest.weights, x, labels), rest, views)


def _summed(found: Mapping[str, Tensor], layer: Layer, views: int) -> Made:
    return Made(
        [found[name].reshape(-1, views, found[name][0].numel()).sum(1) for name in layer.names]
    )


def _is_product(module: nn.Module) -> bool:
    """Whether each output is one matrix times one input: a linear layer, or a convolution without a
    neighbourhood."""
    if is_plain(module, nn.Linear) or is_turned(module):
        return True
    return (
        is_plain(module, nn.Conv2d)
        and (module.kernel_size, module.stride, module.groups) == ((1, 1), (1, 1), 1)
        and module.padding in ("same", "valid", (0, 0))
    )


def _is_table(module: nn.Module) -> TypeGuard[nn.Embedding]:
    return (
        is_plain(module, nn.Embedding) and module.max_norm is None and not module.scale_grad_by_freq
    )


def _positions(values: Tensor, module: nn.Module, views: int) -> Tensor:
    """As (records, positions, width): views are positions too."""
    if type(module) is nn.Conv2d:
        rows = values.flatten(2).mT
    else:
        rows = values.flatten(1, -2) if values.ndim > 2 else values[:, None]
    return rows if views == 1 else rows.reshape(-1, views * rows.shape[1], rows.shape[2])


def owners_of(tuned: Tuned, width: int) -> Ownership:
    """Owners of the trained tensors: layers without layers in them that are used once, on one
    tensor; else the whole. Its weights are laid out with channels last, which makes convolutions a
    tenth faster and moves no value."""
    tuned.module.to(memory_format=torch.channels_last)
    x = torch.zeros(2, width, device=tuned.base.device, dtype=tuned.base.dtype)
    try:
        uses, overwritten, floats = _probed(tuned.module, x)
    except Exception as error:  # a network that reaches into its layers finds adapters there
        raise _untrainable(tuple(tuned.trained), "cannot be computed") from error
    ends = torch.tensor([weight.numel() for weight in tuned.trained.values()]).cumsum(0).tolist()
    places = {
        name: slice(end - weight.numel(), end)
        for end, (name, weight) in zip(ends, tuned.trained.items(), strict=True)
    }
    known = {id(weight): name for name, weight in tuned.trained.items()}
    owners: dict[str, list[tuple[nn.Module, str]]] = {}
    for module in tuned.module.modules():
        for own, weight in module.named_parameters(recurse=False):
            if id(weight) in known:
                owners.setdefault(known[id(weight)], []).append((module, own))
    own_of: dict[nn.Module, list[tuple[str, str]]] = {}
    rest = []
    for name, owned in owners.items():
        module, own = owned[0]
        if len(owned) == 1 and uses[module] == 1:
            own_of.setdefault(module, []).append((own, name))
        else:
            rest.append(name)
    layers = tuple(
        Layer(
            module,
            tuple(own for own, _ in names),
            tuple(places[name] for _, name in names),
            module in overwritten,
        )
        for module, names in own_of.items()
    )
    whole = Layer(tuned.module, tuple(rest), tuple(places[name] for name in rest))
    made = sum(slot.stop - slot.start for layer in (*layers, whole) for slot in layer.places)
    return Ownership(tuned, layers, whole, 4 * floats + 3 * made)


def _probed(model: nn.Module, x: Tensor) -> tuple[Counter[nn.Module], frozenset[nn.Module], int]:
    """How often each layer is used on one tensor of a row per record, whose outputs are written
    over, and the numbers that a record fills on its way."""
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

    with ExitStack() as stack, torch.no_grad():
        for module in model.modules():
            # One with layers in it would be run once more, with hooks on them.
            if next(module.parameters(), None) is None or all(
                next(part.parameters(), None) is None for part in module.children()
            ):
                stack.enter_context(module.register_forward_hook(hook, with_kwargs=True))
        model(x)
    overwritten = frozenset(module for module, one, found in put_out if one._version > found)
    return uses, overwritten, floats


def refuse_mixing(owners: Ownership, chunk: int, views: int, width: int, classes: int) -> None:
    """Privacy rests on gradients that follow from their own record alone, so see it on this very
    module and machine, on public noise: with another record among them, all others' logits and
    gradients stay the same to the last bit."""
    random = torch.Generator().manual_seed(0)
    draw, count = owners.tuned.module.draw, max(chunk, 2)
    x, labels = _probes(owners, random, (count, views, width), classes)
    other, moved = x.clone(), labels.clone()
    place = count // 2
    other[place], moved[place] = draw(random, views), (labels[place] + 1) % classes
    device = owners.tuned.base.device
    one = _shown(owners, x.to(device), labels.to(device))
    two = _shown(owners, other.to(device), moved.to(device))
    same = torch.arange(len(x), device=device) != place
    if not all(torch.equal(a[same], b[same]) for a, b in zip(one, two, strict=True)):
        raise Refused(
            "learner.trains: in this network a record's output or gradient depends on the other "
            "records of its batch, which no privacy guarantee allows. Choose another "
            "features.model, or cut above the layer that mixes them."
        )


def refuse_untrainable(owners: Ownership, views: int, width: int, classes: int) -> None:
    """Refuse a network whose clipped sum is not that of plain autograd, as two public random
    records show."""
    x, labels = _probes(owners, torch.Generator().manual_seed(1), (2, views, width), classes)
    device = owners.tuned.base.device
    x, labels = x.to(device), labels.to(device)
    factor = torch.tensor([1.0, -0.5], dtype=torch.float64, device=device)
    try:
        parts = gradients(owners, x, labels)
        norms = torch.stack([part.squares() for _, part in parts]).sum(0).sqrt()
        found = _laid_out(owners, parts, factor)
    except Exception as error:  # whatever another's layers trip over
        raise _untrainable(
            owners.rest.names or tuple(owners.tuned.trained), "cannot be computed"
        ) from error
    wanted = _by_autograd(owners, x, labels)
    apart, slack = (found - factor @ wanted).abs(), CLOSE * wanted.norm() + FLOOR
    if not (apart.norm() <= slack and (norms - wanted.norm(dim=1)).norm() <= slack):
        worst = int(apart.nan_to_num(math.inf).argmax())
        places = torch.tensor([weight.numel() for weight in owners.tuned.trained.values()]).cumsum(
            0
        )
        name = [*owners.tuned.trained][int((places <= worst).sum())]
        raise _untrainable((name,), "are not those of plain autograd")


def _untrainable(names: Sequence[str], why: str) -> Refused:
    shown = names[0].removeprefix("network.")
    more = f" and of {len(names) - 1} more tensors" if len(names) > 1 else ""
    return Refused(
        f"learner.trains: records' gradients of {shown}{more} {why}, as public random records "
        "show, so this network cannot be trained privately. Set a learner.trains that leaves these "
        "tensors out (head leaves all), or another features.model: BERT, RoBERTa, MiniLM and Llama "
        "work, and timm's ViTs, ResNets and EfficientNets."
    )


def _probes(
    owners: Ownership, random: torch.Generator, shape: tuple[int, int, int], classes: int
) -> tuple[Tensor, Tensor]:
    """Public random records, as (records, views, width), and labels of theirs."""
    x = owners.tuned.module.draw(random, shape[0] * shape[1]).reshape(shape)
    return x, torch.randint(0, classes, (shape[0],), generator=random)


def _laid_out(
    owners: Ownership, parts: Sequence[tuple[Layer, LayerGradients]], factor: Tensor
) -> Tensor:
    """The records' gradients, each times its factor, added up in the vector's order."""
    total = torch.zeros_like(owners.tuned.base, dtype=torch.float64)
    for layer, part in parts:
        for place, found in zip(layer.places, part.sums(factor), strict=True):
            total[place] += found
    return total


def _by_autograd(owners: Ownership, x: Tensor, labels: Tensor) -> Tensor:
    """Records' gradients as (records, numbers), in the plain way, which takes a backward pass for
    each."""
    views, model, trained = x.shape[1], owners.tuned.module, [*owners.tuned.trained.values()]
    for weight in trained:
        weight.requires_grad_()
    try:
        each = (
            model.losses(model(x.flatten(0, 1)), labels.repeat_interleave(views))
            .view(-1, views)
            .mean(1)
        )
        found = [
            torch.autograd.grad(loss, trained, retain_graph=True, materialize_grads=True)
            for loss in each
        ]
    finally:
        for weight in trained:
            weight.requires_grad_(False)
    return torch.stack([torch.cat([one.flatten() for one in record]) for record in found]).double()


def _shown(owners: Ownership, x: Tensor, labels: Tensor) -> list[Tensor]:
    """All that a chunk's records add to a sum, each by itself, and their logits."""
    with torch.no_grad():
        shown = [owners.tuned.module(x.flatten(0, 1)).reshape(*x.shape[:2], -1)]
    for _, part in gradients(owners, x, labels):
        shown += part.shown
    return shown
