"""A public network trained on labelled public records, without noise: all that lies above a cut,
from the public head on. It costs nothing, and private trainings rest on it as on any other public
network (`dpladder tune`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpladder.config.learner_sections import Tuning
from dpladder.config.model import Resources
from dpladder.learn import public_head
from dpladder.learn.data import Data
from dpladder.learn.descent import split_into_shapes
from dpladder.learn.finetune.parts import Tuned, merged_tensors, start, tuned_model
from dpladder.learn.finetune.predict import seen_by_head
from dpladder.learn.finetune.shapes import shapes
from dpladder.learn.interface import Constants, public_random
from dpladder.learn.records import prepare
from dpladder.progress import progress

LEARNER = Tuning(name="public", trains="all", bias=True, init="public")
FOLDS = 5  # one record of so many is held out, to choose how long to train
BATCH, RATE = 32, 3e-4  # of Adam (Kingma & Ba 2015)


@dataclass(frozen=True, eq=False)
class PublicNetwork:
    """A public network that was trained on public records.

    Attributes:
        tensors: the network's own above the cut, by its names.
        right: shares of held-out records that it is right about: before it is trained on the
            others, and after each epoch of that.
        epochs: how many the training on all records took.
    """

    tensors: dict[str, Tensor]
    right: Sequence[float]
    epochs: int


def tune_network(
    data: Data, constants: Constants, epochs: int, resources: Resources
) -> PublicNetwork:
    """Train for as many epochs as leave the least loss on held-out records, `epochs` at most and
    none at least.

    No noise is added: the records are declared public.

    Args:
        data: public records, with labels.
        constants: public sizes, and the network with its cut.
        epochs: at most.
        resources: threads, memory and device.
    """
    device, held_out = prepare(resources), np.arange(len(data.labels)) % FOLDS == 0
    training, judges = _part(data, ~held_out), _part(data, held_out)
    judged = [
        _evaluate_model(model, judges)
        for model in _train_epochs(training, constants, epochs, device)
    ]
    best = int(np.nanargmin([loss for loss, _ in judged]))
    *_, model = _train_epochs(data, constants, best, device)
    reached = torch.cat([weight.detach().flatten() for weight in model.trained.values()])
    moved = (reached - model.base).cpu().numpy()
    tensors = merged_tensors(
        LEARNER, constants, split_into_shapes(moved, shapes(LEARNER, constants).values())
    )
    return PublicNetwork(tensors, [right for _, right in judged], best)


def _part(data: Data, rows: NDArray[np.bool_]) -> Data:
    """Some of the records."""
    return Data(data.features[rows], data.labels[rows])


def _train_epochs(
    data: Data, constants: Constants, epochs: int, device: torch.device
) -> Iterator[Tuned]:
    """One model, with the public head on the network as it is, and after each epoch. Norms keep the
    statistics that they come with, as in private trainings."""
    order = public_random(constants)
    seen = seen_by_head(LEARNER, constants)
    head, _ = public_head.fit_public_head(data, constants.classes, seen)
    model = tuned_model(LEARNER, constants).copy_to(device)
    model.set_difference(start(LEARNER, constants, model, head).float().to(device))
    weights = [weight.requires_grad_() for weight in model.trained.values()]
    optimizer = torch.optim.Adam(weights, RATE)
    batches = math.ceil(len(data.labels) / BATCH)
    yield model
    with progress("tuning", epochs, "epochs") as advance:
        for _ in range(epochs):
            for rows in np.array_split(order.permutation(len(data.labels)), batches):
                optimizer.zero_grad()
                torch.autograd.backward(_losses(model, data, rows)[0].mean())
                optimizer.step()
            advance(1)
            yield model


@torch.no_grad()
def _evaluate_model(model: Tuned, data: Data) -> tuple[float, float]:
    """The mean loss, and the share of records that it is right about."""
    each = np.array_split(np.arange(len(data.labels)), math.ceil(len(data.labels) / BATCH))
    results = [_losses(model, data, rows) for rows in each]
    losses, right = (torch.cat(one).double().mean().item() for one in zip(*results, strict=True))
    return losses, right


def _losses(model: Tuned, data: Data, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
    """For some records each loss, and whether it is right."""
    device = model.base.device
    x = torch.from_numpy(np.asarray(data.features[rows], np.float32)).to(device)
    labels = torch.from_numpy(data.labels[rows]).to(device)
    logits = model.module(x)
    return model.module.losses(logits, labels), logits.argmax(1) == labels
