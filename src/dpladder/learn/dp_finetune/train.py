"""DP fine-tuning: a public network from a cut on, with a head, under Algorithm 1; all randomness
from the meter."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from dpladder.config.learner_sections import (
    FineTune,
    StepSizeFreeTuning,
    Tuning,
    guided,
    starts_bought,
)
from dpladder.config.model import Resources
from dpladder.errors import BadInput
from dpladder.learn import guide, linear
from dpladder.learn.bounds import Scale, scale_of
from dpladder.learn.descent import Begin, Bounded, Guide, Sums, descend, momentum
from dpladder.learn.dp_finetune.clipping import clipped_sum, summed_losses
from dpladder.learn.dp_finetune.cost import shapes
from dpladder.learn.dp_finetune.owners import Ownership, owners_of
from dpladder.learn.dp_finetune.parts import AboveCut, Tuned, start, tuned_of
from dpladder.learn.dp_finetune.probing import refuse_mixing, refuse_untrainable
from dpladder.learn.heads.train import adam
from dpladder.learn.interface import (
    Constants,
    Data,
    Hyper,
    Losses,
    Rights,
    Weights,
    public_random,
)
from dpladder.learn.records import LONGEST, Records, Rows, load, prepare
from dpladder.learn.score import by_themselves, correct_count
from dpladder.network.facts import Network
from dpladder.privacy.release.meter import Meter

CPU = torch.device("cpu")
ROWS = 32  # of logits computed at a time
FEW = 4  # of losses: a language model has a logit for each of its words, at each token


@dataclass(frozen=True, eq=False)
class Seen:
    """What the head sees of records' activations, computed when it is read, `chunk` at a time."""

    stored: Any
    module: AboveCut
    chunk: int
    width: int

    @property
    def shape(self) -> tuple[int, ...]:
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
        batches = _in_batches(self.module.pooled, flat, self.chunk, torch.float32, device)
        found = np.concatenate([np.empty((0, self.width), np.float32), *batches]).reshape(
            *views.shape[:2], -1
        )
        found[~sound] = 0.0
        return found if x.ndim == 3 else found[:, 0]


def train(
    data: Data,
    hyper: Hyper,
    learner: FineTune,
    constants: Constants,
    meter: Meter,
    resources: Resources,
) -> Weights:
    """How far each trained tensor is from where it started: in the public network, and from zero in
    the head."""
    return by_steps_of(_begin(learner), data, hyper, learner, constants, meter, resources)


def by_steps_of(
    begin: Begin,
    data: Data,
    hyper: Hyper,
    learner: FineTune | StepSizeFreeTuning,
    constants: Constants,
    meter: Meter,
    resources: Resources,
) -> Weights:
    """The same by any update."""
    scale = scale_of(learner.clipping)
    data = followed(data, learner, constants, meter) if guided(learner) else data
    sums, first = begun(data, learner, constants, resources, scale)
    beside = (
        _guide_of(data, learner, constants, hyper.steps, resources, scale)
        if guided(learner)
        else None
    )
    flat = descend(
        sums.gradients,
        first,
        sums.records,
        [guide.of_steps(learner, hyper)],
        learner,
        constants,
        [meter],
        begin,
        data.units,
        beside,
    )[0]
    return apart(flat, learner, constants)


def followed(
    data: Data, learner: FineTune | StepSizeFreeTuning, constants: Constants, meter: Meter
) -> Data:
    """The same records, told what their public sample is worth to a training that it guides
    (learn/guide.py). One that is worth nothing has no head to start from either; a head that was
    bought stays."""
    if data.sample is None or data.start is None:
        raise BadInput(
            f"learner.public: {learner.public} has no public records, or no head. The workflow has "
            "them from dataset.public_sample."
        )
    worth = data.worth
    if worth is None:
        labels = np.asarray(data.sample.labels)
        units = linear.units_of(data.sample, (labels >= 0) & (labels < constants.classes))
        worth = float(units)
        if guide.looks(learner):
            assert data.claim is not None, "the head comes with what it claims (jobs/find_start.py)"
            right, scale = looked(data, learner, constants, meter)
            worth = guide.worth(units, right, data.claim, scale, constants)
    stays = worth > 0 or starts_bought(learner)
    return replace(data, worth=worth, start=data.start if stays else np.zeros_like(data.start))


def looked(
    data: Data, learner: FineTune | StepSizeFreeTuning, constants: Constants, meter: Meter
) -> tuple[float, float]:
    """How many records the public head is right about above the public network, with noise, and how
    large that is."""
    first = start(learner, constants, tuned_of(learner, constants), data.start)
    own = partial(logits, learner, constants)
    weights = apart(first.float().numpy(), learner, constants)
    right = np.asarray(correct_count(weights, data.features, data.labels, own))
    noise = meter.noise(guide.LOOK, ())
    return float(noise.onto(right)), noise.scale


def _guide_of(
    data: Data,
    learner: FineTune | StepSizeFreeTuning,
    constants: Constants,
    steps: int,
    resources: Resources,
    scale: Scale,
) -> Guide | None:
    """The public records that a learner is guided by, by the directions that its head sees: all of
    them at each step where the head alone moves, else a batch."""
    sample, worth = data.sample, data.worth
    if sample is None or not worth:
        return None
    plain, device = learner.model_copy(update={"augment": 1}), prepare(resources)
    owners, chunk = _planned(plain, constants, device, resources)
    head = _of_the_head(sample, plain, constants, owners.tuned, chunk, resources, scale)
    units = linear.units_of(sample, _counted(head.records, sample))
    directions = linear.directions_apart(head.records)
    if learner.trains == "head":
        whole = [head.records.chunks()]
        return Guide(whole, head.gradients, directions, units, lambda meters: [worth])
    records = load(sample, constants, device, chunk=chunk, memory_mb=resources.mem_mb)
    batches = _batches(records, _counted(records, sample), constants)
    gradients = partial(clipped_sum, owners, records, scale=scale)
    met = min(worth, float(steps * guide.BATCH))
    return Guide(batches, gradients, directions, units, lambda meters: [met])


def _counted(records: Records, data: Data) -> NDArray[np.bool_]:
    return records.counted[: len(data.labels)].cpu().numpy()


def _batches(
    records: Records, counted: NDArray[np.bool_], constants: Constants
) -> list[list[Rows]]:
    """A sample's records in a public random order, cut into batches of nearly one size."""
    order = public_random(constants).permutation(np.flatnonzero(counted))
    found = []
    for batch in np.array_split(order, max(1, math.ceil(len(order) / guide.BATCH))):
        mask = np.zeros(len(records), bool)
        mask[batch] = True
        found.append(records.chosen(mask))
    return found


def ready(learner: Tuning, constants: Constants, resources: Resources) -> None:
    """Refuse a network that cannot be trained, on public random records: before a training is
    charged."""
    _planned(learner, constants, prepare(resources), resources)


def begun(
    data: Data, learner: Tuning, constants: Constants, resources: Resources, scale: Scale
) -> tuple[Sums, Tensor]:
    """What a training asks of its records, and the vector that it starts from."""
    device = prepare(resources)
    first = start(learner, constants, tuned_of(learner, constants), data.start).to(device)
    return _sums_of(data, learner, constants, device, resources, scale), first


def _sums_of(
    data: Data,
    learner: Tuning,
    constants: Constants,
    device: torch.device,
    resources: Resources,
    scale: Scale,
) -> Sums:
    """The records, and how their losses and clipped gradients are summed."""
    owners, chunk = _planned(learner, constants, device, resources)
    if learner.trains == "head":
        return _of_the_head(data, learner, constants, owners.tuned, chunk, resources, scale)
    records = load(
        data, constants, device, chunk=chunk, memory_mb=resources.mem_mb, views=learner.augment
    )
    gradients = partial(clipped_sum, owners, records, scale=scale)
    return Sums(
        records,
        gradients,
        partial(summed_losses, owners.tuned, records),
        owners.tuned.module.knowing_nothing,
    )


def _planned(
    learner: Tuning, constants: Constants, device: torch.device, resources: Resources
) -> tuple[Ownership, int]:
    """Who owns what, and how many records are computed at a time, once both are seen to work."""
    torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = False, True
    owners = owners_of(tuned_of(learner, constants).copied(device), constants.dimension)
    chunk = owners.chunk(resources.mem_mb, learner.augment)
    _check(learner, constants.classes, constants.dimension, constants.network, device, chunk)
    return owners, chunk


def _of_the_head(
    data: Data,
    learner: Tuning,
    constants: Constants,
    tuned: Tuned,
    chunk: int,
    resources: Resources,
    scale: Scale,
) -> Sums:
    """Below the head nothing moves: what it sees is computed once, as far as it fits into memory,
    and not at each step."""
    module = tuned.module
    assert isinstance(module, AboveCut), "a language model has no head of its own"
    width = module.head.in_features - learner.bias
    seen = Seen(data.features, module, chunk, width)
    lower = replace(constants, dimension=width, network=None)
    records, threads = linear.resident(
        replace(data, features=seen), lower, resources, learner.augment, learner.bias
    )
    heads = (-1, constants.classes, width + learner.bias)
    sums = linear.sums_of(records, threads, scale, module.link)

    def gradients(weights: Tensor, bound: float, rows: list[Rows]) -> Tensor:
        return sums.gradients(weights.view(heads), bound, rows).flatten(1)

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
    built = tuned_of(learner, constants)
    # under a head of zeros no gradient gets through
    random = learner.model_copy(update={"init": "random", "head": None, "public": "none"})
    owners = owners_of(built.copied(device), dimension)
    owners.tuned.put(start(random, constants, built).float().to(device))
    refuse_untrainable(owners, learner.augment, dimension, classes)
    refuse_mixing(owners, chunk, learner.augment, dimension, classes)


def _begin(learner: FineTune) -> Begin:
    return momentum(learner) if learner.optimizer == "momentum" else adam(learner)


def apart(flat: NDArray[np.float32], learner: Tuning, constants: Constants) -> Weights:
    """The trained tensors, each by itself."""
    each = [*shapes(learner, constants).values()]
    ends = np.cumsum([math.prod(shape) for shape in each])
    return tuple(
        part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), each, strict=True)
    )


def logits(
    learner: Tuning, constants: Constants, weights: Weights, features: Any
) -> NDArray[np.float64]:
    """In float64 and in batches of one size, so that rounding inside the network, which may depend
    on the other rows, tips no prediction but one that is a tie to 15 digits; the head tips none."""
    module = _put(learner, constants, weights).module
    assert isinstance(module, AboveCut), "a language model has no head of its own"
    head = module.head.weight.numpy()
    rows = _in_batches(module.seen_by_head, features, ROWS)
    seen = np.concatenate([np.empty((0, head.shape[1])), *rows])
    return by_themselves((head,), seen)


def seen_by_head(learner: Tuning, constants: Constants, features: Any) -> NDArray[np.float64]:
    """Of a classifier, what the public network makes of activations at the cut."""
    tuned = tuned_of(learner, constants).copied(CPU, torch.float64)
    assert isinstance(tuned.module, AboveCut), "a language model has no head of its own"
    return np.concatenate([*_in_batches(tuned.module.seen_by_head, features, ROWS)])


def losses(learner: Tuning, constants: Constants) -> Losses | Rights | None:
    """Of a language model, how wrong it is about each record: knowing nothing costs the log of how
    many words there are. Of one that finds answers, whether it is right."""
    network = constants.network
    told = partial(_told, learner, constants, size=FEW)
    if network is not None and network.speaks:
        return Losses(told, tuned_of(learner, constants).module.knowing_nothing)
    answers = network is not None and network.answers
    return Rights(partial(told, says=attrgetter("right"))) if answers else None


def answered(
    learner: Tuning, constants: Constants, weights: Weights, features: Any
) -> NDArray[np.int64]:
    """Of each question with its context, the answer's first and last token; 0 where it has
    none."""
    say = attrgetter("answered")
    found = _told(learner, constants, weights, features, size=FEW, width=(2,), says=say)
    return found.astype(np.int64)


def _told(
    learner: Tuning,
    constants: Constants,
    weights: Weights,
    features: Any,
    *,
    size: int,
    width: tuple[int, ...] = (),
    says: Callable[[Any], Callable[[Tensor], Tensor]] = lambda module: module,
) -> NDArray[np.float64]:
    """What the model says of each record, in float64 and in batches of one size. `says`: of its
    module, what is asked."""
    module = _put(learner, constants, weights).module
    rows = _in_batches(says(module), features, size)
    return np.concatenate([np.empty((0, *width)), *rows])


def _put(learner: Tuning, constants: Constants, weights: Weights) -> Tuned:
    """The model with these weights, in float64."""
    tuned = tuned_of(learner, constants).copied(CPU, torch.float64)
    tuned.put(torch.from_numpy(np.concatenate([np.ravel(part) for part in weights])).double())
    return tuned


@torch.inference_mode()
def _in_batches(
    module: Callable[[Tensor], Tensor],
    features: Any,
    size: int,
    kind: torch.dtype = torch.float64,
    device: torch.device = CPU,
) -> Iterator[NDArray[Any]]:
    for first in range(0, len(features), size):
        rows = torch.from_numpy(np.asarray(features[first : first + size])).to(device, kind)
        yield module(pad(rows, (0, 0, 0, size - len(rows))))[: len(rows)].cpu().numpy()
