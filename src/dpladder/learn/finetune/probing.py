"""What this very network does on this very machine, seen on public random records before anything
private is read.

It shows that no record moves another one's gradient, and that clipped sums are those of plain
autograd.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dpladder.errors import Refused
from dpladder.learn.finetune.clipping import gradients
from dpladder.learn.finetune.owners import Ownership, untrainable_error

CLOSE = 1e-2  # of a gradient's norm: what float32 may round on the way through a deep network
ROUNDED = 2.0**-14  # of a gradient, which its place may round by: what LOOSE pays for
FLOOR = 1e-5  # of a gradient that is nothing but rounding


def refuse_mixing(owners: Ownership, chunk: int, views: int, width: int, classes: int) -> None:
    """Refuse a network in which a record's gradient hangs on more than the record.

    Privacy rests on that, so see it on this very module, machine and number of threads, on public
    noise, to the last bit. With another record among them, all others' logits and gradients stay
    the same. And one record has the same logits in every place of a chunk. For whoever joins moves
    those behind by a place, and the last bit of a logit may decide on a gradient's direction. From
    there on a gradient is linear, and its rounding is paid for (LOOSE in clipping.py): by its place
    it may differ by that.

    Args:
        owners: of the network's trained tensors.
        chunk: records computed at a time.
        views, width: of a record.
        classes: of labels.

    Raises:
        Refused: a record moves another one, or is rounded by its place. Nothing was charged yet.
    """
    random = torch.Generator().manual_seed(0)
    draw, count = owners.tuned.module.draw, max(chunk, 2)
    x, labels = _probes(owners, random, (count, views, width), classes)
    other, moved = x.clone(), labels.clone()
    place = count // 2
    other[place], moved[place] = draw(random, views), (labels[place] + 1) % classes
    device = owners.tuned.base.device
    one = _contributions(owners, x.to(device), labels.to(device))
    two = _contributions(owners, other.to(device), moved.to(device))
    same = torch.arange(len(x), device=device) != place
    if not all(torch.equal(a[same], b[same]) for a, b in zip(one, two, strict=True)):
        raise Refused(
            "learner.trains: in this network a record's output or gradient depends on the other "
            "records of its batch, which no privacy guarantee allows. Choose another "
            "features.model, or cut above the layer that mixes them."
        )
    copies = (x[:1].expand_as(x).contiguous(), labels[:1].expand_as(labels).contiguous())
    logits, *contributions = _contributions(owners, *(one.to(device) for one in copies))
    parts = [part.double() for part in contributions]  # tokens are whole numbers, without a norm
    near = all((part - part[:1]).norm() <= ROUNDED * part.norm() for part in parts)
    if not (torch.equal(logits, logits[:1].expand_as(logits)) and near):
        raise Refused(
            "learner.trains: on this machine the network rounds a record by its place among "
            "others, so that one record could move what all others add. Set resources.threads: 1, "
            "or choose another features.model or learner.trains."
        )


def refuse_untrainable(owners: Ownership, views: int, width: int, classes: int) -> None:
    """Refuse a network whose clipped sum is not that of plain autograd, as two public random
    records show. A norm that is told too short would let a record move more than its bound.

    Args:
        owners: of the network's trained tensors.
        views, width: of a record.
        classes: of labels.

    Raises:
        Refused: norms or sums are not those of autograd, or cannot be computed.
    """
    x, labels = _probes(owners, torch.Generator().manual_seed(1), (2, views, width), classes)
    device = owners.tuned.base.device
    x, labels = x.to(device), labels.to(device)
    factor = torch.tensor([1.0, -0.5], dtype=torch.float64, device=device)
    try:
        parts = gradients(owners, x, labels)
        norms = torch.stack([part.squares() for _, part in parts]).sum(0).sqrt()
        # the records' gradients, each times its factor, added up in the vector's order
        total = torch.zeros_like(owners.tuned.base, dtype=torch.float64)
        for layer, part in parts:
            for place, part_sum in zip(layer.places, part.sums(factor), strict=True):
                total[place] += part_sum
    except Exception as error:  # whatever another's layers trip over
        raise untrainable_error(
            owners.rest.names or tuple(owners.tuned.trained), "cannot be computed"
        ) from error
    wanted = _autograd_gradients(owners, x, labels)
    apart, slack = (total - factor @ wanted).abs(), CLOSE * wanted.norm() + FLOOR
    if not (apart.norm() <= slack and (norms - wanted.norm(dim=1)).norm() <= slack):
        worst = int(apart.nan_to_num(math.inf).argmax())
        places = torch.tensor([weight.numel() for weight in owners.tuned.trained.values()]).cumsum(
            0
        )
        name = [*owners.tuned.trained][int((places <= worst).sum())]
        raise untrainable_error((name,), "are not those of plain autograd")


def _probes(
    owners: Ownership, random: torch.Generator, shape: tuple[int, int, int], classes: int
) -> tuple[Tensor, Tensor]:
    """Public random records, as (records, views, width), and labels of theirs."""
    x = owners.tuned.module.draw(random, shape[0] * shape[1]).reshape(shape)
    return x, torch.randint(0, classes, (shape[0],), generator=random)


def _autograd_gradients(owners: Ownership, x: Tensor, labels: Tensor) -> Tensor:
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
        gradients = [
            torch.autograd.grad(loss, trained, retain_graph=True, materialize_grads=True)
            for loss in each
        ]
    finally:
        for weight in trained:
            weight.requires_grad_(False)
    return torch.stack(
        [torch.cat([one.flatten() for one in record]) for record in gradients]
    ).double()


def _contributions(owners: Ownership, x: Tensor, labels: Tensor) -> list[Tensor]:
    """All that a chunk's records add to a sum, each by itself, and their logits."""
    with torch.no_grad():
        contributions = [owners.tuned.module(x.flatten(0, 1)).reshape(*x.shape[:2], -1)]
    for _, part in gradients(owners, x, labels):
        contributions += part.tensors
    return contributions
