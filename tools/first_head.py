"""Is the head that is bought for a network better where public records guide it? Public data,
seeded.

python tools/first_head.py [--samples 200] [--epsilons 0.25 0.5 1 2 4] [--repeats 5]
[--tune 20 --until blocks.3] [--cache FOLDER]

The images of finetune.py, as the public network puts them out: the first so many are public with
their labels, the others private. The head alone, with all of the total, as rule estimate_head
trains it; guided, it pays for its look. Mean and standard error. With `--tune` the public images
first train what lies above the cut, for so many epochs at most, as `dpladder tune` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from arena import load, with_units
from finetune import UNTIL, activations, beside
from numpy.typing import NDArray
from terminal import print_row, read_options
from torch import Tensor
from trainings import accuracy, trained

from dpladder.learn import linear
from dpladder.learn.data import Data
from dpladder.learn.finetune.parts import AboveCut, tuned_model
from dpladder.learn.finetune.public_network import tune_network
from dpladder.methods.dp_finetune import FineTune
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import Entry
from dpladder.research.arena import Arena
from dpladder.search.first_head import head_of, training_of_head

ALONE, GUIDED = head_of(True, "softmax", 1), head_of(True, "softmax", 1, "gradient", 0.05)


def main() -> None:
    options = read_options(
        __doc__,
        samples=[200],
        epsilons=[0.25, 0.5, 1.0, 2.0, 4.0],
        repeats=5,
        tune=0,
        until=UNTIL,
        cache=Path,
    )
    images = with_units(load("mnist5k", options.cache, threads=1))
    cut = activations(images, options.until, options.cache)
    for count in options.samples:
        arena = beside(put_out(cut, tuned_tensors(cut, count, options.tune)), count)
        start, sample = arena.train.start, arena.train.sample
        assert start is not None
        assert sample is not None
        seen = linear.resident(sample, arena.constants, arena.resources, bias=True)
        print(
            f"{count} public, their head alone: {accuracy(arena, (start,), ALONE):.3f}; "
            f"directions with the mean {linear.directions(seen):.1f}, without "
            f"{linear.effective_width_of_differences(seen):.1f}"
        )
        for epsilon in options.epsilons:
            for learner in (ALONE, GUIDED):
                entry, right = Entry(gdp.mu_from_epsilon(epsilon, arena.constants.delta)), []
                training = training_of_head(learner, entry, arena.constants)
                for again in range(options.repeats):
                    name = f"{learner.public} {epsilon} {again} {arena.constants.n0}"
                    right.append(accuracy(arena, trained(arena, training, name), ALONE))
                error = np.std(right, ddof=1) / len(right) ** 0.5
                cell = f"{np.mean(right):.3f} ± {error:.3f}"
                print_row(count, learner.public, f"{epsilon:g}", cell)


def tuned_tensors(cut: Arena, count: int, epochs: int) -> Mapping[str, Tensor]:
    """Those of the network that the first so many records train; none without an epoch."""
    if not epochs:
        return {}
    sample = Data(cut.train.features[:count], cut.train.labels[:count])
    network = tune_network(sample, cut.constants, epochs, cut.resources)
    right = np.round(network.right, 3)
    print(f"tuned for {network.epochs} epochs; of those held out right: {right}")
    return network.tensors


def put_out(arena: Arena, tensors: Mapping[str, Tensor]) -> Arena:
    """The same records as a head sees them, above a network with these tensors of its own."""
    model = tuned_model(FineTune(trains="head"), arena.constants).copy_to(torch.device("cpu"))
    module = model.module
    assert isinstance(module, AboveCut)
    module.network.load_state_dict(tensors, strict=False)

    @torch.inference_mode()
    def seen(rows: NDArray[np.float32]) -> NDArray[np.float32]:
        parts = (torch.from_numpy(rows[first : first + 250]) for first in range(0, len(rows), 250))
        return np.concatenate([module.pooled(part).numpy() for part in parts])

    train, test = (replace(one, features=seen(one.features)) for one in (arena.train, arena.test))
    constants = replace(arena.constants, network=None, dimension=train.features.shape[1])
    return replace(arena, train=train, test=test, constants=constants)


if __name__ == "__main__":
    main()
