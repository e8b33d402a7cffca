"""The records above a cut, and what fine-tuning sums up of them: clipped gradients and losses of
the whole network, or of its head alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import pad

from dpladder.config.learner_sections import Tuning
from dpladder.config.model import Resources
from dpladder.learn import guide, linear
from dpladder.learn.bounds import Scale
from dpladder.learn.data import Data
from dpladder.learn.finetune.clipping import clipped_sum, summed_losses
from dpladder.learn.finetune.owners import Ownership, owners_of
from dpladder.learn.finetune.parts import AboveCut, Tuned, start, tuned_model
from dpladder.learn.finetune.probing import refuse_mixing, refuse_untrainable
from dpladder.learn.interface import Constants, public_random
from dpladder.learn.queries import Flat
from dpladder.learn.records import LONGEST, Bounded, Guide, Records, Rows, Sums, load, prepare
from dpladder.network.facts import Network

CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class Seen:
    """What the head sees of records' activations, computed when it is read, `chunk` at a time.

    It is an array to those who read it, and nothing but the rows asked for is ever in memory.

    Attributes:
        stored: activations at the cut, (records, width) or (records, views, width).
        module: the network, which nothing trains.
        chunk: records computed at a time.
        width: numbers that the head sees of a record.
    """

    stored: Any
    module: AboveCut
    chunk: int
    width: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape: (records, width) or (records, views, width)."""
        return (*self.stored.shape[:-1], self.width)

    @property
    def ndim(self) -> int:
        return len(self.stored.shape)

    def __len__(self) -> int:
        return len(self.stored)

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        """Zero for a record that counts as nothing by its activations (learn/records.py)."""
        x = np.asarray(self.stored[rows], np.float32)
        views = x if x.ndim == 3 else x[:, None]
        squares = np.square(views, dtype=np.float64).sum(axis=2)
        sound = (squares > 0).any(axis=1) & (squares <= LONGEST).all(axis=1)
        flat = np.where(sound[:, None, None], views, 0.0).reshape(-1, x.shape[-1])
        device = self.module.head.weight.device
        batches = forward_batches(self.module.pooled, flat, self.chunk, torch.float32, device)
        head_rows = np.concatenate([np.empty((0, self.width), np.float32), *batches]).reshape(
            *views.shape[:2], -1
        )
        head_rows[~sound] = 0.0
        return head_rows if x.ndim == 3 else head_rows[:, 0]


def sums_of(model: Flat, data: Data, constants: Constants, resources: Resources) -> Sums:
    """The records, and how their losses and clipped gradients are summed: the engine that `Flat`
    names.

    Args:
        model: whose options are a learner's section.
        data: activations at the cut, private.
        constants: public sizes, and the network.
        resources: threads, memory and device.

    Raises:
        Refused: as `plan_chunks`.
    """
    learner: Tuning = model.options
    device = prepare(resources)
    owners, chunk = plan_chunks(learner, constants, device, resources)
    if learner.trains == "head":
        return _head_only_sums(data, learner, constants, owners.tuned, chunk, resources)
    records = load(
        data, constants, device, chunk=chunk, memory_mb=resources.mem_mb, views=learner.augment
    )
    losses = partial(summed_losses, owners.tuned, records)
    return Sums(records, partial(clipped_sum, owners, records), losses)


def guide_of(model: Flat, sample: Data, constants: Constants, resources: Resources) -> Guide:
    """The public records that a learner is guided by, by the directions that its head sees.

    Where the head alone moves, all of them come at each step, else a batch.

    Args:
        model: whose options are a learner's section.
        sample: public records.
        constants: public sizes, and the network.
        resources: threads, memory and device.
    """
    learner: Tuning = model.options.model_copy(update={"augment": 1})
    device = prepare(resources)
    owners, chunk = plan_chunks(learner, constants, device, resources)
    head = _head_only_sums(sample, learner, constants, owners.tuned, chunk, resources)
    units = linear.units_of(sample, _counted_rows(head.records, sample))
    directions = linear.effective_width_of_differences(head.records)
    if learner.trains == "head":
        return Guide(head.gradients, [head.records.chunks()], directions, units)
    records = load(sample, constants, device, chunk=chunk, memory_mb=resources.mem_mb)
    batches = _batches(records, _counted_rows(records, sample), constants)
    return Guide(partial(clipped_sum, owners, records), batches, directions, units)


def _counted_rows(records: Records, data: Data) -> NDArray[np.bool_]:
    """Whether each record of a sample counts, without the rows that fill up chunks."""
    return records.counted[: len(data.labels)].cpu().numpy()


def _batches(
    records: Records, counted: NDArray[np.bool_], constants: Constants
) -> list[list[Rows]]:
    """A sample's records in a public random order, cut into batches of nearly one size."""
    order = public_random(constants).permutation(np.flatnonzero(counted))
    batches = []
    for batch in np.array_split(order, max(1, math.ceil(len(order) / guide.BATCH))):
        mask = np.zeros(len(records), bool)
        mask[batch] = True
        batches.append(records.select_rows(mask))
    return batches


def plan_chunks(
    learner: Tuning, constants: Constants, device: torch.device, resources: Resources
) -> tuple[Ownership, int]:
    """Which layer owns which tensor, and how many records are computed at a time.

    Raises:
            Refused: public random records show that on this machine the network mixes records, or
            rounds one by its place among others. Or its clipped sums are not those of autograd.
    """
    torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = False, True
    owners = owners_of(tuned_model(learner, constants).copy_to(device), constants.dimension)
    chunk = owners.chunk(resources.mem_mb, learner.augment)
    _check(learner, constants.classes, constants.dimension, constants.network, device, chunk)
    if learner.trains == "head":
        lower = _below_head(owners.tuned.module, learner, constants)
        linear.refuse_places(lower, resources, learner.bias, learner.augment)
    return owners, chunk


def _below_head(module: nn.Module, learner: Tuning, constants: Constants) -> Constants:
    """What a head sees of records, in place of the network."""
    assert isinstance(module, AboveCut), "a language model has no head of its own"
    return replace(constants, dimension=module.head.in_features - learner.bias, network=None)


def _head_only_sums(
    data: Data,
    learner: Tuning,
    constants: Constants,
    tuned: Tuned,
    chunk: int,
    resources: Resources,
) -> Sums:
    """Below the head nothing moves: what it sees is computed once, as far as it fits into memory,
    and not at each step."""
    module, lower = tuned.module, _below_head(tuned.module, learner, constants)
    assert isinstance(module, AboveCut), "a language model has no head of its own"
    width = lower.dimension
    seen = Seen(data.features, module, chunk, width)
    records = linear.resident(
        replace(data, features=seen), lower, resources, learner.augment, learner.bias
    )
    # from here on threads share out chunks, and no two meet inside an operation
    torch.set_num_threads(1)
    heads = (-1, constants.classes, width + learner.bias)
    sums = linear.sums_of(records, linear.threads_of(records, resources), module.link)

    def gradients(weights: Tensor, bound: float, rows: list[Rows], scale: Scale) -> Tensor:
        return sums.gradients(weights.view(heads), bound, rows, scale).flatten(1)

    def losses(weights: Tensor, bounded: Bounded, rows: list[Rows]) -> Tensor:
        return sums.losses(weights.view(heads), bounded, rows)

    return replace(sums, gradients=gradients, losses=losses)


@cache
def _check(
    learner: Tuning,
    classes: int,
    dimension: int,
    network: Network | None,
    device: torch.device,
    chunk: int,
) -> None:
    """Once in a process: what is checked are the network and the machine."""
    constants = Constants(1, classes, dimension, network=network)
    built = tuned_model(learner, constants)
    # under a head of zeros no gradient gets through
    random = learner.model_copy(update={"init": "random", "head": None, "public": "none"})
    owners = owners_of(built.copy_to(device), dimension)
    owners.tuned.set_difference(start(random, constants, built).float().to(device))
    refuse_untrainable(owners, learner.augment, dimension, classes)
    refuse_mixing(owners, chunk, learner.augment, dimension, classes)


@torch.inference_mode()
def forward_batches(
    module: Callable[[Tensor], Tensor],
    features: Any,
    size: int,
    kind: torch.dtype = torch.float64,
    device: torch.device = CPU,
) -> Iterator[NDArray[Any]]:
    """What a module makes of features, in batches of one size, the last one filled up with zeros.

    A product of another shape would round a record in another way.

    Args:
        module: from (size, width) to (size, ...).
        features: (records, width).
        size: records of a batch.
        kind: that features are computed in.
        device: that the module lies on.

    Yields:
        Of each batch (records, ...), without what filled it up.
    """
    for first in range(0, len(features), size):
        rows = torch.from_numpy(np.asarray(features[first : first + size])).to(device, kind)
        yield module(pad(rows, (0, 0, 0, size - len(rows))))[: len(rows)].cpu().numpy()
